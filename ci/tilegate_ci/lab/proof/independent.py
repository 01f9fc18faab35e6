"""Gate runs on unchanged code that share no process: what they say of false blocks by themselves.

Sittings of one suite share a baseline, as gate runs do: the first processes of the first of them. A
run then takes as many of the processes that follow as the gate's rule asks for, and each process is
in one run only. Eight pairs confirm, not twelve: that makes a false block likelier."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tilegate_ci.judge import paired
from tilegate_ci.lab.proof.data import Baseline, Sitting, baseline, upper_bound
from tilegate_ci.lab.proof.gate import SCREEN, SEED, Outcome, Pair, gate_run
from tilegate_ci.lab.proof.simulate import BASELINE
from tilegate_ci.model import Process


@dataclass(frozen=True)
class Independent:
    """`unfinished` are runs whose sitting ended before they did: nobody knows what they would have
    said, so the bound takes them for false blocks."""

    runs: int
    false_blocks: int
    unfinished: int
    incomparable: int
    confirmed: int  # those that needed pairs
    machines: int  # boards, or sittings where the recording does not name its board
    processes: int

    @property
    def bound(self) -> float:
        """Of the share of false blocks: one-sided, 95 %."""
        return upper_bound(self.false_blocks + self.unfinished, max(1, self.runs))


def independent(everything: Sequence[Sitting]) -> Independent:
    found: list[Outcome | None] = []
    machines, pairs, processes = set(), 0, 0
    for group in _groups(everything):
        stored = baseline(group[0].suite[:BASELINE])
        for sitting in group:
            left = [*sitting.suite[BASELINE if sitting is group[0] else 0 :]]
            machines.add(sitting.board or sitting.name)
            while len(left) >= SCREEN:  # with fewer, what one process leaves open could not end
                before = len(left)
                found.append(_run(stored, left, random.Random(f"{SEED}:{sitting.name}:{before}")))
                processes += before - len(left)
                pairs += before - len(left) > SCREEN
    known = [outcome for outcome in found if outcome is not None]
    return Independent(
        len(found),
        sum(any(map(outcome.blocked, outcome.verdicts)) for outcome in known),
        len(found) - len(known),
        sum(outcome.incomparable for outcome in known),
        pairs,
        len(machines),
        processes,
    )


def _run(stored: Baseline, left: list[Process], draw: random.Random) -> Outcome | None:
    """The next run, whose processes leave `left`; None where that ends too early."""
    screened: list[Process] = []
    pairs: list[Pair] = []

    def screen(count: int) -> list[Process]:
        while len(screened) < count:
            screened.append(left.pop(0))
        return screened

    def confirm(count: int) -> list[Pair]:
        while len(pairs) < count:
            pair = left.pop(0), left.pop(0)
            pairs.append(pair if draw.random() < 0.5 else pair[::-1])
        return pairs

    try:
        return gate_run(stored, screen, confirm, paired.EARLY)
    except IndexError:
        left.clear()
        return None


def _groups(everything: Sequence[Sitting]) -> list[list[Sitting]]:
    """Sittings of the same binary and suite that have processes for a baseline, and those after."""
    groups: dict[tuple[object, ...], list[Sitting]] = {}
    for sitting in sorted(everything, key=lambda s: (-len(s.suite), s.name)):
        groups.setdefault((sitting.made_on, sitting.names), []).append(sitting)
    return [group for group in groups.values() if len(group[0].suite) > BASELINE]
