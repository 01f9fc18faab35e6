"""Reports of a comparison in words: a console table and Markdown, both worst first."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.model import (
    EXIT_MEANINGS,
    MIN_DELTA,
    OWN_RATIO,
    PER_SECOND,
    RATIO,
    Run,
    Verdict,
    relative,
)
from tilegate_ci.report import templates
from tilegate_ci.report.figures import (
    METRIC_NAMES,
    commit_link,
    conditions,
    duration,
    short,
    signed,
)

QUIET = frozenset({Verdict.PASS, Verdict.IDENTICAL})
QUIET_NOTES = frozenset({"", "the same machine code", "the same sources"})
CONSOLE = (
    "verdict",
    "benchmark",
    "slow-down",
    "margin",
    "baseline",
    "candidate",
    "metric",
    "interval",
)
NUMERIC = frozenset({"slow-down", "interval", "margin", "baseline", "candidate", "p", "pairs"})


# By exit code, with ANSI's number of a colour: green, red, yellow.
WORDS = {
    0: ("PASS", 32),
    1: ("REGRESSED", 31),
    2: ("ERROR", 31),
    3: ("INCONCLUSIVE", 33),
    4: ("INCOMPARABLE", 33),
}
WIDTH = 80
MOST_NEW = 5  # rows in the console; the other reports have all


def console(comparison: Comparison, colour: bool = False) -> str:
    """The verdict first; below it what did not pass, as far as WIDTH has room, and the command that
    measures the worst again."""
    first = first_line(comparison.exit_code, headline(comparison), colour)
    runs = (("baseline", comparison.baseline), ("candidate", comparison.candidate))
    lines = [first, summary_line(comparison)]
    lines += [f"{side}: {run.path}, commit {short(run.commit)}, {gpu(run)}" for side, run in runs]
    lines += [f"incomparable: {difference}" for difference in comparison.differences]
    shown = [
        row for row in comparison.rows if row.verdict not in QUIET or row.note not in QUIET_NOTES
    ]
    new = [row for row in shown if row.verdict is Verdict.NEW][MOST_NEW:]
    shown = [row for row in shown if row not in new]
    lines += ["", *_aligned([cells(row) for row in shown])] if shown else []
    lines += [f"and {len(new)} more that are new"] if new else []
    again = next((row.again or row.rerun for row in shown if row.again or row.rerun), "")
    lines += ["", f"measure the worst again: {again}"] if again else []
    return "\n".join(lines) + "\n"


def first_line(code: int, text: str, colour: bool) -> str:
    word, number = WORDS[code]
    line = f"{word}: {text}"
    return f"\x1b[1;{number}m{line}\x1b[0m" if colour else line


def _aligned(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The first columns that have room; notes below their rows."""
    shown = [name for name in CONSOLE if any(row[name] for row in rows)]
    lines = [dict(zip(shown, shown)), *({name: row[name] for name in shown} for row in rows)]
    width = {name: max(len(line[name]) for line in lines) for name in shown}
    while sum(width[name] + 2 for name in shown) - 2 > WIDTH and len(shown) > 3:
        shown.pop()
    if shown[-1] == "baseline":  # nothing beside it
        shown.pop()
    found = []
    for line, row in zip(lines, [{}, *rows]):
        found.append(
            "  ".join(
                line[name].rjust(width[name]) if name in NUMERIC else line[name].ljust(width[name])
                for name in shown
            ).rstrip()
        )
        found += [f"    {row['note']}"] if row.get("note") else []
    return found


def markdown(comparison: Comparison) -> str:
    """For a workflow's step summary: what a reviewer needs in five lines, then what needs a look,
    passes folded away."""
    tables = {
        title: [cells(row) for row in comparison.rows if (row.verdict is Verdict.PASS) is passed]
        for title, passed in (("", False), ("pass", True))
    }
    baseline, candidate = comparison.baseline, comparison.candidate
    base = comparison.base_commit or baseline.commit
    return templates.markdown(
        "verdict",
        result=result(comparison),
        headline=headline(comparison),
        base=short(base),
        base_link=commit_link(comparison, base),
        head=short(candidate.commit),
        head_link=commit_link(comparison, candidate.commit),
        gpu=gpu(candidate),
        measured=conditions(candidate).started,
        summary=summary_line(comparison),
        worst=next((r for r in comparison.rows if r.verdict is not Verdict.PASS and r.rerun), None),
        baseline=f"{baseline.path}, commit {short(baseline.commit)}, {gpu(baseline)}",
        comparison=comparison,
        tables={title: (rows, columns(rows)) for title, rows in tables.items() if rows},
        numeric=NUMERIC,
    )


