"""ci/gate explain: memory traffic and limits of a rung; Sgemm's choice for a problem."""

import argparse
import math
import sys
from pathlib import Path

from tilegate_ci.checks.committed import chosen
from tilegate_ci.checks.counters import compare, count, describe, list_rungs, program_of
from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, message
from tilegate_ci.core.names import canonical_name, shape_of
from tilegate_ci.formats.stages import find_stages
from tilegate_ci.measure.projects import build_preset
from tilegate_ci.model import REPOSITORY

CHOOSES = "Sgemm"
MOST_COUNTED = 2**25  # multiply-adds; less than a second
FMA_PER_S = 2e8  # that the executor counts

DEFAULTS = {"shape": "256x256x256"}


def run(arguments: argparse.Namespace) -> int:
    rung, shape, both = arguments.rung, arguments.shape, arguments.diff
    if both and rung and rung[0].isdigit():  # `--diff A B MxNxK`: the shape in a rung's place
        rung, shape = None, rung
    if bool(rung) == bool(both):
        raise GateError("name a rung, or two after --diff")
    if both and both[0] == both[1]:
        raise GateError(f"--diff {both[0]} {both[1]}: the same rung")
    asked = list(both or [rung])
    try:
        fma = math.prod(shape_of(canonical_name(f"{asked[0]}/{shape}")))
    except ValueError as problem:
        raise GateError(str(problem)) from problem
    if rung == CHOOSES:
        sys.stdout.write(choice(arguments.program, f"{rung}/{shape}"))
        if fma > MOST_COUNTED:
            return 0
    program = program_of(arguments.program)
    counted = list_rungs(program)
    ladder = {stage.name: stage for stage in find_stages() if stage.name in counted}
    chosen([name.split(".")[0] for name in asked], counted)  # Rung.variant
    if fma > 5 * FMA_PER_S:
        about = f"counting {fma:.1e} multiply-adds, about {fma / FMA_PER_S:.0f} s on a free core"
        message(f"{about}; 1024x1024x32 takes a second and shows the same lines")
    if rung in ladder:
        names = [*ladder]
        asked += names[names.index(rung) + 1 :][:1]
    cases = list(count(program, [f"{name}/{shape}" for name in asked]).values())
    for case in cases if both else cases[:1]:
        if case.not_applicable:
            raise GateError(f"{case.name}: {case.not_applicable}")
    if both:
        sys.stdout.write(compare(cases[0], cases[1]))
        return int(any(case.error for case in cases))
    idea = ladder[rung].idea if rung in ladder else ""
    sound = not any(case.error or case.not_applicable for case in cases)
    after = cases[1] if cases[1:] and sound else None
    after_idea = ladder[asked[1]].idea if after else ""
    sys.stdout.write(describe(cases[0], idea, REPOSITORY, after, after_idea))
    return int(bool(cases[0].error))


def choice(program: Path | None, case: str) -> str:
    """What `plan`, beside the program that counts, says of the case."""
    plan = (program or build_preset("cpu", "bench/plan") / "bench" / "plan").with_name("plan")
    return child.output([str(plan), case])
