#!/usr/bin/env python3
"""Stands in for the bench binary: its command line and files, without a device.

Beside a copy of it called NAME.py, NAME.json may set: slow (rung to percent), noise (standard
deviation of the log of a process), quiet (rungs without it), seed, context, verified, fail (text),
fail_after (processes that still work), old (names as an older bench writes them), and of another
board clock (percent by which all times are longer) and ratio (percent by which those of the rungs
are longer than those of cuBLAS)."""

import itertools
import json
import math
import random
import re
import sys
from pathlib import Path

CONTEXT = {
    "device_kind": "cuda",
    "device_name": "NVIDIA H200",
    "driver": "580.65.06",
    "cuda": "13.0",
    "cublas": "13.1.0",
    "compute_capability": "90",
    "multiprocessors": "132",
}

# What the bench of a base knows, which may be as old as the commit that a change is judged by.
FLAGS = {
    "alone", "benchmark_filter", "benchmark_list_tests", "benchmark_min_time", "benchmark_out",
    "benchmark_out_format", "cold", "configurations", "placements", "plant", "samples", "seed",
    "shapes", "variants",
}  # fmt: skip


def main(argv: list[str]) -> int:
    flags = dict(argument[2:].partition("=")[::2] for argument in argv[1:])
    if unknown := flags.keys() - FLAGS:
        sys.stderr.write(f"unknown argument {sorted(unknown)}\n")
        return 2
    beside = Path(argv[0]).with_suffix(".json")
    settings = json.loads(beside.read_text()) if beside.exists() else {}
    counter = Path(argv[0]).with_suffix(".count")
    number = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(number + 1))
    if "fail" in settings and number >= settings.get("fail_after", 0):
        sys.stderr.write(settings["fail"] + "\n")
        return 1
    draw = random.Random(f"{settings.get('seed', 0)}:{number}")
    slow = dict(settings.get("slow", {}))
    context = {**CONTEXT, "seed": flags.get("seed", "1"), **settings.get("context", {})}
    clock, board = (1 + settings.get(each, 0) / 100 for each in ("clock", "ratio"))
    plant = flags.get("plant")
    if plant:
        context["plant"] = plant
        slow[plant.split(":")[0]] = float(plant.split(":")[1])

    rows, replays = [], ["benchmark,place,rung_s,cublas_s"]
    wanted = flags.get("benchmark_filter", "")
    rungs = re.findall(r"(\w+)/\(", wanted) or ["Naive", "Swizzle"]
    for rung, shape in itertools.product(rungs, flags.get("shapes", "64x64x64").split(",")):
        name, (m, n, k) = f"{rung}/{shape}", shape.split("/")[0].split("x")
        if not re.search(wanted, name + "/manual_time"):
            continue
        noise = 0.001 if rung in settings.get("quiet", ()) else settings.get("noise", 0.001)
        factor = math.exp(draw.gauss(0, noise)) * (1 + slow.get(rung, 0) / 100)
        factor *= board if rung != "Cublas" else 1
        seconds = [
            (1e-3 * factor * draw.gauss(1, 1e-4), 1e-3 * draw.gauss(1, 1e-4)) for _ in range(9)
        ]
        replays += [f"{name},0,{rung_s!r},{cublas_s!r}" for rung_s, cublas_s in seconds]
        row = {
            "name": name + "/manual_time" * settings.get("old", False),
            **({} if settings.get("old") else {"m": int(m), "n": int(n), "k": int(k)}),
            "run_type": "iteration",
            "GFLOPS": 2e-9 * int(m) * int(n) * int(k) / (1e-3 * factor * clock),
            "ratio_to_cublas": 1 / factor,
            "pct_peak": 1.0,
            "bytes": 4096.0,
            "verified": settings.get("verified", 1.0),
        }
        if flags.get("placements", "1") != "1":
            row["placement_pct"] = 0.1
        if plant and plant.split(":")[0] == rung:
            row["planted_pct"] = slow[rung]
        rows.append(row)
    if "samples" in flags:
        Path(flags["samples"]).write_text("\n".join(replays) + "\n")
    document = {"context": context, "benchmarks": rows}
    Path(flags["benchmark_out"]).write_text(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
