"""ci/gate explain: what a rung does to memory, where it conflicts, what limits it, what comes
next."""

import argparse
import sys

from tilegate_ci.commands.counters import add_program, program_of
from tilegate_ci.core.files import GateError
from tilegate_ci.core.stages import find_stages
from tilegate_ci.counters.count import Sources, count, list_rungs
from tilegate_ci.counters.explain import compare, describe, next_rung

DEFAULT_SHAPE = "256x256x256"

EXIT_CODES = {0: "no hazard", 1: "a rung has a hazard", 2: "error"}
EXAMPLES = """examples:
  ci/gate explain Vectorized
  ci/gate explain Warptile 2048x2048x32
  ci/gate explain --diff Prefetch Swizzle

Counted by the SIMT executor on this machine's CPU, for a GPU of 132 multiprocessors. The shape may
be any problem that follows a rung in a benchmark's name, such as 256x256x256/beta0.5.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("rung", nargs="?", metavar="RUNG")
    command.add_argument("shape", nargs="?", metavar="MxNxK", default=DEFAULT_SHAPE)
    command.add_argument("--diff", nargs=2, metavar=("A", "B"), help="put two rungs side by side")
    add_program(command)


def run(arguments: argparse.Namespace) -> int:
    rung, shape, asked = arguments.rung, arguments.shape, list(arguments.diff or ())
    if asked and rung and rung[0].isdigit():  # `--diff A B MxNxK`: the shape in a rung's place
        rung, shape = None, rung
    if bool(rung) == bool(asked):
        raise GateError("name a rung, or two after --diff")
    program = program_of(arguments)
    counted = list_rungs(program)
    ladder = {stage.name: stage for stage in find_stages() if stage.name in counted}
    asked = asked or [rung]
    for name in asked:
        if name not in counted:
            raise GateError(f"no rung {name}; there are {', '.join(counted)}")
    if not arguments.diff:
        names = [*ladder]
        asked += names[names.index(rung) + 1 :][:1] if rung in ladder else []
    cases = list(count(program, [f"{name}/{shape}" for name in asked]).values())
    if arguments.diff:
        lines, shown = list(compare(cases[0], cases[1])), cases
    else:
        idea = ladder[rung].idea if rung in ladder else ""
        lines, shown = list(describe(cases[0], idea, Sources())), cases[:1]
        if len(cases) > 1 and not cases[0].error and not cases[1].error:
            lines += next_rung(cases[0], cases[1], ladder[asked[1]].idea)
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(case.error for case in shown))
