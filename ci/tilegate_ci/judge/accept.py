"""Makes a baseline of a recorded run."""

from collections.abc import Mapping
from typing import Any

from tilegate_ci.core.files import GateError, dumps, rounded
from tilegate_ci.formats import run_file
from tilegate_ci.formats.run_file import AGREEMENT, Role
from tilegate_ci.model import MIN_DELTA, RunFile, RunRow, delta_of, relative

MIN_PROCESSES = 3
MOST_DELTA = 0.03  # a margin that grows beyond it needs a reason


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
            f"{candidate.path}: commit: {candidate.commit}: uncommitted changes cannot be "
            "rebuilt; commit them and record again, or give --allow-dirty"
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
) -> tuple[str, list[str]]:
    """The baseline that `candidate` makes in the place of `old`, which may not exist yet, and what
    is new in it. GateError where a margin grows beyond MOST_DELTA without a reason, which the rows
    then keep."""
    old_rows = old.benchmarks if old is not None else {}
    before = {name: row.fields for name, row in old_rows.items()}
    after = {
        name: _accepted_row(row, old_rows.get(name), candidate.device.kind)
        for name, row in candidate.benchmarks.items()
    }
    grown = _grown(after, old_rows)
    wide = [name for name in grown if _is_wide(after[name]["delta"])]
    if wide and reason is None:
        raise GateError(
            f"{candidate.path}: {len(wide)} margins grow beyond {_percent(MOST_DELTA)}, so that "
            f"slow-downs up to them would pass; first the {grown[wide[0]]}; record again on a "
            "quiet GPU, or give --reason TEXT"
        )
    for name in wide:
        after[name]["delta_reason"] = reason
    document = {**_unknown(old), **candidate.fields, "benchmarks": after}
    if merge and old is not None:
        _merge(document, candidate, old)
    text = dumps(document) + "\n"
    run_file.parse(text, candidate.path, Role.BASELINE)
    both = before.keys() & after.keys()
    removed = sorted(before.keys() - after.keys())
    changed = sum(before[name] != after[name] for name in both)
    lines = [
        f"{len(after) - len(both)} new, {len(removed)} removed, {changed} changed, "
        f"{len(both) - changed} unchanged"
    ]
    if old is not None:
        lines += [f"device {line}" for line in old.device.differences(candidate.device)]
    return text, [*lines, *(f"removed {name}" for name in removed), *grown.values()]


def _grown(after: Mapping[str, dict[str, Any]], old: Mapping[str, RunRow]) -> dict[str, str]:
    """The margins that are wider than before, in words, the widest first; of a new row what is
    above the least margin."""
    found = {}
    for name in sorted(after, key=lambda name: -after[name].get("delta", 0.0)):  # none on simt
        before = old[name].margin(old[name].decisive) if name in old else None
        delta = after[name].get("delta", 0.0)
        if delta > (before or MIN_DELTA) * (1 + AGREEMENT):
            was = "a new row" if before is None else f"{_percent(before)} before"
            found[name] = f"margin of {name}: {_percent(delta)}, {was}"
    return found


def _is_wide(delta: float) -> bool:
    return delta > MOST_DELTA * (1 + AGREEMENT)


def _percent(delta: float) -> str:
    return f"{100 * relative(delta):.1f} %"


def _accepted_row(row: RunRow, old: RunRow | None, device_kind: str) -> dict[str, Any]:
    """The recorded row with a margin of its own; keeps what people wrote into the old one."""
    evidence = {metric: [*map(rounded, values)] for metric, values in row.per_process.items()}
    medians = {metric: rounded(value) for metric, value in row.summary.items()}
    fields = {**_unknown(old), **row.fields, **medians, "per_process": evidence}
    fields["key"] = row.key or (old is not None and old.key)
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
