"""ci/bench: builds, benchmarks in several processes, judges by the committed baseline, reports."""

import argparse
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from tilegate_ci.commands import report
from tilegate_ci.commands.arguments import add_commit, commit_of, count, regex
from tilegate_ci.commands.compare import show
from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, dumps, make_folder, read_text, write_text
from tilegate_ci.core.git import git, merge_base, said
from tilegate_ci.core.names import canonical_name, matching
from tilegate_ci.core.outputs import locked
from tilegate_ci.core.progress import message
from tilegate_ci.formats.collect import collect, read_process
from tilegate_ci.formats.run_file import Role, load
from tilegate_ci.judge import verdict_file, waivers
from tilegate_ci.judge.compare import compare
from tilegate_ci.measure import conditions
from tilegate_ci.measure.builds import build_preset
from tilegate_ci.measure.launcher import MIN_TIME_S
from tilegate_ci.measure.suite import filter_of, read_suite, shapes_of, stages_of
from tilegate_ci.model import EXIT_MEANINGS, REPOSITORY, RunFile, Session, baseline_path

PROCESSES = {"gpu": 3, "cpu": 1}

EXIT_CODES = EXIT_MEANINGS
EXAMPLES = """examples:
  ci/bench                                   # all that the gate watches
  ci/bench --filter '^Warptile/'             # one rung
  ci/bench --processes 5                     # to accept as a baseline
  ci/bench --base origin/main                # judged by the baseline of the merge base
  ci/bench --shapes 1000x1000x1000 -- --cold # a measurement of its own, beside the gate
  ci/bench --wheels DIR                      # Python packages from a folder, without an index

Without a baseline for this device it reports, says how to accept one, and exits 0.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--filter", metavar="REGEX", type=regex, help="only benchmarks whose name matches"
    )
    command.add_argument("--shapes", metavar="SHAPES", help="as bench's own --shapes")
    command.add_argument("--processes", metavar="N", type=count, help="default: 3 on a GPU, else 1")
    command.add_argument(
        "--preset", choices=tuple(PROCESSES), help="default: gpu where a GPU and nvcc are, else cpu"
    )
    command.add_argument(
        "--base", metavar="REV", help="judge by the baseline of REV's merge base with HEAD"
    )
    add_commit(command)
    command.add_argument(
        "--placements", metavar="N", type=count, help="of operands in memory; a baseline wants 8"
    )
    command.add_argument(
        "extra", metavar="-- OPTION", nargs="*", help="of build/<preset>/bench/bench"
    )


def run(arguments: argparse.Namespace) -> int:
    # Whatever can be wrong with the arguments is found before anything is built or measured.
    accepted = waivers.load(waivers.WAIVERS, date.today())
    preset, commit = arguments.preset or detect_preset(), commit_of(arguments)
    base = merge_base(arguments.base, "HEAD", REPOSITORY) if arguments.base else None
    make_folder(REPOSITORY / "build")
    with locked(REPOSITORY / "build"):
        collected, candidate = measure(preset, commit, arguments)
    return judge(collected, candidate, base, accepted, arguments)


def measure(preset: str, commit: str, arguments: argparse.Namespace) -> tuple[RunFile, Path]:
    """Builds, and runs the processes; what they come to, and the file that holds it."""
    binary = build_preset(preset, "bench/bench", REPOSITORY) / "bench" / "bench"
    folder = new_folder(REPOSITORY / "build" / "bench-results")

    wanted = arguments.processes or PROCESSES[preset]
    started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    before = conditions.read()
    chosen = selection(binary, preset, arguments)
    files = []
    for number in range(1, wanted + 1):
        message(f"process {number} of {wanted}")
        files.append(_run_process(binary, folder / f"process-{number}.json", chosen))
    around = {"before": before, "after": conditions.read()}
    session = Session(started=started, processes=wanted, conditions=around)
    fields = session.model_dump(mode="json")
    write_text(folder / "conditions.json", json.dumps([fields], indent=1) + "\n")

    candidate = folder / "candidate.json"
    processes = [read_process(_path(file)) for file in files]
    collected = collect(processes, commit, [session], _path(candidate))
    write_text(candidate, dumps(collected.fields) + "\n")
    return collected, candidate


def detect_preset() -> str:
    """gpu where a GPU answers and nvcc can build for it."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except OSError:
        return "cpu"
    if "GPU " not in listed.stdout:
        return "cpu"
    if shutil.which("nvcc") is None:
        message("a GPU answers, but nvcc is not installed: measuring the SIMT executor instead")
        return "cpu"
    return "gpu"


