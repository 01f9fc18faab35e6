"""ci/gate passport: how each rung rounds, sums and treats what is not finite, against the committed
passports."""

import argparse
from pathlib import Path

from tilegate_ci.checks.passport import (
    DEVICES,
    Found,
    FoundYardstick,
    PassportFile,
    load_all,
    pages,
    path_of,
)
from tilegate_ci.commands.arguments import add_repository, commit_of
from tilegate_ci.core import child, documents
from tilegate_ci.core.files import GateError, read_text, write_text
from tilegate_ci.formats.stages import find_ladder
from tilegate_ci.measure.builds import build_preset

EXIT_CODES = {0: "as committed", 1: "a passport, or a page, is not as committed", 2: "error"}
EXAMPLES = """examples:
  ci/gate passport                                 # every rung on the executor
  ci/gate passport --rung Warptile
  ci/gate passport --update && git diff            # the files, and the pages that show them
  ci/gate passport --preset gpu --recorded rungs.json --yardstick cublas.json --update
                                                   # what make_passport printed elsewhere
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--preset", choices=sorted(DEVICES), default="cpu", help="default: cpu")
    again = "may be repeated"
    command.add_argument("--rung", metavar="NAME", action="append", help=f"only this; {again}")
    command.add_argument("--program", type=Path, help="default: make_passport, built anew")
    command.add_argument(
        "--recorded",
        type=Path,
        metavar="FILE",
        help="what it printed elsewhere; the passports of other rungs are kept",
    )
    how = "what it printed of the yardstick's shapes"
    command.add_argument("--yardstick", type=Path, metavar="FILE", help=how)
    command.add_argument("--made-with", default="", metavar="TEXT", help="driver and CUDA")
    command.add_argument("--update", action="store_true", help="write the file and the pages")
    command.add_argument("--commit", metavar="SHA", help="where git cannot say it")
    add_repository(command)


def run(arguments: argparse.Namespace) -> int:
    repository, preset = arguments.repository.resolve(), arguments.preset
    if arguments.update and arguments.rung:
        raise GateError("--update writes all passports; leave --rung out")
    found = _found(arguments, repository)
    committed = load_all(repository).get(preset)
    if arguments.update:
        yardstick = committed.yardstick if committed else None
        if arguments.yardstick:
            text = read_text(arguments.yardstick)
            others = documents.parse(FoundYardstick, text, str(arguments.yardstick))
            yardstick = next(iter(others.stages.values()))
        stages, commits = found.stages, dict[str, str]()
        if committed and arguments.recorded and committed.made_with == arguments.made_with:
            stages = {**committed.stages, **found.stages}
            commits = {name: committed.commit_of(name) for name in {*stages} - {*found.stages}}
        file = PassportFile(
            schema=1,
            device=found.device,
            made_with=arguments.made_with,
            commit=commit_of(arguments),
            stages=stages,
            commits=commits or None,
            yardstick=yardstick,
        )
        write_text(path_of(repository, preset), documents.to_text(file))
        for path, text in pages(repository).items():
            write_text(path, text)
        print(f"{path_of(repository, preset)}: {len(found.stages)} passports")
        return 0
    different = [
        name
        for name, passport in found.stages.items()
        if committed is None or committed.stages.get(name) != passport
    ]
    for name in different:
        print(f"{name}: not as committed; `ci/gate passport --update` writes it, review the diff")
    old = [path for path, text in pages(repository).items() if read_text(path) != text]
    for path in old:
        print(f"{path}: not what the passports say; `ci/gate passport --update` writes it")
    print(f"{len(found.stages) - len(different)} passports as committed")
    return int(bool(different or old))


def _found(arguments: argparse.Namespace, repository: Path) -> Found:
    if arguments.recorded:
        return documents.load(Found, arguments.recorded)
    program = arguments.program
    if program is None:
        program = build_preset(arguments.preset, "make_passport") / "tests" / "make_passport"
    of_gpu = arguments.preset == "gpu"
    rungs = [
        stage.name
        for stage in find_ladder(repository)
        if of_gpu or not (stage.yardstick or stage.not_on_simt)
    ]
    unknown = sorted({*(arguments.rung or ())} - {*rungs})
    if unknown:
        raise GateError(f"no rung {', '.join(unknown)}; there are {', '.join(rungs)}")
    command = [str(program), *(arguments.rung or rungs)]
    try:
        done = child.run(command, capture_output=True)
    except OSError as problem:
        raise GateError(f"{program} cannot be run: {problem.strerror}") from problem
    if done.returncode:
        raise GateError(done.stderr.strip() or f"{program} ended with {done.returncode}")
    return documents.parse(Found, done.stdout, str(program))
