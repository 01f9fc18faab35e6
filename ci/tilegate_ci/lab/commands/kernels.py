"""ci/gate lab kernels: compares the kernels' code with another checkout's, symbols ignored.

Needs nvcc and no GPU."""

import argparse
import sys

from tilegate_ci.checks.committed import chosen
from tilegate_ci.checks.resources.bodies import bodies_of, differences
from tilegate_ci.checks.resources.check import TABLE
from tilegate_ci.checks.resources.compile import find_toolkit
from tilegate_ci.checks.resources.judge import RungResources, load
from tilegate_ci.checks.resources.rows import ARCHITECTURES, compute_capability
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import find_stages
from tilegate_ci.model import REPOSITORY


def run(arguments: argparse.Namespace) -> int:
    toolkit = find_toolkit()
    architectures = arguments.arch or [*ARCHITECTURES]
    every = [stage for stage in find_stages() if not stage.yardstick and not stage.external]
    names, rungs = (
        chosen(arguments.rung, [each.name for each in every]),
        load(REPOSITORY / TABLE).rungs,
    )
    pairs = [
        (stage, architecture)
        for stage in every
        for architecture in architectures
        if stage.name in names
        and compute_capability(architecture) >= stage.compute_capability
        and architecture not in rungs.get(stage.name, RungResources()).not_on
    ]
    if not pairs:
        raise GateError("these rungs are not compiled for these architectures")
    base, head = (
        bodies_of(root.resolve(), toolkit, arguments.machine_code, pairs)
        for root in (arguments.tree, REPOSITORY)
    )
    different = 0
    for (stage, architecture), before, after in zip(pairs, base, head):
        lines = differences(before, after, stage.word)
        different += bool(lines)
        sys.stdout.writelines(f"{stage.name} {architecture}: {line}\n" for line in lines)
    kernels = sum(map(len, head))
    said = f"{different} differ" if different else "the same code"
    sys.stdout.write(f"{kernels} kernels of {len(pairs)} pairs of rung and architecture: {said}\n")
    return 1 if different else 0
