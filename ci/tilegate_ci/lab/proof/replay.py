"""Replays the gate's rule and other tools' over recordings: the figures that the gate has to reach,
and the tables of proof.md."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from tilegate_ci.core.names import rung_of
from tilegate_ci.judge import paired
from tilegate_ci.judge.paired import MIN_PAIRS, PAIRS
from tilegate_ci.lab.proof import simulate
from tilegate_ci.lab.proof.others import BOOTSTRAPS, Blocks, other_rules
from tilegate_ci.lab.proof.recording import KEPT_SAMPLES, Arm
from tilegate_ci.lab.proof.runs import (
    SCREEN,
    SEED,
    Count,
    Independent,
    Rate,
    Sitting,
    baselines_for,
    blocked,
    changed_code,
    identical_code,
    independent,
    pairs_of,
    percent,
    screen_of,
)
from tilegate_ci.model import MIN_DELTA, Process, Verdict
from tilegate_ci.report import templates

SCENARIO_RUNS = 1000
SIZES = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
Planted = tuple[str, bool]  # a benchmark whose delta is 1 %, and whether it was blocked


@dataclass(frozen=True)
class RuleResult:
    name: str
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
    independent: Mapping[str, Independent]  # by GPU, that of `sittings` first
    delta_share: Rate  # of the suite, whose delta is 1 % by the sitting's own spread
    process_s: float
    gate_s: float


def replay(recorded: Sequence[Sitting]) -> Replay:
    """The sittings of the widest suite are replayed by every rule; those of a narrower one, as of a
    rung's benchmark each, are independent gate runs alone, which may be of other GPUs."""
    draw = np.random.default_rng(SEED)
    widest = max(len(sitting.names) for sitting in recorded)
    everything = [sitting for sitting in recorded if len(sitting.names) == widest]
    found = simulate.components(everything)
    slowest = max(p.wall_s for sitting in everything for p in sitting.suite)
    gate = [_gate(everything, screened) for screened in (True, False)]
    gpus = dict.fromkeys(sitting.gpu for sitting in [*everything, *recorded])
    mutants = sorted({arm for s in everything for arm in s.arms if arm.build}, key=str)
    narrow = [
        Count(sum(s.baseline.delta[n] <= MIN_DELTA for n in s.names), len(s.names))
        for s in everything
    ]
    return Replay(
        everything,
        [*gate, *(_other(everything, *rule) for rule in other_rules(draw).items())],
        [_mutation(everything, arm) for arm in mutants],
        simulate.simulate(found, SIZES, SEED),
        [
            simulate.simulate(found, (2.0,), SEED, SCENARIO_RUNS, scenario)
            for scenario in simulate.SCENARIOS
        ],
        {gpu: independent([each for each in recorded if each.gpu == gpu]) for gpu in gpus},
        Rate(narrow),
        slowest,
        slowest * (SCREEN + 2 * paired.PAIRS),
    )


def others_of(everything: Sequence[Sitting], sitting: Sitting) -> list[Sitting]:
    return [other for other in everything if other is not sitting] or [sitting]


def _gate(everything: Sequence[Sitting], screened: bool) -> RuleResult:
    false_blocks, inconclusive, incomparable = [], [], []
    for sitting in everything:
        runs = identical_code(sitting, others_of(everything, sitting), screened)
        used = SCREEN + 2 * pairs_of(len(sitting.suite))
        independent = len(sitting.suite) // used if runs else 0
        verdicts = [verdict for run in runs for verdict in run.verdicts.values()]
        false_blocks.append(Count(sum(bool(blocked(r)) for r in runs), len(runs), independent))
        inconclusive.append(Count(verdicts.count(Verdict.INCONCLUSIVE), len(verdicts)))
        incomparable.append(Count(sum(bool(run.reasons) for run in runs), len(runs)))

    def detect(sitting: Sitting, arm: Arm) -> Iterator[Planted]:
        for run in changed_code(sitting, others_of(everything, sitting), arm, screened):
            for name, verdict in run.verdicts.items():
                if rung_of(name) == arm.rung and run.deltas[name] <= MIN_DELTA:
                    yield name, verdict is Verdict.REGRESSED

    return RuleResult(
        "Tilegate, screen then confirm" if screened else "Tilegate, confirmation alone",
        Rate(false_blocks),
        _detected(everything, detect),
        Rate(inconclusive),
        Rate(incomparable),
    )


