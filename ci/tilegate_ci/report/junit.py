"""Verdicts as JUnit XML: a suite per file, a case per benchmark, worst first."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from tilegate_ci.judge.compare import Comparison, Row, seconds
from tilegate_ci.model import Run, Verdict
from tilegate_ci.report import render
from tilegate_ci.report.data import Source
from tilegate_ci.report.figures import started

_FAILURES = (Verdict.REGRESSED, Verdict.INCONCLUSIVE)
# What XML 1.0 cannot hold at all, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(sources: Sequence[Source]) -> str:
    """Regressed and inconclusive are failures, incomparable is skipped, and so is a case of the
    session where all of it is. A run without a comparison has a case per benchmark that says
    whether it was verified. A suite has the same name whatever was compared, so that a server can
    show its history; the time of a case is that of one call of the kernel, in seconds."""
    root = ElementTree.Element("testsuites", name="Tilegate gate")
    names: set[str] = set()
    for source in sources:
        if source.fleet is not None:
            continue  # its models have a suite each
        name = f"gate on {source.run.device.name}" if source.run else "gate"
        name += f", {source.path}" * (name in names)
        names.add(name)
        suite = ElementTree.SubElement(root, "testsuite", name=_clean(name))
        _describe(suite, source)
        if source.comparison is not None:
            if source.comparison.differences:
                skipped = "; ".join(source.comparison.differences)
                _skip(_case(suite, "gate/session", None), skipped)
            for row in source.comparison.rows:
                _add_row(suite, row, source.comparison)
        elif source.run is not None:
            for benchmark, values in source.run.benchmarks.items():
                case = _case(suite, benchmark, source.run)
                if not values.sound:
                    _problem(case, "error", "error", "not verified", "")
        else:
            _problem(_case(suite, "gate/compare", None), "error", "error", source.error, "")
        _count(suite)
    _count(root)
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _describe(suite: ElementTree.Element, source: Source) -> None:
    facts = {"file": source.path}
    if source.run is not None:
        facts["commit"] = source.run.commit
        if day := started(source.run):
            suite.set("timestamp", _clean(day.removesuffix("Z")))
    if source.comparison is not None:
        comparison = source.comparison
        facts["base commit"] = comparison.base_commit or comparison.baseline.commit
        facts["verdict"] = render.summary_line(comparison)
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=_clean(value))


def _add_row(suite: ElementTree.Element, row: Row, comparison: Comparison) -> None:
    case = _case(suite, row.name, comparison.candidate)
    cells = render.cells(row)
    message = row.verdict.value
    if row.slowdown is not None:
        bounds = f" ({cells['interval']})" * bool(cells["interval"])
        message += f": slow-down {cells['slow-down']}{bounds}, margin {cells['margin']}"
    if row.note:
        message += f": {row.note}"
    if row.verdict is Verdict.ERROR:
        _problem(case, "error", row.verdict.value, message, row.rerun)
    elif row.verdict in _FAILURES:
        commands = "\n".join(filter(None, [row.rerun, row.again]))
        _problem(case, "failure", row.verdict.value, message, commands)
    elif row.verdict is Verdict.INCOMPARABLE:
        _skip(case, "; ".join(comparison.differences) or row.note)
    elif row.verdict is not Verdict.PASS:
        ElementTree.SubElement(case, "system-out").text = _clean(message)


def _case(suite: ElementTree.Element, name: str, run: Run | None) -> ElementTree.Element:
    rung, _, rest = name.partition("/")
    known = seconds(name, run.benchmarks.get(name)) if run else None
    return ElementTree.SubElement(
        suite, "testcase", classname=_clean(rung), name=_clean(rest), time=f"{known or 0.0:.9f}"
    )


def _problem(case: ElementTree.Element, tag: str, kind: str, message: str, rerun: str) -> None:
    problem = ElementTree.SubElement(case, tag, type=kind, message=_clean(message))
    problem.text = _clean(f"{message}\n{rerun}" if rerun else message)


def _skip(case: ElementTree.Element, why: str) -> None:
    ElementTree.SubElement(case, "skipped", message=_clean(f"incomparable: {why}"))


def _count(element: ElementTree.Element) -> None:
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for attribute, tag in tags.items():
        element.set(attribute, str(sum(1 for _ in element.iter(tag))))
    total = sum(float(case.get("time", 0)) for case in element.iter("testcase"))
    element.set("time", f"{total:.9f}")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
