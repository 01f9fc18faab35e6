"""Errors of stages beside cuBLAS's in FP32: measured on a GPU, committed, shown on their pages."""

import argparse
import csv
import io
import os
import statistics
from collections.abc import Iterable
from pathlib import Path

from tilegate_ci.checks.committed import Committed, Report, chosen
from tilegate_ci.core import child, documents
from tilegate_ci.core.documents import Commit, Count, Document, Finite, Given, Line, Model, Natural
from tilegate_ci.core.files import GateError, make_folder, rounded, write_text
from tilegate_ci.core.git import named_commit
from tilegate_ci.formats.profile import ProfiledDevice, parse_device
from tilegate_ci.formats.stages import Stage, read_stages
from tilegate_ci.measure.conditions import check_gpu
from tilegate_ci.measure.projects import build_preset
from tilegate_ci.model import REPOSITORY, device_stem
from tilegate_ci.report import templates
from tilegate_ci.report.figures import machine, short

INF = 1e308  # what is written for an error without bound; JSON has no infinity


ROUNDING = 2.0**-24  # relative error of one rounding to FP32


class ErrorPair(Model):
    """Of the stage, and of cuBLAS."""

    stage: Finite
    cublas: Finite

    @property
    def ratio(self) -> float:
        """At most 1: no less accurate than cuBLAS."""
        if self.stage == self.cublas:
            return 1.0
        return self.stage / self.cublas if self.cublas > 0 else INF

    @property
    def excess(self) -> float:
        """At most 1: no less accurate than cuBLAS, or than one rounding to FP32."""
        return self.stage / max(self.cublas, ROUNDING)


class AccuracyRow(Model):
    """A stage and a shape on one input. `decision`: products of parts that the device took, 32 for
    plain FP32, 0 where there is nothing to decide. `ratio_to_fp32`: the time of the stage's plan
    for Math::fp32 over that of Math::fp32_split, where the case has "/split"."""

    case: Line
    input: Line
    decision: Natural
    gflops: Finite
    ratio_to_cublas: Finite
    ratio_to_fp32: Given[Finite] = None
    frobenius: ErrorPair
    weighted: ErrorPair
    median: ErrorPair
    largest: ErrorPair
    commit: Given[Commit] = None  # after a merge: where the row was measured

    @property
    def stage(self) -> str:
        return self.case.partition("/")[0]

    @property
    def excess(self) -> float:
        """In both measures of the product."""
        return max(self.frobenius.excess, self.weighted.excess)

    @property
    def shape(self) -> str:
        return self.case.split("/")[1]

    @property
    def of_limit(self) -> float:
        """The time over the most that it may be on any data: 1.03 times that of FP32, 3 µs, and
        one read of A and B at 4 TB/s. Of a case with "/split"."""
        assert self.ratio_to_fp32 is not None
        m, n, k = extents(self.case)
        seconds = 2 * m * n * k / self.gflops / 1e9
        return seconds / (1.03 * seconds * self.ratio_to_fp32 + 3e-6 + 4 * (m + n) * k / 4e12)


def extents(case: str) -> tuple[int, int, int]:
    """M, N and K."""
    m, n, k = (int(extent) for extent in case.split("/")[1].split("x"))
    return m, n, k


class AccuracyFile(Document):
    commit: Commit
    device: ProfiledDevice
    inputs: Count
    rows: list[AccuracyRow]


def merged(found: AccuracyFile, earlier: AccuracyFile) -> AccuracyFile:
    """With the rows of the stages that were measured on the same device before, and not now."""
    if earlier.device != found.device:
        return found
    measured = {row.stage for row in found.rows}
    kept = [
        row.model_copy(update={"commit": row.commit or earlier.commit})
        for row in earlier.rows
        if row.stage not in measured
    ]
    return found.model_copy(update={"rows": [*kept, *found.rows]})


def parse_rows(text: str) -> list[AccuracyRow]:
    """What bench/accuracy prints after the lines on the device."""
    return [_row(fields) for fields in csv.DictReader(io.StringIO(text), delimiter="\t")]


def _row(fields: dict[str, str]) -> AccuracyRow:
    try:
        m, n, k = extents(fields["case"])
        is_split = fields["case"].endswith(SPLIT)
        return AccuracyRow(
            case=fields["case"],
            input=fields["input"],
            decision=int(fields["decision"]),
            gflops=rounded(2 * m * n * k / float(fields["seconds"]) / 1e9),
            ratio_to_cublas=rounded(float(fields["ratio_to_cublas"])),
            ratio_to_fp32=rounded(float(fields["ratio_to_fp32"])) if is_split else None,
            frobenius=_errors(fields, "frobenius"),
            weighted=_errors(fields, "weighted"),
            median=_errors(fields, "median"),
            largest=_errors(fields, "largest"),
        )
    except (IndexError, KeyError, TypeError, ValueError) as problem:
        raise GateError(
            f"bench/accuracy printed a line that is none of its own: {fields}"
        ) from problem


