"""ci/bench: builds, benchmarks in several processes, judges what is gated, reports."""

import argparse
import os
import re
import shutil
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from tilegate_ci.commands import report
from tilegate_ci.commands.arguments import commit_of
from tilegate_ci.commands.compare import show
from tilegate_ci.commands.run import WORK
from tilegate_ci.core import child, documents
from tilegate_ci.core.files import GateError, locked, make_folder, message, read_text, write_text
from tilegate_ci.core.git import merge_base, show_file
from tilegate_ci.core.names import canonical_name, matching
from tilegate_ci.formats import run_file
from tilegate_ci.formats.run_file import Role, collect
from tilegate_ci.formats.stages import stages_of
from tilegate_ci.judge import verdict_file, waivers
from tilegate_ci.judge.compare import Comparison, compare
from tilegate_ci.judge.paired import PAIRS
from tilegate_ci.measure import conditions, gate_run
from tilegate_ci.measure.gate_run import Options, part_of, places_of
from tilegate_ci.measure.launcher import MIN_TIME_S, launch, options_of, read_suite
from tilegate_ci.measure.projects import Tilegate, build_preset
from tilegate_ci.model import REPOSITORY, RunFile, Session, baseline_path
from tilegate_ci.report.figures import load_sources

PROCESSES = {"gpu": 3, "cpu": 1}
PAIRS_OF_BOARDS = 3 * PAIRS  # of the few benchmarks that look different on another board


def run(arguments: argparse.Namespace) -> int:
    # Arguments are checked before anything is built or measured.
    accepted = waivers.load(waivers.WAIVERS, date.today())
    preset, commit = arguments.preset or detect_preset(), commit_of(arguments)
    base = merge_base(arguments.base, "HEAD", REPOSITORY) if arguments.base else None
    make_folder(REPOSITORY / "build")
    with locked(REPOSITORY / "build"):
        build = build_preset(preset, "bench/bench", REPOSITORY)
        folder = REPOSITORY / "build" / "bench-results" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        make_folder(folder)
        try:
            candidate = measure(build, folder, preset, commit, arguments)
            found = judge(candidate, build, folder, base, arguments)
        except GateError as problem:
            verdict_file.write_error(folder / "verdict.json", str(problem))
            _report(folder / "verdict.json")
            raise
    if found is None:
        _without_baseline(candidate)
        _report(Path(candidate.path))
        return 0
    verdict = folder / "verdict.json"
    code = show(waivers.apply(found, accepted), None, verdict)
    _report(verdict)
    return code


def measure(
    build: Path, folder: Path, preset: str, commit: str, arguments: argparse.Namespace
) -> RunFile:
    """Runs the processes; what they come to, kept in the folder."""
    binary, processes = build / "bench" / "bench", []
    command = [str(binary), *selection(binary, preset, arguments)]
    wanted = arguments.processes or PROCESSES[preset]
    for number in range(1, wanted + 1):
        message(f"process {number} of {wanted}")
        processes.append(launch(command, timeout_s=None))
        write_text(folder / f"process-{number}.json", documents.to_text(processes[-1]))
    first, last = processes[0], processes[-1]
    around = {"before": first.conditions.before, "after": last.conditions.after}
    session = Session(started=first.started, processes=wanted, conditions=around)
    path = os.path.relpath(folder / "candidate.json")
    found = collect(processes, commit, [session], path)
    write_text(Path(path), documents.to_text(found))
    return found


def detect_preset() -> str:
    """gpu where a GPU answers and nvcc can build for it."""
    if not conditions.gpu_answers():
        return "cpu"
    if shutil.which("nvcc") is None:
        message("a GPU answers, but nvcc is not installed: measuring the SIMT executor instead")
        return "cpu"
    return "gpu"


def by_hand(arguments: argparse.Namespace) -> bool:
    """Shapes or modes chosen by hand are a separate set."""
    return arguments.shapes is not None or bool(arguments.extra)


def gated(build: Path) -> list[str]:
    return read_suite(stages_of(build), REPOSITORY / "bench" / "gate.csv")


