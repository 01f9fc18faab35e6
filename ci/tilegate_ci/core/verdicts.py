"""The verdicts and their exit codes."""

from collections.abc import Iterable
from enum import Enum


class Verdict(Enum):
    """Worst first: the order of the reports."""

    ERROR = "error"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"
    INCOMPARABLE = "incomparable"
    NEW = "new"
    PASS = "pass"
    IDENTICAL = "identical"  # the machine code is the same, so there is nothing to judge
    IMPROVED = "improved"


SEVERITY = {verdict: rank for rank, verdict in enumerate(Verdict)}

_EXIT_CODES = {
    Verdict.ERROR: 2,
    Verdict.REGRESSED: 1,
    Verdict.INCONCLUSIVE: 3,
    Verdict.INCOMPARABLE: 4,
}

# An error may hide a regression, and a regression must not be excused by the rest.
_PRECEDENCE = (2, 1, 4, 3)

EXIT_MEANINGS = {
    0: "nothing regressed",
    1: "regressed: slower than the baseline by more than the margin",
    2: "error: something could not be judged",
    3: "inconclusive: too noisy to say",
    4: "incomparable: another device or software stack, or a session that cannot be judged",
}


def exit_code(verdicts: Iterable[Verdict]) -> int:
    codes = {_EXIT_CODES.get(verdict, 0) for verdict in verdicts}
    return next((code for code in _PRECEDENCE if code in codes), 0)
