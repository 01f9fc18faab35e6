"""Lines of names and seconds, for any program: CSV with a head, or an object of JSON per line.

    name,seconds                        {"name": "Softmax/1024", "seconds": 1.25e-05}
    Softmax/1024,1.25e-05               {"name": "Softmax/2048", "seconds": 2.31e-05}
    Softmax/2048,2.31e-05

A name that is there several times was measured several times. Other columns may follow: `device`,
the machine's name, and whatever --time and --verified name."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from tilegate_ci.core.files import GateError
from tilegate_ci.formats.timings import Timings, counted

TIME = "seconds"
NAME = "name"


def read(text: str, path: str, time: str, verified: str) -> Timings:
    """`time` and `verified` are columns; the latter must be 1, or its name is empty."""
    found, devices = Timings(path, "an unnamed machine"), dict[str, int]()
    for line, row in _objects(text, path) if text.lstrip().startswith("{") else _cells(text, path):
        where = f"{path}:{line}"
        for column in (NAME, time):
            if row.get(column) in (None, ""):
                raise GateError(f"{where}: {column} is missing")
        device = str(row.get("device") or found.device)
        name, row = str(row[NAME]), {column: _number(value) for column, value in row.items()}
        sound = counted(row, verified, name, where, ())
        found.add(name, row[time], sound, (), where)
        devices.setdefault(device, line)
    if not found.seconds:
        raise GateError(f"{path}: no benchmark in it, only the names of the columns")
    if len(devices) > 1:
        (one, _), (other, line), *_ = devices.items()
        raise GateError(f"{path}:{line}: device {other!r}, but {one!r} above")
    (found.device,) = devices
    return found


def _cells(text: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    head: list[str] = []
    try:
        for cells in reader:
            if not head:
                head = [cell.strip() for cell in cells]
                if NAME not in head or len(set(head)) < len(head):
                    text = f"no JSON, and the first line does not name the columns {NAME},{TIME}"
                    raise GateError(f"{path}:1: {text}")
            elif cells and len(cells) != len(head):
                message = f"{len(cells)} values, but {len(head)} columns: {','.join(head)}"
                raise GateError(f"{path}:{reader.line_num}: {message}")
            elif cells:
                yield reader.line_num, dict(zip(head, (cell.strip() for cell in cells)))
    except csv.Error as problem:
        raise GateError(f"{path}:{reader.line_num}: malformed CSV: {problem}") from problem


def _objects(text: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError as problem:
            raise GateError(f"{path}:{number}: malformed JSON: {problem}") from problem
        if isinstance(row, dict):
            yield number, row
        elif line.strip():
            raise GateError(f"{path}:{number}: must be an object with {NAME} and {TIME}")


def is_plain(text: str) -> bool:
    """By its first line: the names of the columns, or an object."""
    first = text.lstrip().partition("\n")[0]
    try:
        row = json.loads(first) if first.startswith("{") else first.split(",")
    except ValueError:
        return False
    return NAME in row


def _number(value: object) -> object:
    """Of text its number, if it is one."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
