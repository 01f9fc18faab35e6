"""One gate run: two builds, a screen where there is a baseline, pairs for what it flags."""

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from tilegate_ci.core.files import GateError, dumps, write_text
from tilegate_ci.core.model import REPOSITORY, Device, Role, RunFile, Session, baseline_path, load
from tilegate_ci.core.names import matching, rerun_command, rung_of, search
from tilegate_ci.core.process import Process
from tilegate_ci.core.progress import Steps, message
from tilegate_ci.core.stages import Stage, newest_stages
from tilegate_ci.core.verdicts import Verdict
from tilegate_ci.judge.compare import Comparison, Row, compare, judge, worst_first
from tilegate_ci.judge.confirm import (
    Confirmed,
    Pair,
    judge_pairs,
    moved_canaries,
    throttled,
    with_verdicts,
)
from tilegate_ci.judge.paired import SCREEN
from tilegate_ci.measure import conditions
from tilegate_ci.measure.builds import (
    Side,
    build,
    digest_of_baselines,
    digest_of_extra_stages,
    judged_by,
    resolve,
)
from tilegate_ci.measure.collect import collect
from tilegate_ci.measure.identity import same_rungs
from tilegate_ci.measure.journal import Journal
from tilegate_ci.measure.launcher import Launcher
from tilegate_ci.measure.pairs import Bench, measure_pairs, screen
from tilegate_ci.measure.suite import CANARIES, keys, read_suite, stages_of

MOST_PROCESS_S = 15.0
CONTROLS = 4  # flagged benchmarks of the same machine code that are measured along
NO_NVML = "NVML says nothing of the GPU, so that heat voids no process; is nvidia-ml-py installed?"


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
        lines += [f"screen: {screened} processes of head"] * bool(screened)
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
        "schema": 3,
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


def judged(job: Job) -> Comparison:
    """Builds, measures and judges."""
    with Steps() as steps:
        return GateRun(job, steps).judged()


