"""One gate run: two builds, compared; what differs is measured, by a screen or in pairs."""

import hashlib
import math
import random
import re
import shlex
import statistics
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.files import (
    GateError,
    Steps,
    dumps,
    locked,
    make_folder,
    message,
    printable,
    read_json,
    write_text,
)
from tilegate_ci.core.git import repository_url
from tilegate_ci.core.names import matching, rerun_command, rung_of, search
from tilegate_ci.formats.reading import yardsticks_in
from tilegate_ci.formats.run_file import Role, collect, load
from tilegate_ci.formats.stages import Stage, newest_stages, stages_of
from tilegate_ci.judge import confirm
from tilegate_ci.judge.compare import Comparison, Margin, Row, compare, judge, seconds
from tilegate_ci.judge.confirm import (
    SAME_CODE,
    SAME_SOURCES,
    Confirmed,
    Pair,
    throttled,
    with_verdicts,
)
from tilegate_ci.judge.paired import PAIRS, SCREEN, undecided
from tilegate_ci.measure import conditions
from tilegate_ci.measure.identity import same_rungs
from tilegate_ci.measure.launcher import CANARIES, PLACES, keys, read_suite
from tilegate_ci.measure.projects import (
    Foreign,
    Project,
    Side,
    Tilegate,
    build,
    digest_of_files,
    judged_by,
    resolve,
)
from tilegate_ci.model import (
    OTHER,
    Device,
    Process,
    Run,
    RunFile,
    Session,
    Verdict,
    baseline_path,
    log_slowdown,
)

CONTROLS = 4  # unchanged benchmarks that are measured as controls
MOST_IN_PAIRS = 0.5  # share of the suite; if more differs, it is screened first
MOST_PROCESS_S = 45.0
SPARES = 4  # processes or pairs beyond those wanted, for void ones
FLAGGED = (Verdict.REGRESSED, Verdict.IMPROVED)
BOARDS = 0.03  # by which the ratio to cuBLAS of two boards of one model may differ
BOARDS_NOTE = f"within {100 * BOARDS:g} %, by which two boards may differ"
CONTROL = "control, assumed unchanged"
NO_NVML = "NVML is unavailable: thermal throttling cannot be detected; is nvidia-ml-py installed?"


@dataclass(frozen=True)
class Options:
    filter: str = ""
    pairs: int = PAIRS
    seed: int = 1
    screened: bool = True
    identity: bool = True


@dataclass(frozen=True)
class Job:
    """What is to be measured. `folder` holds the finished processes, of `protocol` and no other."""

    project: Project
    base: Side
    head: Side
    folder: Path
    options: Options
    protocol: dict[str, object]

    def plan(self) -> str:
        pairs = f"up to {self.options.pairs} pairs of processes, base and head in turn"
        lines = [self.base.title, self.head.title]
        if isinstance(self.project, Tilegate):
            stages = stages_of(self.head.build) or newest_stages(self.head.source)
            count = len(gated(self, self.head, stages)) if stages else "some"
            lines += [f"{count} benchmarks of the gated suite"]
            if self.options.screened:
                lines += [
                    "screen, where most rungs differ: a process of head, and up to "
                    f"{SCREEN - 1} more of what it leaves open"
                ]
            most = (SCREEN * self.options.screened + 2 * self.options.pairs) * MOST_PROCESS_S / 60
            pairs += f"\nat most {MOST_PROCESS_S:g} s each, {most:.1f} min in all, and the builds"
        there = len(list(self.folder.glob("process-*.json")))
        lines += [pairs, f"{self.folder}: {there} processes are there already"]
        return "\n".join(lines) + "\n"


def prepare(project: Project, base: str, head: str, out: Path | None, options: Options) -> Job:
    """`base` and `head` are revisions or folders, as on the command line."""
    # The merge base: what others have merged since is not part of the change.
    revision = judged_by(base, head, project.repository) if options.screened else base
    base_side = replace(resolve(project, "base", revision), given=base)
    head_side = resolve(project, "head", head)
    baselines = base_side.source / "bench" / "baselines"
    protocol: dict[str, object] = {
        "schema": 7,
        "base": base_side.digest,
        "head": head_side.digest,
        "baselines": digest_of_files(base_side.source, baselines.glob("*")),
        **asdict(options),
        **project.protocol,
    }
    name = f"run-{hashlib.sha256(dumps(protocol).encode()).hexdigest()[:16]}"
    return Job(project, base_side, head_side, out or project.work / name, options, protocol)


