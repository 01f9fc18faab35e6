"""Child processes, which end with this one: otherwise they would keep the GPU busy during the next
measurement."""

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from tilegate_ci.core.files import GateError

_WATCHER = "read -r line; kill -KILL 0"  # ends its group when its input is closed


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run. The program, and what it starts, is killed when this call or this process
    ends, however that ends."""
    with _group() as number:
        return subprocess.run(command, check=False, text=True, process_group=number, **options)


def checked(
    command: Sequence[str],
    title: str,
    shown: str = "",
    timeout_s: float | None = None,
    **options: Any,
) -> str:
    """What the program printed; GateError with the last of it where it fails. `title` says what it
    was run for, `shown` is the command as the user knows it."""
    shown = shown or shlex.join(command)
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = finished(command, timeout_s, f"{title}: `{shown}`", **streams, **options)
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-20:])
        where = f"exit code {done.returncode} in {options.get('cwd', os.getcwd())}"
        raise GateError(f"{title}: `{shown}` failed with {where}:\n{last}")
    return done.stdout


def output(command: Sequence[str], timeout_s: float | None = None, **options: Any) -> str:
    """What the program printed; GateError with its own message where it fails."""
    done = finished(command, timeout_s, capture_output=True, **options)
    if done.returncode:
        name = os.path.basename(command[0])
        said = (done.stderr or done.stdout).strip().removeprefix(f"{name}: ")[:400]
        raise GateError(f"{name}: {said or f'exit code {done.returncode}'}")
    return done.stdout


def finished(
    command: Sequence[str], timeout_s: float | None = None, shown: str = "", **options: Any
) -> subprocess.CompletedProcess[str]:
    """As run; GateError where the program does not start, or does not end in time."""
    try:
        return run(command, errors="replace", timeout=timeout_s, **options)
    except OSError as problem:
        raise GateError(f"{command[0]}: cannot be run: {problem.strerror}") from problem
    except subprocess.TimeoutExpired:
        raise GateError(f"{shown or command[0]}: not finished after {timeout_s:g} s") from None


def find_cuda_tool(name: str, *first: str) -> str | None:
    """Its path; of the folders those named come first, $CUDA_HOME and /usr/local/cuda last."""
    homes = (os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    folders = [*first, os.environ.get("PATH", ""), *(f"{home}/bin" for home in homes if home)]
    return shutil.which(name, path=os.pathsep.join(folders))


@contextlib.contextmanager
def _group() -> Iterator[int]:
    """A process group that is killed at the end of the block, or of this process."""
    watched, held = os.pipe()
    with subprocess.Popen(
        ["sh", "-c", _WATCHER],
        stdin=watched,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as watcher:
        os.close(watched)
        try:
            yield watcher.pid
        finally:
            os.close(held)