def new_folder(parent: Path) -> Path:
    """A folder named after the time; two of the same second differ."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    for number in itertools.count(1):
        folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as problem:
            raise GateError(f"{folder}: cannot be made: {problem.strerror}") from problem
        return folder
    raise AssertionError


def selection(binary: Path, preset: str, arguments: argparse.Namespace) -> list[str]:
    """The options that choose what bench runs: unless shapes or modes are given, what it runs by
    itself, and on a GPU the gated suite."""
    how = [f"--placements={arguments.placements}"] if arguments.placements else []
    if arguments.shapes is not None or arguments.extra:
        shapes = [] if arguments.shapes is None else [f"--shapes={arguments.shapes}"]
        wanted = [] if arguments.filter is None else [f"--benchmark_filter={arguments.filter}"]
        return [*shapes, *wanted, *how, *arguments.extra]
    command = [str(binary), "--benchmark_list_tests"]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise GateError(f"`{shlex.join(command)}` ended with exit code {done.returncode}")
    names = [canonical_name(line) for line in done.stdout.splitlines()]
    if preset == "gpu":
        stages = stages_of(REPOSITORY / "build" / preset)
        names += read_suite(stages, REPOSITORY / "bench" / "gate.csv")
        how.append(f"--benchmark_min_time={MIN_TIME_S:g}")  # as `gate run` will measure them
    names = matching(dict.fromkeys(names), arguments.filter)
    return [f"--shapes={shapes_of(names)}", f"--benchmark_filter={filter_of(names)}", *how]


def _run_process(binary: Path, out: Path, chosen: Sequence[str]) -> Path:
    files = [f"--benchmark_out={out}", "--benchmark_out_format=json"]
    code = child.run([str(binary), *files, *chosen], cwd=REPOSITORY).returncode
    if code:
        raise GateError(f"{out.stem} ended with exit code {code}; nothing was judged")
    return out


def judge(
    collected: RunFile,
    candidate: Path,
    base: str | None,
    accepted: Sequence[waivers.Waiver],
    arguments: argparse.Namespace,
) -> int:
    """Judges a collected run, by the baseline of commit `base` if given, and writes the reports;
    the exit code."""
    folder, code, judged = candidate.parent, 0, candidate
    baseline = baseline_path(collected.device)
    if base:
        baseline = _baseline_of(base, baseline, folder)
    if baseline.exists():
        judged = folder / "verdict.json"
        try:
            stored = load(_path(baseline), Role.BASELINE)
            found = compare(stored, collected, judged_filter(collected, arguments))
            code = show(waivers.apply(found, accepted), None, judged)
        except GateError as problem:
            verdict_file.write_error(judged, str(problem))
            message(f"error: {problem}")
            code = 2
        if code == 1:
            message("slower than a recording of another day, which alone proves nothing; to")
            message("measure this tree and the one before your change: ci/gate run --base REV")
    else:
        _without_baseline(collected, candidate, baseline)
    markdown, page = folder / "report.md", folder / "report.html"
    report.run(
        argparse.Namespace(
            files=[_path(judged)],
            markdown=markdown,
            html=page,
            junit=None,
            repository=REPOSITORY,
        )
    )
    message(f"report: {_path(page)}, {_path(markdown)}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with open(summary, "a", encoding="utf-8") as stream:
            stream.write(read_text(markdown))
    return code


def judged_filter(collected: RunFile, arguments: argparse.Namespace) -> str | None:
    """Which rows of the baseline must be there. Shapes or modes chosen by hand are a set of their
    own, so then only what ran is judged."""
    if arguments.shapes is not None or arguments.extra:
        names = "|".join(re.escape(name) for name in sorted(collected.benchmarks))
        return f"^({names})$"
    pattern: str | None = arguments.filter
    return pattern


def _baseline_of(commit: str, path: Path, folder: Path) -> Path:
    """The baseline as it was at a commit; a path that does not exist where that had none."""
    name = path.relative_to(REPOSITORY).as_posix()
    listed = git(REPOSITORY, "ls-tree", "--name-only", commit, "--", name)
    copy = folder / f"baseline-{commit[:12]}.json"
    if listed.stdout:
        stored = git(REPOSITORY, "show", f"{commit}:{name}")
        if stored.returncode:
            raise GateError(f"{name} of {commit} cannot be read{said(stored)}")
        write_text(copy, stored.stdout)
    message(f"judged by {name} of {commit[:12]}, the merge base with --base")
    return copy


def _without_baseline(collected: RunFile, candidate: Path, baseline: Path) -> None:
    unverified = sorted(name for name, row in collected.benchmarks.items() if not row.verified)
    if unverified:
        raise GateError(f"not verified: {', '.join(unverified)}")
    message(f"no baseline for {collected.device.name} ({_path(baseline)}): nothing is judged")
    message("to make this run the baseline, look at its report, then:")
    sys.stdout.write(f"ci/gate accept {_path(candidate)}\n")


def _path(path: Path) -> str:
    """As reports and messages show it."""
    return os.path.relpath(path)
