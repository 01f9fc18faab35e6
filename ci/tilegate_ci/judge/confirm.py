"""The confirmation: what pairs of processes of base and head say of each benchmark."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilegate_ci.core.files import rounded
from tilegate_ci.core.names import YARDSTICK, rung_of
from tilegate_ci.judge import paired
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.judge.paired import Estimate
from tilegate_ci.model import MIN_DELTA, OTHER, Conditions, Device, Process, Verdict, relative

# Why a benchmark is identical.
SAME_CODE = "the same machine code"
SAME_SOURCES = "the same sources"

# A software power cap is how a GPU at its limit runs all the time; these come and go.
EVENTS = frozenset(
    {
        "hardware slowdown",
        "software thermal slowdown",
        "hardware thermal slowdown",
        "hardware power brake",
    }
)


def void_reason(conditions: Conditions) -> str | None:
    """Why a process between these conditions does not count, in words; None when it does."""
    before, after = conditions.before, conditions.after
    for side in (before, after):
        events = EVENTS.intersection(side.get("throttle_reasons", ()))
        if events:
            return ", ".join(sorted(events))
    key = "thermal_violation_ms"
    if key in before and key in after and after[key] > before[key]:
        return f"{after[key] - before[key]:.0f} ms slowed down by heat"
    return None


def is_canary(name: str) -> bool:
    """cuBLAS against itself, which no change of a kernel moves."""
    return rung_of(name) == YARDSTICK


def moved(estimates: Mapping[str, Estimate], deltas: Mapping[str, float]) -> list[str]:
    """The canaries and controls whose slow-down or speed-up is beyond their margin for certain,
    one phrase each."""
    return [
        f"{name} changed in time by {100 * relative(found.mean):+.2f} %, its code is the same"
        for name, found in estimates.items()
        if found.lower > deltas[name] or found.upper < -deltas[name]
    ]


Pair = tuple[Process, Process]  # base, head


@dataclass(frozen=True)
class Confirmed:
    """`reasons` say why the session cannot be judged, if so; `keys` must not stay undecided.
    `shares` is the part of the false alarms allowed that the last test of each could use, `open`
    what further pairs should measure."""

    verdicts: Mapping[str, Verdict]
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    deltas: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()
    shares: Mapping[str, float] = field(default_factory=dict)
    open: tuple[str, ...] = ()


def judge_pairs(
    pairs: Sequence[Pair],
    names: Iterable[str],
    identical: Iterable[str],
    deltas: Mapping[str, float],
    wanted: int,
    screened_on: Device | None = None,
    controls: Sequence[str] = (),
) -> Confirmed:
    """Judges `names`, of which canaries, `identical` and `controls` are assumed unchanged. All of
    it, the screen too where there was one, must be of one device. Fewer pairs than `wanted` are
    enough where the rule looks at so many, and they decide all of it. What a look has decided the
    pairs after it may lack."""
    names, same = list(names), set(identical)
    known = {name: deltas.get(name, MIN_DELTA) for name in names}
    kind = pairs[0][0].device.kind if pairs else OTHER
    same_time = {*same, *controls}
    controls = [n for n in names if n in same_time or (is_canary(n) and kind != OTHER)]
    verdicts: dict[str, Verdict] = {}
    estimates: dict[str, paired.Estimate] = {}
    shares: dict[str, float] = {}
    reasons: tuple[str, ...] = ()
    for count, share in paired.looks(wanted).items():
        if len(pairs) < count:
            break
        slower = _slower(pairs[:count], names)
        found = {n: paired.estimate(slower[n], known[n], share) for n in names if n in slower}
        moving = moved({name: found[name] for name in controls}, known)
        reasons = (*_other_devices(pairs, screened_on), *moving)
        judged = {name: each for name, each in found.items() if name not in controls}
        before = {name: verdict for name, verdict in verdicts.items() if name not in judged}
        verdicts |= paired.judge(judged, known, share, before)
        estimates |= found
        shares |= dict.fromkeys(judged, share.block)
        if count == wanted or not (reasons or Verdict.INCONCLUSIVE in verdicts.values()):
            for name in controls:
                verdicts[name] = Verdict.IDENTICAL if name in same else Verdict.PASS
            if reasons:
                kept = {name for name in verdicts if verdicts[name] is Verdict.IDENTICAL}
                verdicts |= dict.fromkeys({*verdicts} - kept, Verdict.INCOMPARABLE)
            return Confirmed(verdicts, estimates, known, reasons, shares=shares)
    undecided = [n for n in names if verdicts.get(n, Verdict.INCONCLUSIVE) is Verdict.INCONCLUSIVE]
    left = tuple(names) if reasons else (*undecided, *(n for n in controls if n in verdicts))
    reason = throttled(f"{len(pairs)} of {wanted} pairs")
    return Confirmed(dict.fromkeys(names, Verdict.INCOMPARABLE), {}, known, (reason,), open=left)


def _slower(pairs: Sequence[Pair], names: Iterable[str]) -> dict[str, list[float]]:
    """The log slow-downs of what all of the pairs measured."""
    there = [n for n in names if all(n in process.readings for pair in pairs for process in pair)]
    sides = [(base.readings, head.readings) for base, head in pairs]
    return {n: [base[n].log_ratio - head[n].log_ratio for base, head in sides] for n in there}


def throttled(sound: str) -> str:
    return f"throttled: only {sound} count; let the GPU cool down, then give another --out"


def _other_devices(pairs: Sequence[Pair], screened_on: Device | None) -> list[str]:
    devices = [process.device for pair in pairs for process in pair]
    first = screened_on or devices[0]
    others = dict.fromkeys(_in_words(d) for d in devices if first.differences(d))
    return [f"measured on {other}, and on {_in_words(first)}" for other in others]


def _in_words(device: Device) -> str:
    return device.name + (f" with cuBLAS {device.cublas}" if device.cublas else "")


def with_verdicts(comparison: Comparison, found: Confirmed) -> Comparison:
    """The comparison, with the paired verdicts in place of the screen's."""
    rows = (_row(row, found) if row.name in found.verdicts else row for row in comparison.rows)
    differences = (*comparison.differences, *found.reasons)
    return replace(comparison, rows=tuple(rows), differences=differences)


def _row(row: Row, found: Confirmed) -> Row:
    if row.verdict is Verdict.ERROR:
        return row
    verdict, estimate = found.verdicts[row.name], found.estimates.get(row.name)
    note = SAME_CODE if verdict is Verdict.IDENTICAL else ""
    if estimate is None:
        return replace(row, verdict=verdict, note=note or "not judged")
    return replace(
        row,
        verdict=verdict,
        note=note,
        slowdown=relative(estimate.mean),
        delta=found.deltas[row.name],
        key=row.key or row.name in found.keys,
        lower=relative(estimate.lower),
        upper=relative(estimate.upper),
        p=estimate.p,
        share=found.shares.get(row.name),
        pairs=tuple(rounded(relative(value)) for value in estimate.pairs),
    )


def moved_canaries(comparison: Comparison) -> list[str]:
    """Canaries off the baseline by more than their margin, as the screen sees them."""
    return [
        f"{row.name}, cuBLAS against itself, changed in time by {100 * row.slowdown:+.2f} %"
        for row in comparison.rows
        if is_canary(row.name) and row.slowdown is not None and row.delta is not None
        and abs(math.log1p(row.slowdown)) > row.delta
    ]  # fmt: skip
