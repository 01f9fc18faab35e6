"""Messages on stderr; files, read strictly and written whole; locks."""

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress


def message(text: str) -> None:
    """Each line begins with our name and has no control characters, so that the contents of a file
    cannot inject a workflow command such as ::error into a log."""
    lines = [f"gate: {printable(line)}\n" for line in text.splitlines() or [""]]
    with contextlib.suppress(OSError, ValueError):
        print("".join(lines), end="", file=sys.stderr, flush=True)


def printable(line: str) -> str:
    shown = (c if c.isprintable() else ascii(c)[1:-1] for c in line.replace("\t", " "))
    return "".join(shown).replace("##[", "# #[")  # how older runners begin a command


class Steps(Progress):
    """Progress of long work: a line per step, and a bar on a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        super().__init__(console=console, disable=not console.is_terminal)
        self.add_task("measuring", total=None)

    def done(self, title: str, seconds: float, left: int, left_s: float) -> None:
        """One more step took `seconds`; `left` are to go and may take `left_s`."""
        (bar,) = self.tasks
        self.update(bar.id, completed=bar.completed + 1, total=bar.completed + 1 + left)
        message(f"{title}: {seconds:.1f} s; about {left_s / 60:.1f} min left")


Place = tuple[str | int, ...]
MOST_BYTES = 2**28  # limit of an input file, after unpacking


class GateError(Exception):
    """What ends a command with exit code 2; its text is one sentence for the user."""


class WriteError(GateError):
    """A file that cannot be written; what stood there before stands there still."""


class _Object(dict[str, Any]):
    """A JSON object that remembers a key it met twice."""

    duplicate: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    result = _Object(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        result.duplicate = next(key for key in reversed(keys) if keys.count(key) > 1)
    return result


def fault(source: str, place: Place, message: str) -> GateError:
    """One sentence that names the file and the place in it."""
    path = ""
    for step in place:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            # As JSON where it is not plain: a key may hold line breaks, or half of a character.
            plain = step.isidentifier() and step.isascii()
            path += f".{step}" if plain else f"[{json.dumps(step)}]"
    return GateError(f"{source}: {path.removeprefix('.')}{': ' if path else ''}{message}")


def shown(value: object) -> str:
    """The value as JSON, on one short line."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    try:
        text = json.dumps(value)
    except ValueError:  # an integer of thousands of digits
        return "a huge number"
    return text if len(text) <= 40 else text[:37] + "..."


def read_bytes(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as problem:
        raise GateError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    return checked_size(data, path)


def checked_size(data: bytes, path: str | Path) -> bytes:
    if len(data) > MOST_BYTES:
        raise GateError(f"{path}: longer than {MOST_BYTES >> 20} MiB, the limit of an input file")
    return data


def read_text(path: str | Path) -> str:
    return decode(read_bytes(path), str(path))


def decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise GateError(f"{source}: byte {problem.start}: not UTF-8 text") from problem


def parse_json(text: str, source: str, finite: bool = False) -> Any:
    """The value; GateError where the text is empty, truncated or malformed, where an object has a
    key twice, or with `finite` where a number is none. `source` is where the text came from."""
    if not text.strip():
        raise GateError(f"{source}: the file is empty")
    try:
        root = json.loads(text, object_pairs_hook=_object)
        for place, value in walk(root):
            if isinstance(value, _Object) and value.duplicate is not None:
                raise fault(source, place, f"duplicate key {json.dumps(value.duplicate)}")
            # No float holds an integer of 1024 bits.
            huge = isinstance(value, int) and value.bit_length() > 1023
            if finite and (huge or (isinstance(value, float) and not math.isfinite(value))):
                raise fault(source, place, f"must be a finite number, not {shown(value)}")
    except json.JSONDecodeError as problem:
        # The parser points at the start of a string that is never closed.
        unfinished = problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated")
        kind = "truncated JSON" if unfinished else "malformed JSON"
        line = f"line {problem.lineno} column {problem.colno}"
        raise GateError(f"{source}: {line}: {kind}: {problem.msg}") from problem
    except RecursionError as problem:
        raise GateError(f"{source}: malformed JSON: nested too deeply") from problem
    except ValueError as problem:  # an integer of thousands of digits
        raise GateError(f"{source}: malformed JSON: {problem}") from problem
    return root


def read_json(path: str | Path) -> Any:
    return parse_json(read_text(path), str(path))


def walk(root: Any) -> Iterator[tuple[Place, Any]]:
    """The value and all that is in it, each with its place."""
    waiting: list[tuple[Place, Any]] = [((), root)]
    while waiting:
        place, value = waiting.pop()
        yield place, value
        if isinstance(value, dict | list):
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((*place, key), child) for key, child in inner][::-1]


def rounded(value: float) -> float:
    """Six significant digits: a hundredth of the smallest change that the gate can see, or less."""
    return float(f"{value:.6g}")


def dumps(value: Any, indent: int = 0) -> str:
    """JSON with sorted keys and an indent of 1; a list of plain values stays on one line."""
    inner, outer = "\n" + " " * (indent + 1), "\n" + " " * indent
    if isinstance(value, dict) and value:
        rows = [f"{json.dumps(key)}: {dumps(value[key], indent + 1)}" for key in sorted(value)]
        return "{" + inner + f",{inner}".join(rows) + outer + "}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        rows = [dumps(item, indent + 1) for item in value]
        return "[" + inner + f",{inner}".join(rows) + outer + "]"
    return json.dumps(value, allow_nan=False)


def digest_of(root: Path, paths: Iterable[Path]) -> str:
    """Changes with any byte of the files, and with which files they are."""
    hashed = hashlib.sha256()
    for path in paths:
        place = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        hashed.update(f"{place.as_posix()} {content}\n".encode())
    return hashed.hexdigest()


def write_text(path: Path, text: str) -> None:
    # A name of a file need not be UTF-8; what is not is shown as a backslash and its code.
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """A reader sees the old file or the new one, never half of either. A pipe or a device stays
    what it is."""
    try:
        if is_regular(path):
            _replace(path.resolve(), data)
        else:
            path.write_bytes(data)
    except OSError as problem:
        raise WriteError(f"{path}: cannot be written: {problem.strerror or problem}") from problem


def is_regular(path: Path) -> bool:
    """Or not there yet. OSError where the name cannot be one of a file, as a link to itself."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


def _replace(target: Path, data: bytes) -> None:
    """By a temporary file beside it. git ignores its name: a process that is killed leaves it."""
    temporary = target.with_name(f".gate.{os.getpid()}.tmp")  # short, as names must be
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise GateError(f"{path}: cannot be made: {problem.strerror or problem}") from problem


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
