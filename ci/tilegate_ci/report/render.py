"""What every report says of a verdict, a fleet, a run or an error; the console's and Markdown's
form of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilegate_ci.core.names import rerun_command
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.judge.confirm import SAME_CODE, SAME_SOURCES
from tilegate_ci.judge.paired import ALPHA
from tilegate_ci.judge.verdict_file import Fleet, Member
from tilegate_ci.model import (
    EXIT_MEANINGS,
    GFLOPS,
    MIN_DELTA,
    OTHER,
    OWN_RATIO,
    PER_SECOND,
    RATIO,
    SEVERITY,
    Run,
    Verdict,
    relative,
)
from tilegate_ci.report import figures, templates
from tilegate_ci.report.figures import duration, short, signed
from tilegate_ci.report.templates import Markdown, code, escaped, link

Found = Comparison | Fleet | Run | str  # a string is an error in place of a verdict

QUIET = frozenset({Verdict.PASS, Verdict.IDENTICAL})
QUIET_NOTES = frozenset({"", SAME_CODE, SAME_SOURCES})
_SPEEDS = ("GFLOPS", "of cuBLAS", "time", "of the yardstick")  # of a run, that was not compared
CONSOLE = (
    *("verdict", "benchmark", "model", "slow-down", "margin", "exit code", "by itself", *_SPEEDS),
    *("baseline", "candidate", "metric", "interval"),
)
NUMERIC = {*CONSOLE, "p", "pairs"} - {"verdict", "benchmark", "model", "metric"}

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


@dataclass(frozen=True)
class Entry:
    """A row of the table: cells by heading, the numbers that they are sorted by, the commands that
    measure it again. The console leaves quiet ones out, Markdown folds passes away."""

    name: str
    cells: Mapping[str, str]
    keys: Mapping[str, float | None]
    rerun: str = ""
    again: str = ""
    verdict: Verdict | None = None
    timed: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class View:
    """`code` is None where nothing was judged. `sides` are for the console, `points` for Markdown:
    what was compared with what."""

    title: str
    result: str
    headline: str
    code: int | None = None
    summary: str = ""
    sides: list[str] = field(default_factory=list)
    points: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    heading: str = ""  # of the table
    entries: Sequence[Entry] = ()


def view_of(found: Found, path: str = "", code: int = 2) -> View:
    """`path` is the file's; `code` is the exit code of what has no verdict."""
    if isinstance(found, Comparison):
        return _comparison(found, path)
    if isinstance(found, Fleet):
        return _fleet(found)
    if isinstance(found, Run):
        return _run(found)
    result = "not judged" if code == 4 else "error"
    summary = f"Exit {code}, {EXIT_MEANINGS[code]}"
    return View(path, result, found, code, summary, sides=[path], points=[summary])


def title_of(path: str, run: Run) -> str:
    return f"{path}, {run.device.name}, commit {short(run.commit)}"


def console(found: Found, colour: bool = False, path: str = "", code: int = 2) -> str:
    """The verdict first; below it what did not pass, as far as WIDTH has room, and the command that
    measures the worst again."""
    view = view_of(found, path, code)
    lines = [view.title]
    if view.code is not None:
        word, number = WORDS[view.code]
        first = f"{word}: {view.headline}"
        lines = [f"\x1b[1;{number}m{first}\x1b[0m" if colour else first]
    lines += [line for line in (view.summary, *view.sides, *view.remarks) if line]
    shown = [entry for entry in view.entries if not entry.quiet]
    new = [entry for entry in shown if entry.verdict is Verdict.NEW][MOST_NEW:]
    shown = [entry for entry in shown if entry not in new]
    lines += ["", *_aligned([entry.cells for entry in shown])] if shown else []
    lines += [f"and {len(new)} more that are new"] if new else []
    again = next((each.again or each.rerun for each in shown if each.again or each.rerun), "")
    lines += ["", f"measure the worst again: {again}"] if again and view.code is not None else []
    return "\n".join(lines) + "\n"


