"""ci/bench: builds, benchmarks in several processes, gates and reports."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilegate_ci.core.arguments import count
from tilegate_ci.core.files import GateError
from tilegate_ci.core.git import checkout_commit, git, parting
from tilegate_ci.core.model import Run, baseline_path
from tilegate_ci.core.names import canonical_name
from tilegate_ci.core.reader import load
from tilegate_ci.core.verdicts import EXIT_MEANINGS
from tilegate_ci.measure import conditions
from tilegate_ci.measure.suite import filter_of, matching, read_suite

REPOSITORY = Path(__file__).resolve().parents[3]
GATE = Path(__file__).resolve().parents[2] / "gate"
PROCESSES = {"gpu": 3, "cpu": 1}
INTERRUPTED = 130

_EPILOG = (
    """examples:
  ci/bench                                   # all that the gate watches
  ci/bench --filter '^Warptile/'             # one rung
  ci/bench --processes 5                     # to accept as a baseline
  ci/bench --base origin/main                # judged by the baseline of the common ancestor
  ci/bench --shapes 1000x1000x1000 -- --cold # a measurement of its own, beside the gate

exit codes are the gate's:
"""
    + "".join(f"  {code}  {meaning}\n" for code, meaning in EXIT_MEANINGS.items())
    + "Without a baseline for this device it reports, says how to accept one, and ends with 0.\n"
)


class BenchError(Exception):
    """What ends the command with exit code 2; its text is for the user."""


def main(argv: Sequence[str]) -> int:
    arguments = parse_arguments(argv)
    try:
        return _bench(arguments)
    except (BenchError, GateError) as problem:
        _tell(f"bench: error: {problem}", sys.stderr)
        return 2
    except OSError as problem:
        what = f"{problem.filename}: " if problem.filename else ""
        _tell(f"bench: error: {what}{problem.strerror or problem}", sys.stderr)
        return 2
    except KeyboardInterrupt:
        _tell("bench: interrupted; nothing was judged", sys.stderr)
        return INTERRUPTED
    except Exception:  # would end with 1, which means `regressed`
        traceback.print_exc()
        return 2


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    own, extra = list(argv), []
    if "--" in own:
        split = own.index("--")
        own, extra = own[:split], own[split + 1 :]
    parser = argparse.ArgumentParser(
        prog="ci/bench",
        usage="%(prog)s [options] [-- options of build/<preset>/bench/bench]",
        description="Builds, benchmarks, gates against the committed baseline, reports.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--filter", metavar="REGEX", help="only benchmarks whose name matches")
    parser.add_argument("--shapes", metavar="SHAPES", help="as bench's own --shapes")
    parser.add_argument("--processes", metavar="N", type=count, help="default: 3 on a GPU, else 1")
    parser.add_argument(
        "--preset", choices=tuple(PROCESSES), help="default: gpu where a GPU and nvcc are, else cpu"
    )
    parser.add_argument(
        "--base", metavar="REV", help="judge by the baseline where REV and HEAD parted"
    )
    parser.add_argument(
        "--commit", metavar="SHA", help="where git cannot tell it; default: $TILEGATE_COMMIT"
    )
    arguments = parser.parse_args(own)
    if arguments.filter is not None:
        try:
            re.compile(arguments.filter)
        except re.error as problem:
            parser.error(f"--filter: not a regular expression: {problem}")
    arguments.extra = extra
    return arguments


def _bench(arguments: argparse.Namespace) -> int:
    preset = arguments.preset or detect_preset()
    commit = arguments.commit or os.environ.get("TILEGATE_COMMIT") or checkout_commit(REPOSITORY)
    build(preset)
    folder = new_folder(REPOSITORY / "build" / "bench-results")

    count = arguments.processes or PROCESSES[preset]
    binary = REPOSITORY / "build" / preset / "bench" / "bench"
    session: dict[str, Any] = {"started": f"{_now():%Y-%m-%dT%H:%M:%SZ}", "processes": count}
    before = conditions.read()
    chosen = selection(binary, preset, arguments)
    files = []
    for number in range(1, count + 1):
        _tell(f"==> process {number} of {count}")
        files.append(_run_process(binary, folder / f"process-{number}.json", chosen))
    session["conditions"] = {"before": before, "after": conditions.read()}
    sessions = folder / "conditions.json"
    sessions.write_text(json.dumps([session], indent=1) + "\n", encoding="utf-8")

    candidate = folder / "candidate.json"
    code = _gate(
        "collect",
        "--out",
        _path(candidate),
        "--commit",
        commit,
        "--conditions",
        _path(sessions),
        *map(_path, files),
    )
    if code:
        return code
    return judge(candidate, arguments)


def detect_preset() -> str:
    """gpu where a GPU answers and nvcc can build for it."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except OSError:
        return "cpu"
    if "GPU " not in listed.stdout:
        return "cpu"
    if shutil.which("nvcc") is None:
        _tell("==> A GPU answers, but nvcc is not installed: measuring the SIMT executor instead")
        return "cpu"
    return "gpu"


