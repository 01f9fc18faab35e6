"""Benchmark names: the one text form of a problem, and the command line that reruns it."""

import math
import re
import signal
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Self

from tilegate_ci.core.files import GateError

FORM = (
    "<Rung>[.<variant>][@<configuration>]/<M>x<N>x<K>[/<opA><opB>][/ld<lda>x<ldb>x<ldc>]"
    "[/batch<count>[s<a>x<b>x<c>]][/off<bytes> or /off<a>x<b>x<c>][/alpha<x>][/beta<x>]"
    "[/split][/cold]"
)

_SIZE = r"[1-9][0-9]*"
_COUNT = r"(?:0|[1-9][0-9]*)"
_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|inf)|nan"
_PROBLEM = re.compile(
    r"(?P<rung>[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)?(?:@[A-Za-z0-9_:.]+)?)"
    rf"/(?P<shape>{_SIZE}x{_SIZE}x{_SIZE})"
    r"(?:/(?P<ops>[NT]{2}))?"
    rf"(?:/ld(?P<ld>{_SIZE}x{_SIZE}x{_SIZE}))?"
    rf"(?:/batch(?P<batch>{_SIZE})(?:s(?P<strides>{_COUNT}x{_COUNT}x{_COUNT}))?)?"
    rf"(?:/off(?P<off>{_COUNT}(?:x{_COUNT}x{_COUNT})?))?"
    rf"(?:/alpha(?P<alpha>{_NUMBER}))?(?:/beta(?P<beta>{_NUMBER}))?"
    r"(?P<split>/split)?(?P<cold>/cold)?"
)
_LARGEST = 2**63 - 1  # what C++ holds in an int64_t

# What Google Benchmark appends: its own settings to the name, the aggregate's name after those.
_AGGREGATE = re.compile(r"_(?:mean|median|stddev|cv|min|max|BigO|RMS)\Z")
_SETTING = re.compile(
    r"/(?:manual_time|real_time|process_time"
    r"|(?:min_time|min_warmup_time|iterations|repeats|threads):[0-9]+(?:\.[0-9]+)?s?)\Z"
)

MOST_SEARCH_S = 2.0  # by a regular expression that somebody gave, over all names
YARDSTICK = "Cublas"  # the stage that all others are compared with
_PRESET = {"cuda": "gpu", "simt": "cpu"}

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Problem:
    """What one benchmark computes. Offsets in bytes, leading dimensions and strides in elements;
    without `ld` the operands are dense, without `strides` the matrices of a batch are. With `split`
    they may be split for tensor cores (Math::fp32_split)."""

    rung: str
    shape: Triple  # M, N, K
    ops: str = "NN"
    ld: Triple | None = None
    batch: int = 1
    strides: Triple | None = None
    offsets: Triple = (0, 0, 0)
    alpha: float = 1.0
    beta: float = 0.0
    split: bool = False
    cold: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError when the text is not of the form FORM."""
        found = _PROBLEM.fullmatch(text)
        numbers = map(int, re.findall("[0-9]+", re.split("/alpha|/beta", text)[0]))
        if found is None or max(numbers, default=0) > _LARGEST:
            raise ValueError(f"malformed benchmark name {text!r}; expected {FORM}")
        return cls(
            found["rung"],
            _triple(found["shape"]),
            found["ops"] or "NN",
            _triple(found["ld"]) if found["ld"] else None,
            int(found["batch"] or 1),
            _triple(found["strides"]) if found["strides"] else None,
            _triple(found["off"] or "0"),
            float32(found["alpha"] or 1),
            float32(found["beta"] or 0),
            found["split"] is not None,
            found["cold"] is not None,
        )

    @property
    def dense(self) -> Triple:
        """The leading dimensions of operands without padding."""
        m, n, k = self.shape
        return (k if self.ops[0] == "N" else m, n if self.ops[1] == "N" else k, n)

    @property
    def dense_strides(self) -> Triple:
        """From one matrix of a batch to the next where nothing lies between them."""
        m, n, k = self.shape
        a, b, c = self.ld or self.dense
        return ((m if self.ops[0] == "N" else k) * a, (k if self.ops[1] == "N" else n) * b, m * c)

    def __str__(self) -> str:
        """Every part that is not the default, in the order of FORM."""
        parts = [self.rung, _text(self.shape)]
        if self.ops != "NN":
            parts.append(self.ops)
        if self.ld not in (None, self.dense):
            parts.append(f"ld{_text(self.ld)}")
        if self.batch != 1:
            dense = self.strides in (None, self.dense_strides)
            strides = "" if dense else f"s{_text(self.strides)}"
            parts.append(f"batch{self.batch}{strides}")
        if any(self.offsets):
            same = len(set(self.offsets)) == 1
            parts.append(f"off{self.offsets[0] if same else _text(self.offsets)}")
        if self.alpha != 1:
            parts.append(f"alpha{shortest(self.alpha)}")
        if self.beta != 0:
            parts.append(f"beta{shortest(self.beta)}")
        return "/".join([*parts, *["split"] * self.split, *["cold"] * self.cold])


def _triple(text: str) -> Triple:
    values = [int(value) for value in text.split("x")]
    return (values[0], values[1], values[2]) if len(values) == 3 else (values[0],) * 3


def _text(triple: Triple | None) -> str:
    return "x".join(map(str, triple or ()))


def shortest(value: float) -> str:
    """The shortest decimal that reads back as the same float32, as C++'s std::to_chars writes it:
    in plain digits unless those are longer than an exponent."""
    if not math.isfinite(value):
        return str(value)
    texts = (f"{value:.{digits}e}" for digits in range(9))
    scientific = next(text for text in texts if float32(text) == float32(value))
    plain = f"{value:.0f}" if value == int(value) else f"{Decimal(scientific):f}"
    return plain if len(plain) <= len(scientific) else scientific


def float32(text: str | float) -> float:
    """The nearest float32; ValueError where it is none, as 1e39."""
    try:
        (value,) = struct.unpack("f", struct.pack("f", float(text)))
    except OverflowError:
        value = math.inf
    if math.isinf(value) and "inf" not in str(text):
        raise ValueError(f"{text} is too large for a float32")
    return float(value)


@cache
def canonical_name(name: str) -> str:
    """Strips Google Benchmark's suffixes; ValueError when what is left is not of the form FORM."""
    stripped = _AGGREGATE.sub("", name)
    while (shorter := _SETTING.sub("", stripped)) != stripped:
        stripped = shorter
    return str(Problem.parse(stripped))


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
