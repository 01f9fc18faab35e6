"""Errors of stages beside cuBLAS's in FP32: measured on a GPU, committed, shown on their pages."""

import argparse
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from tilegate_ci.checks.committed import Committed, Report, chosen
from tilegate_ci.core import child, documents
from tilegate_ci.core.files import GateError, make_folder, write_text
from tilegate_ci.core.git import named_commit
from tilegate_ci.formats.accuracy import (
    AccuracyFile,
    AccuracyRow,
    above,
    merged,
    parse_rows,
)
from tilegate_ci.formats.profile import parse_device
from tilegate_ci.formats.stages import read_stages
from tilegate_ci.measure.conditions import check_gpu
from tilegate_ci.measure.projects import build_preset
from tilegate_ci.model import REPOSITORY, device_stem
from tilegate_ci.report import templates
from tilegate_ci.report.figures import machine, short

RESULTS = REPOSITORY / "bench" / "results"
INNER = (16, 64, 128, 256, 512, 1024, 4096, 16384)
SHAPES = [
    f"{outer}x{k}" for outer in ("256x256", "1024x1024", "1023x1025", "2048x2048") for k in INNER
]
SHAPES += ["777x333x555", "1023x1025x1027", "2047x2049x2051", "4096x4096x4096", "8192x8192x8192"]

_DECISIONS = {6: "six", 8: "eight", 10: "ten", 3: "three", 32: "FP32"}


class Accuracy(Committed):
    name = "accuracy"
    options = ("shape", "out", "commit")
    partial = ()

    def ready(self) -> None:
        raise GateError("it needs a GPU and --rung NAME; `ci/gate check accuracy` runs it")

    def numbers(self, asked: argparse.Namespace) -> Report:
        """Compared with cuBLAS's errors in the same run: speeds and inputs differ between GPUs."""
        commit = named_commit(asked.commit, REPOSITORY)
        if not asked.rung:
            raise GateError("accuracy: give --rung NAME, whose accuracy is measured")
        check_gpu()
        build = build_preset("gpu", "accuracy", REPOSITORY)
        stages = chosen(asked.rung, [stage.name for stage in read_stages(build)])
        cases = [f"{stage}/{each}" for stage in stages for each in asked.shape or SHAPES]
        found = accuracy_file(child.output([str(build / "bench" / "accuracy"), *cases]), commit)
        return judge(found, save(found, Path(asked.out or RESULTS)) if asked.update else None)


def accuracy_file(output: str, commit: str) -> AccuracyFile:
    """What bench/accuracy printed."""
    device, _, lines = output.partition("\n\n")
    rows = parse_rows(lines)
    inputs = len({row.input for row in rows})
    return AccuracyFile(
        schema=1, commit=commit, device=parse_device(device), inputs=inputs, rows=rows
    )


def save(found: AccuracyFile, folder: Path) -> Path:
    """Beside the rows of other stages on the same device."""
    make_folder(folder)
    path = folder / f"{device_stem(found.device.name)}-accuracy.json"
    whole = merged(found, documents.load(AccuracyFile, path)) if path.exists() else found
    write_text(path, documents.to_text(whole))
    return path


def judge(found: AccuracyFile, path: Path | None) -> Report:
    """By cuBLAS's errors; `path` is the file that has them now."""
    worse, where = above(found.rows), os.path.relpath(path) if path else "not written"
    lines = [
        f"{row.case} {row.input}: {row.frobenius.ratio:.3f} times cuBLAS's error" for row in worse
    ]
    lines.append(f"{where}: {len(found.rows)} rows, {len(worse)} of them above cuBLAS's error")
    return Report(int(bool(worse)), "\n".join(lines) + "\n")


def accuracy_block(found: AccuracyFile, stage: str) -> str:
    """By input, and then each problem on which the stage is less accurate than cuBLAS."""
    rows = [row for row in found.rows if row.stage == stage]
    inputs = dict.fromkeys(row.input for row in rows)
    commit = short(rows[0].commit or found.commit)
    return templates.markdown(
        "accuracy",
        inputs=[_summary(name, [row for row in rows if row.input == name]) for name in inputs],
        above=above(rows),
        decisions=_DECISIONS,
        multiple=lambda pair: f"{pair.ratio:.2f}" if pair.ratio < 1000 else "above 1000",
        made_on=f"{machine(found.device.model_dump())}, commit {commit}",
    ).rstrip("\n")


def _summary(name: str, rows: Sequence[AccuracyRow]) -> dict[str, object]:
    # How often the device decided so, and the median speed where it did.
    speeds = {n: [r.ratio_to_cublas for r in rows if r.decision == n] for n in _DECISIONS}
    return {
        "name": name,
        "rows": rows,
        "worst": max(rows, key=lambda row: row.frobenius.ratio),
        "above": len(above(rows)),
        "weighted": max((row.weighted for row in rows), key=lambda e: e.ratio),
        "largest": max((row.largest for row in rows), key=lambda e: e.ratio),
        "median": statistics.median(row.median.ratio for row in rows),
        "speed": statistics.median(row.ratio_to_cublas for row in rows),
        "decided": ", ".join(
            f"{_DECISIONS[number]} {len(of)} at {statistics.median(of):.2f}"
            for number, of in speeds.items()
            if of
        ),
    }
