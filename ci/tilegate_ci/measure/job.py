"""What a gate run is to measure: two sides, the options, and the folder of its processes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tilegate_ci.core.files import dumps
from tilegate_ci.core.names import matching
from tilegate_ci.formats.stages import Stage, newest_stages
from tilegate_ci.judge.paired import SCREEN
from tilegate_ci.measure.builds import (
    Side,
    digest_of_baselines,
    digest_of_extra_stages,
    judged_by,
    resolve,
)
from tilegate_ci.measure.suite import CANARIES, read_suite, stages_of
from tilegate_ci.model import REPOSITORY

MOST_PROCESS_S = 45.0


@dataclass(frozen=True)
class Options:
    filter: str
    pairs: int
    min_time_s: float
    seed: int
    screened: bool
    identity: bool
    cmake: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """What is to be measured. `folder` holds the finished processes, of `protocol` and no other."""

    base: Side
    head: Side
    work: Path  # where the two are built
    folder: Path
    options: Options
    protocol: Mapping[str, object]

    def head_names(self, stages: Sequence[Stage]) -> list[str]:
        """The suite of the head whose rungs these are, as far as the filter has it, and the
        canaries; without rungs, as before the build, what bench/gate.csv adds."""
        every = read_suite(stages, self.head.suite)
        chosen = matching(every, self.options.filter or None)
        return chosen + [name for name in CANARIES if name in every and name not in chosen]

    def plan(self) -> str:
        pairs, screened = self.options.pairs, SCREEN * self.options.screened
        lines = [self.base.title, self.head.title]
        stages = stages_of(self.head.build) or newest_stages(self.head.source)
        if stages:
            lines += [f"{len(self.head_names(stages))} benchmarks"]
        else:
            lines += ["some benchmarks of each rung that the build will list"]
        lines += [
            f"screen: a process of head, and up to {SCREEN - 1} more of what it leaves open"
        ] * bool(screened)
        what = "confirm what it flags: " if screened else ""
        lines += [f"{what}up to {pairs} pairs of processes, base and head in turn"]
        most = (screened + 2 * pairs) * MOST_PROCESS_S / 60
        lines += [f"at most {MOST_PROCESS_S:g} s each, {most:.1f} min in all, and the builds"]
        there = len(list(self.folder.glob("process-*.json")))
        return "\n".join([*lines, f"{self.folder}: {there} processes are there already"]) + "\n"


def prepare(base: str, head: str, work: Path, out: Path | None, options: Options) -> Job:
    """`base` and `head` are revisions or folders, as on the command line."""
    # A screened head is a change: what others did to its base since is not its fault.
    revision = judged_by(base, head, REPOSITORY) if options.screened else base
    base_side = replace(resolve("base", revision, REPOSITORY, work), given=base)
    head_side = resolve("head", head, REPOSITORY, work)
    for side in (base_side, head_side):  # a malformed one is found before anything is built
        read_suite([], side.suite)
    protocol: dict[str, object] = {
        "schema": 6,
        "base": base_side.digest,
        "head": head_side.digest,
        "baselines": digest_of_baselines(base_side.source),
        "extra_stages": digest_of_extra_stages(options.cmake),
        **asdict(options),
        "cmake": list(options.cmake),
    }
    name = f"run-{hashlib.sha256(dumps(protocol).encode()).hexdigest()[:16]}"
    return Job(
        base_side,
        head_side,
        work,
        out or work / name,
        options,
        protocol,
    )