def _other(everything: Sequence[Sitting], name: str, blocks: Blocks) -> RuleResult:
    """A process against the next one; a planted one against the same round without the plant."""

    def sees(base: Process, head: Process, name: str) -> bool:
        return blocks(*(np.asarray(each.readings[name].rung_s) for each in (base, head)))

    def false_blocks(sitting: Sitting) -> Count:
        pairs = list(zip(sitting.suite[::2], sitting.suite[1::2]))
        hits = sum(any(sees(*pair, n) for n in sitting.names) for pair in pairs)
        return Count(hits, len(pairs), len(pairs))

    def detect(sitting: Sitting, arm: Arm) -> Iterator[Planted]:
        for stored in baselines_for(arm, others_of(everything, sitting)):
            for name in sitting.of_rung(arm.rung):
                if stored.delta[name] <= MIN_DELTA:
                    yield from ((name, sees(*pair, name)) for pair in sitting.rounds(arm))

    blocked_suites = Rate([false_blocks(sitting) for sitting in everything])
    return RuleResult(name, blocked_suites, _detected(everything, detect))


def _detected(
    everything: Sequence[Sitting], detect: Callable[[Sitting, Arm], Iterator[Planted]]
) -> dict[float, Rate]:
    """By the size of the plant."""

    def count(percent: float, sitting: Sitting) -> Count:
        arms = [a for a in sitting.arms if a.plant_percent == percent and a.build is None]
        planted = [each for arm in arms for each in detect(sitting, arm)]
        blocked = [name for name, is_blocked in planted if is_blocked]
        return Count(len(blocked), len(planted), len({name for name, _ in planted}))

    return {size: Rate([count(size, sitting) for sitting in everything]) for size in SIZES}


def _mutation(everything: Sequence[Sitting], arm: Arm) -> Mutation:
    slower: dict[str, list[float]] = {}
    runs, benchmarks = [], []
    for sitting in everything:
        names = sitting.of_rung(arm.rung)
        for plain, changed in sitting.rounds(arm):
            for name in names:
                before, after = plain.readings[name], changed.readings[name]
                slower.setdefault(name, []).append(before.log_ratio - after.log_ratio)
        found = [blocked(r) for r in changed_code(sitting, others_of(everything, sitting), arm)]
        runs.append(Count(sum(map(bool, found)), len(found), min(1, len(found))))
        delta = sitting.baseline.delta
        slow = [n for n in names if n in slower and statistics.median(slower[n]) > 2 * delta[n]]
        hits = sum(name in names for names in found for name in slow)
        benchmarks.append(Count(hits, len(found) * len(slow), len(slow)))
    return Mutation(
        str(arm.rung),
        str(arm.build),
        {name: statistics.median(values) for name, values in slower.items()},
        Rate(runs),
        Rate(benchmarks),
    )


class Figure(NamedTuple):
    """`reached` is None where nothing was recorded for it."""

    found: str
    reached: bool | None


