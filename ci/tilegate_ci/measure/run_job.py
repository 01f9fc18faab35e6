"""One gate run: two builds, a screen where there is a baseline, pairs for what it flags."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tilegate_ci.core.files import dumps, write_text
from tilegate_ci.core.model import REPOSITORY, Device, Run, baseline_path
from tilegate_ci.core.names import rerun_command
from tilegate_ci.core.reader import Role, load
from tilegate_ci.core.verdicts import Verdict
from tilegate_ci.judge.compare import Comparison, Row, compare, worst_first
from tilegate_ci.judge.paired import SCREEN
from tilegate_ci.measure import gate_run
from tilegate_ci.measure.builds import Side, build, digest_of_baselines, parted, resolve
from tilegate_ci.measure.gate_run import Bench, Confirmed, Pair, Tell
from tilegate_ci.measure.identity import same_rungs
from tilegate_ci.measure.journal import Journal, Stored
from tilegate_ci.measure.launcher import Launcher
from tilegate_ci.measure.sitting import CANARIES
from tilegate_ci.measure.suite import matching, read_suite, rung_of

MOST_PROCESS_S = 15.0


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
    """`names` are of both suites, in the head's order. `folder` holds the finished processes, of
    `protocol` and no other."""

    base: Side
    head: Side
    names: Sequence[str]
    gone: Sequence[str]  # in the base's suite only
    new: Sequence[str]  # in the head's suite only
    folder: Path
    options: Options
    protocol: Mapping[str, object]

    @property
    def ours(self) -> list[str]:
        return [*self.names, *self.new]

    def plan(self) -> str:
        pairs, screen = self.options.pairs, SCREEN * self.options.screened
        lines = [self.base.title, self.head.title, f"{len(self.ours)} benchmarks"]
        lines += [f"not in the head's suite: {name}" for name in self.gone]
        lines += [f"screen: {screen} processes of head"] * bool(screen)
        what = "confirm what it flags: " if screen else ""
        lines += [f"{what}{pairs} pairs of processes, base and head in turn"]
        most = (screen + 2 * pairs) * MOST_PROCESS_S / 60
        lines += [f"at most {MOST_PROCESS_S:g} s each, {most:.1f} min in all, and the builds"]
        there = len(list(self.folder.glob("process-*.json")))
        return "\n".join([*lines, f"{self.folder}: {there} processes are there already"]) + "\n"


def prepare(
    base_given: str, head_given: str, work: Path, out: Path | None, options: Options
) -> Job:
    # A screened head is a change: what others did to its base since is not its fault.
    judged_by = parted(base_given, head_given, REPOSITORY) if options.screened else base_given
    base = replace(resolve("base", judged_by, REPOSITORY, work), given=base_given)
    head = resolve("head", head_given, REPOSITORY, work)
    ours, theirs = read_suite(head.suite), read_suite(base.suite)
    everything = {**dict.fromkeys(ours), **dict.fromkeys(theirs)}
    chosen = matching(everything, options.filter or None)
    chosen += [name for name in CANARIES if name in everything and name not in chosen]
    protocol: dict[str, object] = {
        "schema": 1,
        "base": base.digest,
        "head": head.digest,
        "baselines": digest_of_baselines(base.source),
        **asdict(options),
        "cmake": list(options.cmake),
    }
    name = f"run-{hashlib.sha256(dumps(protocol).encode()).hexdigest()[:16]}"
    return Job(
        base,
        head,
        [name for name in chosen if name in ours and name in theirs],
        [name for name in chosen if name not in ours],
        [name for name in chosen if name not in theirs],
        out or work / name,
        options,
        protocol,
    )


def judged(job: Job, tell: Tell) -> Comparison:
    found = replace(_judged(job, tell), base_commit=job.base.commit)
    sessions = found.candidate.fields["sessions"]
    if all(session["conditions"]["before"] for session in sessions):
        return found
    told = "NVML told nothing of the GPU, so that heat voids no process; is nvidia-ml-py installed?"
    return replace(found, warnings=(*found.warnings, told))


def _judged(job: Job, tell: Tell) -> Comparison:
    options = job.options
    bench = Bench(
        Launcher(options.min_time_s, options.seed, job.head.suite),
        Journal(job.folder, job.protocol),
        tell,
        f"{job.base.digest}:{job.head.digest}:{options.seed}",
    )
    if bench.journal.count():
        tell(f"{job.folder}: {bench.journal.count()} processes are there already")
    build(job.head, options.cmake, tell)
    if not options.screened:
        return _unscreened(job, bench)
    processes = gate_run.screen(bench, job.head.binary, job.ours, SCREEN)
    if len(processes) < SCREEN:
        sound = f"{len(processes)} of {SCREEN} processes of the screen"
        shown = bench.process("screen-1", job.head.binary, job.ours, 0)
        return _throttled(job, shown, gate_run.throttled(sound))
    candidate = _saved(job, processes, job.head.commit, "candidate")
    stored = _baseline(job, candidate.device)
    if stored is None:
        tell(f"the base has no baseline for {candidate.device.name}: everything is confirmed")
        return _unscreened(job, bench)
    return _with_suites(job, _screened(job, bench, compare(stored, candidate), stored))


def _screened(job: Job, bench: Bench, screening: Comparison, stored: Run) -> Comparison:
    off = gate_run.moved_canaries(screening)
    if screening.differences or off:
        return _incomparable(screening, off)
    slower = [r.name for r in screening.rows if r.verdict is Verdict.REGRESSED]
    # Of the head's new ones there is nothing to compare with; the others the base can run.
    unseen = [r.name for r in screening.rows if r.verdict is Verdict.NEW and r.name in job.names]
    for names, told in ((slower, "look slower"), (unseen, "are not in the baseline")):
        if names:
            bench.tell(f"{len(names)} {told}: {', '.join(names)}")
    flagged = slower + unseen
    if not flagged:
        return screening
    identical = _identical(job, bench, flagged)
    rest = [name for name in flagged if name not in identical]
    found = Confirmed(dict.fromkeys(identical, Verdict.IDENTICAL), {}, {}, ())
    if rest:
        measured = {*rest, *identical[: gate_run.CONTROLS], *_canaries(job)}
        confirmed, _ = _confirm(job, bench, sorted(measured), identical, stored)
        found = replace(confirmed, verdicts={**found.verdicts, **confirmed.verdicts})
    return gate_run.with_verdicts(screening, found)


def _unscreened(job: Job, bench: Bench) -> Comparison:
    """Everything in pairs, what is identical as controls; if all of it is, nothing to judge."""
    wanted = list(job.names)
    identical = _identical(job, bench, wanted)
    if all(name in identical or name in CANARIES for name in wanted):
        bench.tell("the machine code is the same throughout; one process to show that it runs")
        run = _saved(
            job, [bench.process("head", job.head.binary, job.ours, 0)], job.head.commit, "head"
        )
        verdicts = dict.fromkeys(wanted, Verdict.IDENTICAL) | dict.fromkeys(job.new, Verdict.NEW)
        found = Confirmed(verdicts, {}, {}, ())
        return _with_suites(job, gate_run.with_verdicts(compare(run, run), found))
    measured = sorted({*wanted, *_canaries(job)})
    confirmed, pairs = _confirm(job, bench, measured, identical, None)
    if not pairs:
        shown = bench.process("pair-1-head", job.head.binary, measured, 0)
        return _throttled(job, shown, *confirmed.reasons)
    base = _saved(job, [pair[0] for pair in pairs], job.base.commit, "base")
    head = _saved(job, [pair[1] for pair in pairs], job.head.commit, "head")
    return _with_suites(job, gate_run.with_verdicts(compare(base, head), confirmed))


def _confirm(
    job: Job, bench: Bench, names: list[str], identical: Iterable[str], stored: Run | None
) -> tuple[Confirmed, list[Pair]]:
    if not job.options.identity:  # else it was built to be looked at
        build(job.base, job.options.cmake, bench.tell)
    wanted = job.options.pairs
    pairs = gate_run.measure_pairs(bench, job.base.binary, job.head.binary, names, wanted)
    screened_on = stored.device if stored else None
    if stored is None and pairs:
        run = gate_run.as_run([pair[1] for pair in pairs], job.head.commit, "head")
        stored = _baseline(job, run.device)
    rows = stored.benchmarks if stored else {}
    deltas = {name: row.margin(row.decisive) for name, row in rows.items()}
    found = gate_run.judge_pairs(pairs, names, identical, deltas, wanted, screened_on)
    keys = frozenset(name for name, row in rows.items() if row.key)
    return replace(found, keys=keys), pairs


def _identical(job: Job, bench: Bench, names: Sequence[str]) -> list[str]:
    if not job.options.identity:
        return []
    build(job.base, job.options.cmake, bench.tell)
    same = same_rungs(job.base.build, job.head.build, {rung_of(name) for name in names})
    return [name for name in names if rung_of(name) in same and name not in CANARIES]


def _canaries(job: Job) -> list[str]:
    suites = set(read_suite(job.head.suite)) & set(read_suite(job.base.suite))
    return [name for name in CANARIES if name in suites]


def _baseline(job: Job, device: Device) -> Run | None:
    """That of the base, its rows outside the gated suite left out."""
    path = job.base.source / "bench" / "baselines" / baseline_path(device).name
    if not path.exists():
        return None
    names = {*job.ours, *job.gone}
    run = load(str(path), Role.BASELINE)
    rows = {name: row for name, row in run.benchmarks.items() if name in names}
    return replace(run, benchmarks=rows) if rows else None


def _saved(job: Job, processes: Sequence[Stored], commit: str, name: str) -> Run:
    path = job.folder / f"{name}.json"
    run = gate_run.as_run(processes, commit, str(path))
    write_text(path, dumps(dict(run.fields)) + "\n")
    return run


def _with_suites(job: Job, comparison: Comparison) -> Comparison:
    """With a row for all that only one of the suites has, and so nothing told yet."""
    known = {row.name for row in comparison.rows}
    rows = [*comparison.rows]
    for names, verdict, note in (
        (job.gone, Verdict.ERROR, "missing in the head's suite"),
        (job.new, Verdict.NEW, "not in the base's suite"),
    ):
        kind = comparison.candidate.device.kind
        rows += [
            Row(name, verdict, note, rerun_command(name, kind), False, *[None] * 5)
            for name in names
            if name not in known
        ]
    return replace(comparison, rows=tuple(sorted(rows, key=worst_first)))


def _incomparable(screening: Comparison, reasons: Sequence[str]) -> Comparison:
    rows = [
        replace(row, verdict=Verdict.INCOMPARABLE) if row.verdict is Verdict.REGRESSED else row
        for row in screening.rows
    ]
    return replace(
        screening,
        rows=tuple(sorted(rows, key=worst_first)),
        differences=(*screening.differences, *reasons),
    )


def _throttled(job: Job, process: Stored, reason: str) -> Comparison:
    """Where too little of what was measured counts: one process shows what was asked for."""
    run = _saved(job, [process], job.head.commit, "throttled")
    shown = compare(run, run)
    rows = [
        replace(row, verdict=Verdict.INCOMPARABLE, note="not judged", slowdown=None)
        for row in shown.rows
    ]
    return _with_suites(job, replace(shown, rows=tuple(rows), differences=(reason,)))
