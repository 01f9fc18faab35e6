"""Measures lane patterns and the ladder's cases with Nsight Compute, on a machine with a GPU.

    tests/counters/device/measure.py patterns build/gpu/tests/counters/patterns > patterns.json
    tests/counters/device/measure.py cases build/gpu/tests/counters/launch_cases CASE... > cases.json

Cases are measured several times: what differs between runs is noise of the measurement.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from patterns import patterns

RUNS = 3
METRICS = {
    "global_load.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load.requests": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared_load.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_load.conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store.requests": "smsp__sass_inst_executed_op_shared_st.sum",
    "shared_store.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_store.conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "fma": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
}
CASE_METRICS = {
    # Counted at the instruction instead of in the pipe; without the noise of arbitration.
    "sass_shared_load.wavefronts": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "sass_shared_store.wavefronts": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "warp_barriers": "smsp__inst_executed_op_barrier.sum",
}


def available() -> set[str]:
    listed = subprocess.run(
        ["ncu", "--query-metrics"], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[0] for line in listed.splitlines() if line.strip()}


def measure(
    command: list[str], metrics: dict[str, str], given: str | None = None
) -> list[dict[str, object]]:
    """One row a kernel launch: its name and its metrics."""
    profile = ["ncu", "--csv", "--page", "raw", "--clock-control", "none", "--cache-control", "none"]
    profile += ["--metrics", ",".join(metrics.values()), "--print-kernel-base", "mangled"]
    done = subprocess.run([*profile, *command], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"measure: {done.stdout}\n{done.stderr}")
    lines = done.stdout.splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith('"ID"')) :]
    rows = list(csv.DictReader(table))[1:]  # the first row holds the units
    return [
        {"kernel": row["Kernel Name"]}
        | {key: int(float(row[name].replace(",", ""))) for key, name in metrics.items()}
        for row in rows
    ]


def measure_patterns(program: str) -> list[dict[str, object]]:
    result = []
    for kind in ("shared_load", "shared_store", "global_load", "global_store"):
        chosen = [pattern for pattern in patterns() if pattern.kind == kind]
        # What needs one pass over a launch: with SASS metrics, a thousand launches take minutes.
        metrics = {
            key.split(".")[1]: name
            for key, name in METRICS.items()
            if key.startswith(kind + ".") and "__sass_" not in name
        }
        rows = measure([program], metrics, "".join(pattern.line() + "\n" for pattern in chosen))
        if len(rows) != len(chosen):
            sys.exit(f"measure: {len(chosen)} patterns, {len(rows)} launches")
        for pattern, row in zip(chosen, rows):
            measured = {key: row[key] for key in metrics}
            result.append({"name": pattern.name, "pattern": pattern.line()} | measured)
    return result


def measure_cases(program: str, cases: list[str]) -> dict[str, object]:
    known = available()
    extra = {key: name for key, name in CASE_METRICS.items() if name.split(".")[0] in known}
    runs = [measure([program, *cases], METRICS | extra) for _ in range(RUNS)]
    result: dict[str, list[dict[str, object]]] = {case: [] for case in cases}
    for run in runs:
        launches = iter([*run, None])
        row = next(launches)
        for case in cases:
            total, row = row, next(launches)
            # SplitK's partial sums are added by a second kernel.
            if row is not None and "reduce" in str(row["kernel"]):
                total = {key: total[key] + row[key] for key in total}
                row = next(launches)
            result[case].append({key: value for key, value in total.items() if key != "kernel"})
    return result


def device() -> dict[str, str]:
    name = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    version = subprocess.run(["ncu", "--version"], check=True, capture_output=True, text=True)
    return {"gpu": name, "ncu": version.stdout.strip().splitlines()[-1]}


def main(argv: list[str]) -> int:
    what, program, *cases = argv
    data = measure_patterns(program) if what == "patterns" else measure_cases(program, cases)
    json.dump({"device": device(), what: data}, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
