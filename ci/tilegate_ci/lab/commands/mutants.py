"""ci/gate lab mutants: mutation testing of kernels, verifier and executor. The working tree stays
as it is: mutants are made in copies."""

import argparse
import contextlib
import math
import os
import queue
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path

from tilegate_ci.checks.committed import chosen
from tilegate_ci.commands.arguments import commit_of, seconds
from tilegate_ci.core.files import GateError, locked, make_folder, message
from tilegate_ci.formats.stages import read_stages
from tilegate_ci.lab.mutants.build import Build, TrialStep, group_of, groups
from tilegate_ci.lab.mutants.rules import RULES, Mutant, mutants_of, read_rules
from tilegate_ci.lab.mutants.table import (
    AIMED,
    DEVICES,
    PAGE,
    RESULTS,
    MutantJournal,
    Preset,
    Record,
    known,
    update,
)
from tilegate_ci.lab.mutants.trial import Outcome, Runner, Trial
from tilegate_ci.lab.sweeps import Shard, check_whole, paths_of, shard, work_off
from tilegate_ci.measure.projects import run_cmake
from tilegate_ci.model import REPOSITORY

INTERRUPTED = "the same command with --resume goes on from here"

TYPES = {"minutes": seconds, "shard": shard}
DEFAULTS = {
    "preset": "cpu",
    "rung": [],
    "file": [],
    "seed": date.today().toordinal(),
    "jobs": os.cpu_count(),
    "shard": Shard(),
    "repository": REPOSITORY,
}


def run(arguments: argparse.Namespace) -> int:
    repository, preset = arguments.repository.resolve(), arguments.preset
    if arguments.update:
        journals = {each: MutantJournal(_journal(repository, each)) for each in DEVICES}
        found = Counter(mutant.kind for mutant in find(repository, "cpu", [], None))
        update(repository, journals, dict(sorted(found.items())))
        print(f"{RESULTS}, {PAGE}: written")
        return 0
    path, shard = arguments.journal or _journal(repository, preset), arguments.shard
    journal = MutantJournal(shard.path(path))
    commit = commit_of(arguments)
    folder = repository / "build" / preset
    make_folder(folder)
    with locked(folder):
        build = _built(repository, preset)
    folders = {stage.name: f"{stage.folder}/*" for stage in read_stages(build.folder)}
    named = chosen(arguments.rung, folders) if arguments.rung else ()
    globs = [*arguments.file, *(folders[name] for name in named)]
    mutants = find(repository, preset, globs, vars(arguments)["class"])
    if arguments.merge:
        drawn = draw(mutants, preset, arguments.sample, arguments.seed)
        merge(drawn, paths_of(path, arguments.merge), journal)
        return _report(repository, journal.read(), arguments.seed)
    old = {record.key: record for record in journal.read()}
    if arguments.survivors:
        lost = {key for key, record in old.items() if record.outcome == "survived"}
        lost -= known(repository).keys()
        mutants = [each for each in mutants if each.key in lost]
    else:
        mutants = of_shard(draw(mutants, preset, arguments.sample, arguments.seed), shard)
        if arguments.resume:
            mutants = [each for each in mutants if each.key not in old]
        else:
            journal.path.unlink(missing_ok=True)
    folder = shard.path(build.folder / "mutants")
    make_folder(folder)
    with locked(folder):
        ends = time.monotonic() + 60 * arguments.minutes if arguments.minutes else math.inf
        try_all(build, folder, preset, mutants, journal, arguments.jobs, commit, ends)
    return _report(repository, journal.read(), arguments.seed)


def _built(repository: Path, preset: Preset) -> Build:
    programs = {name for group in groups(preset) for name in group.programs}
    targets = ["--target", *sorted(programs), "stages_json"]
    run_cmake(["--preset", preset], repository, preset)
    run_cmake(["--build", "--preset", preset, *targets], repository, preset)
    return Build(repository, repository / "build" / preset)


def of_shard(mutants: Sequence[Mutant], shard: Shard) -> list[Mutant]:
    """By files, because a file is compiled once for all of its mutants."""
    files = {*shard.of([*dict.fromkeys(mutant.file for mutant in mutants)])}
    return [mutant for mutant in mutants if mutant.file in files]


def merge(drawn: Sequence[Mutant], paths: Sequence[Path], into: MutantJournal) -> None:
    found = {path: MutantJournal(path).read() for path in paths}
    keys = {path: {_title(each.key) for each in of} for path, of in found.items()}
    check_whole({_title(mutant.key) for mutant in drawn}, keys)
    records = [record for of in found.values() for record in of]
    if commits := sorted({record.commit for record in records})[1:]:
        raise GateError(f"shards of several commits: {records[0].commit}, {', '.join(commits)}")
    into.path.unlink(missing_ok=True)
    for record in records:
        into.add(record)


def _title(key: tuple[str, str, str]) -> str:
    return f"{key[0]}: {key[1]} ==> {key[2]}"


