"""ci/gate profile: profiles rungs with Nsight Compute."""

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

from tilegate_ci.checks.committed import chosen
from tilegate_ci.checks.profile import markdown, metric_names, parse_csv, read_kernel
from tilegate_ci.commands.arguments import commit_of
from tilegate_ci.core import child, documents
from tilegate_ci.core.files import GateError, make_folder, message, write_text
from tilegate_ci.formats.profile import (
    ProfiledKernel,
    ProfiledRung,
    ProfileFile,
    joined,
    parse_device,
)
from tilegate_ci.formats.stages import read_stages
from tilegate_ci.measure.conditions import check_gpu
from tilegate_ci.measure.projects import build_preset
from tilegate_ci.model import REPOSITORY, device_stem

RECORD = REPOSITORY / "bench" / "profile"  # every rung at the default shape, committed
SCRATCH = REPOSITORY / "build" / "profile"  # output of ncu, and profiles of other choices
SHAPE = "4096x4096x4096"

DEFAULTS = {"shape": SHAPE}


def run(arguments: argparse.Namespace) -> int:
    if arguments.render:
        _render(Path(arguments.render))
        return 0
    ncu, commit = find_tools(), commit_of(arguments)
    build = build_preset("gpu", "profile_target", REPOSITORY)
    target = build / "bench" / "profile_target"
    known = [stage.name for stage in read_stages(build)]
    chosen([name.split(".")[0] for name in arguments.rungs], known)  # Rung.variant
    names = arguments.rungs or known
    device = parse_device(child.output([str(target), "--device"]))
    rungs = []
    for number, name in enumerate(names, 1):
        message(f"profiling {name} ({number} of {len(names)})")
        rungs.append(_profiled(ncu, target, name, arguments.shape))
    version = re.search(r"^Version (\S+)", child.output([ncu, "--version"]), re.MULTILINE)
    profile = ProfileFile(
        schema=1,
        commit=commit,
        device=device,
        ncu=version[1] if version else "unknown",
        shape=arguments.shape,
        rungs=rungs,
    )
    is_record = not arguments.rungs and arguments.shape == SHAPE
    folder = arguments.out or (RECORD if is_record else SCRATCH)
    make_folder(folder)
    path = folder / f"{device_stem(device.name)}.json"
    if arguments.rungs and arguments.out and path.exists():
        profile = joined(documents.load(ProfileFile, path), profile)
    write_text(path, documents.to_text(profile))
    sys.stdout.write(f"{os.path.relpath(path)}\n")
    _render(path)
    return int(any(rung.error for rung in rungs))


def find_tools() -> str:
    """The path of ncu; GateError where it, a GPU or nvcc is not here."""
    check_gpu()
    if shutil.which("nvcc") is None:
        raise GateError("nvcc is missing: install the CUDA toolkit and put its bin folder on PATH.")
    ncu = shutil.which("ncu")
    if ncu is None:
        raise GateError(
            "Nsight Compute's ncu is missing: install the CUDA toolkit's nsight-compute package "
            "(https://developer.nvidia.com/nsight-compute) and put its folder on PATH."
        )
    return ncu


def _profiled(ncu: str, target: Path, rung: str, shape: str) -> ProfiledRung:
    """`error` in it says why it could not be profiled."""
    command = [ncu, "--clock-control=none"]  # the machine's settings are left alone
    command += ["--replay-mode=kernel", "--profile-from-start=off"]
    command += ["--csv", "--page=raw", "--print-units=base"]
    done = child.run(
        [*command, f"--metrics={','.join(metric_names())}", str(target), f"{rung}/{shape}"],
        cwd=REPOSITORY,
        env={**os.environ, "LC_ALL": "C"},  # no separators between thousands
        capture_output=True,
    )
    if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
        raise GateError(
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run ci/gate profile as "
            "root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0 "
            "(https://developer.nvidia.com/ERR_NVGPUCTRPERM)."
        )
    make_folder(SCRATCH)
    write_text(SCRATCH / f"{rung}.csv", done.stdout)
    try:
        kernels = read_output(done.returncode, done.stdout, done.stderr)
        return ProfiledRung(name=rung, kernels=kernels)
    except GateError as problem:
        message(f"{rung}: {problem}")
        return ProfiledRung(name=rung, kernels=[], error=str(problem))


def read_output(returncode: int, output: str, errors: str) -> list[ProfiledKernel]:
    """The kernels that ncu printed."""
    if returncode:
        # The program's own message says more than its exit code.
        reasons = re.findall(r"^profile_target: (.*)$", errors, re.MULTILINE)
        reasons += re.findall(r"^==ERROR== (.*)$", output + "\n" + errors, re.MULTILINE)
        raise GateError(reasons[0] if reasons else f"ncu ended with exit code {returncode}")
    kernels = [read_kernel(row) for row in parse_csv(output)]
    if not kernels:
        raise GateError("ncu saw no kernel")
    return kernels


def _render(path: Path) -> None:
    text = markdown(documents.load(ProfileFile, path))
    page = path.with_suffix(".md")
    write_text(page, text)
    sys.stdout.write(f"{os.path.relpath(page)}\n")
