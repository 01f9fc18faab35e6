"""Many mutants: which are drawn, their trials side by side, and the journal of their outcomes."""

import json
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from tilegate_ci.core.files import GateError, make_folder
from tilegate_ci.core.git import git
from tilegate_ci.core.progress import Steps
from tilegate_ci.formats.stages import read_stages
from tilegate_ci.lab.mutants.ninja import Build
from tilegate_ci.lab.mutants.reach import GROUPS, TrialStep, group_of, steps_for
from tilegate_ci.lab.mutants.rules import RULES, Mutant, mutants_of, read_rules
from tilegate_ci.lab.mutants.trial import Baselines, Trial, kill_running

Record = dict[str, str | int | float]


def key_of(record: Record) -> tuple[str, str, str]:
    """A mutant is known by its line, wherever that stands in its file."""
    return str(record["file"]), str(record["before"]), str(record["after"])


def record_of(mutant: Mutant) -> Record:
    return {
        "file": mutant.file,
        "line": mutant.line,
        "kind": mutant.kind,
        "before": mutant.before,
        "after": mutant.after,
    }


class MutantJournal:
    """A line of JSON per mutant; what a broken run has written is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def read(self) -> list[Record]:
        """The latest record of each mutant."""
        found: dict[tuple[str, str, str], Record] = {}
        if self.path.exists():
            for line in self.path.read_text("utf-8").splitlines():
                try:
                    record = json.loads(line)
                except ValueError:  # the last line of a run that was killed
                    continue
                found[key_of(record)] = record
        return list(found.values())

    def add(self, record: Record) -> None:
        with self._lock, self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def draw(
    repository: Path, preset: str, globs: Sequence[str], sample: int | None, seed: int
) -> list[Mutant]:
    """Of each group of files all mutants, or a sample of so many."""
    rules = read_rules(repository / RULES)
    by_group: dict[str, list[Mutant]] = {group.name: [] for group in GROUPS[preset]}
    listed = git(repository, "ls-files", "kernels", "tests/verifier").stdout.splitlines()
    for file in listed or files_below(repository):
        group = group_of(preset, file)
        if group and (not globs or any(fnmatch(file, glob) for glob in globs)):
            by_group[group.name] += mutants_of(repository, file, rules)
    if not any(by_group.values()):
        raise GateError(f"no mutants: {', '.join(globs) or 'the rules'} match no line of code")
    drawn = []
    for name, mutants in by_group.items():
        if sample is not None and sample < len(mutants):
            random.Random(f"{seed} {name}").shuffle(mutants)
            mutants = mutants[:sample]
        drawn += mutants
    random.Random(seed).shuffle(drawn)  # a run that is broken off has some of each kind
    return drawn


def files_below(repository: Path) -> list[str]:
    """Where there is no git."""
    return sorted(
        path.relative_to(repository).as_posix()
        for top in ("kernels", "tests/verifier")
        for path in (repository / top).rglob("*.*")
    )


def try_all(
    build: Build,
    preset: str,
    mutants: Sequence[Mutant],
    journal: MutantJournal,
    jobs: int,
    commit: str,
    stop_at: float,
) -> None:
    """A trial for each mutant, its record in the journal; none begins after `stop_at`."""
    tests, stages = build.tests(), read_stages(build.folder)
    plans: dict[str, list[TrialStep]] = {}
    for file in sorted({mutant.file for mutant in mutants}):
        group = group_of(preset, file)
        assert group
        plans[file] = steps_for(build, tests, stages, group, file)
    waiting: queue.Queue[Mutant] = queue.Queue()
    for mutant in mutants:
        waiting.put(mutant)
    work = build.folder / "mutants"
    make_folder(work)
    baselines, began = Baselines(), time.monotonic()
    problems: list[BaseException] = []

    def work_off(number: int, report: Callable[[Record], None]) -> None:
        try:
            trial = Trial(build, work / f"job-{number}", baselines)
            for mutant in _until(waiting, stop_at):
                if problems:
                    return
                start = time.monotonic()
                outcome = trial.run(mutant, plans[mutant.file])
                if problems:
                    return
                record = record_of(mutant) | {"outcome": outcome.outcome, "by": outcome.by}
                record |= {"why": outcome.why, "preset": preset, "commit": commit}
                record["seconds"] = round(time.monotonic() - start, 1)
                journal.add(record)
                report(record)
        except BaseException as problem:
            problems.append(problem)

    with Steps() as steps:

        def report(record: Record) -> None:
            left = waiting.qsize()
            rate = (time.monotonic() - began) / max(1, len(mutants) - left)
            title = f"{record['file']}:{record['line']} {record['kind']}: {record['outcome']}"
            by = f" by {record['by']}" if record["by"] else ""
            steps.done(title + by, float(record["seconds"]), left, left * rate)

        threads = [
            threading.Thread(target=work_off, args=(number, report), daemon=True)
            for number in range(jobs)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            problems.append(KeyboardInterrupt())  # none begins another, or records what we kill
            kill_running()
            raise
    if problems:
        raise problems[0]


def _until(waiting: "queue.Queue[Mutant]", stop_at: float) -> Iterator[Mutant]:
    while time.monotonic() < stop_at:
        try:
            yield waiting.get_nowait()
        except queue.Empty:
            return