def judged(job: Job) -> Comparison:
    """Builds, compares, measures what differs, and judges. One command measures at a time in a
    checkout, or both would disturb each other."""
    ours = isinstance(job.project, Tilegate)
    if job.options.identity and job.base.digest == job.head.digest:
        # As far as any build lists the rungs: none was built for this run.
        stages = newest_stages(job.head.source) if ours else []
        return unmeasured(job, SAME_SOURCES, gated(job, job.head, stages) if stages else [])
    build_folder = job.project.work.parent if ours else job.project.work
    job.project.ready()
    make_folder(build_folder)
    with locked(build_folder), Steps() as steps:
        for side in (job.base, job.head):
            build(job.project, side)
        run = GateRun(job, steps) if ours else ForeignRun(job, steps)
        return run.judged()


def judged_again(job: Job, stored: RunFile, screening: Comparison) -> Comparison:
    """The verdict on a screening of the job's head, which is built: what differs from `stored`, the
    baseline, is measured in pairs with the base."""
    flagged = [row.name for row in screening.rows if row.verdict in FLAGGED]
    if not flagged:
        return screening
    message(f"{len(flagged)} of {len(screening.rows)} benchmarks differ from the baseline")
    if job.base.digest == job.head.digest:
        return with_verdicts(screening, Confirmed(dict.fromkeys(flagged, Verdict.IDENTICAL)))
    build(job.project, job.base)
    with Steps() as steps:
        run = GateRun(job, steps)
        return run.finished(run.screened(stored, screening))


def judged_alone(screening: Comparison, stored: Run, candidate: Run) -> Comparison:
    """As judged_again, where there is no base to measure. Two boards of a model differ by more than
    the margins, which then let nothing be told."""
    before, now = boards(stored), boards(candidate)
    if before == now and len(now) == 1:
        return screening
    rows = [
        replace(row, verdict=Verdict.PASS, note=BOARDS_NOTE)
        if row.verdict in FLAGGED and abs(math.log1p(row.slowdown or 0)) <= BOARDS
        else row
        for row in screening.rows
    ]
    warning = (
        f"judged by a recording of another board: up to {100 * BOARDS:g} % passes; a clone with "
        "its history measures the baseline's commit beside this one"
    )
    return replace(screening, rows=tuple(rows), warnings=(*screening.warnings, warning))


def boards(run: Run) -> set[object]:
    """The boards that it was measured on; one that is not known is like no other."""
    before = [(session.conditions or {}).get("before") for session in run.sessions]
    known = [side.get("board") if isinstance(side, dict) else None for side in before]
    return {board if isinstance(board, str) else object() for board in known}


def gated(job: Job, side: Side, stages: Sequence[Stage]) -> list[str]:
    """The suite of a side with these rungs, as far as the filter has it, and the canaries."""
    every = read_suite(stages, side.source / "bench" / "gate.csv")
    wanted = job.options.filter
    if side is job.head:
        chosen = matching(every, wanted or None)
    else:
        chosen = search(re.compile(wanted), every)
    return chosen + [name for name in CANARIES if name in every and name not in chosen]


def unmeasured(job: Job, why: str, names: Sequence[str]) -> Comparison:
    """What needs no measurement: all of it is identical."""
    device = Device(kind=OTHER, name="not measured")

    def run_of(side: Side) -> Run:
        return Run(path=printable(side.given), commit=side.commit, device=device, measured={})

    message(f"{why}: identical, nothing to measure")
    rows = [Row(name, Verdict.IDENTICAL, why, "", False) for name in names or ["everything"]]
    return Comparison(
        run_of(job.base),
        run_of(job.head),
        tuple(rows),
        differences=(),
        left_out=0,
        warnings=(),
        base_commit=job.base.commit,
        repository=repository_url(job.project.repository),
    )


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


