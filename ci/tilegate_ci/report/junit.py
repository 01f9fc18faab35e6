"""Verdicts as JUnit XML: a suite per file, a case per benchmark, worst first."""

import re
from collections.abc import Iterator, Sequence

from tilegate_ci.judge.compare import Comparison, Row, seconds
from tilegate_ci.judge.verdict_file import Fleet
from tilegate_ci.model import Run, Verdict
from tilegate_ci.report import render, templates
from tilegate_ci.report.figures import Source, started

Case = dict[str, object]

_TAGS = {
    Verdict.ERROR: "error",
    Verdict.REGRESSED: "failure",
    Verdict.INCONCLUSIVE: "failure",
    Verdict.INCOMPARABLE: "skipped",
    Verdict.PASS: "",
}
# What XML 1.0 cannot hold at all, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(sources: Sequence[Source]) -> str:
    """Regressed and inconclusive are failures, incomparable is skipped, and so is a case of the
    session where all of it is. A run without a comparison has a case per benchmark that says
    whether it was verified. A suite has the same name whatever was compared, so that a server can
    show its history; the time of a case is that of one call of the kernel, in seconds."""
    suites: dict[str, dict[str, object]] = {}
    for source in sources:
        if isinstance(source.found, Fleet):
            continue  # its models have a suite each
        name = f"gate on {source.run.device.name}" if source.run else "gate"
        name += f", {source.path}" * (name in suites)
        day = started(source.run) if source.run else ""
        suites[name] = {"name": name, "started": day.removesuffix("Z"), "facts": _facts(source)}
        suites[name]["cases"] = list(_cases(source))
    return _FORBIDDEN.sub("?", templates.html("junit.xml", suites=[*suites.values()]))


def _facts(source: Source) -> dict[str, str]:
    facts, comparison = {"file": source.path}, source.comparison
    if source.run is not None:
        facts["commit"] = source.run.commit
    if comparison is not None:
        facts["base commit"] = comparison.base_commit or comparison.baseline.commit
        facts["verdict"] = render.summary_line(comparison)
    return facts


def _cases(source: Source) -> Iterator[Case]:
    comparison, run = source.comparison, source.run
    if comparison is not None:
        if comparison.differences:
            yield _case("gate/session", None, "skipped", "; ".join(comparison.differences))
        for row in comparison.rows:
            yield _of_row(row, comparison)
    elif run is not None:
        for name, values in run.benchmarks.items():
            yield _case(name, run, "" if values.sound else "error", "not verified")
    else:
        yield _case("gate/compare", None, "error", str(source.found))


def _of_row(row: Row, comparison: Comparison) -> Case:
    tag, message = _TAGS.get(row.verdict, "system-out"), row.verdict.value
    if row.slowdown is not None:
        message += f": slow-down {render.slower(row)}"
    message += f": {row.note}" * bool(row.note)
    if tag == "skipped":
        message = "; ".join(comparison.differences) or row.note
    case = _case(row.name, comparison.candidate, tag, message)
    again = row.again if tag == "failure" else ""
    return {**case, "kind": row.verdict.value, "commands": f"{row.rerun}\n{again}".strip()}


def _case(name: str, run: Run | None, tag: str, message: str) -> Case:
    rung, _, problem = name.partition("/")
    known = seconds(name, run.benchmarks.get(name)) if run else None
    found = {"rung": rung, "problem": problem, "seconds": known or 0.0}
    return {**found, "tag": tag, "kind": tag, "message": message, "commands": ""}
