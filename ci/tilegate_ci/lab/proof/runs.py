"""Gate runs put together from recorded processes, judged by the rule of the gate; their rates."""

import random
import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
from scipy import stats

from tilegate_ci.core.files import GateError
from tilegate_ci.judge import paired
from tilegate_ci.judge.confirm import Confirmed, Pair, is_canary, judge_pairs, void_reason
from tilegate_ci.lab.proof.recording import Arm, RecordingFile
from tilegate_ci.model import Process, Verdict, margins
from tilegate_ci.report.figures import machine

RESAMPLES = 2000


def upper_bound(hits: int, total: int) -> float:
    """Of a share: one-sided, 95 %, by Clopper and Pearson."""
    return float(stats.beta.ppf(0.95, hits + 1, total - hits)) if hits < total else 1.0


@dataclass(frozen=True)
class Count:
    """In one sitting: hits among `total` that are not all independent of each other."""

    hits: int
    total: int
    independent: int = 0


@dataclass(frozen=True)
class Rate:
    counts: Sequence[Count]  # by sitting

    @property
    def hits(self) -> int:
        return sum(count.hits for count in self.counts)

    @property
    def total(self) -> int:
        return sum(count.total for count in self.counts)

    @property
    def independent(self) -> int:
        return sum(count.independent for count in self.counts)

    @property
    def share(self) -> float | None:
        return self.hits / self.total if self.total else None

    def interval(self, draw: np.random.Generator) -> tuple[float, float] | None:
        """95 %, bootstrapped over sittings: those are what is independent. None of fewer than
        two."""
        used = [count for count in self.counts if count.total]
        if len(used) < 2:
            return None
        hits = np.array([count.hits for count in used])
        totals = np.array([count.total for count in used])
        chosen = draw.integers(0, len(used), (RESAMPLES, len(used)))
        shares = hits[chosen].sum(axis=1) / totals[chosen].sum(axis=1)
        low, high = np.quantile(shares, (0.025, 0.975))
        return float(low), float(high)


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %" if 0 < share < 0.1 else f"{100 * share:.3g} %"


SCREEN = paired.SCREEN  # processes of a gate run before the confirmation
BASELINE = 5  # processes, as bench/README.md asks for
SEED = 1


@dataclass(frozen=True)
class Baseline:
    """What a baseline file would hold of these processes."""

    log_ratio: Mapping[str, float]
    delta: Mapping[str, float]
    drifting: frozenset[str] = frozenset()


def baseline(processes: Sequence[Process]) -> Baseline:
    values = {
        name: [p.readings[name].log_ratio for p in processes if name in p.readings]
        for name in processes[0].readings
    }
    found = {name: margins(logs) for name, logs in values.items()}
    return Baseline(
        {name: statistics.median(logs) for name, logs in values.items()},
        {name: float(margin) for name, (margin, _) in found.items()},
        frozenset(name for name, (_, drifts) in found.items() if drifts),
    )


@dataclass(frozen=True)
class Sitting:
    """`suite` and `arms` are without the processes that heat or a power brake voids; those of an
    arm are by round."""

    name: str
    names: tuple[str, ...]  # the suite's benchmarks, canaries left out
    suite: tuple[Process, ...]
    arms: Mapping[Arm, Mapping[int, Process]]
    void: int
    gpu: str
    made_on: str  # GPU, software, commit
    board: str | None  # a name for the GPU itself, where the recording has one

    @cached_property
    def baseline(self) -> Baseline:
        return baseline(self.suite)

    def rounds(self, arm: Arm) -> list[Pair]:
        """The arm's processes, each behind the one of its round that ran the rung as it is."""
        plain, changed = self.arms.get(Arm(arm.rung), {}), self.arms.get(arm, {})
        return [(plain[number], changed[number]) for number in sorted({*plain} & {*changed})]

    def of_rung(self, rung: str | None) -> list[str]:
        return [name for name in self.names if name.startswith(f"{rung}/")]


def sittings(recordings: Sequence[RecordingFile]) -> list[Sitting]:
    if not recordings:
        raise GateError("no recording given, and none in bench/recordings")
    # Narrower suites are not pooled with these.
    widest = max(len(recording.benchmarks) for recording in recordings)
    first, *others = (each for each in recordings if len(each.benchmarks) == widest)
    for other in others:
        for field in ("name", "cublas"):
            here, there = (getattr(each.device, field) for each in (first, other))
            if here != there:
                raise GateError(
                    f"{other.path}: device.{field}: {there!r}, but {here!r} in {first.path}; "
                    "replay them apart"
                )
    names = [recording.sitting for recording in recordings]
    if len(set(names)) < len(names):
        raise GateError(f"the same sitting is there twice: {', '.join(sorted(names))}")
    return [_sitting(recording) for recording in recordings]