class PairedRun:
    """Shared by the runs of all projects: processes, pairs of them, and the runs they make. Each
    process is a file in the job's folder, so that an interruption loses none that ended."""

    ragged = False  # whether later processes may lack what earlier ones have decided

    def __init__(self, job: Job, steps: Steps) -> None:
        self.job, self.steps = job, steps
        open_journal(job.folder, job.protocol)
        self.without_nvml = False

    def process(
        self,
        key: str,
        side: Side,
        names: Sequence[str],
        left: int = 0,
        project: Project | None = None,
    ) -> Process:
        """The process `key`, run unless the folder has it; `left` are those after it."""
        project, path = project or self.job.project, self.job.folder / f"process-{key}.json"
        if not path.exists():
            found = project.measure(side, names)
            write_text(path, documents.to_text(found))
            self.steps.done(key, found.wall_s, left, left * found.wall_s)
        found = documents.load(Process, path).model_copy(update={"source": str(path)})
        project.check_process(found, names)
        return found

    def pairs(
        self, names: Sequence[str], judge: Callable[[Sequence[Pair]], Confirmed]
    ) -> tuple[Confirmed, list[Pair]]:
        """Pairs of a process of base and one of head, in an order drawn for each, until the verdict
        leaves nothing open, or there are as many as wanted; what it has decided is not measured on.
        Void ones are measured again, a few times; the result may be shorter."""
        job, found = self.job, list[Pair]()
        wanted, verdict = job.options.pairs, judge(found)
        for number in range(1, wanted + SPARES + 1):
            order = [job.base, job.head]
            seed = f"{job.base.digest}:{job.head.digest}:{job.options.seed}:{number}"
            random.Random(seed).shuffle(order)
            pair = {}
            for place, side in enumerate(order):
                left = 2 * max(0, wanted - len(found)) - 1 - place
                pair[side.role] = self.process(f"pair-{number}-{side.role}", side, names, left)
            reasons = {confirm.void_reason(process.conditions) for process in pair.values()}
            if any(reasons):
                message(f"pair {number} is void: {', '.join(sorted(filter(None, reasons)))}")
                continue
            found.append((pair["base"], pair["head"]))
            verdict = judge(found)
            if len(found) == wanted or not verdict.open:
                break
            names = [name for name in names if name in verdict.open]
        return verdict, found

    def of_pairs(self, pairs: Sequence[Pair], found: Confirmed) -> Comparison:
        base = self.saved([pair[0] for pair in pairs], self.job.base, "base")
        head = self.saved([pair[1] for pair in pairs], self.job.head, "head")
        return with_verdicts(compare(base, head), found)

    def saved(self, processes: Sequence[Process], side: Side, name: str) -> RunFile:
        """The run that these processes make, kept beside them."""
        self.without_nvml |= any(not process.conditions.before for process in processes)
        path = self.job.folder / f"{name}.json"
        sessions = [
            Session(started=p.started, processes=1, conditions=p.conditions.model_dump())
            for p in processes
        ]
        run = collect(processes, side.commit, sessions, str(path), self.ragged)
        write_text(path, documents.to_text(run))
        return run

    def finished(self, found: Comparison) -> Comparison:
        """With what all rows say: the commits, and how a red one is measured again."""
        return replace(
            found,
            rows=tuple(replace(row, again=self._again(row)) for row in found.rows),
            base_commit=self.job.base.commit,
            repository=repository_url(self.job.project.repository),
        )

    def _again(self, row: Row) -> str:
        """The command that measures the pairs of a red row again."""
        if not row.pairs or row.verdict not in (Verdict.REGRESSED, Verdict.INCONCLUSIVE):
            return ""
        project = self.job.project
        base, head = (side.again(project.repository) for side in (self.job.base, self.job.head))
        sides = ["--base", base, "--head", head, *project.options()]
        words = [*project.command, *sides, "--filter", f"^{re.escape(row.name)}$"]
        command = shlex.join(words)
        return command if command.isprintable() else ""  # of a command of several lines


