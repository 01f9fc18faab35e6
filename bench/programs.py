#!/usr/bin/env python3
"""PyTorch, CuPy and JAX with Tilegate and without: accuracy, losses, times; tables and a picture.

    python bench/programs.py --preload build/gpu/kernels/blas/libtilegate_cublas.so

Needs PyTorch and the package tilegate (pip install ./kernels/python). Further: expecttest for the
samples of PyTorch's operators, transformers for the models, CuPy and JAX where they are to be
tried, altair and vl-convert-python for the picture. What is not installed is left out, and said.
Every pair of a task and a mode runs in a process of its own:

    torch         PyTorch as it is, in FP32
    tf32          PyTorch, TF32 allowed
    preload-MATH  the same program with LD_PRELOAD and TILEGATE_MATH=fp32 or fp32_split
    override      inside `with tilegate.override():`

Without a GPU (--device cpu) torch and override alone run, by a library that was built for the CPU:
to try the script, not to measure.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

Result = dict[str, Any]

# Models as transformers calls their extents, then the batch: sequences and tokens of each.
GPTS = {
    "GPT, 200 steps": ({"n_layer": 4, "n_embd": 256, "n_head": 4}, (16, 256), 200),
    "GPT-2 small": ({"n_layer": 12, "n_embd": 768, "n_head": 12}, (8, 1024), 20),
    "GPT, 4 layers 2048 wide": ({"n_layer": 4, "n_embd": 2048, "n_head": 16}, (4, 1024), 20),
}
TINY_GPTS = {name: ({"n_layer": 1, "n_embd": 32, "n_head": 2}, (2, 8), 3) for name in GPTS}
SHOWN_OPERATORS = 20  # of a training step
LOSSES = next(iter(GPTS))  # whose losses are compared
GOALS = {"GPT-2 small": 1.7, "GPT, 4 layers 2048 wide": 2.9}  # times PyTorch's speed, split
WORKSPACES = [":4096:8", ":16:8", ":4096:2", ":0:0", ":32768:4"]  # for the spread of FP32

# PyTorch's operators that multiply matrices, by their names in its database of samples.
OPERATORS = [
    "__rmatmul__",
    "addbmm",
    "addmm",
    "addmv",
    "baddbmm",
    "bmm",
    "cdist",
    "corrcoef",
    "cov",
    "einsum",
    "inner",
    "linalg.matrix_power",
    "linalg.multi_dot",
    "matmul",
    "matrix_exp",
    "mm",
    "mv",
    "nn.functional.bilinear",
    "nn.functional.linear",
    "nn.functional.scaled_dot_product_attention",
    "tensordot",
]

LARGE = [(1024, 1024, 1024), (4096, 4096, 1024), (4096, 4096, 4096), (8192, 1024, 2048)]


class Device:
    """Where the tensors are; times of what runs there. `profiles`: also by operator."""

    def __init__(self, name: str, profiles: bool = False) -> None:
        import torch

        self.torch = torch
        self.name = name
        self.profiles = profiles

    def wait(self) -> None:
        if self.name == "cuda":
            self.torch.cuda.synchronize()

    def operators(self, call: Callable[[], object]) -> dict[str, float]:
        """Milliseconds of the kernels of one call, by the operator that launches them and the
        shapes of its inputs."""
        profiler = self.torch.profiler
        kinds = [profiler.ProfilerActivity.CPU]
        if self.name == "cuda":
            kinds.append(profiler.ProfilerActivity.CUDA)
        with profiler.profile(activities=kinds, record_shapes=True) as profile:
            call()
            self.wait()
        found: dict[str, float] = {}
        for event in profile.key_averages(group_by_input_shape=True):
            if event.device_type != self.torch.autograd.DeviceType.CPU:  # a kernel
                continue
            shapes = ["x".join(map(str, shape)) for shape in event.input_shapes if shape]
            name = " ".join([event.key, *shapes])
            on_cpu, on_device = event.self_cpu_time_total, event.self_device_time_total
            time_us = on_device if self.name == "cuda" else on_cpu
            if time_us > 0:
                found[name] = found.get(name, 0.0) + time_us / 1e3
        return found

    def seconds(self, call: Callable[[], object], runs: int = 7) -> float:
        """Of one call: the median over `runs` of as many calls as take 2 ms."""
        self.wait()
        begin = time.perf_counter()
        call()
        self.wait()
        count = max(1, min(1000, int(2e-3 / max(time.perf_counter() - begin, 1e-7))))
        found = []
        for _ in range(runs):
            begin = time.perf_counter()
            for _ in range(count):
                call()
            self.wait()
            found.append((time.perf_counter() - begin) / count)
        return statistics.median(found)


# Tasks. Each gives what goes into results.json for one mode.


def operators(device: Device, tiny: bool) -> Result:
    """Every sample, forward and gradients: error against float64, and seconds."""
    torch = device.torch
    from torch.testing._internal.common_methods_invocations import op_db

    samples = []
    for info in (info for info in op_db if info.name in OPERATORS):
        torch.manual_seed(1)  # each mode has the same samples
        made = [
            sample
            for sample in info.sample_inputs(device.name, torch.float32, requires_grad=True)
            if not sample.kwargs.get("dropout_p")  # whose results are random
        ]
        for number, sample in enumerate(made[:2] if tiny else made):
            call = _Sample(torch, info.op, sample)
            error = call.error()
            if error is not None:
                seconds = device.seconds(call.forward, 1 if tiny else 7)
                samples.append(
                    {"name": f"{info.full_name}/{number}", "error": error, "seconds": seconds}
                )
    for m, n, k in [(24, 20, 16)] if tiny else LARGE:
        generator = torch.Generator(device.name).manual_seed(1)
        a, b = (
            torch.randn(shape, generator=generator, device=device.name)
            for shape in ((m, k), (k, n))
        )
        exact = a.double() @ b.double()
        error = float((torch.mm(a, b) - exact).norm() / exact.norm())
        seconds = device.seconds(lambda a=a, b=b: torch.mm(a, b))
        samples.append({"name": f"mm/{m}x{n}x{k}", "error": error, "seconds": seconds})
    return {"samples": samples}


class _Sample:
    def __init__(self, torch: Any, op: Any, sample: Any) -> None:
        self.torch, self.op, self.sample = torch, op, sample

    def forward(self) -> Any:
        return self.op(self.sample.input, *self.sample.args, **self.sample.kwargs)

    def error(self) -> float | None:
        """The largest relative error, in norm, of results and gradients; None: nothing to judge."""
        torch = self.torch
        found = self._results(self.sample)
        exact = self._results(self.sample.transform(_to_double(torch)))
        pairs = [(a, b) for a, b in zip(found, exact) if b.numel() and bool(b.norm() > 0)]
        if not pairs:
            return None
        return max(float((a.double() - b).norm() / b.norm()) for a, b in pairs)

    def _results(self, sample: Any) -> list[Any]:
        torch = self.torch
        out = self.op(sample.input, *sample.args, **sample.kwargs)
        given = [sample.input, *sample.args, *sample.kwargs.values()]
        leaves = [
            leaf
            for value in given
            for leaf in (value if isinstance(value, (list, tuple)) else [value])
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad
        ]
        grads = torch.autograd.grad(out.sum(), leaves, allow_unused=True)
        return [out.detach(), *(grad for grad in grads if grad is not None)]


def _to_double(torch: Any) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return value
        return value.detach().double().requires_grad_(value.requires_grad)

    return convert


def gpt(device: Device, tiny: bool) -> Result:
    """Losses of training on a fixed text, and seconds of a step, of each model."""
    return {
        name: train(device, 64 if tiny else 50257, *model)
        for name, model in (TINY_GPTS if tiny else GPTS).items()
    }


def train(
    device: Device, words: int, extents: dict[str, int], shape: tuple[int, int], steps: int
) -> Result:
    torch = device.torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=words, n_positions=shape[1],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **extents,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).to(device.name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    text = torch.randint(words, (8, *shape), device=device.name)

    def loss_of(step: int) -> float:
        loss = model(input_ids=text[step % 8], labels=text[step % 8]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss)  # waits

    losses, seconds = [], []
    for step in range(steps):
        begin = time.perf_counter()
        losses.append(loss_of(step))
        device.wait()
        seconds.append(time.perf_counter() - begin)
    return {
        "losses": losses,
        "seconds": statistics.median(seconds[steps // 4 :]),
        "operators": device.operators(lambda: loss_of(steps)) if device.profiles else {},
    }


def vit(device: Device, tiny: bool) -> Result:
    """Inference of a vision transformer with random weights."""
    torch = device.torch
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(1)
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 64, "image_size": 32} if tiny else {}  # fmt: skip
    config = ViTConfig(**small)
    model = ViTModel(config).to(device.name).eval()
    images = torch.randn(2 if tiny else 64, 3, config.image_size, config.image_size)
    images = images.to(device.name)
    with torch.no_grad():
        features = model(pixel_values=images).last_hidden_state
        seconds = device.seconds(lambda: model(pixel_values=images), 1 if tiny else 7)
        exact = model.double()(pixel_values=images.double()).last_hidden_state
    error = float((features.double() - exact).norm() / exact.norm())
    return {"error": error, "seconds": seconds}


def gemv(device: Device, tiny: bool) -> Result:
    """Matrix times vector; the preload takes it over with TILEGATE_GEMV=1, which is set here."""
    torch = device.torch
    found = {}
    for m, n in [(40, 30)] if tiny else [(1024, 1024), (4096, 4096), (16384, 4096), (4096, 16384)]:
        a, x = torch.randn(m, n, device=device.name), torch.randn(n, device=device.name)
        found[f"{m}x{n}"] = device.seconds(lambda a=a, x=x: torch.mv(a, x))
        found[f"{m}x{n}, then transposed"] = device.seconds(lambda a=a, x=x: torch.mv(a.mT, a @ x))
    return {"seconds": found}


def overhead(device: Device, tiny: bool) -> Result:
    """Microseconds of the host per call, of products too small for the device to matter."""
    torch = device.torch
    import tilegate

    a = torch.ones(16, 16, device=device.name)
    calls: dict[str, Callable[[], object]] = {
        "torch.mm": lambda: torch.mm(a, a),
        "tilegate.matmul": lambda: tilegate.matmul(a, a),
    }
    count, found = 20 if tiny else 2000, {}
    for name, call in calls.items():
        for _ in range(10):
            call()
        device.wait()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        found[name] = (time.perf_counter() - begin) / count * 1e6
        device.wait()
    return {"microseconds": found}


# The modes, shapes and distributions for which errors of products are compared with cuBLAS's.
COMPARED = ("preload-fp32", "preload-fp32_split")
SHAPES = [
    (704, 1664, 896), (1024, 1024, 1024), (1536, 1536, 4096), (2047, 2049, 2051),
    (2304, 8192, 4096), (2560, 2560, 2560), (3001, 2999, 3003), (3072, 3072, 3072),
    (3072, 3072, 8192), (4096, 4096, 4096), (4097, 4095, 4093), (5120, 5120, 5120),
    (8192, 768, 3072), (8192, 768, 8192),
]  # fmt: skip


def distributions(torch: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """Elements from normal numbers n and numbers u from 0 to 1."""
    return {
        "normal": lambda n, u: n,
        "max(normal, 0)": lambda n, u: n.relu(),
        "normal, 3 of 4 zero": lambda n, u: n * (u < 0.25),
        "normal, 9 of 10 zero": lambda n, u: n * (u < 0.1),
        "normal, 99 of 100 zero": lambda n, u: n * (u < 0.01),
        "normal, rows of 1 to 100 % zero": lambda n, u: n * (u > n[:, :1].abs().clamp(0.01, 1)),
        "normal, 2 % six times": lambda n, u: n * torch.where(u < 0.02, 6.0, 1.0),
        "normal cubed": lambda n, u: n**3,
        "logistic": lambda n, u: torch.log(u / (1 - u)),
        "Laplace": lambda n, u: torch.sign(u - 0.5) * -torch.log(1 - 2 * (u - 0.5).abs()),
        "Cauchy, up to 1e4": lambda n, u: torch.tan(math.pi * (u - 0.5)).clamp(-1e4, 1e4),
        "(U - 1/2) e^(0.7 N)": lambda n, u: (u - 0.5) * torch.exp(0.7 * n),
        "(U - 1/2) e^(2 N)": lambda n, u: (u - 0.5) * torch.exp(2 * n),
    }


def products(device: Device, tiny: bool) -> Result:
    """Errors of torch.mm on the first 256 rows, for each shape, form and distribution: in the
    Frobenius norm, and the largest relative to |A||B|."""
    torch = device.torch
    generator = torch.Generator(device.name).manual_seed(7)
    options = {"device": device.name, "generator": generator}
    errors = {}
    for m, n, k in [(24, 20, 16)] if tiny else SHAPES:
        for form in ("NN", "NT", "TN", "TT"):
            for name, of in distributions(torch).items():

                def operand(rows: int, columns: int, op: str, of: Any = of) -> Any:
                    shape = (rows, columns) if op == "N" else (columns, rows)
                    normal = torch.randn(shape, **options)
                    uniform = torch.rand(shape, **options).clamp_(1e-7, 1 - 1e-7)
                    made = of(normal, uniform).contiguous()
                    return made if op == "N" else made.mT

                a, b = operand(m, k, form[0]), operand(k, n, form[1])
                found = torch.mm(a, b)[:256].double()
                exact = a[:256].double() @ b.double()
                error, size = found - exact, a[:256].double().abs() @ b.double().abs()
                errors[f"{m}x{n}x{k}/{form} {name}"] = [
                    float(error.norm() / exact.norm()),
                    float((error.abs() / size.clamp_min(1e-300)).max()),
                ]
    return {"errors": errors}


def cupy(device: Device, tiny: bool) -> Result:
    import cupy as cp

    a = cp.random.default_rng(1).standard_normal((1024, 1024), dtype=cp.float32)
    exact = a.astype(cp.float64) @ a.astype(cp.float64)
    return {"error": float(cp.linalg.norm(a @ a - exact) / cp.linalg.norm(exact))}


def jax(device: Device, tiny: bool) -> Result:
    import jax.numpy as jnp
    import numpy as np

    a = np.random.default_rng(1).standard_normal((1024, 1024)).astype(np.float32)
    exact = a.astype(np.float64) @ a.astype(np.float64)
    found = np.asarray(jnp.matmul(a, a, precision="highest"))
    return {"error": float(np.linalg.norm(found - exact) / np.linalg.norm(exact))}


# The task, the packages that it needs, its modes.
_ALL = ("torch", "tf32", "preload-fp32", "preload-fp32_split", "override")
_PRELOADS = ("torch", "preload-fp32", "preload-fp32_split")
TASKS: dict[str, tuple[Callable[[Device, bool], Result], tuple[str, ...], tuple[str, ...]]] = {
    "operators": (operators, ("torch", "expecttest"), _ALL),
    "gpt": (gpt, ("torch", "transformers"), _ALL),
    "vit": (vit, ("torch", "transformers"), _ALL),
    "gemv": (gemv, ("torch",), _PRELOADS),
    "overhead": (overhead, ("torch", "tilegate"), ("torch", "override")),
    "products": (products, ("torch",), _PRELOADS),
    "cupy": (cupy, ("torch", "cupy"), _PRELOADS),
    "jax": (jax, ("torch", "jax"), _PRELOADS),
}


def work(task: str, mode: str, options: argparse.Namespace, out: Path) -> None:
    """One task in one mode, in this process."""
    device, tiny = Device(options.device, options.profile), options.tiny
    torch = device.torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"
    how: Any = nullcontext()
    if mode == "override":
        import tilegate

        how = tilegate.override(least=0) if tiny else tilegate.override()
    with how:
        found = TASKS[task][0](device, tiny)
    out.write_text(json.dumps(found), encoding="utf-8")


# The runs.


def runs(options: argparse.Namespace) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Task, mode, and what is set in the environment; what cannot run is said."""
    for task, (_, packages, modes) in TASKS.items():
        if options.task and task not in options.task:
            continue
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        if missing or (options.device == "cpu" and task in ("cupy", "jax")):
            print(f"{task}: left out: {', '.join(missing) or 'needs a GPU'}")
            continue
        for mode in modes:
            if options.mode and mode not in options.mode:
                continue
            if mode.startswith("preload") and options.preload:
                math_of_mode = mode.removeprefix("preload-")
                yield task, mode, {"LD_PRELOAD": str(options.preload), "TILEGATE_LOG": "summary",
                                   "TILEGATE_MATH": math_of_mode, "TILEGATE_GEMV": "1"}  # fmt: skip
            elif mode == "override" and importlib.util.find_spec("tilegate") is None:
                print(f"{task} {mode}: left out: the package tilegate is not installed")
            elif not mode.startswith("preload") and not (
                mode == "tf32" and options.device == "cpu"
            ):
                yield task, mode, {}
        if task == "gpt" and options.device == "cuda" and not options.mode:
            for workspace in WORKSPACES:
                yield task, f"torch {workspace}", {"CUBLAS_WORKSPACE_CONFIG": workspace}


