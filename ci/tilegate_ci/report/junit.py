"""Verdicts as JUnit XML: a suite a file, a case a benchmark, worst first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from tilegate_ci.core.model import relative
from tilegate_ci.core.verdicts import Verdict
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.report.data import Source

_FAILURES = (Verdict.REGRESSED, Verdict.INCONCLUSIVE)
# What XML 1.0 cannot hold at all, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(sources: Sequence[Source]) -> str:
    """Regressed and inconclusive are failures, incomparable is skipped, and so is a case of the
    session where all of it is. A run that nobody compared has a case a benchmark that says whether
    it was verified."""
    root = ElementTree.Element("testsuites", name="gate")
    for source in sources:
        suite = ElementTree.SubElement(root, "testsuite", name=_clean(source.title))
        if source.error is not None:
            _problem(_case(suite, "gate", "compare"), "error", "error", source.error, "")
        elif source.comparison is not None:
            if source.comparison.differences:
                _skip(_case(suite, "gate", "session"), "; ".join(source.comparison.differences))
            for row in source.comparison.rows:
                _add_row(suite, row, source.comparison)
        else:
            for name, values in source.measured.items():
                rung, _, rest = name.partition("/")
                case = _case(suite, rung, rest)
                if not values["verified"]:
                    _problem(case, "error", "error", "not verified", "")
        _count(suite)
    _count(root)
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _add_row(suite: ElementTree.Element, row: Row, comparison: Comparison) -> None:
    rung, _, rest = row.name.partition("/")
    case = _case(suite, rung, rest)
    said = row.verdict.value
    if row.slowdown is not None and row.delta is not None:
        said += f": {100 * row.slowdown:+.2f} % slower, margin {100 * relative(row.delta):.1f} %"
    if row.note:
        said += f": {row.note}"
    if row.verdict is Verdict.ERROR:
        _problem(case, "error", row.verdict.value, said, row.rerun)
    elif row.verdict in _FAILURES:
        _problem(case, "failure", row.verdict.value, said, row.rerun)
    elif row.verdict is Verdict.INCOMPARABLE:
        why = "; ".join(comparison.differences) or row.note
        _skip(case, why)
    elif row.verdict is not Verdict.PASS:
        ElementTree.SubElement(case, "system-out").text = _clean(said)


def _case(suite: ElementTree.Element, rung: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=_clean(rung), name=_clean(name), time="0"
    )


def _problem(case: ElementTree.Element, tag: str, kind: str, message: str, rerun: str) -> None:
    problem = ElementTree.SubElement(case, tag, type=kind, message=_clean(message))
    problem.text = _clean(f"{message}\n{rerun}" if rerun else message)


def _skip(case: ElementTree.Element, why: str) -> None:
    ElementTree.SubElement(case, "skipped", message=_clean(f"incomparable: {why}"))


def _count(element: ElementTree.Element) -> None:
    counts = {
        "tests": "testcase",
        "failures": "failure",
        "errors": "error",
        "skipped": "skipped",
    }
    for attribute, tag in counts.items():
        element.set(attribute, str(sum(1 for _ in element.iter(tag))))
    element.set("time", "0")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