def _sitting(recording: RecordingFile) -> Sitting:
    sound = {
        step: process
        for step, process in recording.by_step.items()
        if void_reason(process.conditions) is None
    }
    arms: dict[Arm, dict[int, Process]] = {}
    for step, process in sound.items():
        arms.setdefault(step.arm, {})[step.round] = process
    suite = tuple(arms.pop(Arm(), {}).values())
    if len(suite) < 2:
        raise GateError(f"{recording.path}: {len(suite)} processes of the suite; replay needs more")
    names = set(suite[0].readings).intersection(*(process.readings for process in suite))
    return Sitting(
        recording.sitting,
        tuple(n for n in recording.benchmarks if n in names and not is_canary(n)),
        suite,
        arms,
        len(recording.processes) - len(sound),
        str(recording.device.name),
        f"{machine(recording.device.fields)}, commit {recording.commit[:12]}",
        suite[0].conditions.before.get("board"),
    )


def gate_run(
    stored: Baseline, screen: Iterable[Process], pairs: Iterable[Pair], wanted: int
) -> Confirmed:
    """Screen against the stored baseline, then confirm the flagged by as many pairs as `wanted`.
    Of both no more are taken than it needs; where there is nothing to screen everything is
    confirmed."""
    pairs, screened = iter(pairs), list[Process]()
    slower: dict[str, list[float]] = {}
    for process in screen:
        screened.append(process)
        names = [name for name in process.readings if name in stored.log_ratio]
        slower = {name: _slower(stored, screened, name) for name in names}
        if not any(paired.undecided(slower[name], stored.delta[name]) for name in names):
            break
    used = [] if screened else [next(pairs)]
    names = [*slower] if screened else [n for n in used[0][1].readings if n in stored.log_ratio]
    off = {name for name in slower if abs(statistics.median(slower[name])) > stored.delta[name]}
    canaries = [name for name in names if is_canary(name)]
    judged = [name for name in names if name not in canaries]
    if moved := [name for name in canaries if name in off]:
        verdicts = dict.fromkeys(judged, Verdict.INCOMPARABLE)
        return Confirmed(verdicts, deltas=stored.delta, reasons=tuple(moved))
    flagged = [n for n in judged if not screened or n in stored.drifting or n in off]
    passed = dict.fromkeys(judged, Verdict.PASS)
    if not flagged:
        return Confirmed(passed, deltas=stored.delta)
    measured = {*flagged, *canaries}
    for count in paired.looks(wanted):
        used += [
            (_only(measured, base), _only(measured, head))
            for base, head in islice(pairs, count - len(used))
        ]
        found = judge_pairs(used, [*flagged, *canaries], (), stored.delta, wanted)
        if not found.open:
            break
        measured = {*found.open}
    confirmed = {name: found.verdicts[name] for name in flagged}
    return Confirmed({**passed, **confirmed}, deltas=stored.delta, reasons=found.reasons)


def _slower(stored: Baseline, screened: Sequence[Process], name: str) -> list[float]:
    """By the first process alone where that settles it."""
    slower = [stored.log_ratio[name] - p.readings[name].log_ratio for p in screened]
    return slower[:1] if slower and paired.settled(slower[0], stored.delta[name]) else slower


def _only(names: set[str], process: Process) -> Process:
    readings = {name: each for name, each in process.readings.items() if name in names}
    return process.model_copy(update={"readings": readings})


def blocked(run: Confirmed) -> list[str]:
    return [name for name, verdict in run.verdicts.items() if verdict is Verdict.REGRESSED]


