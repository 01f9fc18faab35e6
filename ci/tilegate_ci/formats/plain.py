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
from tilegate_ci.formats.timings import TimedFile, TimedRow, number

TIME = "seconds"
NAME = "name"


def read(text: str, path: str) -> TimedFile:
    lines = _objects(text, path) if text.lstrip().startswith("{") else _cells(text, path)
    rows, devices, columns = [], dict[str, int](), dict[str, None]()
    for line, row in lines:
        if row.get(NAME) in (None, ""):
            raise GateError(f"{path}:{line}: {NAME} is missing")
        found = {column: number(value) if value != "" else None for column, value in row.items()}
        columns |= dict.fromkeys(found)
        rows.append(TimedRow(str(row[NAME]), (), found, found, line=f"{path}:{line}"))
        devices.setdefault(str(row.get("device") or "an unnamed machine"), line)
    if len(devices) > 1:
        (one, _), (other, line), *_ = devices.items()
        raise GateError(f"{path}:{line}: device {other!r}, but {one!r} above")
    device = next(iter(devices), "an unnamed machine")
    return TimedFile(device, None, "column", TIME, f"one of {', '.join(columns)}", rows)


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
    for at, line in enumerate(text.splitlines(), start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError as problem:
            raise GateError(f"{path}:{at}: malformed JSON: {problem}") from problem
        if isinstance(row, dict):
            yield at, row
        elif line.strip():
            raise GateError(f"{path}:{at}: must be an object with {NAME} and {TIME}")


def is_plain(text: str) -> bool:
    """By its first line: the names of the columns, or an object."""
    first = text.lstrip().partition("\n")[0]
    try:
        row = json.loads(first) if first.startswith("{") else first.split(",")
    except ValueError:
        return False
    return NAME in row
