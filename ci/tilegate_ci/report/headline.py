"""The README's figures: what the ladder reaches in FP32 and by splitting operands, how accurate
that is, and how much of it lasts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.formats.accuracy import AccuracyFile, above
from tilegate_ci.formats.stages import Stage
from tilegate_ci.model import GFLOPS, Run, RunFile
from tilegate_ci.report import templates
from tilegate_ci.report.figures import (
    PICTURES,
    PROFILE,
    SHARE_SIZE,
    Measured,
    provenance,
    read_accuracy,
    read_results,
    share,
)
from tilegate_ci.report.templates import Markdown, escaped

_BURST = (
    "Burst: launches timed in turn with cuBLAS's, median of the ratios of times; the operands stay "
    "in L2 where they fit."
)


def headline_block(
    repository: Path, run: Run, rungs: Sequence[Stage], found: Mapping[str, Measured]
) -> str:
    sustained, accuracy = read_results(repository, "sustained"), read_accuracy(repository)
    notes = [_BURST]
    if sustained is not None:
        seconds = sustained.protocol.min_time_s or 0
        notes.append(
            f"Sustained: each alone for {seconds:g} s without a pause, where power is the limit; "
            f"{sustained.processes} process{'es'[: 2 * (sustained.processes > 1)]}."
        )
    rows = []
    for rung in chosen(rungs, found):
        row = found[rung.name].square(SHARE_SIZE)
        ratio = share(row)
        rows.append(
            (
                Markdown(f"[{escaped(rung.name)}]({rung.folder.as_posix()})"),
                "-" if row is None else f"{row.summary[GFLOPS] / 1000:.1f}",
                "-" if ratio is None else f"{ratio:.2f}",
                _sustained(sustained, rung.name),
                _accuracy(rung, accuracy),
            )
        )
    others = dict(PICTURES)
    first = next(iter(others))
    picture = others.pop(first)
    if not (repository / PROFILE).exists():
        del others["roofline.svg"]
    made_on = provenance(run, [row for rung in found.values() for row in rung.rows.values()])
    return templates.markdown(
        "headline",
        size=SHARE_SIZE,
        rows=rows,
        notes=" ".join(notes),
        made_on=made_on,
        first=first,
        picture=picture,
        others=others,
    ).rstrip("\n")


def chosen(rungs: Sequence[Stage], found: Mapping[str, Measured]) -> list[Stage]:
    """The last rung in FP32, and the fastest rung that splits operands."""
    measured = [rung for rung in rungs if rung.name in found and not rung.yardstick]
    fp32 = [rung for rung in measured if not rung.splits][-1:]
    split = [rung for rung in measured if rung.splits]
    fastest = sorted(split, key=lambda rung: -found[rung.name].speeds().get(SHARE_SIZE, 0.0))[:1]
    return [*fp32, *fastest]


def _sustained(run: RunFile | None, rung: str) -> str:
    """As a multiple of cuBLAS's speed, which ran alone for as long."""
    shape = "x".join([str(SHARE_SIZE)] * 3)
    rows = {} if run is None else run.benchmarks
    own, yardstick = rows.get(f"{rung}/{shape}"), rows.get(f"{YARDSTICK}/{shape}")
    if own is None or yardstick is None:
        return "-"
    return f"{own.summary[GFLOPS] / yardstick.summary[GFLOPS]:.2f}"


def _accuracy(rung: Stage, accuracy: AccuracyFile | None) -> str:
    if not rung.splits:
        return "IEEE FP32 multiply-adds"
    rows = [] if accuracy is None else [row for row in accuracy.rows if row.stage == rung.name]
    if not rows:
        return "-"
    return (
        f"relative Frobenius error above that of cuBLAS FP32 on {len(above(rows))} of {len(rows)} "
        f"problems ({len({row.input for row in rows})} distributions of operands)"
    )
