"""ci/profile: runs rungs under Nsight Compute and writes what its counters say."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, dumps, write_text
from tilegate_ci.core.git import GitError, checkout_commit
from tilegate_ci.core.ladder import LadderError, read_rungs
from tilegate_ci.core.model import Device, baseline_path
from tilegate_ci.profile.metrics import ProfileError, kernel_record, metric_names, parse_csv
from tilegate_ci.profile.report import document, markdown

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / "build" / "gpu"
TARGET = BUILD / "bench" / "profile_target"
RECORD = REPOSITORY / "bench" / "profile"  # every rung at the default shape, committed
SCRATCH = REPOSITORY / "build" / "profile"  # what ncu printed, and profiles of another choice
SHAPE = "4096x4096x4096"
INTERRUPTED = 130

_EPILOG = """examples:
  ci/profile                                        # every rung; bench/profile/<device>.json, .md
  ci/profile Warptile Cublas                        # these; build/profile/<device>.json, .md
  ci/profile --shape 512x512x512 --out /tmp/small
  ci/profile --render bench/profile/nvidia-h200.json  # the Markdown again; needs no GPU

exit codes:
  0  every rung was profiled
  1  something is missing (a GPU, nvcc, ncu, the permission to read counters), or a rung failed
  2  wrong usage