def measure(options: argparse.Namespace) -> Result:
    import torch

    found: Result = {
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "CPU",
        "torch": torch.__version__,
        "tasks": {},
    }
    planned = list(runs(options))
    for number, (task, mode, variables) in enumerate(planned, 1):
        print(f"[{number}/{len(planned)}] {task}, {mode}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "result.json"
            command = [sys.executable, __file__, "--worker", task, mode.split()[0], str(out),
                       "--device", options.device, *["--tiny"] * options.tiny,
                       *["--profile"] * options.profile]  # fmt: skip
            done = subprocess.run(
                command,
                env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                print(done.stderr[-2000:], file=sys.stderr)
                result: Result = {"failed": done.stderr.strip().splitlines()[-1:]}
            else:
                result = json.loads(out.read_text("utf-8"))
        result["calls"] = re.findall(r"^tilegate: (\d+ x .*)$", done.stderr, re.MULTILINE)
        found["tasks"].setdefault(task, {})[mode] = result
    return found


# The tables.


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) + "\n"


def good(task: Result) -> Result:
    return {mode: result for mode, result in task.items() if "failed" not in result}


def speeds(results: Result) -> str:
    """Models: milliseconds and PyTorch's time over that of the mode."""
    rows = []
    per_model: dict[str, dict[str, float]] = {}
    for mode, result in good(results["tasks"].get("gpt", {})).items():
        for name in GPTS:
            per_model.setdefault(name, {})[mode] = result[name]["seconds"]
    for mode, result in good(results["tasks"].get("vit", {})).items():
        per_model.setdefault("ViT, inference", {})[mode] = result["seconds"]
    for name, seconds in per_model.items():
        for mode, value in seconds.items():
            if " " in mode:  # a workspace of the spread
                continue
            ratio = f"{seconds['torch'] / value:.2f}" if "torch" in seconds else ""
            goal = f"{GOALS[name]}" if name in GOALS and mode == "preload-fp32_split" else ""
            rows.append([name, mode, f"{value * 1e3:.2f}", ratio, goal])
    return table(["program", "mode", "ms per step", "PyTorch's time over it", "goal"], rows)


def operators_of_a_step(results: Result) -> str:
    """Milliseconds of a training step by operator, the longest first, and what is left."""
    modes = {
        mode: result
        for mode, result in good(results["tasks"].get("gpt", {})).items()
        if " " not in mode and result[LOSSES]["operators"]
    }
    parts = []
    for name in GPTS if modes else ():
        times = {mode: result[name]["operators"] for mode, result in modes.items()}
        longest = {key: max(of.get(key, 0.0) for of in times.values())
                   for key in {key for of in times.values() for key in of}}  # fmt: skip
        shown = sorted(longest, key=lambda key: -longest[key])[:SHOWN_OPERATORS]
        rows = [[key, *(f"{of.get(key, 0.0):.2f}" for of in times.values())] for key in shown]
        rest = [sum(of.values()) - sum(of.get(key, 0.0) for key in shown) for of in times.values()]
        rows.append(["others", *(f"{value:.2f}" for value in rest)])
        rows.append(["all", *(f"{sum(of.values()):.2f}" for of in times.values())])
        parts.append(f"{name}, ms:\n\n{table(['operator', *times], rows)}")
    return "\n".join(parts)


def losses(results: Result) -> str:
    """How far losses are from PyTorch's, beside the spread of its own runs."""
    modes = good(results["tasks"].get("gpt", {}))
    if "torch" not in modes:
        return ""
    base = modes["torch"][LOSSES]["losses"]
    rows = [
        [mode, f"{result[LOSSES]['losses'][-1]:.7f}",
         f"{max(abs(x - y) for x, y in zip(result[LOSSES]['losses'], base)):.1e}"]
        for mode, result in modes.items()
    ]  # fmt: skip
    return table(["mode", "last loss", "largest difference from torch"], rows)


def accuracy(results: Result) -> str:
    """Samples of operators: errors and times beside PyTorch's."""
    modes = good(results["tasks"].get("operators", {}))
    if "torch" not in modes:
        return ""
    base = {sample["name"]: sample for sample in modes["torch"]["samples"]}
    rows = []
    for mode, result in modes.items():
        pairs = [(x, base[x["name"]]) for x in result["samples"] if x["name"] in base]
        ratios = [(x["seconds"] / y["seconds"], x["name"], y["seconds"]) for x, y in pairs]
        slower = [item for item in ratios if item[0] > 1.05]
        long_and_slower = [item for item in slower if item[2] >= 1e-3]
        worst = max(ratios, key=lambda item: item[0], default=(math.nan, "", 0.0))
        rows.append([
            mode, str(len(pairs)), f"{max(x['error'] for x, _ in pairs):.1e}",
            str(sum(x["error"] > max(2 * y["error"], 1e-6) for x, y in pairs)),
            str(len(slower)), str(len(long_and_slower)), f"{worst[0]:.2f} ({worst[1]})",
        ])  # fmt: skip
    head = ["mode", "samples", "largest error", "above twice PyTorch's and 1e-6",
            "slower by 5 %", "of these from 1 ms on", "slowest"]  # fmt: skip
    return table(head, rows)


def less_accurate(results: Result) -> str:
    """Products by distribution: how many have an error above that of cuBLAS and 2^-24, and the
    largest quotient of the errors, in the norm and of an element."""
    modes = good(results["tasks"].get("products", {}))
    if not {"torch", *COMPARED} <= set(modes):
        return ""
    rows: dict[str, list[str]] = {}
    for mode in COMPARED:
        found: dict[str, list[tuple[float, float]]] = {}
        for case, of_cublas in modes["torch"]["errors"].items():
            quotients = zip(modes[mode]["errors"][case], of_cublas)
            norm, element = (x / max(y, 2**-24) for x, y in quotients)
            found.setdefault(case.split(" ", 1)[1], []).append((norm, element))
        for name, pairs in found.items():
            row = rows.setdefault(name, [name, str(len(pairs))])
            row.append(str(sum(max(pair) > 1 for pair in pairs)))
            row.extend(f"{max(of):.2f}" for of in zip(*pairs))
    columns = ["above cuBLAS", "norm", "element"]
    head = [f"{mode.removeprefix('preload-')}: {column}" for mode in COMPARED for column in columns]
    return table(["elements", "products", *head], list(rows.values()))


def others(results: Result) -> str:
    rows = []
    for task in ("gemv", "overhead", "cupy", "jax", "vit"):
        for mode, result in results["tasks"].get(task, {}).items():
            values = {key: value for key, value in result.items() if key != "calls"}
            rows.append([task, mode, json.dumps(values)])
    return table(["task", "mode", "result"], rows)


def calls(results: Result) -> str:
    rows = [
        [task, mode, line]
        for task, modes in results["tasks"].items()
        for mode, result in modes.items()
        for line in result["calls"]
    ]
    return table(["task", "mode", "what the preload did"], rows) if rows else ""


def page(results: Result) -> str:
    parts = {
        "Models": speeds(results), "A step by operator": operators_of_a_step(results),
        "Losses": losses(results), "Operators": accuracy(results),
        "Errors of products over those of cuBLAS": less_accurate(results),
        "Others": others(results), "Calls of cuBLAS": calls(results),
    }  # fmt: skip
    text = f"# Programs\n\n{results['device']}, PyTorch {results['torch']}.\n"
    return text + "".join(f"\n## {name}\n\n{part}" for name, part in parts.items() if part)


RESULTS = Path(__file__).parent / "results"


def committed(name: str) -> str:
    """The tables of kernels/blas/README.md, or of kernels/18_int8x3/EXPERIMENTS.md, from the
    newest of the committed results, which are the first of their file."""
    tables = {"programs": speeds, "products": less_accurate}[name]
    results = json.loads((RESULTS / f"nvidia-h200-{name}.json").read_text("utf-8"))[0]
    made = (
        f"{results['device']}, driver {results['driver']}, CUDA {results['cuda']}, PyTorch "
        f"{results['torch']}, commit {results['commit'][:12]}."
    )
    return f"{tables(results)}\n{made}\n"


def draw(results: Result, path: Path) -> bool:
    """Loss curves: PyTorch's runs, ours, TF32. False: there are none."""
    base = good(results["tasks"].get("gpt", {}))
    points = [
        {"step": step, "loss": loss, "mode": mode}
        for mode, result in base.items()
        for step, loss in enumerate(result[LOSSES]["losses"])
    ]
    if not points:
        return False
    if importlib.util.find_spec("altair") is None or importlib.util.find_spec("vl_convert") is None:
        print(f"{path.name}: left out: pip install altair vl-convert-python")
        return False
    import altair as alt

    chart = (
        alt.Chart(alt.Data(values=points), title=f"{LOSSES}, {results['device']}")
        .mark_line()
        .encode(x="step:Q", y=alt.Y("loss:Q", scale=alt.Scale(zero=False)), color="mode:N")
    )
    chart.save(str(path))
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preload", type=Path, help="libtilegate_cublas.so")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--task", action="append", choices=TASKS, help="one of several; all")
    parser.add_argument("--mode", action="append", choices=_ALL, help="one of several; all")
    parser.add_argument("--out", type=Path, default=Path("build/programs"))
    parser.add_argument("--tiny", action="store_true", help="sizes that try the script alone")
    parser.add_argument("--profile", action="store_true",
                        help="also the device time of one training step, by operator")  # fmt: skip
    parser.add_argument("--page", choices=("programs", "products"),
                        help="print the tables of the committed results")  # fmt: skip
    parser.add_argument("--worker", nargs=3, metavar=("TASK", "MODE", "FILE"),
                        help=argparse.SUPPRESS)  # fmt: skip
    options = parser.parse_args()
    if options.worker:
        task, mode, out = options.worker
        work(task, mode, options, Path(out))
        return 0
    if options.page:
        print(committed(options.page), end="")
        return 0
    if importlib.util.find_spec("torch") is None:
        parser.error("PyTorch is not installed: pip install torch")
    import torch

    if options.out.exists() and not options.out.is_dir():
        parser.error(f"--out: {options.out} is no folder")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch finds no GPU; --device cpu tries the script without one")
    if options.preload and not options.preload.is_file():
        parser.error(f"--preload: there is no {options.preload}")
    if options.preload and options.device == "cpu":
        parser.error("--preload: on the CPU PyTorch calls no cuBLAS")
    if not options.preload and options.device == "cuda":
        print("without --preload its modes are left out")
    if options.preload:
        options.preload = options.preload.resolve()
    results = measure(options)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    (options.out / "programs.md").write_text(page(results), encoding="utf-8")
    written = ["results.json", "programs.md"]
    if draw(results, options.out / "losses.svg"):
        written.append("losses.svg")
    failed = [
        f"{task}, {mode}" for task, modes in results["tasks"].items()
        for mode, result in modes.items() if "failed" in result
    ]  # fmt: skip
    print(f"{options.out}: {', '.join(written)}")
    if failed:
        print(f"failed: {'; '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
