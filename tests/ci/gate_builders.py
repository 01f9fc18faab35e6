"""Small runs in the gate's file format, to plant one fault each in."""

import copy
import json
import statistics
from pathlib import Path
from typing import Any

from tilegate_ci.formats.run_file import Role, parse
from tilegate_ci.model import Run

REPOSITORY = Path(__file__).resolve().parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER_COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
WARPTILE = "Warptile/4096x4096x4096"
NAIVE = "Naive/1024x1024x1024"
VECTORIZED = "Vectorized/129x65x17/ld24x72x80/off4"

H200 = {
    "kind": "cuda",
    "name": "NVIDIA H200",
    "driver": "580.65.06",
    "cuda": "13.0",
    "cublas": "13.1.0",
    "compute_capability": 90,
    "multiprocessors": 132,
}
SIMT = {"kind": "simt", "name": "SIMT executor"}


def make_row(ratio: float | None, gflops: float, spread: float = 0.002) -> dict[str, Any]:
    """Three processes around the given medians."""

    def around(value: float) -> list[float]:
        return [value * (1 - spread), value, value * (1 + spread)]

    row: dict[str, Any] = {
        "bytes": 201326592,
        "gflops": gflops,
        "key": False,
        "verified": True,
        "per_process": {"gflops": around(gflops)},
    }
    if ratio is not None:
        row |= {"ratio_to_cublas": ratio, "pct_peak": 70.1}
        row["per_process"]["ratio_to_cublas"] = around(ratio)
    return row


def make_run(rows: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    default = {
        WARPTILE: make_row(0.89, 45000.0),
        NAIVE: make_row(0.0125, 610.0),
        VECTORIZED: make_row(0.75, 30.5),
    }
    return {
        "schema": 1,
        "commit": COMMIT,
        "device": copy.deepcopy(H200),
        "protocol": {"processes": 3, "min_time_s": 0.1, "seed": 1},
        "sessions": [{"started": "2025-11-20T10:00:00Z", "processes": 3, "conditions": {}}],
        "benchmarks": copy.deepcopy(default if rows is None else rows),
        **fields,
    }


def make_simt_run() -> dict[str, Any]:
    rows = {WARPTILE: make_row(None, 6.0), NAIVE: make_row(None, 5.0)}
    return make_run(rows, device=dict(SIMT))


def scaled(document: dict[str, Any], name: str, factor: float) -> dict[str, Any]:
    """A copy in which one benchmark's speed is `factor` times what it was, evidence included."""
    result = copy.deepcopy(document)
    row = result["benchmarks"][name]
    for metric, values in row["per_process"].items():
        row["per_process"][metric] = [value * factor for value in values]
        row[metric] = statistics.median(row["per_process"][metric])
    return result


def write(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def parsed(document: dict[str, Any], role: Role = Role.CANDIDATE, path: str = "run.json") -> Run:
    return parse(json.dumps(document), path, role)
