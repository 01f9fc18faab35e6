"""Reports of a comparison: a console table and Markdown, both worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilegate_ci.core.model import RATIO, Run, relative
from tilegate_ci.core.verdicts import EXIT_MEANINGS, Verdict
from tilegate_ci.judge.compare import Comparison, Row

_HEADINGS = (
    "verdict",
    "benchmark",
    "baseline",
    "candidate",
    "metric",
    "slow-down",
    "interval",
    "margin",
    "p",
    "pairs",
    "note",
    "rerun",
)
_NUMERIC = frozenset({"baseline", "candidate", "slow-down", "interval", "margin", "p", "pairs"})


def console(comparison: Comparison) -> str:
    """Plain ASCII; every row that is not a pass ends in the command that reruns it."""
    lines = _sources(comparison)
    lines += [f"incomparable: {difference}" for difference in comparison.differences]
    lines += ["", *_aligned([_HEADINGS, *(_cells(row) for row in comparison.rows)])]
    lines += ["", summary_line(comparison)]
    return "\n".join(lines) + "\n"


def markdown(comparison: Comparison) -> str:
    """For a workflow's step summary: what needs a look first, passes folded away."""
    lines = [f"### Gate: {_result(comparison)}", "", summary_line(comparison), ""]
    lines += [f"- {escaped(line)}" for line in _sources(comparison)]
    lines += [f"- incomparable: {escaped(line)}" for line in comparison.differences]
    lines += [f"- warning: {escaped(line)}" for line in comparison.warnings]
    passed = [row for row in comparison.rows if row.verdict is Verdict.PASS]
    others = [row for row in comparison.rows if row.verdict is not Verdict.PASS]
    if others:
        lines += ["", *_markdown_table(others)]
    if passed:
        lines += ["", f"<details><summary>{len(passed)} pass</summary>", ""]
        lines += [*_markdown_table(passed), "", "</details>"]
    return "\n".join(lines) + "\n"


def markdown_error(message: str) -> str:
    return f"### Gate: error\n\n{escaped(message)}\n\nExit 2, {EXIT_MEANINGS[2]}\n"


def summary_line(comparison: Comparison) -> str:
    counts = Counter(row.verdict for row in comparison.rows)
    told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    left_out = f" ({comparison.left_out} left out by --filter)" if comparison.left_out else ""
    code = comparison.exit_code
    return f"{len(comparison.rows)} judged{left_out}: {told}. Exit {code}, {EXIT_MEANINGS[code]}"


def _result(comparison: Comparison) -> str:
    return EXIT_MEANINGS[comparison.exit_code].split(":")[0]


def _sources(comparison: Comparison) -> list[str]:
    return [
        f"{role}: {run.path}, commit {_short(run)}, {_device(run)}"
        for role, run in (("baseline", comparison.baseline), ("candidate", comparison.candidate))
    ]


def _short(run: Run) -> str:
    return run.commit[:12] + ("-dirty" if run.dirty else "")


def _device(run: Run) -> str:
    return run.device.name + (f", cuBLAS {run.device.cublas}" if run.device.cublas else "")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.verdict.value,
        row.name,
        _value(row.baseline, row.metric),
        _value(row.candidate, row.metric),
        row.metric or "gflops, not gated",
        "-" if row.slowdown is None else f"{100 * row.slowdown:+.2f} %",
        interval(row),
        "-" if row.delta is None else f"{100 * relative(row.delta):.1f} %",
        "" if row.p is None else f"{row.p:.1g}",
        str(len(row.pairs) or ""),
        ", ".join(part for part in (row.note, "key" if row.key else "") if part),
        "" if row.verdict is Verdict.PASS else row.rerun,
    )


def interval(row: Row) -> str:
    """The one-sided 95 % bounds of the slow-down, where pairs were measured."""
    if row.lower is None or row.upper is None:
        return ""
    return f"{100 * row.lower:+.2f} to {100 * row.upper:+.2f} %"


def _value(value: float | None, metric: str | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if metric == RATIO else f"{value:.6g}"


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table)]
    used = [index for index, column in enumerate(zip(*table[1:])) if any(column)]
    return ["  ".join(_padded(line[i], widths[i], i) for i in used).rstrip() for line in table]


def _padded(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if _HEADINGS[column] in _NUMERIC else cell.ljust(width)


def _markdown_table(rows: Sequence[Row]) -> list[str]:
    table = [_cells(row) for row in rows]
    used = [index for index, column in enumerate(zip(*table)) if any(column)]
    rules = ["---:" if _HEADINGS[index] in _NUMERIC else "---" for index in used]
    lines = [[_HEADINGS[index] for index in used], rules]
    for cells in table:
        lines.append([_markdown_cell(cells[index], _HEADINGS[index]) for index in used])
    return ["| " + " | ".join(line) + " |" for line in lines]


def _markdown_cell(cell: str, heading: str) -> str:
    """The rerun command holds a |, which would end the cell inside a code span too."""
    if heading in ("benchmark", "rerun") and cell:
        return "`" + cell.replace("|", "\\|") + "`"
    return escaped(cell)


def escaped(text: str) -> str:
    """File names and messages as text: no table, code, emphasis, heading or HTML out of them."""
    for character in "\\`*_|<[&~#":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", "<br>")
