"""A gate run of any project: base and head are built, and measured in pairs of processes."""

import hashlib
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tilegate_ci.core.files import GateError, dumps, write_text
from tilegate_ci.core.git import repository_url
from tilegate_ci.core.progress import Steps, message
from tilegate_ci.formats.collect import collect
from tilegate_ci.formats.reading import Declared, yardsticks_in
from tilegate_ci.judge.compare import Comparison, Row, compare
from tilegate_ci.judge.confirm import Confirmed, Pair, judge_pairs, throttled, with_verdicts
from tilegate_ci.measure.builds import Side, judged_by
from tilegate_ci.measure.journal import Journal
from tilegate_ci.measure.pairs import measure_pairs
from tilegate_ci.measure.project.sides import Commands, build, make_work, measure, resolve
from tilegate_ci.model import MIN_DELTA, OtherProcess, Process, RunFile, Session

YARDSTICK_NOTE = "the yardstick, whose code is the same"


@dataclass(frozen=True)
class ProjectOptions:
    pairs: int
    seed: int
    margin: float  # the slow-down that passes: 0.01 is 1 %
    declared: Declared
    commands: Commands


@dataclass(frozen=True)
class ProjectJob:
    """`folder` holds the processes that ended, `work` the builds."""

    repository: Path
    base: Side
    head: Side
    work: Path
    folder: Path
    options: ProjectOptions

    @property
    def protocol(self) -> dict[str, object]:
        return {
            "schema": 3,
            "base": self.base.digest,
            "head": self.head.digest,
            **asdict(self.options),
        }

    def plan(self) -> str:
        there = len(list(self.folder.glob("process-*.json")))
        lines = [
            self.base.title,
            self.head.title,
            f"{self.options.pairs} pairs of processes, base and head in turn",
            f"{self.folder}: {there} processes are there already",
        ]
        return "\n".join(lines) + "\n"


def prepare(
    base: str,
    head: str | None,
    repository: Path,
    work: Path,
    out: Path | None,
    options: ProjectOptions,
) -> ProjectJob:
    """`base` and `head` are revisions or folders; no head is the working tree."""
    make_work(work)
    head = head or str(repository)
    revision = judged_by(base, head, repository)
    base_side = resolve("base", revision, repository, work, options.commands)
    head_side = resolve("head", head, repository, work, options.commands)
    job = ProjectJob(repository, replace(base_side, given=base), head_side, work, work, options)
    name = f"run-{hashlib.sha256(dumps(job.protocol).encode()).hexdigest()[:16]}"
    return replace(job, folder=out or work / name)


class Project:
    """Measures a project for `measure_pairs`; `binary` is a side's build folder there."""

    def __init__(self, job: ProjectJob, steps: Steps) -> None:
        self.job, self.steps = job, steps
        self.journal = Journal(job.folder, job.protocol, OtherProcess)
        self.seed = f"{job.base.digest}:{job.head.digest}:{job.options.seed}"

    def process(self, key: str, binary: Path, names: Sequence[str], left: int) -> Process:
        found = self.journal.load(key)
        if found is None:
            side = self.job.base if key.endswith("base") else self.job.head
            ran = measure(side, self.job.options.commands, self.job.options.declared)
            found = self.journal.save(key, ran)
            self.steps.done(key, found.wall_s, left, left * found.wall_s)
        return found


def judged(job: ProjectJob) -> Comparison:
    """Builds, measures and judges."""
    for side in (job.base, job.head):
        build(side, job.options.commands)
    with Steps() as steps:
        project = Project(job, steps)
        there = project.journal.count()
        if there:
            message(f"{job.folder}: {there} processes are there already")
        pairs = measure_pairs(
            project,
            job.base.build,
            job.head.build,
            (),
            job.options.pairs,
            lambda pairs: _confirmed(pairs, job.options).open,
        )
    if not pairs:
        raise GateError(throttled("no pairs"))
    base = _run([pair[0] for pair in pairs], job.base, job.folder)
    head = _run([pair[1] for pair in pairs], job.head, job.folder)
    found = with_verdicts(compare(base, head), _confirmed(pairs, job.options))
    yardsticks = yardsticks_in(pairs[0][1])
    return replace(
        found,
        rows=tuple(_row(row, job, yardsticks) for row in found.rows),
        warnings=(*found.warnings, *_skipped(pairs[0][1])),
        base_commit=job.base.commit,
        repository=repository_url(job.repository),
    )


def _confirmed(pairs: Sequence[Pair], options: ProjectOptions) -> Confirmed:
    """What the pairs say of the benchmarks that all of them have."""
    processes = [process for pair in pairs for process in pair]
    names = [n for n in processes[0].readings if all(n in p.readings for p in processes)]
    deltas = dict.fromkeys(names, math.log1p(options.margin))
    yardsticks = [name for name in yardsticks_in(processes[0]) if name in names]
    return judge_pairs(pairs, names, yardsticks, deltas, options.pairs)


def _run(processes: Sequence[Process], side: Side, folder: Path) -> RunFile:
    """The run that these processes make, kept beside them."""
    sessions = [
        Session(started=p.started, processes=1, conditions=p.conditions.model_dump())
        for p in processes
    ]
    path = folder / f"{side.role}.json"
    run = collect(processes, side.commit, sessions, str(path))
    write_text(path, dumps(run.fields) + "\n")
    return run


def _row(row: Row, job: ProjectJob, yardsticks: Sequence[str]) -> Row:
    if row.name in yardsticks:
        return replace(row, note=YARDSTICK_NOTE)
    return replace(row, rerun=_rerun(row.name, job))


def _rerun(name: str, job: ProjectJob) -> str:
    """The same run, of one benchmark."""
    options, declared = job.options, job.options.declared
    base, head = (side.again(job.repository) for side in (job.base, job.head))
    words = ["gate", "run", "--base", base, "--head", head]
    words += ["--build", options.commands.build] if options.commands.build else []
    words += ["--run", options.commands.run, "--filter", f"^{re.escape(name)}$"]
    for option in ("time", "yardstick", "verified"):
        value = getattr(declared, option)
        words += [f"--{option}", value] if value else []
    words += [] if options.margin == MIN_DELTA else ["--margin", f"{100 * options.margin:g}"]
    command = shlex.join(words)
    return command if command.isprintable() else ""  # of a command of several lines


def _skipped(process: Process) -> list[str]:
    skipped = process.skipped if isinstance(process, OtherProcess) else {}
    return [f"{name} was skipped: {reason}" for name, reason in skipped.items()]