def markdown_error(message: str) -> str:
    return templates.markdown("error", message=message, meaning=EXIT_MEANINGS[2])


def result(comparison: Comparison) -> str:
    code, kind = comparison.exit_code, comparison.candidate.device.kind
    if code == 0 and kind == "simt":
        return "verified, not timed"
    return EXIT_MEANINGS[code].split(":")[0]


def summary_line(comparison: Comparison) -> str:
    counts = Counter(row.verdict for row in comparison.rows)
    each = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    left_out = f", {comparison.left_out} not" if comparison.left_out else ""
    code = comparison.exit_code
    return f"{len(comparison.rows)} judged{left_out}: {each}. Exit {code}, {EXIT_MEANINGS[code]}"


def headline(comparison: Comparison) -> str:
    """What a reviewer must know, in a sentence or two."""
    if comparison.differences:
        return f"Nothing can be judged: {comparison.differences[0]}."
    rows, sentences = comparison.rows, []
    for verdict, one, many, first in (
        (Verdict.ERROR, "could not be judged", "could not be judged", "first"),
        (Verdict.REGRESSED, "is slower than its margin", "are slower than their margins", "worst"),
        (Verdict.INCONCLUSIVE, "is too noisy to judge", "are too noisy to judge", "worst"),
    ):
        found = [row for row in rows if row.verdict is verdict]
        if found:
            what = f"{len(found)} of {len(rows)} benchmarks {many if found[1:] else one}"
            why = found[0].note if verdict is Verdict.ERROR else _slower(found[0])
            sentences.append(f"{what} ({first}: {found[0].name}, {why}).")
    timed = [row for row in rows if row.slowdown is not None]
    if not sentences and timed:
        worst = max(timed, key=lambda row: row.slowdown or 0.0)
        return f"No benchmark is slower than its margin (worst: {worst.name}, {_slower(worst)})."
    if not sentences and rows and all(row.verdict is Verdict.IDENTICAL for row in rows):
        return f"Nothing had to be measured: {rows[0].note}."
    if not sentences and comparison.candidate.device.kind == "simt":
        return "Results were verified on the executor; no time was judged."
    return " ".join(sentences) or "No time was judged."


def _slower(row: Row) -> str:
    known = cells(row)
    bounds = f" ({known['interval']})" * bool(known["interval"])
    return f"{known['slow-down']}{bounds}, margin {known['margin']}"


def gpu(run: Run) -> str:
    return run.device.name + (f", cuBLAS {run.device.cublas}" if run.device.cublas else "")


def cells(row: Row) -> dict[str, str]:
    """A row of any table, by heading."""
    interval, places = "", ""
    if row.placement is not None and row.placement >= MIN_DELTA:
        places = f"{100 * row.placement:.1f} % between places in memory"
    if row.lower is not None and row.upper is not None:
        interval = f"{signed(row.lower)} to {signed(row.upper)} %"
    return {
        "verdict": row.verdict.value,
        "benchmark": row.name,
        "slow-down": "-" if row.slowdown is None else f"{signed(row.slowdown)} %",
        "interval": interval,
        "margin": _margin(row),
        "baseline": _speed(row.baseline, row.metric),
        "candidate": _speed(row.candidate, row.metric),
        "metric": METRIC_NAMES[row.metric],
        "p": "" if row.p is None else f"{row.p:.1g}",
        "pairs": str(len(row.pairs) or ""),
        "note": ", ".join(part for part in (row.note, "key" if row.key else "", places) if part),
        "rerun": "" if row.verdict is Verdict.PASS else row.rerun,
        "pairs again": row.again,
    }


def _margin(row: Row) -> str:
    """With the absolute one, where that decides."""
    if row.delta is None:
        return "-"
    absolute = "" if row.margin_s is None else f" ({duration(row.margin_s)})"
    return f"{100 * relative(row.delta):.1f} %{absolute}"


def columns(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The headings that any of the rows has something under."""
    return [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]


def _speed(value: float | None, metric: str | None) -> str:
    if value is None:
        return "-"
    if metric == PER_SECOND:
        return duration(1 / value)
    return f"{100 * value:#.4g} %" if metric in (RATIO, OWN_RATIO) else f"{value:.6g}"
