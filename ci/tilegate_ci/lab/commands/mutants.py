"""ci/gate mutants: plants small faults in kernels, verifier and executor, one at a time, and says
which of them no test sees. The working tree stays as it is: faults are planted in copies."""

import argparse
import math
import os
import time
from datetime import date
from pathlib import Path

from tilegate_ci.commands.arguments import add_repository, commit_of, count, seconds, seed
from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.formats.stages import read_stages
from tilegate_ci.lab.mutants.campaign import MutantJournal, Record, draw, key_of, record_of, try_all
from tilegate_ci.lab.mutants.ninja import Build
from tilegate_ci.lab.mutants.reach import GROUPS
from tilegate_ci.lab.mutants.table import (
    DEVICES,
    KNOWN,
    PAGE,
    RESULTS,
    KnownFile,
    KnownMutant,
    ResultsFile,
    campaign_of,
    of_today,
    page,
    with_others,
)
from tilegate_ci.measure.builds import run_cmake

EXIT_CODES = {0: "every mutant was seen", 1: "some survived", 2: "error"}
INTERRUPTED = "the same command with --resume goes on from here"
EXAMPLES = """examples:
  ci/gate mutants --rung Warptile                  # all of its own files
  ci/gate mutants --file 'tests/verifier/*' --sample 20
  ci/gate mutants --sample 20 --seed 7 --minutes 90 && ci/gate mutants --update
  ci/gate mutants --survivors                      # again those that no test saw
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--preset", choices=sorted(GROUPS), default="cpu", help="default: cpu")
    again = "may be repeated"
    command.add_argument(
        "--rung", metavar="NAME", action="append", default=[], help=f"only its files; {again}"
    )
    command.add_argument(
        "--file", metavar="GLOB", action="append", default=[], help=f"only these files; {again}"
    )
    command.add_argument("--sample", type=count, metavar="N", help="so many of each kind of file")
    how = "of the sample; default: the day's, so that each night draws others"
    command.add_argument("--seed", type=seed, default=date.today().toordinal(), help=how)
    command.add_argument("--jobs", type=count, default=os.cpu_count(), help="default: one per core")
    command.add_argument("--minutes", type=seconds, default=math.inf, help="begin none after these")
    command.add_argument("--resume", action="store_true", help="keep what the journal has")
    command.add_argument(
        "--survivors", action="store_true", help="try the journal's survivors again"
    )
    command.add_argument("--journal", type=Path, help="default: build/mutants-PRESET.jsonl")
    how = f"write what the journals have to {RESULTS.as_posix()} and its page, and try nothing"
    command.add_argument("--update", action="store_true", help=how)
    command.add_argument("--commit", metavar="SHA", help="where git cannot say it")
    add_repository(command)


def run(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    repository, preset = arguments.repository.resolve(), arguments.preset
    if arguments.update:
        return _update(repository)
    journal = MutantJournal(arguments.journal or _journal(repository, preset))
    commit = commit_of(arguments)
    programs = {name for group in GROUPS[preset] for name in group.programs}
    run_cmake(["--preset", preset], repository, preset)
    run_cmake(
        ["--build", "--preset", preset, "--target", *sorted(programs), "stages_json"],
        repository,
        preset,
    )
    build = Build(repository, repository / "build" / preset)
    globs = [*arguments.file, *_globs_of(build, arguments.rung)]
    mutants = draw(repository, preset, globs, arguments.sample, arguments.seed)
    old = {key_of(record): record for record in journal.read()}
    if arguments.survivors:
        survived = {key for key, record in old.items() if record["outcome"] == "survived"}
        mutants = draw(repository, preset, globs, None, arguments.seed)
        survived -= {each.key for each in _known(repository)}
        mutants = [each for each in mutants if key_of(record_of(each)) in survived]
    elif arguments.resume:
        mutants = [each for each in mutants if key_of(record_of(each)) not in old]
    else:
        journal.path.unlink(missing_ok=True)
    try_all(build, preset, mutants, journal, arguments.jobs, commit, began + 60 * arguments.minutes)
    return _report(repository, journal.read(), arguments.seed)


def _report(repository: Path, records: list[Record], seed: int) -> int:
    known = {each.key for each in _known(repository)}
    outcomes = []
    for record in records:
        outcome = record["outcome"]
        if outcome == "survived" and key_of(record) in known:
            outcome = "known to survive"
        elif outcome == "survived":
            print(f"{record['file']}:{record['line']}: {record['before']}")
            print(f"  survived as: {record['after']}")
        outcomes.append(outcome)
    counts = [f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes))]
    print(f"{', '.join(counts) or 'no mutants'}; seed {seed}")
    return int("survived" in outcomes)


def _known(repository: Path) -> list[KnownMutant]:
    return documents.load(KnownFile, repository / KNOWN).known


def _journal(repository: Path, preset: str) -> Path:
    return repository / "build" / f"mutants-{preset}.jsonl"


def _update(repository: Path) -> int:
    listed = _known(repository)
    campaigns = {
        each.preset: each for each in documents.load(ResultsFile, repository / RESULTS).campaigns
    }
    for preset in DEVICES:
        records = of_today(repository, MutantJournal(_journal(repository, preset)).read())
        new = campaign_of(preset, records, listed)
        campaigns[preset] = with_others(
            repository, new, records, campaigns.get(preset, new), listed
        )
    results = ResultsFile(schema=1, campaigns=[*campaigns.values()])
    write_text(repository / RESULTS, documents.to_text(results))
    write_text(repository / PAGE, page(repository))
    print(f"{RESULTS}, {PAGE}: written")
    return 0


def _globs_of(build: Build, names: list[str]) -> list[str]:
    folders = {stage.name: stage.folder for stage in read_stages(build.folder)}
    unknown = sorted({*names} - {*folders})
    if unknown:
        raise GateError(f"no rung {', '.join(unknown)}; there are {', '.join(folders)}")
    return [f"{folders[name]}/*" for name in names]
