"""Gate runs put together from recorded processes."""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tilegate_ci.judge import paired
from tilegate_ci.judge.session import is_canary, moved
from tilegate_ci.lab.proof.data import Baseline, Sitting, baseline
from tilegate_ci.lab.proof.recording import Arm
from tilegate_ci.model import MIN_DELTA, Process, Verdict

SCREEN = paired.SCREEN  # processes of a gate run before the confirmation
SEED = 1
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """A replayed gate run. Where it is incomparable nothing is blocked."""

    verdicts: Mapping[str, Verdict]
    incomparable: bool
    delta: Mapping[str, float]

    def narrow(self, rung: str) -> list[str]:
        """The rung's benchmarks whose delta is 1 %."""
        names = (name for name in self.verdicts if name.startswith(f"{rung}/"))
        return [name for name in names if self.delta[name] <= MIN_DELTA]

    def blocked(self, name: str) -> bool:
        return not self.incomparable and self.verdicts[name] is Verdict.REGRESSED


Pair = tuple[Process, Process]  # base, head


def gate_run(
    stored: Baseline,
    screen: Callable[[int], Sequence[Process]],
    pairs: Callable[[int], Sequence[Pair]],
    wanted: int,
) -> Outcome:
    """Screen against the stored baseline, then confirm the flagged by as many pairs as `wanted`.
    Both are asked for their first so many; where there is nothing to screen everything is
    confirmed."""
    screened = screen(1)
    for count in range(2, SCREEN + 1):
        if screened and _unsettled(stored, screened):
            screened = screen(count)
    names = [n for n in (screened or [pairs(1)[0][1]])[0].readings if n in stored.log_ratio]
    slower = {name: _slower(stored, screened, name) for name in names if screened}
    verdicts = dict.fromkeys((n for n in names if not is_canary(n)), Verdict.PASS)
    if any(abs(slower[name]) > stored.delta[name] for name in slower if is_canary(name)):
        return Outcome(verdicts, True, stored.delta)
    flagged = [
        name
        for name in verdicts
        if not screened or name in stored.drifting or abs(slower[name]) > stored.delta[name]
    ]
    if not flagged:
        return Outcome(verdicts, False, stored.delta)
    judged: dict[str, Verdict] = {}
    measured = flagged
    for count, share in paired.looks(wanted).items():
        found = {
            name: paired.estimate(
                [
                    base.readings[name].log_ratio - head.readings[name].log_ratio
                    for base, head in pairs(count)
                ],
                stored.delta[name],
                share,
            )
            for name in (*measured, *filter(is_canary, names))
        }
        off = moved({n: each for n, each in found.items() if is_canary(n)}, stored.delta)
        before = {name: judged[name] for name in judged if name not in measured}
        judged |= paired.judge({n: found[n] for n in measured}, stored.delta, share, before)
        undecided = [name for name in flagged if judged[name] is Verdict.INCONCLUSIVE]
        if not off and not undecided:
            break
        measured = flagged if off else undecided
    return Outcome({**verdicts, **judged}, bool(off), stored.delta)


def _unsettled(stored: Baseline, screened: Sequence[Process]) -> bool:
    """Whether these processes leave something open, which the screen measures again."""
    names = [name for name in screened[0].readings if name in stored.log_ratio]
    slower = {name: _each_slower(stored, screened, name) for name in names}
    return any(paired.undecided(slower[name], stored.delta[name]) for name in names)


def _slower(stored: Baseline, screened: Sequence[Process], name: str) -> float:
    return statistics.median(_each_slower(stored, screened, name))


def _each_slower(stored: Baseline, screened: Sequence[Process], name: str) -> list[float]:
    """By the first process alone where that settles it."""
    slower = [stored.log_ratio[name] - p.readings[name].log_ratio for p in screened]
    return slower[:1] if paired.settled(slower[0], stored.delta[name]) else slower


def first_of(found: Sequence[T]) -> Callable[[int], Sequence[T]]:
    return lambda count: found[:count]


def pairs_of(processes: int) -> int:
    return min(paired.PAIRS, (processes - SCREEN) // 2)


def identical_code(
    sitting: Sitting, others: Sequence[Sitting], screened: bool = True
) -> list[Outcome]:
    """A gate run from each process of the sitting on, by each baseline."""
    count = pairs_of(len(sitting.suite))
    if count < paired.MIN_PAIRS:
        return []
    outcomes = []
    for other in others:
        stored = other.baseline
        for start in range(len(sitting.suite)):
            turned = [*sitting.suite[start:], *sitting.suite[:start]]
            draw = random.Random(f"{SEED}:{sitting.name}:{start}")
            fresh = turned[SCREEN:]
            pairs = [(fresh[2 * i], fresh[2 * i + 1]) for i in range(count)]
            pairs = [pair if draw.random() < 0.5 else pair[::-1] for pair in pairs]
            screen = turned[:SCREEN] if screened else []
            outcomes.append(gate_run(stored, first_of(screen), first_of(pairs), count))
    return outcomes


def changed_code(
    sitting: Sitting, others: Sequence[Sitting], arm: Arm, screened: bool = True
) -> list[Outcome]:
    """A gate run from each round of the arm on: some rounds to screen, fresh ones to confirm."""
    plain = sitting.arms.get(Arm(arm.rung), {})
    rounds = sorted(set(sitting.arms.get(arm, {})) & set(plain))
    if len(rounds) < paired.MIN_PAIRS:
        return []
    screen = screen_of(len(rounds)) if screened else 0
    outcomes = []
    for stored in baselines_for(arm, others):
        for start in range(len(rounds) if screen else 1):
            turned = [*rounds[start:], *rounds[:start]]
            heads = [sitting.arms[arm][n] for n in turned[: screen or None]] if screened else []
            pairs = [(plain[n], sitting.arms[arm][n]) for n in turned[screen:]][: paired.PAIRS]
            outcomes.append(gate_run(stored, first_of(heads), first_of(pairs), len(pairs)))
    return outcomes


def baselines_for(arm: Arm, others: Sequence[Sitting]) -> list[Baseline]:
    """Of the rung run alone, where another sitting has that, because the head was; the margins
    are the suite's."""
    alone = [list(other.arms.get(Arm(arm.rung), {}).values()) for other in others]
    enough = [len(processes) >= SCREEN for processes in alone]
    return [
        replace(
            other.baseline, log_ratio=(baseline(processes) if sound else other.baseline).log_ratio
        )
        for other, processes, sound in zip(others, alone, enough)
        if sound or not any(enough)
    ]


def screen_of(rounds: int) -> int:
    """How many of an arm's rounds screen: what the confirmation leaves, but one. A gate run has
    more of both, so that this errs on the hard side. 0 where there are so few rounds that all of
    them do both."""
    return 0 if rounds <= paired.MIN_PAIRS else max(1, min(SCREEN, rounds - paired.PAIRS))
