"""A gate run on a GPU: what is measured, in which order, and what it comes to."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilegate_ci.core.files import GateError, Node, rounded
from tilegate_ci.core.model import MIN_DELTA, RATIO, Device, Run, relative
from tilegate_ci.core.reader import Role, parse
from tilegate_ci.core.verdicts import Verdict
from tilegate_ci.judge import paired
from tilegate_ci.judge.compare import Comparison, Row, worst_first
from tilegate_ci.judge.session import is_canary, moved, void_reason
from tilegate_ci.measure.collect import collect
from tilegate_ci.measure.journal import Journal, Stored
from tilegate_ci.measure.launcher import Launcher

SPARES = 4  # pairs beyond those wanted, for void ones
CONTROLS = 4  # flagged benchmarks of the same machine code that are measured along

Tell = Callable[[str], None]
Pair = tuple[Stored, Stored]


@dataclass(frozen=True)
class Bench:
    """How processes are run: the launcher, where they are kept, who is told. `seed` draws the
    order of base and head."""

    launcher: Launcher
    journal: Journal
    tell: Tell
    seed: str

    def process(self, key: str, binary: Path, names: Sequence[str], left: int) -> Stored:
        """The process `key`, run unless the journal has it; `left` are those after it."""
        stored = self.journal.load(key)
        if stored is None:
            stored = self.journal.save(key, self.launcher.run(binary, names))
            rest = left * stored.wall_s
            self.tell(f"{key}: {stored.wall_s:.1f} s; about {rest / 60:.1f} min left")
        if set(stored.report.readings) != set(names):
            raise GateError(f"{stored.report.path}: other benchmarks in it; give another --out")
        if any(RATIO not in r.values for r in stored.report.readings.values()):
            raise GateError(f"{stored.report.path}: no time of cuBLAS; a gate run needs a GPU")
        return stored


def screen(bench: Bench, head: Path, names: Sequence[str], processes: int) -> list[Stored]:
    """Processes of the head alone, those that heat or a power brake voids replaced."""
    sound: list[Stored] = []
    for number in range(1, processes + SPARES + 1):
        stored = bench.process(f"screen-{number}", head, names, processes - number)
        reason = void_reason(stored.conditions)
        if reason:
            bench.tell(f"screen-{number} is void: {reason}")
        else:
            sound.append(stored)
        if len(sound) == processes:
            break
    return sound


def measure_pairs(
    bench: Bench, base: Path, head: Path, names: Sequence[str], wanted: int
) -> list[Pair]:
    """Pairs of a process of base and one of head, in an order drawn for each. Void ones are
    measured again, a few times; the result may be shorter than `wanted`."""
    found: list[Pair] = []
    for number in range(1, wanted + SPARES + 1):
        sides = [("base", base), ("head", head)]
        random.Random(f"{bench.seed}:{number}").shuffle(sides)
        pair = {}
        for place, (side, binary) in enumerate(sides):
            left = 2 * max(0, wanted - len(found)) - 1 - place
            pair[side] = bench.process(f"pair-{number}-{side}", binary, names, left)
        reasons = {void_reason(stored.conditions) for stored in pair.values()} - {None}
        if reasons:
            bench.tell(f"pair {number} is void: {', '.join(sorted(map(str, reasons)))}")
        else:
            found.append((pair["base"], pair["head"]))
        if len(found) == wanted:
            break
    return found


@dataclass(frozen=True)
class Confirmed:
    """`reasons` say why the session cannot be judged, if so; `keys` must not stay undecided.
    `pairs` holds the log slow-down of each."""

    verdicts: Mapping[str, Verdict]
    estimates: Mapping[str, paired.Estimate]
    deltas: Mapping[str, float]
    reasons: tuple[str, ...]
    keys: frozenset[str] = frozenset()
    pairs: Mapping[str, Sequence[float]] = field(default_factory=dict)


def judge_pairs(
    pairs: Sequence[Pair],
    names: Iterable[str],
    identical: Iterable[str],
    deltas: Mapping[str, float],
    wanted: int,
    screened_on: Device | None = None,
) -> Confirmed:
    """Judges `names`, of which canaries and `identical` serve as controls. All of it, the screen
    too where there was one, must be of one device."""
    names, same = list(names), set(identical)
    known = {name: deltas.get(name, MIN_DELTA) for name in names}
    if len(pairs) < wanted:
        told = throttled(f"{len(pairs)} of {wanted} pairs")
        return Confirmed(dict.fromkeys(names, Verdict.INCOMPARABLE), {}, known, (told,))
    slower = {
        name: [base.log_ratio(name) - head.log_ratio(name) for base, head in pairs]
        for name in names
    }
    found = {name: paired.estimate(values, known[name]) for name, values in slower.items()}
    controls = {name: e for name, e in found.items() if is_canary(name) or name in same}
    judged = {name: e for name, e in found.items() if name not in controls}
    verdicts = paired.judge(judged, known)
    for name in controls:
        verdicts[name] = Verdict.IDENTICAL if name in same else Verdict.PASS
    reasons = (*_other_devices(pairs, screened_on), *moved(controls, known))
    if reasons:
        verdicts = {name: _unjudged(verdict) for name, verdict in verdicts.items()}
    return Confirmed(verdicts, found, known, reasons, pairs=slower)


def throttled(sound: str) -> str:
    return f"throttled: only {sound} count; let the GPU cool down, then give another --out"


def _other_devices(pairs: Sequence[Pair], screened_on: Device | None) -> list[str]:
    devices = [stored.device for pair in pairs for stored in pair]
    first = screened_on or devices[0]
    others = dict.fromkeys(_in_words(d) for d in devices if first.differences(d))
    return [f"measured on {other}, and on {_in_words(first)}" for other in others]


def _in_words(device: Device) -> str:
    return f"{device.name} with cuBLAS {device.cublas}"


def _unjudged(verdict: Verdict) -> Verdict:
    return Verdict.IDENTICAL if verdict is Verdict.IDENTICAL else Verdict.INCOMPARABLE


def as_run(processes: Sequence[Stored], commit: str, source: str) -> Run:
    """The run that these processes make, as `collect` writes it."""
    sessions = [
        {"started": p.started, "processes": 1, "conditions": dict(p.conditions)} for p in processes
    ]
    document = collect([process.report for process in processes], commit, sessions)
    return parse(Node(document, source), Role.CANDIDATE)


def with_verdicts(comparison: Comparison, found: Confirmed) -> Comparison:
    """The comparison, with the paired verdicts in place of the screen's."""
    rows = [_row(row, found) if row.name in found.verdicts else row for row in comparison.rows]
    return replace(
        comparison,
        rows=tuple(sorted(rows, key=worst_first)),
        differences=(*comparison.differences, *found.reasons),
    )


def _row(row: Row, found: Confirmed) -> Row:
    if row.verdict is Verdict.ERROR:
        return row
    verdict, estimate = found.verdicts[row.name], found.estimates.get(row.name)
    if estimate is None:
        return replace(row, verdict=verdict, note="not judged")
    return replace(
        row,
        verdict=verdict,
        note="the same machine code" if verdict is Verdict.IDENTICAL else "",
        slowdown=relative(estimate.mean),
        delta=found.deltas[row.name],
        key=row.key or row.name in found.keys,
        lower=relative(estimate.lower),
        upper=relative(estimate.upper),
        p=estimate.p,
        pairs=tuple(rounded(relative(value)) for value in found.pairs[row.name]),
    )


def moved_canaries(comparison: Comparison) -> list[str]:
    """Canaries off the baseline by more than their margin, as the screen sees them."""
    return [
        f"{row.name}, cuBLAS against itself, changed in time by {100 * row.slowdown:+.2f} %"
        for row in comparison.rows
        if is_canary(row.name) and row.slowdown is not None and row.delta is not None
        and abs(math.log1p(row.slowdown)) > row.delta
    ]  # fmt: skip
