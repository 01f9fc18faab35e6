"""The tables of an accuracy file."""

import statistics
from collections.abc import Sequence

from tilegate_ci.core.markdown import table
from tilegate_ci.formats.accuracy import AccuracyFile, AccuracyRow, ErrorPair, above
from tilegate_ci.report.templates import code, escaped

_DECISIONS = {6: "six", 8: "eight", 3: "three", 32: "FP32"}
_HEADS = (
    "input",
    "problems",
    "decided, × cuBLAS",  # noqa: RUF001
    "Frobenius, worst",
    "above cuBLAS",
    "weighted, worst",
    "median, median",
    "largest, worst",
    "× cuBLAS",  # noqa: RUF001
)
_NOTE = (
    "Errors against float64, as multiples of cuBLAS's on the same operands: the relative Frobenius "
    "error of the product; the largest |error| / (|A|·|B|) of an element; the median, and the "
    "largest, |error / element|. At most 1: no less accurate. × cuBLAS: cuBLAS's time over the "  # noqa: RUF001
    "rung's, the median of the problems, and of those where the device decided so. What is missing "
    "there is of problems for which the plan itself takes FP32."
)


def accuracy_block(found: AccuracyFile, stage: str) -> str:
    """By input, and then each problem on which the stage is less accurate than cuBLAS."""
    rows = [row for row in found.rows if row.stage == stage]
    inputs = list(dict.fromkeys(row.input for row in rows))
    lines = table(_HEADS, [_summary(name, [r for r in rows if r.input == name]) for name in inputs])
    device, commit = found.device, rows[0].commit or found.commit
    made_on = (
        f"`ci/gate accuracy` on {device.name}, driver {device.driver}, CUDA {device.cuda}, "
        f"cuBLAS {device.cublas}, commit {commit[:12]}{commit[40:]}."
    )
    return "\n".join([*lines, "", f"{_NOTE} {made_on}", "", *_exceptions(above(rows))])


def _summary(name: str, rows: Sequence[AccuracyRow]) -> list[str]:
    worst = max(rows, key=lambda row: row.frobenius.ratio)
    return [
        escaped(name),
        str(len(rows)),
        ", ".join(_decided(number, rows) for number in _present(rows)) or "-",
        f"{_ratio(worst.frobenius)} at {code(_shape(worst))}",
        str(len(above(rows))),
        _ratio(max((row.weighted for row in rows), key=lambda each: each.ratio)),
        f"{statistics.median(row.median.ratio for row in rows):.2f}",
        _ratio(max((row.largest for row in rows), key=lambda each: each.ratio)),
        f"{statistics.median(row.ratio_to_cublas for row in rows):.2f}",
    ]


def _present(rows: Sequence[AccuracyRow]) -> list[int]:
    return [number for number in _DECISIONS if any(row.decision == number for row in rows)]


def _decided(number: int, rows: Sequence[AccuracyRow]) -> str:
    """How often the device decided so, and the median speed where it did."""
    speeds = [row.ratio_to_cublas for row in rows if row.decision == number]
    return f"{_DECISIONS[number]} {len(speeds)} at {statistics.median(speeds):.2f}"


def _exceptions(rows: Sequence[AccuracyRow]) -> list[str]:
    if not rows:
        return ["On no problem is the relative Frobenius error above cuBLAS's."]
    heads = ("problem", "input", "decided", "error", "cuBLAS's", "multiple")
    cells = [
        [
            code(_shape(row)),
            escaped(row.input),
            _DECISIONS.get(row.decision, "-"),
            f"{row.frobenius.stage:.3g}",
            f"{row.frobenius.cublas:.3g}",
            _ratio(row.frobenius),
        ]
        for row in rows
    ]
    title = f"Above cuBLAS's relative Frobenius error, {len(rows)} in all:"
    return [title, "", *table(heads, cells, left=3)]


def _ratio(errors: ErrorPair) -> str:
    return f"{errors.ratio:.2f}" if errors.ratio < 1000 else "above 1000"


def _shape(row: AccuracyRow) -> str:
    return row.case.partition("/")[2]
