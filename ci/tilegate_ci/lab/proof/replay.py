"""Replays the gate's rule and other tools' over recordings."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tilegate_ci.judge import paired
from tilegate_ci.lab.proof import simulate
from tilegate_ci.lab.proof.data import Rate, Sitting, by_sitting, seconds
from tilegate_ci.lab.proof.gate import (
    SCREEN,
    SEED,
    baselines_for,
    changed_code,
    identical_code,
    pairs_of,
)
from tilegate_ci.lab.proof.independent import Independent, independent
from tilegate_ci.lab.proof.recording import Arm
from tilegate_ci.lab.proof.rules import Rule, other_rules
from tilegate_ci.model import MIN_DELTA, Verdict

SCENARIO_RUNS = 1000
SIZES = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class RuleResult:
    name: str
    note: str
    false_blocks: Rate
    detected: Mapping[float, Rate]
    inconclusive: Rate | None = None
    incomparable: Rate | None = None


@dataclass(frozen=True)
class Mutation:
    """`slowdowns` are those of the rung's benchmarks, the median over the sitting's pairs."""

    rung: str
    name: str
    slowdowns: Mapping[str, float]
    runs: Rate  # that blocked any of its benchmarks
    benchmarks: Rate  # blocked, among those slower by more than twice delta


@dataclass(frozen=True)
class Replay:
    sittings: Sequence[Sitting]
    rules: Sequence[RuleResult]
    mutations: Sequence[Mutation]
    simulation: simulate.Simulation
    scenarios: Sequence[simulate.Simulation]
    independent: Independent
    delta_share: Rate  # of the suite, whose delta is 1 %
    process_s: float
    gate_s: float


def replay(recorded: Sequence[Sitting]) -> Replay:
    """The sittings of the widest suite are replayed by every rule; those of a narrower one, as of a
    rung's benchmark each, are independent gate runs alone."""
    draw = np.random.default_rng(SEED)
    widest = max(len(sitting.names) for sitting in recorded)
    everything = [sitting for sitting in recorded if len(sitting.names) == widest]
    found = simulate.components(everything)
    walls = [p.wall_s for sitting in everything for p in sitting.suite]
    slowest = max(walls)
    gate = [_gate(everything, screened) for screened in (True, False)]
    return Replay(
        everything,
        [*gate, *(_other(everything, rule) for rule in other_rules(draw))],
        _mutations(everything),
        simulate.simulate(found, SIZES, SEED),
        [
            simulate.simulate(found, (2.0,), SEED, SCENARIO_RUNS, scenario)
            for scenario in simulate.SCENARIOS
        ],
        independent(recorded),
        by_sitting(everything, _delta_share),
        slowest,
        slowest * (SCREEN + 2 * paired.PAIRS),
    )


def others_of(everything: Sequence[Sitting], sitting: Sitting) -> list[Sitting]:
    return [other for other in everything if other is not sitting] or [sitting]


def narrow(sitting: Sitting) -> list[str]:
    """The benchmarks whose delta is 1 %, by the sitting's own spread."""
    delta = sitting.baseline.delta
    return [name for name in sitting.names if delta[name] <= MIN_DELTA]


def _delta_share(sitting: Sitting) -> tuple[int, int, int]:
    return len(narrow(sitting)), len(sitting.names), 1


