"""JSON files: read strictly, walked with the place in hand, written so that diffs stay small."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class GateError(Exception):
    """What makes a command end with exit code 2; its text is one line for the user."""


class WriteError(GateError):
    """A file that cannot be written; what stood there before stands there still."""


class _Object(dict):  # type: ignore[type-arg]
    """A JSON object that remembers a key it met twice, for Node to report it with its place."""

    duplicate: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    result = _Object()
    for key, value in pairs:
        if key in result:
            result.duplicate = key
        result[key] = value
    return result


class Node:
    """A JSON value that knows its file and place, so that each complaint can name both."""

    def __init__(self, value: Any, source: str, place: str = "") -> None:
        self.value = value
        self.source = source
        self.place = place

    def error(self, message: str) -> GateError:
        place = f"{self.place}: " if self.place else ""
        return GateError(f"{self.source}: {place}{message}")

    def walk(self) -> Iterator[Node]:
        yield self
        if isinstance(self.value, dict):
            for _, child in self.items():
                yield from child.walk()
        elif isinstance(self.value, list):
            for child in self.elements():
                yield from child.walk()

    def object(self) -> dict[str, Any]:
        self._expect(dict, "an object")
        return self.value  # type: ignore[no-any-return]

    def get(self, key: str) -> Node | None:
        if key not in self.object():
            return None
        dot = "." if self.place else ""
        place = f"{self.place}{dot}{key}" if key.isidentifier() else f'{self.place}["{key}"]'
        return Node(self.value[key], self.source, place)

    def require(self, key: str) -> Node:
        child = self.get(key)
        if child is None:
            raise self.error(f'"{key}" is missing')
        return child

    def items(self) -> Iterator[tuple[str, Node]]:
        for key in self.object():
            yield key, self.require(key)

    def elements(self) -> list[Node]:
        self._expect(list, "a list")
        return [
            Node(value, self.source, f"{self.place}[{index}]")
            for index, value in enumerate(self.value)
        ]

    def text(self) -> str:
        self._expect(str, "text")
        if not self.value.strip():
            raise self.error("must not be empty")
        if not self.value.isprintable():  # it goes into reports, a line each
            raise self.error("must be one line of printable text")
        return str(self.value)

    def boolean(self) -> bool:
        self._expect(bool, "true or false")
        return bool(self.value)

    def finite(self) -> float:
        # bool is an int to Python, and json reads NaN, Infinity and 1e999 as floats.
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise self.error(f"must be a number, not {_shown(self.value)}")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.error(f"must be a finite number, not {_shown(number)}")
        return number

    def positive(self) -> float:
        number = self.finite()
        if not number > 0:
            raise self.error(f"must be above zero, not {_shown(self.value)}")
        return number

    def count(self) -> int:
        number = self.positive()
        if number != int(number):
            raise self.error(f"must be a whole number, not {_shown(self.value)}")
        return int(number)

    def check_version(self, known: int) -> None:
        schema = self.require("schema")
        if type(schema.value) is not int or schema.value != known:  # true equals 1
            raise schema.error(f"unknown schema {schema.value!r}; this gate reads schema {known}")

    def _expect(self, kind: type, description: str) -> None:
        if not isinstance(self.value, kind):
            raise self.error(f"must be {description}, not {_shown(self.value)}")


def _shown(value: Any) -> str:
    """The value as JSON, on one short line."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def read_json(path: str) -> Node:
    """Parses a file; unreadable, empty, malformed or with a key given twice: GateError."""
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise GateError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    return parse_json(data, path)


def parse_json(data: bytes, path: str) -> Node:
    """As read_json; `path` is where the bytes came from."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise GateError(f"{path}: byte {problem.start}: not UTF-8 text") from problem
    if not text.strip():
        raise GateError(f"{path}: the file is empty")
    try:
        root = Node(json.loads(text, object_pairs_hook=_object), path)
        for node in root.walk():
            if isinstance(node.value, _Object) and node.value.duplicate is not None:
                raise node.error(f'duplicate key "{node.value.duplicate}"')
    except json.JSONDecodeError as problem:
        # The parser points at the start of a string that is never closed.
        unfinished = problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated")
        kind = "truncated JSON" if unfinished else "malformed JSON"
        place = f"line {problem.lineno} column {problem.colno}"
        raise GateError(f"{path}: {place}: {kind}: {problem.msg}") from problem
    except RecursionError as problem:
        raise GateError(f"{path}: malformed JSON: nested too deeply") from problem
    except ValueError as problem:  # an integer of thousands of digits
        raise GateError(f"{path}: malformed JSON: {problem}") from problem
    return root


def check_finite(root: Node) -> None:
    for node in root.walk():
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            node.finite()


def rounded(value: float) -> float:
    """Six significant digits: a hundredth of the smallest change that the gate can see, or less."""
    return float(f"{value:.6g}")


def dumps(value: Any, indent: int = 0) -> str:
    """JSON with sorted keys and an indent of 1; a list of plain values stays on one line."""
    inner, outer = "\n" + " " * (indent + 1), "\n" + " " * indent
    if isinstance(value, dict) and value:
        rows = [f"{json.dumps(key)}: {dumps(value[key], indent + 1)}" for key in sorted(value)]
        return "{" + inner + f",{inner}".join(rows) + outer + "}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        rows = [dumps(item, indent + 1) for item in value]
        return "[" + inner + f",{inner}".join(rows) + outer + "]"
    return json.dumps(value, allow_nan=False)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """A reader sees the old file or the new one, never half of either. A pipe or a device stays
    what it is."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as problem:
        raise WriteError(f"{path}: cannot be written: {problem.strerror or problem}") from problem


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