class ForeignRun(PairedRun):
    """Another project: all benchmarks, in pairs."""

    def judged(self) -> Comparison:
        job, project = self.job, self.job.project
        assert isinstance(project, Foreign)
        if job.options.identity and project.same_code(job.base, job.head):
            return unmeasured(job, SAME_CODE, ())
        found, pairs = self.pairs((), lambda pairs: self._judged(pairs, project.margin))
        if not pairs:
            raise GateError(throttled("no pairs"))
        comparison = self.finished(self.of_pairs(pairs, found))
        yardsticks, last = yardsticks_in(pairs[0][1]), pairs[0][1]
        base, rows = comparison.baseline.benchmarks, []
        for row in comparison.rows:
            note = CONTROL if row.name in yardsticks else row.note
            absolute = project.margin.absolute(seconds(row.name, base.get(row.name)))
            rows.append(replace(row, note=note, margin_s=absolute))
        warnings = (
            f"{name} is not judged: it was skipped: {reason}"
            for name, reason in last.skipped.items()
        )
        return replace(comparison, rows=tuple(rows), warnings=(*comparison.warnings, *warnings))

    def _judged(self, pairs: Sequence[Pair], margin: Margin) -> Confirmed:
        """What the pairs say of the benchmarks that all of them have."""
        processes = [process for pair in pairs for process in pair]
        every = processes[0].readings if processes else ()
        names = [n for n in every if all(n in p.readings for p in processes)]
        bases = [base.readings for base, _ in pairs]
        times = {
            n: statistics.median(1 / (base[n].per_second or 1) for base in bases) for n in names
        }
        deltas = {name: margin.delta(base_s) for name, base_s in times.items()}
        controls = [n for n in yardsticks_in(processes[0]) if n in names] if processes else []
        wanted = self.job.options.pairs
        return confirm.judge_pairs(pairs, names, (), deltas, wanted, controls=controls)


