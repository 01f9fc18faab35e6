"""The JSON schemas of our files, checked wherever jsonschema is installed."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tilegate_ci.core.files import GateError, Node
from tilegate_ci.core.model import REPOSITORY

FOLDER = REPOSITORY / "ci" / "schema"


@cache
def _validator(name: str) -> Any:
    """None without jsonschema: the readers check by themselves all that a verdict hangs on."""
    try:
        import jsonschema
    except ImportError:
        return None
    schema = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def check_schema(root: Node, name: str) -> None:
    """GateError, with its place, for the first thing that the schema `name` forbids."""
    validator = _validator(name)
    if validator is None:
        return
    problem = min(
        validator.iter_errors(root.value),
        key=lambda error: list(map(str, error.path)),
        default=None,
    )
    if problem is None:
        return
    place = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.absolute_path
    ).lstrip(".")
    raise GateError(f"{root.source}: {place + ': ' if place else ''}{problem.message[:200]}")
