"""bench/results/<device>-accuracy.json: errors of stages and of cuBLAS on the same operands."""

import csv
import io
from collections.abc import Iterable

from tilegate_ci.core.documents import Commit, Count, Document, Finite, Given, Line, Model, Natural
from tilegate_ci.core.files import GateError, rounded
from tilegate_ci.formats.profile import ProfiledDevice

INF = 1e308  # what is written for an error without bound; JSON has no infinity


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


class AccuracyRow(Model):
    """A stage and a shape on one input. `decision`: products of parts that the device took, 32 for
    plain FP32, 0 where there is nothing to decide."""

    case: Line
    input: Line
    decision: Natural
    gflops: Finite
    ratio_to_cublas: Finite
    frobenius: ErrorPair
    weighted: ErrorPair
    median: ErrorPair
    largest: ErrorPair
    commit: Given[Commit] = None  # after a merge: where the row was measured

    @property
    def stage(self) -> str:
        return self.case.partition("/")[0]

    @property
    def shape(self) -> str:
        return self.case.partition("/")[2]


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
        m, n, k = (int(extent) for extent in fields["case"].partition("/")[2].split("x"))
        return AccuracyRow(
            case=fields["case"],
            input=fields["input"],
            decision=int(fields["decision"]),
            gflops=rounded(2 * m * n * k / float(fields["seconds"]) / 1e9),
            ratio_to_cublas=rounded(float(fields["ratio_to_cublas"])),
            frobenius=_errors(fields, "frobenius"),
            weighted=_errors(fields, "weighted"),
            median=_errors(fields, "median"),
            largest=_errors(fields, "largest"),
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise GateError(
            f"bench/accuracy printed a line that is none of its own: {fields}"
        ) from problem


def _errors(fields: dict[str, str], name: str) -> ErrorPair:
    both = (min(float(fields[field]), INF) for field in (name, f"{name}_cublas"))
    stage, cublas = (rounded(value) for value in both)
    return ErrorPair(stage=stage, cublas=cublas)


def above(rows: Iterable[AccuracyRow]) -> list[AccuracyRow]:
    """Those whose relative Frobenius error is above cuBLAS's, the worst first."""
    worse = [row for row in rows if row.frobenius.ratio > 1]
    return sorted(worse, key=lambda row: -row.frobenius.ratio)
