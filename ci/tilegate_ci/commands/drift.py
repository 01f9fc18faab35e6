"""ci/gate drift: looks for a creep over the accepted baselines, below the margin at each step."""

import argparse
import re
import shlex
import sys
from pathlib import Path

from tilegate_ci.commands import bisect
from tilegate_ci.commands.run import WORK
from tilegate_ci.core.files import GateError
from tilegate_ci.judge.drift import Drift, accepted_baselines, drifts
from tilegate_ci.measure.projects import Tilegate
from tilegate_ci.model import REPOSITORY, relative

DEFAULTS = {"repository": REPOSITORY}


def run(arguments: argparse.Namespace) -> int:
    repository = arguments.repository.resolve()
    folder = Path("bench") / "baselines"
    every = sorted(path.name for path in (repository / folder).glob("nvidia-*.json"))
    worst: Drift | None = None
    for name in arguments.baselines or [(folder / name).as_posix() for name in every]:
        history = accepted_baselines(name, repository)
        if name in arguments.baselines and not history:
            raise GateError(f"{name}: no committed baseline in {repository}")
        found = drifts([version.run for version in history])
        sys.stdout.write(f"{name}: {len(history)} versions, {len(found)} benchmarks drift\n")
        sys.stdout.write("".join(f"  {_line(drift)}\n" for drift in found))
        worst = max([*found, *([worst] if worst else [])], key=lambda d: d.slower, default=None)
    if worst is None:
        return 0
    good, bad, pattern = worst.first[:40], worst.last[:40], f"^{re.escape(worst.name)}$"
    words = shlex.join([good, bad, "--filter", pattern])
    sys.stdout.write(f"which commit began the worst: ci/gate bisect {words}\n")
    if arguments.bisect:
        bisect.search(Tilegate.at(WORK), good, bad, pattern)
    return 1


def _line(drift: Drift) -> str:
    return (
        f"{drift.name}: {100 * relative(drift.slower):+.2f} % over {drift.points} recordings, "
        f"margin {100 * relative(drift.delta):.1f} %, {drift.kind}, "
        f"{drift.first[:12]} to {drift.last[:12]}"
    )