def find(
    repository: Path, preset: str, globs: Sequence[str], kinds: Sequence[str] | None
) -> list[Mutant]:
    rules = read_rules(repository / RULES)
    wanted = {name for kind in kinds or () for name in (AIMED if kind == "aimed" else [kind])}
    unknown = wanted - {rule.kind for rule in rules}
    if unknown:
        raise GateError(f"no class {', '.join(sorted(unknown))} in {RULES}")
    every = sorted(
        path.relative_to(repository).as_posix()
        for top in ("kernels", "tests/verifier")
        for path in (repository / top).rglob("*")
        if path.is_file()
    )
    files = [file for file in every if group_of(preset, file)]
    files = [file for file in files if not globs or any(fnmatch(file, glob) for glob in globs)]
    found = [mutant for file in files for mutant in mutants_of(repository, file, rules)]
    found = [mutant for mutant in found if not wanted or mutant.kind in wanted]
    if not found:
        raise GateError(f"no mutants: {', '.join(globs) or 'the rules'} match no line of code")
    return found


def draw(mutants: Sequence[Mutant], preset: str, sample: int | None, seed: int) -> list[Mutant]:
    """All, or a sample of each class, the rarest class first. Files come in a random order, and of
    each as many as a quarter of a class if others have more: to compile a file takes longer than
    to try its mutants. Then all others that the aimed classes have in plans and host code."""
    source = random.Random(seed)
    files: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        files.setdefault(mutant.file, []).append(mutant)
    order = sorted(files)
    source.shuffle(order)
    for file in order:
        source.shuffle(files[file])
    totals, taken = Counter(mutant.kind for mutant in mutants), Counter[object]()
    most = sample or len(mutants)
    drawn: dict[Mutant, None] = {}  # in this order
    for most_of_file in (-(-most // 4), most):
        for kind in sorted(totals, key=lambda kind: (totals[kind], kind)):
            for file in order:
                if taken[kind] == min(most, totals[kind]):
                    break
                if any(each.kind == kind and each not in drawn for each in files[file]):
                    for mutant in files[file]:
                        place = file, mutant.kind
                        is_full = taken[mutant.kind] == most or taken[place] == most_of_file
                        if not is_full and mutant not in drawn:
                            drawn[mutant] = None
                            taken.update([mutant.kind, place])
    for mutant in mutants:
        group = group_of(preset, mutant.file)
        if group and group.all_mutants and mutant.kind in AIMED:
            drawn.setdefault(mutant)
    return [*drawn]


def try_all(
    build: Build,
    folder: Path,
    preset: Preset,
    mutants: Sequence[Mutant],
    journal: MutantJournal,
    jobs: int,
    commit: str,
    ends: float,
) -> None:
    """The record of each mutant in the journal; no trial begins after `ends`. First those with
    switches, file by file, then the mutants that are compiled one by one."""
    stages, runner = read_stages(build.folder), Runner()
    batches = [
        (file, [each for each in batch if each.switch])
        for file, batch in groupby(mutants, lambda each: each.file)
    ]
    alone = {mutant for mutant in mutants if not mutant.switch}
    trials: queue.Queue[Trial] = queue.Queue()
    for number in range(min(jobs, len(mutants))):
        trials.put(Trial(build, folder / f"job-{number}", runner))

    @contextlib.contextmanager
    def trial_of(file: str) -> Iterator[tuple[Trial, list[TrialStep]]]:
        group = group_of(preset, file)
        assert group
        trial = trials.get()
        try:
            yield trial, build.steps(stages, group, file)
        finally:
            trials.put(trial)

    def keep(mutant: Mutant, outcome: Outcome, began: float) -> None:
        names = ("file", "line", "kind", "before", "after")
        fields = {**{name: getattr(mutant, name) for name in names}, **vars(outcome)}
        took = round(time.monotonic() - began, 1)
        journal.add(Record(**fields, preset=preset, commit=commit, seconds=took))
        by = f" by {outcome.by}" if outcome.by else ""
        message(f"{mutant.file}:{mutant.line} {mutant.kind}: {outcome.outcome}{by}")

    def try_together(batch: tuple[str, list[Mutant]]) -> None:
        file, mutants = batch
        left = {*mutants}
        with trial_of(file) as (trial, steps):
            began = time.monotonic()
            for mutant, outcome in trial.together([*left], steps) if began < ends else ():
                keep(mutant, outcome, began)
                left.remove(mutant)
                began = time.monotonic()
                if began > ends:
                    return
        alone.update(left)

    def try_alone(mutant: Mutant) -> None:
        with trial_of(mutant.file) as (trial, steps):
            began = time.monotonic()
            if began < ends:
                keep(mutant, trial.alone(mutant, steps), began)

    work_off(batches, try_together, lambda batch: batch[0], jobs=jobs)
    order = [mutant for mutant in mutants if mutant in alone]
    work_off(order, try_alone, lambda mutant: mutant.file, jobs=jobs)


def _report(repository: Path, records: list[Record], seed: int) -> int:
    explained = known(repository)
    outcomes = Counter[str]()
    for record in records:
        outcome = str(record.outcome)
        if outcome == "survived" and record.key in explained:
            outcome = "known to survive"
        elif outcome == "survived":
            print(f"{record.file}:{record.line}: {record.before}")
            print(f"  survived as: {record.after}")
        outcomes[outcome] += 1
    counts = [f"{outcomes[each]} {each}" for each in sorted(outcomes)]
    print(f"{', '.join(counts) or 'no mutants'}; seed {seed}")
    return int(outcomes["survived"] > 0)


def _journal(repository: Path, preset: str) -> Path:
    return repository / "build" / f"mutants-{preset}.jsonl"
