"""What a file of another project says of its benchmarks, independent of its format."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from tilegate_ci.core.files import Place


def is_time(value: object) -> TypeGuard[float]:
    """Whether it can be a time, in seconds or parts of one; a whole number may have any size."""
    known = isinstance(value, float | int) and not isinstance(value, bool)
    return known and 1e-300 < value < 1e300  # type: ignore[operator]


def number(value: object) -> object:
    """Of text its number, if it is one."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


@dataclass(frozen=True)
class TimedRow:
    """One measurement: what --time may name, in seconds, and what --verified may. `line` names the
    place where the file has no JSON that could."""

    name: str
    place: Place
    times: Mapping[str, object] = field(default_factory=dict)
    counters: Mapping[str, object] = field(default_factory=dict)
    skipped: str | None = None  # why it was not measured
    line: str = ""


@dataclass(frozen=True)
class TimedFile:
    """A file. `time` is what the format calls a time, `usual` the one that is taken unless --time
    names another, `takes` which of them it may name."""

    device: str
    started: str | None
    time: str
    usual: str
    takes: str
    rows: Iterable[TimedRow]