class GateRun(PairedRun):
    """This repository: the suites of both sides, rung by rung."""

    ragged = True

    def __init__(self, job: Job, steps: Steps) -> None:
        """Both sides must be built."""
        super().__init__(job, steps)
        able, stages = conditions.compute_capability(), stages_of(job.head.build)
        beyond = [s for s in stages if able is not None and s.compute_capability > able]
        for stage in beyond:
            message(
                f"{stage.name} is left out: it needs compute capability "
                f"{stage.compute_capability}, and this GPU has {able}"
            )
        unable = {stage.name for stage in beyond}
        self.head, self.base = (
            [n for n in gated(job, side, stages_of(side.build)) if rung_of(n) not in unable]
            for side in (job.head, job.base)
        )
        if not self.head:
            raise GateError(f"{job.head.build}: no rung in it, so that no benchmark is gated")
        self.names = [name for name in self.head if name in self.base]
        self.canaries = [name for name in CANARIES if name in self.names]
        # The benchmarks of both suites whose rung has the same machine code.
        self.same: list[str] = []
        if job.options.identity:
            rungs = {rung_of(name) for name in self.names}
            same = same_rungs(job.base.build, job.head.build, rungs)
            self.same = [n for n in self.names if rung_of(n) in same and n not in CANARIES]

    def judged(self) -> Comparison:
        judged = [n for n in self.names if n not in self.canaries]
        changed = [n for n in judged if n not in self.same]
        measured = [n for n in self.names if n not in self.same[CONTROLS:]]
        if not changed:
            found = unmeasured(self.job, SAME_CODE, self.names)
        elif self.job.options.screened and len(changed) > MOST_IN_PAIRS * len(judged):
            found = self._screened(measured)
        else:
            found = self.in_pairs(measured)
        return self.completed(found)

    def completed(self, found: Comparison) -> Comparison:
        """With a row for all that was not measured: what is identical, and what only one of the
        suites has. What is new is measured once, so that a rung that joins is seen to run."""
        known, same = {row.name for row in found.rows}, self.same
        rows = [Row(n, Verdict.IDENTICAL, SAME_CODE, "", False) for n in same if n not in known]
        new = [name for name in self.head if name not in self.base and name not in known]
        if new:
            run = self.saved([self.process("new", self.job.head, new)], self.job.head, "new")
            kind, note = run.device.kind, "not in the base's suite"
            rows += [replace(judge(n, None, run.benchmarks[n], kind), note=note) for n in new]
            if found.candidate.device.kind == OTHER:
                found = replace(found, baseline=run, candidate=run)
        kind, note = found.candidate.device.kind, "missing in the head's suite"
        gone = sorted({*self.base} - {*self.head} - known)
        rows += [Row(n, Verdict.ERROR, note, rerun_command(n, kind), False) for n in gone]
        warnings = (*found.warnings, *[NO_NVML] * self.without_nvml)
        return self.finished(replace(found, rows=(*found.rows, *rows), warnings=warnings))

    def _screened(self, names: list[str]) -> Comparison:
        """A process of the head compared with the baseline; what that leaves open up to twice
        more."""
        job = self.job
        # The screen measures as its baseline was measured.
        assert isinstance(job.project, Tilegate)
        launcher = replace(
            job.project.launcher, placements=places_of(job.base.source / "bench" / "baselines")
        )
        project = replace(job.project, launcher=launcher)
        names = [*names, *(name for name in self.head if name not in self.base)]
        processes: list[Process] = []
        step, left = "screen", names
        while True:
            first, found = self._sound(step, left, project)
            if found is None:
                sound = f"{len(processes)} of {SCREEN if processes else 1} processes of the screen"
                return self._throttled(first, throttled(sound))
            processes.append(found)
            stored = self.baseline(found.device, names)
            if stored is None:
                message(f"no baseline for {found.device.name}: everything is measured in pairs")
                return self.in_pairs([n for n in names if n in self.base])
            candidate = self.saved(processes, job.head, "candidate")
            screening = compare(stored, candidate)
            left = [] if screening.differences else self._unsettled(screening, candidate)
            if not left:
                return incomparable(screening) or self.screened(stored, screening)
            step = f"again-{len(processes)}"
            message(f"{len(left)} of {len(names)} benchmarks need another process")

    def _sound(
        self, step: str, names: Sequence[str], project: Project
    ) -> tuple[Process, Process | None]:
        """The first process, and the one that counts: what heat or a power brake voids is replaced,
        a few times."""
        tried: list[Process] = []
        for number in range(1, SPARES + 2):
            key = f"{step}-{number}"
            tried.append(self.process(key, self.job.head, names, project=project))
            reason = confirm.void_reason(tried[-1].conditions)
            if not reason:
                return tried[0], tried[-1]
            message(f"{key} is void: {reason}")
        return tried[0], None

    def _unsettled(self, screening: Comparison, candidate: RunFile) -> list[str]:
        """What the candidate's processes leave open, with the canaries, if it is anything."""
        names = []
        for row in screening.rows:
            if row.metric is not None and row.baseline is not None and row.delta is not None:
                values = candidate.benchmarks[row.name].per_process[row.metric]
                if undecided([log_slowdown(row.baseline, value) for value in values], row.delta):
                    names.append(row.name)
        return sorted({*names, *self.canaries}) if names else []

    def screened(self, stored: RunFile, screening: Comparison) -> Comparison:
        """The verdict on a screening: what it flags is measured in pairs."""
        flagged = [n for n in flagged_by(screening, stored, self.base) if n not in self.same]
        found = Confirmed(dict.fromkeys(self.same, Verdict.IDENTICAL))
        if flagged:
            measured = {*flagged, *self.same[:CONTROLS], *self.canaries}
            confirmed, _ = self._confirmed(measured, stored)
            # What looked faster is not slower, by the screen, where pairs leave it open.
            open_ones = {n for n, v in confirmed.verdicts.items() if v is Verdict.INCONCLUSIVE}
            faster = {row.name for row in screening.rows if row.verdict is Verdict.IMPROVED}
            passed = dict.fromkeys(open_ones & faster, Verdict.PASS)
            verdicts = {**found.verdicts, **confirmed.verdicts, **passed}
            found = replace(confirmed, verdicts=verdicts)
        return with_verdicts(screening, found)

    def in_pairs(self, names: Sequence[str]) -> Comparison:
        """Without a screen; what is identical among them serves as a control."""
        found, pairs = self._confirmed({*names, *self.canaries})
        if not pairs:
            shown = self.process("pair-1-head", self.job.head, sorted({*names}))
            return self._throttled(shown, *found.reasons)
        return self.of_pairs(pairs, found)

    def _confirmed(
        self, benchmarks: set[str], screened_by: RunFile | None = None
    ) -> tuple[Confirmed, list[Pair]]:
        """What pairs say of the benchmarks, by the margins of the baseline that screened them, or
        else of that of the device that the pairs were measured on."""
        names, stored, wanted = sorted(benchmarks), screened_by, self.job.options.pairs

        def judged(pairs: Sequence[Pair]) -> Confirmed:
            nonlocal stored
            if screened_by is None and pairs:
                stored = self.baseline(pairs[0][1].device, names)
            rows = stored.benchmarks if stored else {}
            deltas = {name: row.margin(row.decisive) for name, row in rows.items()}
            device = screened_by.device if screened_by else None
            return confirm.judge_pairs(pairs, names, self.same, deltas, wanted, device)

        found, pairs = self.pairs(names, judged)
        marked = {name for name, row in stored.benchmarks.items() if row.key} if stored else set()
        return replace(found, keys=keys(self.head) | marked), pairs

    def baseline(self, device: Device, names: Container[str]) -> RunFile | None:
        """That of the base, as far as `names` has it."""
        path = self.job.base.source / "bench" / "baselines" / baseline_path(device).name
        if not path.exists():
            return None
        return part_of(load(path, Role.BASELINE), names)

    def _throttled(self, process: Process, *reasons: str) -> Comparison:
        """Where too little of what was measured counts: one process shows what was asked for."""
        run = self.saved([process], self.job.head, "throttled")
        shown = compare(run, run)
        rows = tuple(
            replace(row, verdict=Verdict.INCOMPARABLE, note="not judged", slowdown=None)
            for row in shown.rows
        )
        return replace(shown, rows=rows, differences=reasons)