def pairs_of(processes: int) -> int:
    return min(paired.PAIRS, (processes - SCREEN) // 2)


def identical_code(
    sitting: Sitting, others: Sequence[Sitting], screened: bool = True
) -> list[Confirmed]:
    """A gate run from each process of the sitting on, by each baseline."""
    count, runs = pairs_of(len(sitting.suite)), []
    for other in others if count >= paired.MIN_PAIRS else ():
        for start in range(len(sitting.suite)):
            turned = [*sitting.suite[start:], *sitting.suite[:start]]
            draw = random.Random(f"{SEED}:{sitting.name}:{start}")
            fresh = turned[SCREEN:]
            pairs = [_in_turn(draw, fresh[2 * i], fresh[2 * i + 1]) for i in range(count)]
            screen = turned[:SCREEN] if screened else []
            runs.append(gate_run(other.baseline, screen, pairs, count))
    return runs


def changed_code(
    sitting: Sitting, others: Sequence[Sitting], arm: Arm, screened: bool = True
) -> list[Confirmed]:
    """A gate run from each round of the arm on: some rounds to screen, fresh ones to confirm."""
    rounds = sitting.rounds(arm)
    if len(rounds) < paired.MIN_PAIRS:
        return []
    screen, runs = screen_of(len(rounds)) if screened else 0, []
    for stored in baselines_for(arm, others):
        for start in range(len(rounds) if screen else 1):
            turned = [*rounds[start:], *rounds[:start]]
            heads = [head for _, head in turned[: screen or None]] if screened else []
            pairs = turned[screen:][: paired.PAIRS]
            runs.append(gate_run(stored, heads, pairs, len(pairs)))
    return runs


def _in_turn(draw: random.Random, one: Process, other: Process) -> Pair:
    return (one, other) if draw.random() < 0.5 else (other, one)


def baselines_for(arm: Arm, others: Sequence[Sitting]) -> list[Baseline]:
    """Of the rung run alone, where another sitting has that, because the head was; the margins
    are the suite's."""
    alone = [(other, [*other.arms.get(Arm(arm.rung), {}).values()]) for other in others]
    return [
        replace(other.baseline, log_ratio=baseline(processes).log_ratio)
        for other, processes in alone
        if len(processes) >= SCREEN
    ] or [other.baseline for other in others]


def screen_of(rounds: int) -> int:
    """How many of an arm's rounds screen: what the confirmation leaves, but one. A gate run has
    more of both, so that this errs on the hard side. 0 where there are so few rounds that all of
    them do both."""
    return 0 if rounds <= paired.MIN_PAIRS else max(1, min(SCREEN, rounds - paired.PAIRS))


@dataclass(frozen=True)
class Independent:
    """Gate runs on unchanged code that share no process. Sittings of one suite share a baseline, as
    gate runs do: the first processes of the first of them. A run then takes as many of the next
    ones as the rule asks for. Eight pairs confirm, not twelve: a false block is likelier so.
    `unfinished` are runs whose sitting ended before they did: what they would have said is unknown,
    so the bound takes them for false blocks."""

    runs: int
    false_blocks: int
    unfinished: int
    incomparable: int
    confirmed: int  # runs that needed pairs
    machines: int  # boards, or sittings where the recording does not name its board
    processes: int
    made_on: tuple[str, ...]

    @property
    def bound(self) -> float:
        """Of the share of false blocks: one-sided, 95 %."""
        return upper_bound(self.false_blocks + self.unfinished, max(1, self.runs))


def independent(everything: Sequence[Sitting]) -> Independent:
    found: list[Confirmed | None] = []
    machines, pairs, processes = set(), 0, 0
    for group in _groups(everything):
        stored = baseline(group[0].suite[:BASELINE])
        for sitting in group:
            left = deque(sitting.suite[BASELINE if sitting is group[0] else 0 :])
            machines.add(sitting.board or sitting.name)
            while len(left) >= SCREEN:  # with fewer, what one process leaves open could not end
                before = len(left)
                draw = random.Random(f"{SEED}:{sitting.name}:{before}")
                found.append(_run(stored, left, draw))
                processes += before - len(left)
                pairs += before - len(left) > SCREEN
    known = [run for run in found if run is not None]
    return Independent(
        len(found),
        sum(bool(blocked(run)) for run in known),
        len(found) - len(known),
        sum(bool(run.reasons) for run in known),
        pairs,
        len(machines),
        processes,
        tuple(dict.fromkeys(sitting.made_on for sitting in everything)),
    )


def _run(stored: Baseline, left: deque[Process], draw: random.Random) -> Confirmed | None:
    """The next run, whose processes leave `left`; None where that ends too early."""
    screen = (left.popleft() for _ in range(SCREEN))
    pairs = (_in_turn(draw, left.popleft(), left.popleft()) for _ in range(paired.EARLY))
    try:
        return gate_run(stored, screen, pairs, paired.EARLY)
    except IndexError:
        left.clear()
        return None


def _groups(everything: Sequence[Sitting]) -> list[list[Sitting]]:
    """Sittings of the same binary and suite that have processes for a baseline, and those after."""
    groups: dict[tuple[object, ...], list[Sitting]] = {}
    for sitting in sorted(everything, key=lambda s: (-len(s.suite), s.name)):
        groups.setdefault((sitting.made_on, sitting.names), []).append(sitting)
    return [group for group in groups.values() if len(group[0].suite) > BASELINE]