def _aligned(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The first columns that have room; notes below their rows."""
    shown = [name for name in CONSOLE if any(row.get(name) for row in rows)]
    lines = [dict(zip(shown, shown)), *({name: row[name] for name in shown} for row in rows)]
    width = {name: max(len(line[name]) for line in lines) for name in shown}
    while sum(width[name] + 2 for name in shown) - 2 > WIDTH and len(shown) > 3:
        shown.pop()
    if shown[-1] == "baseline":  # nothing beside it
        shown.pop()
    found = []
    for line, row in zip(lines, [{}, *rows]):
        cells = (
            line[name].rjust(width[name]) if name in NUMERIC else line[name].ljust(width[name])
            for name in shown
        )
        found.append("  ".join(cells).rstrip())
        found += [f"    {row['note']}"] if row.get("note") else []
    return found


def markdown(found: Found, path: str = "", code: int = 2) -> str:
    """For a workflow's step summary: what a reviewer needs in five lines, then what needs a look,
    passes folded away."""
    view = view_of(found, path, code)
    passed = [entry.cells for entry in view.entries if entry.verdict is Verdict.PASS]
    others = [entry.cells for entry in view.entries if entry.verdict is not Verdict.PASS]
    tables = [(title, columns(rows), rows) for title, rows in (("", others), ("pass", passed))]
    return templates.markdown("report", view=view, tables=tables, numeric=NUMERIC)


def columns(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The headings that any of the rows has something under."""
    return [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]


def _comparison(found: Comparison, path: str) -> View:
    baseline, candidate = found.baseline, found.candidate
    runs = (("baseline", baseline), ("candidate", candidate))
    sides = [f"{s}: {run.path}, commit {short(run.commit)}, {gpu(run)}" for s, run in runs]
    base = found.base_commit or baseline.commit
    base_link, head_link = (
        link(short(commit), figures.commit_link(found, commit))
        for commit in (base, candidate.commit)
    )
    day = figures.started(candidate)
    measured = f", measured {escaped(day)}" if day else ""
    points = [
        Markdown(f"base {base_link}, head {head_link}, {escaped(gpu(candidate))}{measured}"),
        summary_line(found),
    ]
    worst = next((r for r in found.rows if r.verdict not in QUIET and r.rerun), None)
    if worst is not None:
        again = f", in pairs: {code(worst.again)}" if worst.again else ""
        points.append(Markdown(f"rerun the worst: {code(worst.rerun)}{again}"))
    return View(
        title=title_of(path, candidate),
        result=result(found),
        headline=headline(found),
        code=found.exit_code,
        summary=summary_line(found),
        sides=sides,
        points=[*points, sides[0]],
        remarks=[f"incomparable: {difference}" for difference in found.differences],
        warnings=[f"warning: {warning}" for warning in found.warnings],
        heading="The regression",
        entries=[_entry(row) for row in found.rows],
    )


def _entry(row: Row) -> Entry:
    keys = {
        "verdict": SEVERITY[row.verdict],
        "slow-down": row.slowdown,
        "interval": row.upper,
        "margin": row.delta,
        "baseline": row.baseline,
        "candidate": row.candidate,
        "p": row.p,
        "pairs": len(row.pairs) or None,
    }
    return Entry(
        row.name,
        cells(row),
        keys,
        row.rerun,
        row.again,
        row.verdict,
        timed=row.slowdown is not None,
        quiet=row.verdict in QUIET and row.note in QUIET_NOTES,
    )


def _fleet(found: Fleet) -> View:
    count, code = len(found.models), found.exit_code
    bad = [f"{member.name}: {_word(member)}" for member in found.models if member.exit_code]
    verb = "do" if bad[1:] else "does"
    remarks = []
    if found.tests:
        remarks.append(
            f"One error budget for all models: the chance that unchanged code is blocked is at "
            f"most {100 * ALPHA:g} %, over {found.tests} tests, by Holm's method."
        )
    remarks += [
        f"The shared budget changed the verdict on {member.name}: inconclusive, by itself "
        f"regressed: {', '.join(member.changed)}."
        for member in found.models
        if member.changed
    ]
    all_pass = f"All {count} models pass."
    some_do_not = f"{len(bad)} of {count} models {verb} not pass ({'; '.join(bad)})."
    summary = f"Exit {code}, {EXIT_MEANINGS[code]}"
    return View(
        title="all models",
        result=EXIT_MEANINGS[code].split(":")[0],
        headline=some_do_not if bad else all_pass,
        code=code,
        summary=summary,
        points=[summary],
        remarks=remarks,
        heading="The models",
        entries=[Entry(member.name, _member(member), {}) for member in found.models],
    )


def _word(member: Member) -> str:
    if member.verdict is not None:
        return result(member.verdict)
    return "not judged" if member.alone == 4 else "error"


def _member(member: Member) -> dict[str, str]:
    return {
        "verdict": _word(member),
        "model": member.name,
        "exit code": str(member.exit_code),
        "by itself": str(member.alone),
        "note": headline(member.verdict) if member.verdict else member.error,
    }


def _run(found: Run) -> View:
    other = found.device.kind == OTHER
    time, ratio = ("time", "of the yardstick") if other else ("GFLOPS", "of cuBLAS")
    entries = []
    for name, row in sorted(found.benchmarks.items()):
        metric, share = GFLOPS if row.gflops else PER_SECOND, figures.share(row)
        shown = {
            "verdict": "verified" if row.verified else "not verified",
            "benchmark": name,
            time: _speed(row.summary[metric], metric),
            ratio: figures.percent(share),
        }
        keys = {time: row.gflops or 1 / row.summary[PER_SECOND], ratio: share}
        entries.append(Entry(name, shown, keys, rerun_command(name, found.device.kind)))
    return View(
        title=title_of(found.path, found),
        result="not compared",
        headline="A run without a comparison.",
        points=[figures.RATIO_NOTE] * (not other),
        heading="Benchmarks",
        entries=entries,
    )


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
            why = found[0].note if verdict is Verdict.ERROR else slower(found[0])
            sentences.append(f"{what} ({first}: {found[0].name}, {why}).")
    timed = [r for r in rows if r.slowdown is not None and r.verdict is not Verdict.IDENTICAL]
    if not sentences and timed:
        worst = max(timed, key=lambda row: row.slowdown or 0.0)
        return f"No benchmark is slower than its margin (worst: {worst.name}, {slower(worst)})."
    if not sentences and rows and all(row.verdict is Verdict.IDENTICAL for row in rows):
        return f"Nothing had to be measured: {rows[0].note}."
    if not sentences and comparison.candidate.device.kind == "simt":
        return "Results were verified on the executor; no time was judged."
    return " ".join(sentences) or "No time was judged."


def slower(row: Row) -> str:
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
        "metric": figures.METRIC_NAMES[row.metric],
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


def _speed(value: float | None, metric: str | None) -> str:
    if value is None:
        return "-"
    if metric == PER_SECOND:
        return duration(1 / value)
    return f"{100 * value:#.4g} %" if metric in (RATIO, OWN_RATIO) else f"{value:.6g}"