def _gate(everything: Sequence[Sitting], screened: bool = True) -> RuleResult:
    clean = {s.name: identical_code(s, others_of(everything, s), screened) for s in everything}

    def false_blocks(sitting: Sitting) -> tuple[int, int, int]:
        outcomes = clean[sitting.name]
        hits = sum(any(map(outcome.blocked, outcome.verdicts)) for outcome in outcomes)
        used = SCREEN + 2 * pairs_of(len(sitting.suite))
        return hits, len(outcomes), len(sitting.suite) // used if outcomes else 0

    def inconclusive(sitting: Sitting) -> tuple[int, int, int]:
        verdicts = [v for outcome in clean[sitting.name] for v in outcome.verdicts.values()]
        return sum(v is Verdict.INCONCLUSIVE for v in verdicts), len(verdicts), 0

    def incomparable(sitting: Sitting) -> tuple[int, int, int]:
        outcomes = clean[sitting.name]
        return sum(outcome.incomparable for outcome in outcomes), len(outcomes), 0

    def detected(percent: float, sitting: Sitting) -> tuple[int, int, int]:
        hits = total = independent = 0
        for arm in sitting.arms:
            if arm.plant_percent == percent and arm.build is None:
                outcomes = changed_code(sitting, others_of(everything, sitting), arm, screened)
                known = [(each, n) for each in outcomes for n in each.narrow(str(arm.rung))]
                hits += sum(outcome.blocked(name) for outcome, name in known)
                total += len(known)
                independent += len({name for _, name in known})
        return hits, total, independent

    return RuleResult(
        "Tilegate, screen then confirm" if screened else "Tilegate, confirmation alone",
        "" if screened else "every round of a planted rung confirms",
        by_sitting(everything, false_blocks),
        {size: by_sitting(everything, partial(detected, size)) for size in SIZES},
        by_sitting(everything, inconclusive),
        by_sitting(everything, incomparable),
    )


def _other(everything: Sequence[Sitting], rule: Rule) -> RuleResult:
    """A process against the next one; a planted one against the same round without the plant."""

    def false_blocks(sitting: Sitting) -> tuple[int, int, int]:
        suite = sitting.suite
        pairs = list(zip(suite[::2], suite[1::2]))
        hits = sum(
            any(rule.blocks(seconds(base, n), seconds(head, n)) for n in sitting.names)
            for base, head in pairs
        )
        return hits, len(pairs), len(pairs)

    def detected(percent: float, sitting: Sitting) -> tuple[int, int, int]:
        hits = total = 0
        cells = set()
        for arm, rounds in sitting.arms.items():
            if arm.plant_percent != percent or arm.build is not None:
                continue
            plain = sitting.arms.get(Arm(arm.rung), {})
            for stored in baselines_for(arm, others_of(everything, sitting)):
                names = [n for n in sitting.names if n.startswith(f"{arm.rung}/")]
                for name in (n for n in names if stored.delta[n] <= MIN_DELTA):
                    for number in sorted(set(rounds) & set(plain)):
                        base, head = plain[number], rounds[number]
                        hits += rule.blocks(seconds(base, name), seconds(head, name))
                        total += 1
                        cells.add(name)
        return hits, total, len(cells)

    return RuleResult(
        rule.name,
        rule.note,
        by_sitting(everything, false_blocks),
        {size: by_sitting(everything, partial(detected, size)) for size in SIZES},
    )


def _mutations(everything: Sequence[Sitting]) -> list[Mutation]:
    arms = sorted({arm for s in everything for arm in s.arms if arm.build}, key=str)
    return [_mutation(everything, arm) for arm in arms]


def _mutation(everything: Sequence[Sitting], arm: Arm) -> Mutation:
    slower: dict[str, list[float]] = {}
    runs, benchmarks = {}, {}
    for sitting in everything:
        plain, changed = sitting.arms.get(Arm(arm.rung), {}), sitting.arms.get(arm, {})
        names = [name for name in sitting.names if name.startswith(f"{arm.rung}/")]
        for number in set(plain) & set(changed):
            for name in names:
                before, after = plain[number].readings[name], changed[number].readings[name]
                slower.setdefault(name, []).append(before.log_ratio - after.log_ratio)
        outcomes = changed_code(sitting, others_of(everything, sitting), arm)
        hits = sum(any(map(outcome.blocked, outcome.verdicts)) for outcome in outcomes)
        runs[sitting.name] = (hits, len(outcomes), min(1, len(outcomes)))
        delta = sitting.baseline.delta
        slow = [n for n in names if n in slower and statistics.median(slower[n]) > 2 * delta[n]]
        blocked = sum(outcome.blocked(name) for outcome in outcomes for name in slow)
        benchmarks[sitting.name] = (blocked, len(outcomes) * len(slow), len(slow))
    return Mutation(
        str(arm.rung),
        str(arm.build),
        {name: statistics.median(values) for name, values in slower.items()},
        by_sitting(everything, lambda sitting: runs[sitting.name]),
        by_sitting(everything, lambda sitting: benchmarks[sitting.name]),
    )
