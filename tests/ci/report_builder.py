"""A verdict to report on: every rung of a small ladder at every size, some of it wrong."""

import json
import subprocess
from pathlib import Path
from typing import Any

from stage_builder import stage, write_stages

from gate_builders import REPOSITORY, make_row, make_run, scaled
from tilegate_ci.report.figures import PROFILE

RUNGS = {"Naive": 0.0125, "Warptile": 0.95, "Cublas": 1.0}
SIZES = (512, 1024, 2048, 4096)
SLOW, WRONG = "Warptile/4096x4096x4096", "Naive/512x512x512"
MEMORY = {"gb_per_s": 2400, "peak_pct": 50}
HOSTILE = '</script><img src=x onerror="document.title=1">'


def baseline() -> dict[str, Any]:
    rows = {}
    for rung, share in RUNGS.items():
        for size in SIZES:
            name = f"{rung}/{size}x{size}x{size}"
            rows[name] = make_row(share, 50000 * share * min(1, size / 2048))
            rows[name]["bytes"] = 12 * size * size
            rows[name]["pct_peak"] = rows[name]["gflops"] / 640
    return make_run(rows)


def candidate() -> dict[str, Any]:
    document = scaled(baseline(), SLOW, 0.95)
    document["benchmarks"][WRONG]["verified"] = False
    document["benchmarks"]["SplitK/64x64x65536"] = make_row(1.5, 9000.0)
    return document


def repository(root: Path, profile: bool = True) -> Path:
    """A git repository with two committed baselines of the H200, a ladder and a profile."""
    stages = [stage(f"0{n}_{name.lower()}", name) for n, name in enumerate([*RUNGS][:-1], 1)]
    write_stages(root / "build" / "cpu", *stages, stage("cublas", "Cublas"))
    path = root / "bench/baselines/nvidia-h200.json"
    path.parent.mkdir(parents=True)
    git(root, "init", "-q")
    for version in (scaled(baseline(), SLOW, 0.9), baseline()):
        path.write_text(json.dumps(version))
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "baseline")
    if profile:
        document = json.loads((REPOSITORY / PROFILE).read_text())
        kernel = document["rungs"][0]["kernels"][0]
        kernel |= {"dram": {**kernel["dram"], "bytes": 2**32, **MEMORY}}
        document["rungs"] = [{"name": name, "kernels": [kernel]} for name in RUNGS]
        (root / PROFILE).parent.mkdir()
        (root / PROFILE).write_text(json.dumps(document))
    return root


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", root, *who, *arguments], check=True, capture_output=True)