"""


class MissingError(Exception):
    """What this machine lacks, and how to get it: one sentence."""


class UsageError(Exception):
    """A wrong command line."""


def main(argv: Sequence[str]) -> int:
    try:
        return _main(parse_arguments(argv))
    except (UsageError, GitError) as problem:  # GitError: no commit
        _tell(f"profile: error: {problem}", sys.stderr)
        return 2
    except (MissingError, ProfileError, GateError, LadderError) as problem:
        _tell(f"profile: {problem}", sys.stderr)
        return 1
    except KeyboardInterrupt:
        _tell("profile: interrupted; nothing was written", sys.stderr)
        return INTERRUPTED


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ci/profile",
        description="Profiles rungs with Nsight Compute: what limits each, in counters.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rungs", metavar="rung", nargs="*", help="default: every stage, Cublas too")
    parser.add_argument("--shape", metavar="MxNxK", default=SHAPE, help="default: %(default)s")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="default: bench/profile for every rung at the default shape, else build/profile",
    )
    parser.add_argument(
        "--commit", metavar="SHA", help="where git cannot tell it; default: $TILEGATE_COMMIT"
    )
    parser.add_argument(
        "--render", metavar="JSON", type=Path, help="only write that profile's Markdown anew"
    )
    arguments = parser.parse_args(argv)
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", arguments.shape):
        parser.error(f"--shape: {arguments.shape!r} is not MxNxK, each at least 1")
    return arguments


def _main(arguments: argparse.Namespace) -> int:
    if arguments.render:
        return _render(arguments.render)
    check_names(arguments.rungs, REPOSITORY, BUILD)
    ncu = find_tools()
    commit = arguments.commit or os.environ.get("TILEGATE_COMMIT") or checkout_commit(REPOSITORY)
    _build()
    device = parse_device(_run([str(TARGET), "--device"]))
    names = arguments.rungs or _run([str(TARGET), "--list"]).split()

    rungs = []
    for number, name in enumerate(names, 1):
        _tell(f"profiling {name} ({number} of {len(names)})")
        rungs.append(_profile(ncu, name, arguments.shape))
    profile = document(
        commit, device, ncu_version(_run([ncu, "--version"])), arguments.shape, rungs
    )
    return _write(profile, arguments)


def check_names(names: Sequence[str], repository: Path, build: Path) -> None:
    """Finds misspelt rungs before anything is built."""
    known = [rung.name for rung in read_rungs(repository)]
    unknown = [name for name in names if name.split(".")[0] not in known]  # Rung.variant
    if unknown and not _has_extra_stages(build):
        raise UsageError(f"no rung {', '.join(unknown)}; there are {', '.join(known)}")


def _has_extra_stages(build: Path) -> bool:
    """Whether that build has rungs from outside the repository."""
    try:
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"^TILEGATE_EXTRA_STAGES:\w+=.", cache, re.MULTILINE) is not None


def find_tools() -> str:
    """The path of ncu; MissingError where it, a GPU or nvcc is not here."""
    try:
        listed = _run(["nvidia-smi", "-L"])
    except (OSError, ProfileError):
        listed = ""
    if "GPU " not in listed:
        raise MissingError(
            "no GPU answers `nvidia-smi -L`: "
            "run this on a machine with an NVIDIA GPU and its driver."
        )
    if shutil.which("nvcc") is None:
        raise MissingError(
            "nvcc is missing: install the CUDA toolkit and put its bin folder on PATH."
        )
    ncu = shutil.which("ncu")
    if ncu is None:
        raise MissingError(
            "Nsight Compute's ncu is missing: install the CUDA toolkit's nsight-compute package "
            "(https://developer.nvidia.com/nsight-compute) and put its folder on PATH."
        )
    return ncu


def _build() -> None:
    _tell("==> gpu: configure and build")
    for command in (
        ["cmake", "--preset", "gpu"],
        ["cmake", "--build", "--preset", "gpu", "--target", "profile_target"],
    ):
        try:
            done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        except OSError as problem:
            raise MissingError(
                "CMake is missing: ci/test installs what a build needs."
            ) from problem
        if done.returncode:
            raise ProfileError(f"{done.stdout}\n`{shlex.join(command)}` failed")


def parse_device(text: str) -> dict[str, str]:
    """The lines of `profile_target --device`."""
    return dict(line.split("\t", 1) for line in text.splitlines())


def ncu_version(text: str) -> str:
    match = re.search(r"^Version (\S+)", text, re.MULTILINE)
    return match.group(1) if match else "unknown"


def ncu_command(ncu: str, rung: str, shape: str) -> list[str]:
    return [
        ncu,
        "--clock-control=none",  # the clocks are the machine's; its settings are left alone
        "--replay-mode=kernel",
        "--profile-from-start=off",
        "--csv",
        "--page=raw",
        "--print-units=base",
        f"--metrics={','.join(metric_names())}",
        str(TARGET),
        rung,
        shape,
    ]


def _profile(ncu: str, rung: str, shape: str) -> dict[str, Any]:
    """What the document says about a rung; "error" in it when it could not be profiled."""
    done = subprocess.run(
        ncu_command(ncu, rung, shape),
        cwd=REPOSITORY,
        env={**os.environ, "LC_ALL": "C"},  # no separators between thousands
        capture_output=True,
        text=True,
        check=False,
    )
    SCRATCH.mkdir(parents=True, exist_ok=True)
    (SCRATCH / f"{rung}.csv").write_text(done.stdout, encoding="utf-8")
    try:
        kernels = read_output(done.returncode, done.stdout, done.stderr)
    except ProfileError as problem:
        _tell(f"profile: {rung}: {problem}", sys.stderr)
        return {"name": rung, "kernels": [], "error": str(problem)}
    return {"name": rung, "kernels": kernels}


def read_output(returncode: int, output: str, errors: str) -> list[dict[str, Any]]:
    """The kernels that a call of ncu tells of."""
    if "ERR_NVGPUCTRPERM" in output + errors:
        raise MissingError(
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run ci/profile as root, "
            "or load the driver with NVreg_RestrictProfilingToAdminUsers=0 "
            "(https://developer.nvidia.com/ERR_NVGPUCTRPERM)."
        )
    if returncode:
        # The program's own words say more than that it failed.
        told = re.findall(r"^profile_target: (.*)$", errors, re.MULTILINE)
        told += re.findall(r"^==ERROR== (.*)$", output + "\n" + errors, re.MULTILINE)
        raise ProfileError(told[0] if told else f"ncu ended with exit code {returncode}")
    kernels = [kernel_record(row) for row in parse_csv(output)]
    if not kernels:
        raise ProfileError("ncu saw no kernel")
    return kernels


def _write(profile: dict[str, Any], arguments: argparse.Namespace) -> int:
    is_record = not arguments.rungs and arguments.shape == SHAPE
    folder = arguments.out or (RECORD if is_record else SCRATCH)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{device_stem(profile['device']['name'])}.json"
    write_text(path, dumps(profile) + "\n")
    _render(path)
    _tell(f"==> {os.path.relpath(path)}")
    return 1 if any("error" in rung for rung in profile["rungs"]) else 0


def device_stem(name: str) -> str:
    """ "NVIDIA H200" as nvidia-h200, the way baselines are named."""
    return baseline_path(Device("cuda", name, None, {})).stem


def _render(path: Path) -> int:
    try:
        profile = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ProfileError(f"{path}: cannot be read: {problem}") from problem
    page = path.with_suffix(".md")
    write_text(page, markdown(profile))
    _tell(f"==> {os.path.relpath(page)}")
    return 0


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        told = (
            done.stderr.strip() or f"`{shlex.join(command)}` ended with exit code {done.returncode}"
        )
        raise ProfileError(told.removeprefix("profile_target: "))
    return done.stdout


def _tell(text: str, stream: Any = None) -> None:
    print(text, file=stream or sys.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