def figures(replay: Replay) -> dict[str, Figure]:
    """The figures that the gate has to reach; proof.md names them, with these goals."""
    gate, model = replay.rules[0], replay.simulation
    alone = next(iter(replay.independent.values()))
    false, process_s, gate_s = gate.false_blocks, replay.process_s, replay.gate_s
    hard = min(
        (each for each in replay.scenarios if each.scenario.places > 1),
        key=lambda each: each.narrow_share,
    )
    assert gate.inconclusive is not None
    alone_of = f"{percent(alone.bound)} ({alone.false_blocks} of {alone.runs} runs)"
    model_of = f"{percent(model.false_block_bound)} ({model.false_blocks} of {model.runs} runs)"
    hard_of = f"{percent(hard.narrow_share)}: {hard.scenario.name}"
    none = false.hits == 0 if false.total else None
    return {
        "false_blocks": Figure(f"{false.hits} of {false.total} runs", none),
        "independent": Figure(alone_of, alone.bound < 0.05),
        "simulated": Figure(model_of, model.false_block_bound <= 0.01),
        "hardest": Figure(hard_of, hard.narrow_share >= 0.90),
        "pairs": Figure(f"{model.pairs[2.0]:g}", model.pairs[2.0] <= 8),
        "planted_2": _share(gate.detected[2.0], least=0.90),
        "planted_3": _share(gate.detected[3.0], least=0.99),
        "planted_5": _share(gate.detected[5.0], least=1.0),
        "planted_half": _share(gate.detected[0.5], most=0.01),
        "narrow": _share(replay.delta_share, least=0.90),
        "inconclusive": _share(gate.inconclusive, most=0.02),
        "process": Figure(f"{process_s:.1f} s", process_s <= 15),
        "gate_run": Figure(f"{gate_s / 60:.1f} min", gate_s <= 600),
    }


def _share(rate: Rate, least: float = 0.0, most: float = 1.0) -> Figure:
    if rate.share is None:
        return Figure("not recorded", None)
    cells = f", {rate.independent} cells" if rate.independent else ""
    found = f"{percent(rate.share)} ({rate.hits} of {rate.total}{cells})"
    return Figure(found, least <= rate.share <= most)


def markdown(replay: Replay) -> str:
    gate, parts = replay.rules[0], replay.simulation.components
    arms = [(arm, len(rounds)) for s in replay.sittings for arm, rounds in s.arms.items()]
    planted = sorted({rounds for arm, rounds in arms if arm.plant_percent})
    pairs = sorted({pairs_of(len(sitting.suite)) for sitting in replay.sittings})
    spreads = {
        "left of a process' own replays in its median (rung's time)": parts.within,
        "between processes of a sitting": parts.between_processes,
        "between sittings": parts.between_sittings,
    }
    return templates.text(
        "proof.md",
        replay=replay,
        sizes=SIZES,
        kept=KEPT_SAMPLES,
        resamples=BOOTSTRAPS,
        screen=SCREEN,
        pairs=PAIRS,
        least=MIN_PAIRS,
        percent=percent,
        rate=partial(_rate, np.random.default_rng(SEED)),
        planted_sittings=sum(bool(count.total) for count in gate.detected[SIZES[0]].counts),
        confirming=[count for count in pairs if MIN_PAIRS <= count < PAIRS],
        planted_rounds=[
            (count, screened, min(PAIRS, count - screened))
            for count in planted
            if (screened := screen_of(count))
        ],
        some_do_both=any(rounds and not screen_of(rounds) for _, rounds in arms),
        moved=gate.incomparable if gate.incomparable and gate.incomparable.hits else None,
        figures=figures(replay),
        mutations=[(mutation, _slower(mutation)) for mutation in replay.mutations],
        components=[
            (name, *map(float, np.quantile(each, (0.5, 0.9)))) for name, each in spreads.items()
        ],
    ).rstrip("\n")


def _slower(mutation: Mutation) -> str:
    slower = sorted(100 * np.expm1(value) for value in mutation.slowdowns.values())
    if not slower:
        return "-"
    return f"{statistics.median(slower):+.1f} % ({slower[0]:+.1f} to {slower[-1]:+.1f})"


def _rate(draw: np.random.Generator, rate: Rate, bounds: bool = True) -> str:
    if rate.share is None:
        return "-"
    interval = rate.interval(draw) if bounds else None
    around = f" [{100 * interval[0]:.3g}, {100 * interval[1]:.3g}]" if interval else ""
    return percent(rate.share) + around