def part_of(run: RunFile, names: Container[str]) -> RunFile | None:
    """The run without other benchmarks."""
    rows = {name: row for name, row in run.benchmarks.items() if name in names}
    return run.model_copy(update={"benchmarks": rows}) if rows else None


def places_of(baselines: Path) -> int:
    """At how many places in memory the GPUs' baselines in this folder were measured."""
    runs = [load(path, Role.BASELINE) for path in sorted(baselines.glob("nvidia-*.json"))]
    rows = [row for run in runs for row in run.benchmarks.values()]
    at_one = rows and all(row.placement_pct is None for row in rows)
    return 1 if at_one else PLACES


def flagged_by(screening: Comparison, stored: RunFile, base: Container[str]) -> list[str]:
    """What looks slower or faster, what the baseline lacks although `base` can run it, and what it
    says little of, because it drifted."""
    found: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for row in screening.rows:
        found[row.verdict].append(row.name)
    # Of those in head's suite only there is nothing to compare.
    lacking = [name for name in found[Verdict.NEW] if name in base]
    drifting = [
        name
        for name, row in stored.benchmarks.items()
        if name in found[Verdict.PASS] and not confirm.is_canary(name) and row.drifts(row.decisive)
    ]
    drifted = "drifted when the baseline was recorded"
    reasons = (
        ("looks slower", "look slower", found[Verdict.REGRESSED]),
        ("looks faster", "look faster", found[Verdict.IMPROVED]),
        ("is not in the baseline", "are not in the baseline", lacking),
        (drifted, drifted, drifting),
    )
    for one, many, names in reasons:
        what = (
            f"benchmarks {many}, measuring them" if names[1:] else f"benchmark {one}, measuring it"
        )
        if names:
            message(f"{len(names)} {what} in pairs: {', '.join(names)}")
    return [name for *_, names in reasons for name in names]


def incomparable(screening: Comparison) -> Comparison | None:
    """The screening of a session that cannot be judged, with nothing red in it; None of one that
    can."""
    reasons = (*screening.differences, *confirm.moved_canaries(screening))
    rows = (
        replace(row, verdict=Verdict.INCOMPARABLE) if row.verdict in FLAGGED else row
        for row in screening.rows
    )
    return replace(screening, rows=tuple(rows), differences=reasons) if reasons else None
