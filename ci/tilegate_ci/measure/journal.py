"""The processes of a gate run, the screen's and pairs of base and head: a file each, so that an
interruption loses none that ended."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.files import (
    GateError,
    Steps,
    dumps,
    make_folder,
    message,
    read_json,
    write_text,
)
from tilegate_ci.judge.confirm import Confirmed, Pair, void_reason
from tilegate_ci.measure.projects import Project, Side
from tilegate_ci.model import Process

SPARES = 4  # processes or pairs beyond those wanted, for void ones


def open_journal(folder: Path, protocol: Mapping[str, object]) -> None:
    """Makes the folder; says how many processes are there. GateError where they are of another
    run."""
    path = folder / "protocol.json"
    old = read_json(path) if path.exists() else protocol
    for key in sorted({*old, *protocol}):
        if old.get(key) != protocol.get(key):
            raise GateError(
                f"{path}: {key} is {old.get(key)!r} there, {protocol.get(key)!r} now; "
                "give another --out"
            )
    make_folder(folder)
    write_text(path, dumps(dict(protocol)) + "\n")
    if there := len(list(folder.glob("process-*.json"))):
        message(f"{folder}: {there} processes are there already")


@dataclass(frozen=True)
class Bench:
    """How processes are run, and the folder that they are kept in. `seed` draws the order of base
    and head."""

    project: Project
    folder: Path
    steps: Steps
    seed: str

    def process(self, key: str, side: Side, names: Sequence[str], left: int = 0) -> Process:
        """The process `key`, run unless the folder has it; `left` are those after it."""
        path = self.folder / f"process-{key}.json"
        if not path.exists():
            found = self.project.measure(side, names)
            write_text(path, documents.to_text(found))
            self.steps.done(key, found.wall_s, left, left * found.wall_s)
        found = documents.load(Process, path).model_copy(update={"source": str(path)})
        self.project.check_process(found, names)
        return found

    def sound(self, step: str, side: Side, names: Sequence[str]) -> Process | None:
        """A process alone; one that heat or a power brake voids is replaced, a few times."""
        for number in range(1, SPARES + 2):
            process = self.process(f"{step}-{number}", side, names)
            reason = void_reason(process.conditions)
            if not reason:
                return process
            message(f"{step}-{number} is void: {reason}")
        return None

    def pairs(
        self,
        base: Side,
        head: Side,
        names: Sequence[str],
        wanted: int,
        judge: Callable[[Sequence[Pair]], Confirmed],
    ) -> tuple[Confirmed, list[Pair]]:
        """Pairs of a process of base and one of head, in an order drawn for each, until the verdict
        leaves nothing open, or they are as many as `wanted`; what it has decided is not measured
        on. Void ones are measured again, a few times; the result may be shorter."""
        found: list[Pair] = []
        verdict = judge(found)
        for number in range(1, wanted + SPARES + 1):
            order = [base, head]
            random.Random(f"{self.seed}:{number}").shuffle(order)
            pair = {}
            for place, side in enumerate(order):
                left = 2 * max(0, wanted - len(found)) - 1 - place
                pair[side.role] = self.process(f"pair-{number}-{side.role}", side, names, left)
            reasons = {void_reason(process.conditions) for process in pair.values()} - {None}
            if reasons:
                message(f"pair {number} is void: {', '.join(sorted(map(str, reasons)))}")
                continue
            found.append((pair["base"], pair["head"]))
            verdict = judge(found)
            if len(found) == wanted or not verdict.open:
                break
            names = [name for name in names if name in verdict.open]
        return verdict, found