class GateRun:
    def __init__(self, job: Job, steps: Steps) -> None:
        self.job = job
        self.bench = Bench(
            Launcher(job.options.min_time_s, job.options.seed),
            Journal(job.folder, job.protocol),
            steps,
            f"{job.base.digest}:{job.head.digest}:{job.options.seed}",
        )
        self.without_nvml = False
        self.head_names: list[str] = []
        self.base_names: set[str] = set()

    @cached_property
    def unable(self) -> set[str]:
        """The rungs that this GPU cannot run, which the user is told."""
        able = conditions.compute_capability()
        stages = stages_of(self.job.head.build)
        beyond = [s for s in stages if able is not None and s.compute_capability > able]
        for stage in beyond:
            message(
                f"{stage.name} is left out: it needs compute capability "
                f"{stage.compute_capability}, and this GPU has {able}"
            )
        return {stage.name for stage in beyond}

    @property
    def names(self) -> list[str]:
        """Of both suites, in the head's order."""
        return [name for name in self.head_names if name in self.base_names]

    @property
    def canaries(self) -> list[str]:
        return [name for name in CANARIES if name in self.names]

    @property
    def new(self) -> list[str]:
        return [name for name in self.head_names if name not in self.base_names]

    @property
    def gone(self) -> list[str]:
        return sorted(self.base_names - {*self.head_names})

    def judged(self) -> Comparison:
        job, there = self.job, self.bench.journal.count()
        if there:
            message(f"{job.folder}: {there} processes are there already")
        build(job.head, job.options.cmake)
        self.head_names = [
            name
            for name in job.head_names(stages_of(job.head.build))
            if rung_of(name) not in self.unable
        ]
        if not self.head_names:
            raise GateError(f"{job.head.build}: no rung in it, so that no benchmark is gated")
        found = self._screened() if job.options.screened else self._unscreened()
        if self.without_nvml:
            found = replace(found, warnings=(*found.warnings, NO_NVML))
        found = replace(found, base_commit=job.base.commit)
        return self._with_suites(found)

    def _screened(self) -> Comparison:
        job = self.job
        processes = screen(self.bench, job.head.binary, self.head_names, SCREEN)
        if len(processes) < SCREEN:
            shown = self.bench.process("screen-1", job.head.binary, self.head_names, 0)
            sound = f"{len(processes)} of {SCREEN} processes of the screen"
            return self._throttled(shown, throttled(sound))
        candidate = self._saved(processes, job.head, "candidate")
        stored = self._baseline(candidate.device)
        if stored is None:
            message(f"base has no baseline for {candidate.device.name}: everything is confirmed")
            return self._unscreened()
        screening = compare(stored, candidate)
        if any(row.verdict is Verdict.NEW for row in screening.rows):
            self._look_at_base(stored)  # to which it may be new as well
        off = moved_canaries(screening)
        if screening.differences or off:
            return _incomparable(screening, off)
        flagged = self._flagged(screening)
        identical = self._identical(flagged) if flagged else []
        rest = [name for name in flagged if name not in identical]
        found = Confirmed(dict.fromkeys(identical, Verdict.IDENTICAL))
        if rest:
            measured = {*rest, *identical[:CONTROLS], *self.canaries}
            confirmed, _ = self._confirmed(sorted(measured), identical, stored)
            found = replace(confirmed, verdicts={**found.verdicts, **confirmed.verdicts})
        return with_verdicts(screening, found)

    def _flagged(self, screening: Comparison) -> list[str]:
        """What looks slower or faster, and what the baseline lacks although the base can run it."""
        flagged = []
        for verdict, reason in (
            (Verdict.REGRESSED, "look slower"),
            (Verdict.IMPROVED, "look faster"),
            (Verdict.NEW, "are not in the baseline"),
        ):
            names = [row.name for row in screening.rows if row.verdict is verdict]
            if verdict is Verdict.NEW:  # of those in head's suite only there is nothing to compare
                names = [name for name in names if name in self.base_names]
            if names:
                message(f"{len(names)} {reason}: {', '.join(names)}")
            flagged += names
        return flagged

    def _unscreened(self) -> Comparison:
        """Everything in pairs, what is identical as controls; if all of it is, nothing to judge."""
        job = self.job
        self._look_at_base(None)
        names = self.names
        identical = self._identical(names)
        if all(name in identical or name in CANARIES for name in names):
            message("the machine code is the same throughout; one process to show that it runs")
            shown = self.bench.process("head", job.head.binary, self.head_names, 0)
            run = self._saved([shown], job.head, "head")
            verdicts = dict.fromkeys(names, Verdict.IDENTICAL)
            verdicts |= dict.fromkeys(self.new, Verdict.NEW)
            return with_verdicts(compare(run, run), Confirmed(verdicts))
        measured = sorted({*names, *self.canaries})
        confirmed, pairs = self._confirmed(measured, identical, None)
        if not pairs:
            shown = self.bench.process("pair-1-head", job.head.binary, measured, 0)
            return self._throttled(shown, *confirmed.reasons)
        base = self._saved([pair[0] for pair in pairs], job.base, "base")
        head = self._saved([pair[1] for pair in pairs], job.head, "head")
        return with_verdicts(compare(base, head), confirmed)

    def _confirmed(
        self, names: list[str], identical: Iterable[str], stored: RunFile | None
    ) -> tuple[Confirmed, list[Pair]]:
        job, wanted = self.job, self.job.options.pairs
        if not job.options.identity:  # else it was built to be looked at
            build(job.base, job.options.cmake)
        screened_on, rows = stored.device if stored else None, {}

        def judged(pairs: Sequence[Pair]) -> Confirmed:
            nonlocal stored, rows
            if stored is None and pairs:
                stored = self._baseline(pairs[0][1].device)
            rows = stored.benchmarks if stored else {}
            deltas = {name: row.margin(row.decisive) for name, row in rows.items()}
            return judge_pairs(pairs, names, identical, deltas, wanted, screened_on)

        binaries = (job.base.binary, job.head.binary)
        pairs = measure_pairs(
            self.bench, *binaries, names, wanted, lambda pairs: not judged(pairs).reasons
        )
        found = judged(pairs)
        marked = {name for name in rows if rows[name].key}
        return replace(found, keys=keys(self.head_names) | marked), pairs

    def _identical(self, names: Sequence[str]) -> list[str]:
        job = self.job
        if not job.options.identity:
            return []
        build(job.base, job.options.cmake)
        same = same_rungs(job.base.build, job.head.build, {rung_of(name) for name in names})
        return [name for name in names if rung_of(name) in same and name not in CANARIES]

    def _baseline(self, device: Device) -> RunFile | None:
        """That of the base, its rows outside the gated suite left out."""
        path = self.job.base.source / "bench" / "baselines" / baseline_path(device).name
        if not path.exists():
            return None
        run = load(path, Role.BASELINE)
        if not self.base_names:
            self._know_base(run)
        names = {*self.head_names, *self.base_names}
        rows = {name: row for name, row in run.benchmarks.items() if name in names}
        return run.model_copy(update={"benchmarks": rows}) if rows else None

    def _know_base(self, stored: RunFile | None) -> None:
        """Fills `base_names`. A base that is not built has, of the head's rungs, those that are in
        its baseline. Where its baseline has another one, only a build tells whether the base has
        it still, and the head has lost it."""
        job, ladder = self.job, stages_of(self.job.head.build)
        stages = stages_of(job.base.build)
        if not stages and stored is not None:
            recorded = {rung_of(name).partition(".")[0] for name in stored.benchmarks}
            stages = [stage for stage in ladder if stage.name in recorded]
            if ladder and recorded - {stage.name for stage in ladder}:
                build(job.base, job.options.cmake)
                stages = stages_of(job.base.build) or stages
        suite = read_suite(stages, job.base.suite)
        suite = [name for name in suite if rung_of(name) not in self.unable]
        chosen = search(re.compile(job.options.filter), suite)
        self.base_names = {*chosen, *(name for name in CANARIES if name in suite)}

    def _look_at_base(self, stored: RunFile | None) -> None:
        build(self.job.base, self.job.options.cmake)
        self._know_base(stored)

    def _saved(self, processes: Sequence[Process], side: Side, name: str) -> RunFile:
        """The run that these processes make, kept beside them."""
        self.without_nvml |= any(not process.conditions.before for process in processes)
        sessions = [
            Session(started=p.started, processes=1, conditions=p.conditions.model_dump())
            for p in processes
        ]
        path = self.job.folder / f"{name}.json"
        run = collect(processes, side.commit, sessions, str(path))
        write_text(path, dumps(run.fields) + "\n")
        return run

    def _with_suites(self, comparison: Comparison) -> Comparison:
        """With a row for all that only one of the suites has. What is new and has not been
        measured is measured once, so that a rung that joins is seen to run."""
        known, kind = {row.name for row in comparison.rows}, comparison.candidate.device.kind
        rows = [replace(row, again=self._again(row)) for row in comparison.rows]
        new = [name for name in self.new if name not in known]
        if new:
            process = self.bench.process("new", self.job.head.binary, new, 0)
            run = self._saved([process], self.job.head, "new")
            rows += [
                replace(
                    judge(name, None, run.benchmarks[name], kind), note="not in the base's suite"
                )
                for name in new
            ]
        rows += [
            Row(
                name, Verdict.ERROR, "missing in the head's suite", rerun_command(name, kind), False
            )
            for name in self.gone
            if name not in known
        ]
        return replace(comparison, rows=tuple(sorted(rows, key=worst_first)))

    def _again(self, row: Row) -> str:
        """The command that measures the pairs of a row again that pairs judged, if it is red."""
        if not row.pairs or row.verdict not in (Verdict.REGRESSED, Verdict.INCONCLUSIVE):
            return ""
        sides = []
        for side in (self.job.base, self.job.head):
            is_folder = Path(side.given).is_dir() or side.commit == side.digest
            sides += [f"--{side.role}", side.given if is_folder else side.commit]
        return shlex.join(["ci/gate", "confirm", *sides, "--filter", f"^{row.name}$"])

    def _throttled(self, process: Process, *reasons: str) -> Comparison:
        """Where too little of what was measured counts: one process shows what was asked for."""
        run = self._saved([process], self.job.head, "throttled")
        shown = compare(run, run)
        rows = tuple(
            replace(row, verdict=Verdict.INCOMPARABLE, note="not judged", slowdown=None)
            for row in shown.rows
        )
        return replace(shown, rows=rows, differences=reasons)


def _incomparable(screening: Comparison, reasons: Sequence[str]) -> Comparison:
    flagged = (Verdict.REGRESSED, Verdict.IMPROVED)
    rows = [
        replace(row, verdict=Verdict.INCOMPARABLE) if row.verdict in flagged else row
        for row in screening.rows
    ]
    return replace(
        screening,
        rows=tuple(sorted(rows, key=worst_first)),
        differences=(*screening.differences, *reasons),
    )