def selection(binary: Path, preset: str, arguments: argparse.Namespace) -> list[str]:
    """The options that choose what bench runs: unless shapes or modes are given, what it runs by
    itself, and on a GPU the gated suite."""
    how = [f"--placements={arguments.placements}"] if arguments.placements else []
    if by_hand(arguments):
        shapes = [] if arguments.shapes is None else [f"--shapes={arguments.shapes}"]
        wanted = [] if arguments.filter is None else [f"--benchmark_filter={arguments.filter}"]
        return [*shapes, *wanted, *how, *arguments.extra]
    names = names_of(binary)
    if preset == "gpu":
        names += gated(binary.parent.parent)
        places = places_of(REPOSITORY / "bench" / "baselines")
        how = how or [f"--placements={places}"]
        how.append(f"--benchmark_min_time={MIN_TIME_S:g}")  # as `gate run` measures them
    names = matching(dict.fromkeys(names), arguments.filter)
    return [*options_of(names), *how]


def names_of(binary: Path) -> list[str]:
    """What bench runs by itself."""
    listed = child.output([str(binary), "--benchmark_list_tests"], cwd=REPOSITORY)
    return [canonical_name(line) for line in listed.splitlines()]


def judge(
    candidate: RunFile, build: Path, folder: Path, base: str | None, arguments: argparse.Namespace
) -> Comparison | None:
    """The verdict by the committed baseline, or that of commit `base`; None without one."""
    stored = stored_baseline(candidate, base)
    if stored is None:
        return None
    if by_hand(arguments):
        names = "|".join(re.escape(name) for name in sorted(candidate.benchmarks))
        return compare(stored, candidate, f"^({names})$")
    if candidate.device.kind == "simt":
        return compare(stored, candidate, arguments.filter)
    wanted = set(matching(gated(build), arguments.filter))
    baseline, head = part_of(stored, wanted), part_of(candidate, wanted)
    if baseline is None or head is None:
        raise GateError(f"{stored.path}: none of the gated benchmarks in it")
    screening = compare(baseline, head)
    found = gate_run.incomparable(screening)
    if found is None:
        revision = base or stored.commit[:40]
        options = Options(arguments.filter or "", pairs=PAIRS_OF_BOARDS, screened=False)
        project, out = Tilegate.at(WORK), folder / "pairs"
        try:
            job = gate_run.prepare(project, revision, str(REPOSITORY), out, options)
        except GateError as problem:
            message(f"the baseline's commit cannot be measured beside this one: {problem}")
            found = gate_run.judged_alone(screening, stored, candidate)
        else:
            job = replace(job, head=replace(job.head, build=build))
            found = gate_run.judged_again(job, baseline, screening)
    others = len({*stored.benchmarks, *candidate.benchmarks} - {row.name for row in found.rows})
    return replace(found, baseline=stored, candidate=candidate, left_out=others)


def stored_baseline(candidate: RunFile, base: str | None) -> RunFile | None:
    path = baseline_path(candidate.device)
    if base is None:
        return run_file.load(os.path.relpath(path), Role.BASELINE) if path.exists() else None
    name = path.relative_to(REPOSITORY).as_posix()
    message(f"judged by {name} of {base[:12]}, the merge base with --base")
    text = show_file(base, name, REPOSITORY)
    return None if text is None else run_file.parse(text, f"{base[:12]}:{name}", Role.BASELINE)


def _report(judged: Path) -> None:
    """Beside the verdict, or the run that nothing could be compared with."""
    markdown, page = judged.parent / "report.md", judged.parent / "report.html"
    sources = load_sources(os.path.relpath(judged))
    report.write(sources, REPOSITORY, {"html": page, "markdown": markdown})
    message(f"report: {os.path.relpath(page)}, {os.path.relpath(markdown)}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with open(summary, "a", encoding="utf-8") as stream:
            stream.write(read_text(markdown))


def _without_baseline(candidate: RunFile) -> None:
    unverified = sorted(name for name, row in candidate.benchmarks.items() if not row.verified)
    if unverified:
        raise GateError(f"not verified: {', '.join(unverified)}")
    baseline = os.path.relpath(baseline_path(candidate.device))
    message(f"no baseline for {candidate.device.name} ({baseline}): nothing is judged")
    message("to make this run the baseline, look at its report, then:")
    sys.stdout.write(f"ci/gate accept {candidate.path}\n")