def build(preset: str) -> None:
    _tell(f"==> {preset}: configure and build")
    for command in (
        ["cmake", "--preset", preset],
        ["cmake", "--build", "--preset", preset, "--target", "bench/bench"],
    ):
        done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise BenchError(f"{done.stdout}\n`{shlex.join(command)}` failed")


def new_folder(parent: Path) -> Path:
    """A folder named after the time; two of the same second differ."""
    stamp = f"{_now():%Y%m%dT%H%M%SZ}"
    for number in itertools.count(1):
        folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise AssertionError


def selection(binary: Path, preset: str, arguments: argparse.Namespace) -> list[str]:
    """The options that choose what bench runs: unless shapes or modes are given, what it runs by
    itself, and on a GPU the gated suite."""
    if arguments.shapes is not None or arguments.extra:
        shapes = [] if arguments.shapes is None else [f"--shapes={arguments.shapes}"]
        wanted = [] if arguments.filter is None else [f"--benchmark_filter={arguments.filter}"]
        return [*shapes, *wanted, *arguments.extra]
    command = [_path(binary), "--benchmark_list_tests"]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BenchError(f"`{shlex.join(command)}` ended with exit code {done.returncode}")
    names = [canonical_name(line) for line in done.stdout.splitlines()]
    if preset == "gpu":
        names += read_suite(REPOSITORY / "bench" / "gate.csv")
    names = matching(dict.fromkeys(names), arguments.filter)
    shapes = dict.fromkeys(name.split("/", 1)[1] for name in names)
    return [f"--shapes={','.join(shapes)}", f"--benchmark_filter={filter_of(names)}"]


def _run_process(binary: Path, out: Path, chosen: Sequence[str]) -> Path:
    files = [f"--benchmark_out={_path(out)}", "--benchmark_out_format=json"]
    code = subprocess.run([_path(binary), *files, *chosen], cwd=REPOSITORY, check=False).returncode
    if code:
        raise BenchError(f"{out.stem} ended with exit code {code}; nothing was judged")
    return out


def judge(candidate: Path, arguments: argparse.Namespace) -> int:
    """Gates a collected run and writes the reports; the gate's exit code."""
    run, folder = load(str(candidate)), candidate.parent
    baseline = baseline_path(run.device)
    if arguments.base:
        baseline = _baseline_of(arguments.base, baseline, folder)
    code, judged = 0, candidate
    if baseline.exists():
        judged = folder / "verdict.json"
        options = ["--json", _path(judged), *judged_filter(run, arguments)]
        code = _gate("compare", _path(baseline), _path(candidate), *options)
        if code == 1:
            _tell(
                "==> Slower than a recording of another day, which alone proves nothing. To measure"
            )
            _tell("    this tree and the one before your change in turn: ci/gate run --base REV")
    else:
        _without_baseline(run, candidate, baseline)
    markdown, page = folder / "report.md", folder / "report.html"
    options = ["--markdown", _path(markdown), "--html", _path(page)]
    code = _gate("report", _path(judged), *options) or code
    _tell(f"==> Report: {_path(page)}, {_path(markdown)}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and markdown.exists():
        with open(summary, "a", encoding="utf-8") as stream:
            stream.write(markdown.read_text(encoding="utf-8"))
    return code


def judged_filter(run: Run, arguments: argparse.Namespace) -> list[str]:
    """Which rows of the baseline must be there. Shapes or modes chosen by hand are a set of their
    own, so then only what ran is judged."""
    if arguments.shapes is not None or arguments.extra:
        names = "|".join(re.escape(name) for name in sorted(run.benchmarks))
        return ["--filter", f"^({names})$"]
    return [] if arguments.filter is None else ["--filter", arguments.filter]


def _baseline_of(revision: str, path: Path, folder: Path) -> Path:
    """The baseline as it was at the common ancestor of `revision` and HEAD; a path that does not
    exist where that had none."""
    commit = parting(revision, "HEAD", REPOSITORY)
    name = path.relative_to(REPOSITORY).as_posix()
    shown = git(REPOSITORY, "show", f"{commit}:{name}")
    copy = folder / f"baseline-{commit[:12]}.json"
    if shown.returncode == 0:
        copy.write_text(shown.stdout, encoding="utf-8")
    _tell(f"==> Judged by {name} of {commit[:12]}, where {revision} and HEAD parted")
    return copy


def _without_baseline(run: Run, candidate: Path, baseline: Path) -> None:
    unverified = sorted(name for name, row in run.benchmarks.items() if not row.verified)
    if unverified:
        raise BenchError(f"not verified: {', '.join(unverified)}")
    _tell(f"==> No baseline for {run.device.name} ({_path(baseline)}): nothing is judged")
    _tell("    To make this run the baseline, look at its report, then:")
    _tell(f"    ci/gate accept {_path(candidate)}")


def _gate(*arguments: str) -> int:
    command = [sys.executable, "-B", str(GATE), *arguments]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


def _path(path: Path) -> str:
    """As it is told and passed on: relative to the repository, where the commands run."""
    return os.path.relpath(path, REPOSITORY)


def _now() -> datetime:
    return datetime.now(UTC)


def _tell(text: str, stream: Any = None) -> None:
    print(text, file=stream or sys.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
