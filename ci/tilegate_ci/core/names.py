"""Names of benchmarks: their form, which bench writes, and the command line that reruns one."""

import re
import signal
from collections.abc import Iterable
from functools import cache

from tilegate_ci.core.files import GateError

FORM = (
    "<Rung>[.<variant>][@<configuration>]/<M>x<N>x<K>[/<opA><opB>][/ld<lda>x<ldb>x<ldc>]"
    "[/batch<count>[s<a>x<b>x<c>]][/off<bytes> or /off<a>x<b>x<c>][/alpha<x>][/beta<x>]"
    "[/split][/cold]"
)

_SIZE = r"[1-9][0-9]{0,18}"
_COUNT = r"(?:0|[1-9][0-9]{0,18})"
_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|inf)|nan"
_NAME = re.compile(
    rf"[A-Za-z]\w*(?:\.\w+)?(?:@[\w:.]+)?/{_SIZE}x{_SIZE}x{_SIZE}(?:/[NT]{{2}})?"
    rf"(?:/ld{_SIZE}x{_SIZE}x{_SIZE})?(?:/batch{_SIZE}(?:s{_COUNT}x{_COUNT}x{_COUNT})?)?"
    rf"(?:/off{_COUNT}(?:x{_COUNT}x{_COUNT})?)?(?:/alpha(?:{_NUMBER}))?(?:/beta(?:{_NUMBER}))?"
    r"(?:/split)?(?:/cold)?",
    re.ASCII,
)
# What Google Benchmark appends: its own settings to the name, the aggregate's name after those.
# Reports of bench leave it out; --benchmark_list_tests and reports of older commits have it.
_APPENDED = re.compile(
    r"(?:/(?:manual_time|real_time|process_time"
    r"|(?:min_time|min_warmup_time|iterations|repeats|threads):[0-9]+(?:\.[0-9]+)?s?))*"
    r"(?:_(?:mean|median|stddev|cv|min|max|BigO|RMS))?\Z"
)

MOST_SEARCH_S = 2.0  # of a regular expression over all names
YARDSTICK = "Cublas"  # the stage that all others are compared with
_PRESET = {"cuda": "gpu", "simt": "cpu"}


@cache
def canonical_name(text: str) -> str:
    """Without what Google Benchmark appends; ValueError where the rest is not of the form FORM.
    Where bench has one spelling of a problem, others are other names."""
    name = _APPENDED.sub("", text)
    if not _NAME.fullmatch(name):
        raise ValueError(f"malformed benchmark name {text!r}; expected {FORM}")
    return name


def shape_of(name: str) -> tuple[int, int, int]:
    """M, N and K."""
    m, n, k = map(int, name.split("/")[1].split("x"))
    return m, n, k


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Those in which `pattern` is found; GateError when there are none."""
    every = list(names)
    if pattern is None:
        return every
    try:
        found = search(re.compile(pattern), every)
    except re.error as problem:
        raise GateError(f"--filter {pattern!r}: not a regular expression: {problem}") from problem
    if not found:
        raise GateError(f"--filter {pattern!r}: matches none of the {len(every)} benchmarks")
    return found


def search(pattern: re.Pattern[str], names: Iterable[str]) -> list[str]:
    """Those in which it is found; GateError where the pattern is one that tries without end."""

    def stop(*_: object) -> None:
        raise GateError(
            f"{pattern.pattern!r} takes longer than {MOST_SEARCH_S:g} s to search; write it "
            "without a repetition inside another one"
        )

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MOST_SEARCH_S)
    try:
        return [name for name in names if pattern.search(name)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def rung_of(name: str) -> str:
    return name.split("/")[0]


def benchmark_filter(name: str) -> str:
    """A --benchmark_filter that matches `name` with whatever Google Benchmark appends to it."""
    return f"^{name}(/|$)"


def rerun_command(name: str, device_kind: str) -> str:
    """The command that measures this benchmark again, whether or not its shape is a default one;
    empty for another project's, which only that project knows."""
    if device_kind not in _PRESET:
        return ""
    rung, _, problem = name.partition("/")
    shape, cold, _ = problem.partition("/cold")
    flags = [f"--shapes={shape}"]
    flags += ["--cold"] * bool(cold)
    flags += ["--variants"] * ("." in rung)
    flags.append(f"--benchmark_filter='{benchmark_filter(name)}'")
    return f"build/{_PRESET[device_kind]}/bench/bench {' '.join(flags)}"
