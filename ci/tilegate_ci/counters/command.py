"""`ci/gate counters`: counts the ladder's memory accesses and compares them exactly with the
committed table. Needs the counted kernels (clang) and no GPU."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.counters.judge import judge
from tilegate_ci.counters.pages import pages, stale
from tilegate_ci.counters.table import (
    BASELINE,
    PROGRAM,
    Sources,
    cases_of,
    count,
    list_rungs,
    load_baseline,
    to_text,
)

EXAMPLES = """examples:
  ci/gate counters                                 # every rung
  ci/gate counters --rung Warptile --rung Swizzle
  ci/gate counters --update && git diff bench/baselines/counters.json

"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.set_defaults(command=run)
    command.add_argument(
        "--update",
        action="store_true",
        help=f"write {BASELINE.as_posix()} and what pages quote of it",
    )
    command.add_argument(
        "--rung", metavar="NAME", action="append", help="only this rung; repeatable"
    )
    command.add_argument("--markdown", metavar="FILE", help="write the report there too")
    command.add_argument(
        "--program", type=Path, help="that counts; default: tilegate_count, built anew"
    )
    command.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)


def _built() -> Path:
    """What is counted are the sources as they are now."""
    if subprocess.run([REPOSITORY / "ci" / "explain", "--build"], check=False).returncode:
        raise GateError("the counted kernels cannot be built, see above; or give --program")
    return PROGRAM


def run(arguments: argparse.Namespace) -> int:
    repository = arguments.repository.resolve()
    path = repository / BASELINE
    sources = Sources(repository)
    program = arguments.program or _built()
    every = list_rungs(program)
    unknown = sorted(set(arguments.rung or []) - set(every))
    if unknown:
        raise GateError(f"no rung {', '.join(unknown)}; there are {', '.join(every)}")
    if arguments.update and arguments.rung:
        raise GateError("--update writes the whole table; leave --rung out")
    rungs = arguments.rung or every
    cases = count(program, cases_of(rungs, repository))
    if arguments.update:
        hazards = [f"{name}: {case.error}" for name, case in cases.items() if case.error]
        if hazards:
            raise GateError("not written, because of hazards:\n  " + "\n  ".join(hazards))
        write_text(path, to_text(cases, sources))
        for page, text in pages(repository, path).items():
            write_text(page, text)
        sys.stdout.write(f"{path}: {len(cases)} cases\n")
        return 0
    baseline = {
        name: value
        for name, value in load_baseline(path).items()
        if not arguments.rung or name.split("/")[0] in arguments.rung
    }
    report = judge(baseline, cases, sources)
    if arguments.markdown:
        write_text(Path(arguments.markdown), f"```text\n{report.text}```\n")
    sys.stdout.write(report.text)
    old = [page.relative_to(repository).as_posix() for page in stale(repository, path)]
    if old:
        sys.stdout.write(f"not what the table says: {', '.join(old)}; --update writes them\n")
    return report.exit_code or int(bool(old))
