"""Output files: checked before anything is measured; one writer at a time."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tilegate_ci.core.files import WriteError, is_regular
from tilegate_ci.core.progress import message


def check_outputs(inputs: Sequence[str | Path], outputs: Mapping[str, str | Path | None]) -> None:
    """WriteError where a command would overwrite what it reads, or one output the other, or where
    an output has no folder. `outputs` are by option; None was not asked for."""
    taken = {_identity(path): f"it is read as {path}" for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        try:
            regular = is_regular(Path(path))
            if not regular:
                continue
            if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        except OSError as problem:
            raise WriteError(f"{option} {path}: cannot be written: {problem.strerror}") from problem
        if _identity(path) in taken:
            why = taken[_identity(path)]
            raise WriteError(f"{option} {path}: {why} too; give another file")
        taken[_identity(path)] = f"{option} writes it"


def _identity(path: str | Path) -> object:
    """The same for all names of one file."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Processes that lock the same folder run one at a time. The lock ends with the process."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message(f"{folder}: another command is running there; waiting for it to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
