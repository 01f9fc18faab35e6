"""What one file of another project says, whatever its format."""

import math
from dataclasses import dataclass, field

from tilegate_ci.core.files import Place, fault, shown


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

    def add(self, name: str, seconds: object, verified: bool | None, place: Place) -> None:
        """GateError where that is no name, or no time."""
        self.check_name(name, place)
        known = isinstance(seconds, float | int) and not isinstance(seconds, bool)
        if not (known and 1e-300 < float(seconds) < math.inf):  # type: ignore[arg-type]
            text = f"{name}: a time must be a finite number above zero, not {shown(seconds)}"
            raise fault(self.path, place, text)
        self.seconds.setdefault(name, []).append(float(seconds))  # type: ignore[arg-type]
        if verified is not None:
            self.verified[name] = self.verified.get(name, True) and verified

    def skip(self, name: str, reason: str, place: Place) -> None:
        self.check_name(name, place)
        self.skipped[name] = " ".join(reason.split()) or "without a reason"

    def check_name(self, name: str, place: Place) -> None:
        if not (name.strip() and name.isprintable()):
            raise fault(self.path, place, "a name must be one line of printable text")
