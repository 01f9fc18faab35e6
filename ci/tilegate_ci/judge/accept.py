"""Makes a baseline of a recorded run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, dumps, rounded
from tilegate_ci.formats import run_file
from tilegate_ci.formats.run_file import AGREEMENT, Role
from tilegate_ci.model import MIN_DELTA, RunFile, RunRow, delta_of, relative

MIN_PROCESSES = 3
MOST_DELTA = 0.03  # a margin that grows beyond it needs a reason


@dataclass(frozen=True)
class Grown:
    """A margin that is wider than in the old baseline; `old` is None where that had no such row."""

    name: str
    old: float | None
    new: float

    def __str__(self) -> str:
        before = "a new row" if self.old is None else f"{_percent(self.old)} before"
        return f"margin of {self.name}: {_percent(self.new)}, {before}"


@dataclass(frozen=True)
class Accepted:
    """The new baseline's text, and how its benchmarks differ from the old one's."""

    text: str
    new: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    grown: tuple[Grown, ...]


def check_acceptable(
    candidate: RunFile, allow_dirty: bool = False, allow_few: bool = False
) -> None:
    """GateError when the run must not become a baseline."""
    unverified = [name for name, row in candidate.benchmarks.items() if not row.sound]
    if unverified:
        raise GateError(f"{candidate.path}: not verified: {', '.join(sorted(unverified))}")
    plant = candidate.protocol.plant
    if plant is not None:
        raise GateError(
            f"{candidate.path}: protocol.plant: {plant}: a slow-down was planted in this run; "
            "it can prove the gate, but never be a baseline"
        )
    if candidate.dirty and not allow_dirty:
        raise GateError(
            f"{candidate.path}: commit: {candidate.commit}: nobody can rebuild uncommitted "
            "changes; commit them and record again, or give --allow-dirty"
        )
    few = candidate.device.kind != "simt" and candidate.processes < MIN_PROCESSES
    if few and not allow_few:
        raise GateError(
            f"{candidate.path}: processes: {candidate.processes} recorded, at least "
            f"{MIN_PROCESSES} needed to know the noise; record more, or give --allow-few"
        )


def check_same_device(candidate: RunFile, old: RunFile | None) -> None:
    """GateError where another device's baseline would be lost: by --baseline, or because the two
    names differ in what no file name has. Of simt there is one baseline for all machines."""
    if old is None or old.device.kind == candidate.device.kind == "simt":
        return
    if old.device.name != candidate.device.name:
        raise GateError(
            f"{old.path}: the baseline of {old.device.name}, and {candidate.path} is of "
            f"{candidate.device.name}; remove it first if that is meant"
        )


def accept(
    candidate: RunFile, old: RunFile | None, merge: bool = False, reason: str | None = None
) -> Accepted:
    """The baseline that `candidate` makes in the place of `old`, which may not exist yet. GateError
    where a margin grows beyond MOST_DELTA without a reason, which the rows then keep."""
    old_rows = old.benchmarks if old is not None else {}
    before = {name: row.fields for name, row in old_rows.items()}
    after = {
        name: _accepted_row(row, old_rows.get(name), candidate.device.kind)
        for name, row in candidate.benchmarks.items()
    }
    grown = _grown(after, old_rows)
    wide = [each for each in grown if _is_wide(each.new)]
    if wide and reason is None:
        raise GateError(
            f"{candidate.path}: {len(wide)} margins grow beyond {_percent(MOST_DELTA)}, so that "
            f"slow-downs up to them would pass; first the {wide[0]}; record again on a quiet GPU, "
            "or give --reason TEXT"
        )
    for each in wide:
        after[each.name]["delta_reason"] = reason
    document = {**_unknown(old), **candidate.fields, "benchmarks": after}
    if merge and old is not None:
        _merge(document, candidate, old)
    text = dumps(document) + "\n"
    run_file.parse(text, candidate.path, Role.BASELINE)
    both = sorted(before.keys() & after.keys())
    return Accepted(
        text=text,
        new=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed=tuple(name for name in both if before[name] != after[name]),
        unchanged=tuple(name for name in both if before[name] == after[name]),
        grown=grown,
    )


def _grown(after: Mapping[str, dict[str, Any]], old: Mapping[str, RunRow]) -> tuple[Grown, ...]:
    """The widest first. Of a new row what is above the least margin."""
    found = []
    for name, row in after.items():
        before = old[name].margin(old[name].decisive) if name in old else None
        delta = row.get("delta", 0.0)  # none on simt
        if delta > (before or MIN_DELTA) * (1 + AGREEMENT):
            found.append(Grown(name, before, delta))
    return tuple(sorted(found, key=lambda each: -each.new))


def _is_wide(delta: float) -> bool:
    return delta > MOST_DELTA * (1 + AGREEMENT)


def _percent(delta: float) -> str:
    return f"{100 * relative(delta):.1f} %"


def _accepted_row(row: RunRow, old: RunRow | None, device_kind: str) -> dict[str, Any]:
    """The recorded row, with what people wrote into the old one kept and the margin made anew."""
    fields = {**_unknown(old), **row.fields}
    fields["key"] = row.key or (old is not None and old.key)
    for metric, value in row.summary.items():
        fields[metric] = rounded(value)
    evidence = {
        metric: [rounded(value) for value in values] for metric, values in row.per_process.items()
    }
    fields["per_process"] = evidence
    fields.pop("delta", None)
    if device_kind != "simt":
        fields["delta"] = rounded(delta_of(evidence[row.decisive]))
    if not _is_wide(fields.get("delta", 0.0)):
        fields.pop("delta_reason", None)
    return fields


def _merge(document: dict[str, Any], candidate: RunFile, old: RunFile) -> None:
    differences = old.device.differences(candidate.device)
    if differences:
        raise GateError(f"{candidate.path}: --merge: not the same device; {'; '.join(differences)}")
    for name, row in old.benchmarks.items():
        if name not in document["benchmarks"]:
            # The file's commit is the candidate's: a row that stays says which one is its own.
            document["benchmarks"][name] = {"commit": old.commit, **row.fields}
    document["sessions"] = [*old.fields["sessions"], *document["sessions"]]


def _unknown(source: RunFile | RunRow | None) -> dict[str, Any]:
    """The fields that the gate does not know."""
    return (source.model_extra or {}) if source is not None else {}


def report(path: Path, accepted: Accepted, candidate: RunFile, old: RunFile | None) -> str:
    counts = ", ".join(
        f"{len(getattr(accepted, word))} {word}"
        for word in ("new", "removed", "changed", "unchanged")
    )
    lines = [f"{path}: {counts}"]
    if old is not None:
        lines += [f"{path}: device {line}" for line in old.device.differences(candidate.device)]
    lines += [f"{path}: removed {name}" for name in accepted.removed]
    lines += [f"{path}: {each}" for each in accepted.grown]
    return "\n".join(lines) + "\n"