def _errors(fields: dict[str, str], name: str) -> ErrorPair:
    both = (min(float(fields[field]), INF) for field in (name, f"{name}_cublas"))
    stage, cublas = (rounded(value) for value in both)
    return ErrorPair(stage=stage, cublas=cublas)


def above(rows: Iterable[AccuracyRow]) -> list[AccuracyRow]:
    """Those with an error above the larger of cuBLAS's and 2^-24, the worst first."""
    worse = [row for row in rows if row.excess > 1]
    return sorted(worse, key=lambda row: -row.excess)


RESULTS = REPOSITORY / "bench" / "results"
# Whose rows the pages show: of the newest kernels.
ACCURACY = Path("bench/results/nvidia-h200-accuracy.json")
INNER = (16, 64, 128, 256, 512, 1024, 4096, 16384)
SHAPES = [
    f"{outer}x{k}" for outer in ("256x256", "1024x1024", "1023x1025", "2048x2048") for k in INNER
]
SHAPES += ["777x333x555", "1023x1025x1027", "2047x2049x2051", "4096x4096x4096", "8192x8192x8192"]

SPLIT = "/split"
# Of Sgemm, which splits operands only here and asks for it. All sizes, and what is hard: few rows,
# few columns, a long or a short K, operands without whole vectors.
SPLIT_SHAPES = [
    "48x3000x3000",
    "64x4096x4096",
    "64x11008x4096",
    "96x4096x4096",
    "128x4096x4096",
    "4096x64x4096",
    "4096x128x1024",
    "16384x64x1024",
    "32x8192x8192",
    "192x1024x4096",
    "256x256x16384",
    "512x512x8192",
    "640x640x2048",
    "768x768x768",
    "1000x1000x1000",
    "1024x1024x256",
    "1024x1024x512",
    "1024x1024x1024",
    "1023x1025x1027",
    "768x3072x768",
    "1536x1536x1536",
    "2048x2048x256",
    "2048x2048x2048",
    "2047x2049x2051",
    "3000x3000x3000",
    "512x4096x4096",
    "512x11008x4096",
    "512x4096x11008",
    "1024x8192x8192",
    "2048x5120x5120",
    "4096x4096x1024",
    "4096x4096x4096",
    "4097x4095x4093",
    "8192x8192x8192",
    "12544x256x1152",
    "50176x64x576",
    "50257x768x1024",
    "5584x7421x137",
    "1393x2837x10771",
    "1156x3984x4175",
]

_DECISIONS = {6: "six", 8: "eight", 10: "ten", 3: "three", 32: "FP32", 64: "FP64"}


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
        known = {stage.name: stage for stage in read_stages(build)}
        cases = [
            case
            for name in chosen(asked.rung, list(known))
            for case in cases_of(known[name], asked)
        ]
        found = accuracy_file(child.output([str(build / "bench" / "accuracy"), *cases]), commit)
        return judge(found, save(found, Path(asked.out or RESULTS)) if asked.update else None)


def cases_of(stage: Stage, asked: argparse.Namespace) -> list[str]:
    """A stage that chooses among others does so for Math::fp32_split."""
    if stage.chooses_from:
        return [f"{stage.name}/{each}{SPLIT}" for each in asked.shape or SPLIT_SHAPES]
    return [f"{stage.name}/{each}" for each in asked.shape or SHAPES]


def accuracy_file(output: str, commit: str) -> AccuracyFile:
    device, _, lines = output.partition("\n\n")
    rows = parse_rows(lines)
    inputs = len({row.input for row in rows})
    return AccuracyFile(
        schema=1, commit=commit, device=parse_device(device), inputs=inputs, rows=rows
    )


def read_accuracy(repository: Path) -> AccuracyFile | None:
    path = repository / ACCURACY
    return documents.load(AccuracyFile, path) if path.exists() else None


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
        f"{row.case} {row.input}: {row.excess:.3f} times the larger of cuBLAS's error and 2^-24"
        for row in worse
    ]
    lines.append(
        f"{where}: {len(found.rows)} rows, {len(worse)} of them above cuBLAS's error and 2^-24"
    )
    return Report(int(bool(worse)), "\n".join(lines) + "\n")


def accuracy_block(found: AccuracyFile, stage: str) -> str:
    """By input, and then each problem on which the stage is less accurate than cuBLAS."""
    rows = [row for row in found.rows if row.stage == stage]
    commit = short(rows[0].commit or found.commit)
    return templates.markdown(
        "accuracy",
        rows=rows,
        above=above(rows),
        median=statistics.median,
        decisions=_DECISIONS,
        multiple=lambda pair: f"{pair.ratio:.2f}" if pair.ratio < 1000 else "above 1000",
        made_on=f"{machine(found.device.model_dump())}, commit {commit}",
    ).rstrip("\n")
