"""The processes of a gate run: the screen's, and pairs of base and head."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tilegate_ci.core.files import GateError
from tilegate_ci.core.progress import Steps, message
from tilegate_ci.judge.confirm import Pair
from tilegate_ci.judge.session import void_reason
from tilegate_ci.measure.journal import Journal
from tilegate_ci.measure.launcher import Launcher
from tilegate_ci.model import RATIO, Process

SPARES = 4  # pairs beyond those wanted, for void ones


class Measures(Protocol):
    """Runs a process, or has it already. `seed` draws the order of base and head."""

    @property
    def seed(self) -> str: ...

    def process(self, key: str, binary: Path, names: Sequence[str], left: int) -> Process: ...


@dataclass(frozen=True)
class Bench:
    """How processes are run, and where they are kept. `seed` draws the order of base and head."""

    launcher: Launcher
    journal: Journal
    steps: Steps
    seed: str

    def process(self, key: str, binary: Path, names: Sequence[str], left: int) -> Process:
        """The process `key`, run unless the journal has it; `left` are those after it."""
        found = self.journal.load(key)
        if found is None:
            found = self.journal.save(key, self.launcher.run(binary, names))
            self.steps.done(key, found.wall_s, left, left * found.wall_s)
        if set(found.readings) != set(names):
            raise GateError(f"{found.source}: other benchmarks in it; give another --out")
        if any(RATIO not in reading.summary for reading in found.readings.values()):
            raise GateError(f"{found.source}: no time of cuBLAS; a gate run needs a GPU")
        return found


def measure_pairs(
    bench: Measures,
    base: Path,
    head: Path,
    names: Sequence[str],
    wanted: int,
    still: Callable[[Sequence[Pair]], Sequence[str]],
) -> list[Pair]:
    """Pairs of a process of base and one of head, in an order drawn for each, until nothing is
    `still` to be measured, or they are as many as `wanted`. Void ones are measured again, a few
    times; the result may be shorter."""
    found: list[Pair] = []
    for number in range(1, wanted + SPARES + 1):
        sides = [("base", base), ("head", head)]
        random.Random(f"{bench.seed}:{number}").shuffle(sides)
        pair = {}
        for place, (side, binary) in enumerate(sides):
            left = 2 * max(0, wanted - len(found)) - 1 - place
            pair[side] = bench.process(f"pair-{number}-{side}", binary, names, left)
        reasons = {void_reason(process.conditions) for process in pair.values()} - {None}
        if reasons:
            message(f"pair {number} is void: {', '.join(sorted(map(str, reasons)))}")
        else:
            found.append((pair["base"], pair["head"]))
            if len(found) == wanted:
                break
            names = still(found)
            if not names:
                break
    return found
