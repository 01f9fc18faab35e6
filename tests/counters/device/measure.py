"""Measures lane patterns and the ladder's cases with Nsight Compute, on a machine with a GPU.

    python3 measure.py patterns build/gpu/tests/counters_patterns > measured/patterns.json
    python3 measure.py copies build/gpu/tests/counters_copies > copies.json
    python3 measure.py cases build/gpu/bench/profile_target [CASE...] > measured/cases.json

The copies of measured/copies.json: rows, strides and transposes of words and of
vectors, boxes over every border, and random ones.

Without a CASE: the cases of bench/baselines/counters.json, and BORDERS. Each case is measured
several times; differences between runs are noise.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from patterns import patterns

COPIES = Path(__file__).resolve().parents[1] / "measured" / "copies.json"
BASELINE = Path(__file__).resolve().parents[3] / "bench" / "baselines" / "counters.json"
RUNS = 3
END_OF_CASE = "Naive/1x1x1"  # a case is as many launches as its plan has; this is one FMA
# Boxes over the borders of A, B and C, and rows that begin within a sector.
BORDERS = ("Tma/132x68x36", "Tma/200x120x40", "Tma/256x256x256/off16")
Counts = dict[str, int]
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
    f"sass_shared_{kind}.wavefronts": (
        f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{short}.sum"
    )
    for kind, short in (("load", "ld"), ("store", "st"))
}
# Metrics of asynchronous hardware. Names differ between releases of Nsight Compute; unknown names
# are left out, with a message.
ASYNC_METRICS = {
    "shared_copy.requests": "smsp__inst_executed_op_ldgsts.sum",
    "shared_copy.wavefronts": (
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"
    ),
    "bulk_load.requests": "smsp__sass_inst_executed_op_tma_ld.sum",
    "bulk_load.sectors": "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",
    "bulk_store.requests": "smsp__sass_inst_executed_op_tma_st.sum",
    "bulk_store.sectors": "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
    "shared_multiply.requests": "smsp__sass_inst_executed_op_shared_gmma.sum",
    "shared_multiply.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum",
}


def measure(
    command: list[str], metrics: dict[str, str], given: str | None = None, from_start: str = "on"
) -> list[tuple[str, Counts]]:
    """The kernel and its metrics, for each launch; with `from_start` off, only inside the program's
    profiler range."""
    profile = ["ncu", "--csv", "--page=raw", "--clock-control=none", "--cache-control=none"]
    profile += ["--print-kernel-base", "mangled", f"--profile-from-start={from_start}"]
    profile += ["--metrics", ",".join(metrics.values())]
    done = subprocess.run([*profile, *command], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"measure: {done.stdout}\n{done.stderr}")
    lines = done.stdout.splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith('"ID"')) :]
    rows = list(csv.DictReader(table))[1:]  # the first row holds the units
    return [
        (
            row["Kernel Name"],
            {key: int(float(row[name].replace(",", ""))) for key, name in metrics.items()},
        )
        for row in rows
    ]


def known(metrics: dict[str, str]) -> dict[str, str]:
    """The metrics that this Nsight Compute has for this GPU."""
    query = ["ncu", "--query-metrics"]
    names = set(subprocess.run(query, check=True, capture_output=True, text=True).stdout.split())
    for name in metrics.values():
        if name.removesuffix(".sum") not in names:
            sys.stderr.write(f"measure: this Nsight Compute has no {name}\n")
    return {key: name for key, name in metrics.items() if name.removesuffix(".sum") in names}


def measure_patterns(program: str) -> list[dict[str, str | int]]:
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
        for pattern, (_, counts) in zip(chosen, rows):
            result.append({"name": pattern.name, "pattern": pattern.line()} | counts)
    return result


def measure_copies(program: str) -> list[dict[str, str | int]]:
    wavefronts = ASYNC_METRICS["shared_copy.wavefronts"]
    conflicts = wavefronts.replace("pipe_lsu_wavefronts", "bank_conflicts_pipe_lsu")
    # Copies that bypass the L1 cache have no count of conflicts.
    metrics_of = {
        "shared_copy 16": {"wavefronts": wavefronts, "sectors": METRICS["global_load.sectors"]},
        "shared_copy": {"wavefronts": wavefronts, "conflicts": conflicts},
        "b": {"sectors": ASYNC_METRICS["bulk_load.sectors"]},  # bulk, box
    }
    lines = [row["pattern"] for row in json.loads(COPIES.read_text())["copies"]]
    measured: dict[str, Counts] = {}
    for kind, metrics in metrics_of.items():
        chosen = [line for line in lines if line not in measured and line.startswith(kind)]
        rows = measure([program], metrics, "".join(f"{line}\n" for line in chosen))
        measured |= {line: counts for line, (_, counts) in zip(chosen, rows, strict=True)}
    return [{"pattern": line, **measured[line]} for line in lines]


def measure_cases(program: str, cases: list[str]) -> dict[str, list[Counts]]:
    metrics = METRICS | CASE_METRICS | known(ASYNC_METRICS)
    result: dict[str, list[Counts]] = {case: [] for case in cases}
    words = [word for case in cases for word in (case, END_OF_CASE)]
    for _ in range(RUNS):
        totals: list[Counts] = [{}]
        for _, counts in measure([program, *words], metrics, from_start="off"):
            if counts["fma"] == 1:
                totals.append({})
            else:
                totals[-1] = {key: totals[-1].get(key, 0) + counts[key] for key in counts}
        if len(totals) != len(cases) + 1 or not all(totals[:-1]):
            sys.exit(f"measure: {len(cases)} cases, {len(totals) - 1} ends of cases")
        for case, total in zip(cases, totals):
            result[case].append(total)
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
    if what == "patterns":
        data: Any = measure_patterns(program)
    elif what == "copies":
        data = measure_copies(program)
    else:
        table = json.loads(BASELINE.read_text())["cases"]
        data = measure_cases(program, cases or sorted([*table, *BORDERS]))
    sys.stdout.write(to_text(what, data))
    return 0


def to_text(what: str, data: Any) -> str:
    """JSON with a line for each pattern or run, so that its diff can be read."""
    if isinstance(data, list):
        body = ",\n".join(f"  {json.dumps(row, sort_keys=True)}" for row in data)
        body = f"[\n{body}\n ]"
    else:
        rows = []
        for case, runs in sorted(data.items()):
            lines = ",\n".join(f"   {json.dumps(run, sort_keys=True)}" for run in runs)
            rows.append(f"  {json.dumps(case)}: [\n{lines}\n  ]")
        body = "{\n" + ",\n".join(rows) + "\n }"
    where = json.dumps(device(), sort_keys=True)
    return f'{{"device": {where},\n "{what}": {body}}}\n'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
