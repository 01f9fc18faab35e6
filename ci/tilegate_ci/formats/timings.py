"""Times in a file of another project, independent of its format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from tilegate_ci.core.files import Place, fault, printable, shown


def is_time(value: object) -> TypeGuard[float]:
    """Whether it can be a time, in seconds or parts of one; a whole number may have any size."""
    known = isinstance(value, float | int) and not isinstance(value, bool)
    return known and 1e-300 < value < 1e300  # type: ignore[operator]


@dataclass
class Timings:
    """Seconds by name, one for each repetition. `verified` holds what the benchmarks themselves
    say of their results, where that was asked for."""

    path: str
    device: str
    started: str | None = None
    seconds: dict[str, list[float]] = field(default_factory=dict)
    verified: dict[str, bool] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(
        self, name: str, seconds: object, verified: bool | None, place: Place, file: str = ""
    ) -> None:
        """GateError where that is no name, or no time; it names `file`, or else the path."""
        self.check_name(name, place, file)
        if not is_time(seconds):
            text = f"{name}: a time must be a finite number above zero, not {shown(seconds)}"
            raise fault(file or self.path, place, text)
        self.seconds.setdefault(name, []).append(float(seconds))
        if verified is not None:
            self.verified[name] = self.verified.get(name, True) and verified

    def skip(self, name: str, reason: str, place: Place) -> None:
        self.check_name(name, place)
        self.skipped[name] = printable(" ".join(reason.split())) or "without a reason"

    def check_name(self, name: str, place: Place, file: str = "") -> None:
        if not (name.strip() and name.isprintable()):
            raise fault(file or self.path, place, "a name must be one line of printable text")


def counted(
    row: Mapping[str, Any], counter: str, name: str, path: str, place: Place
) -> bool | None:
    """Whether the counter that --verified names is 1; None where it names none."""
    if counter and counter not in row:
        raise fault(path, place, f"{name}: no counter {counter}, which --verified names")
    return bool(row[counter] == 1) if counter else None
