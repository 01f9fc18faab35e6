"""ci/gate counters: counts the ladder's memory accesses and compares them exactly with the
committed table. Needs the counted kernels (clang) and no GPU."""

import argparse
import sys
from pathlib import Path

from tilegate_ci.checks.counters.count import Sources, count, list_rungs
from tilegate_ci.checks.counters.judge import MEANINGS, judge
from tilegate_ci.checks.counters.pages import pages, stale
from tilegate_ci.checks.counters.table import BASELINE, LARGE_SHAPES, cases_of, load, to_text
from tilegate_ci.commands.arguments import add_table_options
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.names import rung_of
from tilegate_ci.core.outputs import check_outputs
from tilegate_ci.formats.stages import find_stages
from tilegate_ci.measure.builds import build_preset

EXIT_CODES = MEANINGS
EXAMPLES = """examples:
  ci/gate counters                                 # every rung
  ci/gate counters --rung Warptile --rung Swizzle
  ci/gate counters --update && git diff            # the table, and the pages that quote it
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_table_options(command, BASELINE)
    what = f"leave out {' and '.join(LARGE_SHAPES)}, which take most of the time"
    command.add_argument("--quick", action="store_true", help=what)
    add_program(command)


def add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--program", type=Path, help="that counts; default: tilegate_count, built anew"
    )


def program_of(arguments: argparse.Namespace) -> Path:
    """What is counted are the sources as they are now."""
    given: Path | None = arguments.program
    return given or build_preset("cpu", "tilegate_count") / "bench" / "tilegate_count"


def run(arguments: argparse.Namespace) -> int:
    check_outputs([], {"--markdown": arguments.markdown})
    repository = arguments.repository.resolve()
    path = repository / BASELINE
    program, sources = program_of(arguments), Sources(repository)
    every = list_rungs(program)
    unknown = sorted({*(arguments.rung or ())} - {*every})
    if unknown:
        raise GateError(f"no rung {', '.join(unknown)}; there are {', '.join(every)}")
    if arguments.update and arguments.rung:
        raise GateError("--update writes the whole table; leave --rung out")
    if arguments.update and arguments.quick:
        raise GateError("--update writes the whole table; leave --quick out")
    table = load(path) if path.exists() or not arguments.update else {}
    if arguments.quick:
        table = {name: row for name, row in table.items() if not name.endswith(LARGE_SHAPES)}
    cases = count(program, cases_of(arguments.rung or every, table))
    if arguments.update:
        hazards = [f"{name}: {case.error}" for name, case in cases.items() if case.error]
        if hazards:
            raise GateError("not written, because of hazards:\n  " + "\n  ".join(hazards))
        outside = {stage.name for stage in find_stages(repository) if stage.external}
        kept = {
            name: case
            for name, case in cases.items()
            if rung_of(name) not in outside and not case.not_applicable
        }
        write_text(path, to_text(kept, sources))
        for page, text in pages(repository, path).items():
            write_text(page, text)
        sys.stdout.write(f"{path}: {len(kept)} cases\n")
        return 0
    if arguments.rung:
        table = {name: row for name, row in table.items() if rung_of(name) in arguments.rung}
    report = judge(table, cases, sources)
    if arguments.markdown:
        write_text(Path(arguments.markdown), f"```text\n{report.text}```\n")
    sys.stdout.write(report.text)
    old = [page.relative_to(repository).as_posix() for page in stale(repository, path)]
    if old:
        sys.stdout.write(f"not what the table says: {', '.join(old)}; --update writes them\n")
    return report.exit_code or int(bool(old))
