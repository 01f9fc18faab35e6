"""One gate run: two builds, a screen where there is a baseline, pairs for what it flags."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tilegate_ci.core.files import dumps, write_text
from tilegate_ci.core.names import rerun_command, rung_of
from tilegate_ci.core.progress import Steps, message
from tilegate_ci.formats.collect import collect
from tilegate_ci.formats.run_file import Role, load
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
from tilegate_ci.measure.builds import Side, build
from tilegate_ci.measure.identity import same_rungs
from tilegate_ci.measure.job import Job
from tilegate_ci.measure.journal import Journal
from tilegate_ci.measure.launcher import PLACES, Launcher
from tilegate_ci.measure.pairs import Bench, measure_pairs
from tilegate_ci.measure.screen import (
    flagged_by,
    incomparable,
    only,
    places_of,
    screen,
    unsettled,
    with_more,
)
from tilegate_ci.measure.suite import CANARIES, keys
from tilegate_ci.measure.suites import Suites
from tilegate_ci.model import REPOSITORY, Device, Process, RunFile, Session, Verdict, baseline_path

CONTROLS = 4  # flagged benchmarks of the same machine code that are measured along
NO_NVML = "NVML says nothing of the GPU, so that heat voids no process; is nvidia-ml-py installed?"


def judged(job: Job) -> Comparison:
    """Builds, measures and judges."""
    with Steps() as steps:
        return GateRun(job, steps).judged()


class GateRun:
    def __init__(self, job: Job, steps: Steps) -> None:
        self.job = job
        launcher = Launcher(job.options.min_time_s, job.options.seed, placements=PLACES)
        journal = Journal(job.folder, job.protocol)
        seed = f"{job.base.digest}:{job.head.digest}:{job.options.seed}"
        self.bench = Bench(launcher, journal, steps, seed)
        # The screen measures as its baseline was measured.
        places = places_of(job.base.source / "bench" / "baselines")
        self.screen = Bench(replace(launcher, placements=places), journal, steps, seed)
        self.without_nvml = False

    def judged(self) -> Comparison:
        job, there = self.job, self.bench.journal.count()
        if there:
            message(f"{job.folder}: {there} processes are there already")
        build(job.head, job.options.cmake)
        self.suites = Suites(job)
        found = self._screened() if job.options.screened else self._unscreened()
        if self.without_nvml:
            found = replace(found, warnings=(*found.warnings, NO_NVML))
        found = replace(found, base_commit=job.base.commit)
        return self._with_suites(found)

    def _screened(self) -> Comparison:
        job = self.job
        first = screen(self.screen, job.head.binary, self.suites.head, "screen")
        if first is None:
            return self._throttled_screen(0, 1)
        stored = self._baseline(first.device)
        if stored is None:
            message(f"base has no baseline for {first.device.name}: everything is confirmed")
            return self._unscreened()
        screened, candidate = [first], self._saved([first], job.head, "candidate")
        screening = compare(stored, candidate)
        while not screening.differences:
            names = unsettled(screening, candidate, self.suites.canaries)
            if not names:
                break
            done = "one process" if len(screened) == 1 else "two processes"
            message(f"{len(names)} of {len(self.suites.head)} are not settled by {done}")
            again = screen(self.screen, job.head.binary, names, f"again-{len(screened)}")
            if again is None:
                return self._throttled_screen(len(screened), SCREEN)
            screened.append(again)
            candidate = with_more(candidate, self._saved(only(names, screened), job.head, "again"))
            screening = compare(stored, candidate)
        if any(row.verdict is Verdict.NEW for row in screening.rows):
            self.suites.look_at_base(stored)  # to which it may be new as well
        off = moved_canaries(screening)
        if screening.differences or off:
            return incomparable(screening, off)
        flagged = flagged_by(screening, stored, self.suites.base)
        identical = self._identical(flagged) if flagged else []
        rest = [name for name in flagged if name not in identical]
        found = Confirmed(dict.fromkeys(identical, Verdict.IDENTICAL))
        if rest:
            measured = {*rest, *identical[:CONTROLS], *self.suites.canaries}
            confirmed, _ = self._confirmed(sorted(measured), identical, stored)
            found = replace(confirmed, verdicts={**found.verdicts, **confirmed.verdicts})
        return with_verdicts(screening, found)

    def _throttled_screen(self, sound: int, wanted: int) -> Comparison:
        shown = self.screen.process("screen-1", self.job.head.binary, self.suites.head, 0)
        return self._throttled(shown, throttled(f"{sound} of {wanted} processes of the screen"))

    def _unscreened(self) -> Comparison:
        """Everything in pairs, what is identical as controls; if all of it is, nothing to judge."""
        job = self.job
        self.suites.look_at_base(None)
        names = self.suites.names
        identical = self._identical(names)
        if all(name in identical or name in CANARIES for name in names):
            message("the machine code is the same throughout; one process to show that it runs")
            shown = self.bench.process("head", job.head.binary, self.suites.head, 0)
            run = self._saved([shown], job.head, "head")
            verdicts = dict.fromkeys(names, Verdict.IDENTICAL)
            verdicts |= dict.fromkeys(self.suites.new, Verdict.NEW)
            return with_verdicts(compare(run, run), Confirmed(verdicts))
        measured = sorted({*names, *self.suites.canaries})
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
        job, wanted, screened = self.job, self.job.options.pairs, stored is not None
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

        def still(pairs: Sequence[Pair]) -> Sequence[str]:
            left = judged(pairs).open
            return sorted(left) if screened else names if left else ()

        binaries = (job.base.binary, job.head.binary)
        pairs = measure_pairs(self.bench, *binaries, names, wanted, still)
        found = judged(pairs)
        marked = {name for name in rows if rows[name].key}
        return replace(found, keys=keys(self.suites.head) | marked), pairs

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
        if not self.suites.base:
            self.suites.know_base(run)
        names = {*self.suites.head, *self.suites.base}
        rows = {name: row for name, row in run.benchmarks.items() if name in names}
        return run.model_copy(update={"benchmarks": rows}) if rows else None

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
        new = [name for name in self.suites.new if name not in known]
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
            for name in self.suites.gone
            if name not in known
        ]
        return replace(comparison, rows=tuple(sorted(rows, key=worst_first)))

    def _again(self, row: Row) -> str:
        """The command that measures the pairs of a row again that pairs judged, if it is red."""
        if not row.pairs or row.verdict not in (Verdict.REGRESSED, Verdict.INCONCLUSIVE):
            return ""
        base, head = (side.again(REPOSITORY) for side in (self.job.base, self.job.head))
        words = ["ci/gate", "confirm", "--base", base, "--head", head, "--filter", f"^{row.name}$"]
        return shlex.join(words)

    def _throttled(self, process: Process, *reasons: str) -> Comparison:
        """Where too little of what was measured counts: one process shows what was asked for."""
        run = self._saved([process], self.job.head, "throttled")
        shown = compare(run, run)
        rows = tuple(
            replace(row, verdict=Verdict.INCOMPARABLE, note="not judged", slowdown=None)
            for row in shown.rows
        )
        return replace(shown, rows=rows, differences=reasons)
