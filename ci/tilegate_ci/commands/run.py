"""ci/gate run: judges a change on a GPU."""

import argparse
import math
import os
import sys
from datetime import date
from pathlib import Path

from tilegate_ci.commands.arguments import whole
from tilegate_ci.commands.compare import check_verdict_options, declared_in, margin_in, show
from tilegate_ci.core.files import GateError, message
from tilegate_ci.core.git import top_of
from tilegate_ci.judge import waivers
from tilegate_ci.judge.compare import Comparison
from tilegate_ci.judge.paired import MIN_PAIRS, MOST_PAIRS, PAIRS, pairs_needed
from tilegate_ci.measure.gate_run import Options, judged, prepare
from tilegate_ci.measure.launcher import MIN_TIME_S, PLACES, Launcher
from tilegate_ci.measure.projects import Foreign, Project, Tilegate
from tilegate_ci.model import MIN_DELTA, OTHER, REPOSITORY, Verdict

WORK = REPOSITORY / "build" / "gate-run"
FOREIGN_WORK = ".gate"

INTERRUPTED = "completed processes are kept, run again to continue"

TYPES = {"pairs": whole(MIN_PAIRS, MOST_PAIRS)}
DEFAULTS = {"pairs": PAIRS, "seed": 1, "min_time": MIN_TIME_S, "waivers": str(waivers.WAIVERS)}


def run(arguments: argparse.Namespace) -> int:
    project = project_of(arguments, arguments.work)  # it makes the folder .gate, for the reports
    check_verdict_options(arguments)
    # The default file of waivers holds this repository's own.
    none = isinstance(project, Foreign) and arguments.waivers == str(waivers.WAIVERS)
    accepted = [] if none else waivers.load(Path(arguments.waivers), date.today())
    screened, identity = not arguments.no_screen, not arguments.no_identity
    pattern = arguments.filter or ""
    options = Options(pattern, arguments.pairs, arguments.seed, screened, identity)
    out = Path(arguments.out).resolve() if arguments.out else None
    head = arguments.head or str(project.repository)
    job = prepare(project, arguments.base, head, out, options)
    if arguments.dry_run:
        sys.stdout.write(job.plan())
        return 0
    found = waivers.apply(judged(job), accepted)
    code = show(found, arguments.markdown, arguments.json)
    if code == 3:
        message(advice(found, arguments.pairs))
    return code


def advice(found: Comparison, pairs: int) -> str:
    """What to try where the pairs did not decide."""
    undecided = [row for row in found.rows if row.verdict is Verdict.INCONCLUSIVE and row.pairs]
    each = [pairs_needed([*map(math.log1p, r.pairs)], r.delta or MIN_DELTA) for r in undecided]
    needed = max(each, default=0)
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    busy = f"the load is {load:.1f} on {cores} cores"
    more = f"about {needed} pairs would decide: --pairs {needed}"
    if needed >= MOST_PAIRS:
        more = "no number of pairs would decide"
    other = found.candidate.device.kind == OTHER
    longer = "--time cpu_time, or a --yardstick" if other else "a longer --min-time"
    return f"inconclusive after {pairs} pairs; {more}; {busy}; or try a quiet machine, {longer}"


def project_of(arguments: argparse.Namespace, work: str | None = None) -> Project:
    """This repository, or with --run the project of the current folder."""
    min_time = getattr(arguments, "min_time", MIN_TIME_S)
    if arguments.run is None:
        for name in ("time", "yardstick", "verified", "build", "margin", "margin_abs"):
            if getattr(arguments, name):
                option = f"--{name.replace('_', '-')}"
                raise GateError(f"{option} is for another project's benchmarks: give --run CMD too")
        if not (REPOSITORY / "bench" / "gate.csv").exists():
            raise GateError(
                f"{REPOSITORY}: no checkout of Tilegate; for any project give --run CMD"
            )
        launcher = Launcher(min_time, getattr(arguments, "seed", 1), placements=PLACES)
        return Tilegate.at(Path(work or WORK).resolve(), arguments.cmake or (), launcher)
    if "{out}" not in arguments.run:
        raise GateError(
            "--run: the command must name the file that it writes its JSON to: {out}, as in "
            "--run '{build}/bench --benchmark_out={out}'"
        )
    if arguments.cmake or min_time != MIN_TIME_S:
        raise GateError(
            "--cmake and --min-time are for this repository's own benchmarks; with --run, say it "
            "in --build and --run"
        )
    repository = top_of(Path.cwd())
    return Foreign.at(
        repository,
        Path(work).resolve() if work else repository / FOREIGN_WORK,
        arguments.build or "",
        arguments.run,
        declared_in(arguments, arguments.filter or ""),
        margin_in(arguments),
    )
