"""ci/gate lab kernels: compares the kernels' code with another checkout's, symbols ignored.

Needs nvcc and no GPU."""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tilegate_ci.checks.committed import chosen
from tilegate_ci.checks.resources.bodies import Body, Tree, differences
from tilegate_ci.checks.resources.check import TABLE, add_architectures
from tilegate_ci.checks.resources.compile import ARCHITECTURES, Architecture, find_toolkit
from tilegate_ci.checks.resources.judge import RungResources, load
from tilegate_ci.core.files import GateError
from tilegate_ci.core.options import flag, option
from tilegate_ci.formats.stages import Stage, find_stages
from tilegate_ci.model import REPOSITORY

EXIT_CODES = {0: "the same code", 1: "code differs", 2: "error"}
EXAMPLES = """examples:
  git worktree add ../base main
  ci/gate lab kernels ../base --arch 90a                  # PTX: what nvcc makes of the source
  ci/gate lab kernels ../base --arch 90a --machine-code   # and what ptxas makes of that: minutes
  ci/gate lab kernels ../base --rung Int8x3
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    option(command, "base", "TREE", "a checkout to compare with", type=Path)
    add_architectures(command)
    option(command, "--rung", "RUNG", "only this rung; may be repeated", action="append")
    flag(command, "--machine-code", "compare SASS, registers and shared memory instead of PTX")


def run(arguments: argparse.Namespace) -> int:
    toolkit = find_toolkit()
    architectures = arguments.arch or [*ARCHITECTURES]
    every = [stage for stage in find_stages() if not stage.yardstick and not stage.external]
    names = chosen(arguments.rung, [stage.name for stage in every])
    stages = [stage for stage in every if stage.name in names]
    base, head = (
        _bodies(Tree(root.resolve(), toolkit, arguments.machine_code), stages, architectures)
        for root in (arguments.base, REPOSITORY)
    )
    if not head:
        raise GateError("these rungs are not compiled for these architectures")
    words = {stage.name: stage.word for stage in stages}
    different = 0
    for (name, architecture), bodies in head.items():
        lines = differences(base[name, architecture], bodies, words[name])
        different += bool(lines)
        sys.stdout.writelines(f"{name} {architecture}: {line}\n" for line in lines)
    kernels = sum(len(bodies) for bodies in head.values())
    said = f"{different} differ" if different else "the same code"
    sys.stdout.write(f"{kernels} kernels of {len(head)} pairs of rung and architecture: {said}\n")
    return 1 if different else 0


def _bodies(
    tree: Tree, stages: Sequence[Stage], architectures: Sequence[Architecture]
) -> dict[tuple[str, Architecture], list[Body]]:
    """The bodies of each rung, on the architectures that the table of resources has it on."""
    rungs = load(REPOSITORY / TABLE).rungs
    groups = defaultdict(list)
    for stage in stages:
        not_on = rungs.get(stage.name, RungResources()).not_on
        groups[tuple(a for a in architectures if a not in not_on)].append(stage)
    found = {}
    for supported, group in groups.items():
        found.update(tree.bodies(group, supported))
    return found
