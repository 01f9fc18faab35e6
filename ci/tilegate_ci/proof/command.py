"""ci/gate replay: the gate's rule and others' over the committed recordings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.model import REPOSITORY

RECORDINGS = REPOSITORY / "bench" / "recordings"

_EXAMPLES = """examples:
  ci/gate replay                                # bench/recordings/*.json.gz
  ci/gate replay --into README.md               # between its replay markers
  ci/gate replay --check README.md              # exit code 1 where it would write something else
  ci/gate replay mine.json.gz --markdown table.md

Deterministic: the same recordings make the same tables.
"""


def add_command(add: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    command = add("replay", "replay the rules over recordings, ours and others'", _EXAMPLES)
    command.set_defaults(command=_replay)
    command.add_argument("recordings", metavar="RECORDING.json.gz", nargs="*")
    command.add_argument("--markdown", metavar="FILE", help="write the tables there")
    place = command.add_mutually_exclusive_group()
    place.add_argument("--into", metavar="FILE.md", help="put them between the markers of a page")
    place.add_argument("--check", metavar="FILE.md", help="compare them with those of a page")


def committed() -> list[str]:
    return sorted(str(path) for path in RECORDINGS.glob("*.json.gz"))


def tables(paths: list[str]) -> str:
    try:
        from tilegate_ci.proof import data as replay_data
        from tilegate_ci.proof import recording, replay
        from tilegate_ci.proof import render as replay_render
    except ImportError as problem:
        raise GateError(
            f"{problem.name} is not installed; pip install -r ci/requirements.txt"
        ) from problem
    found = replay_data.sittings([recording.load(path) for path in paths])
    return replay_render.markdown(replay.replay(found))


def _replay(arguments: argparse.Namespace) -> int:
    text = tables(arguments.recordings or committed())
    if arguments.markdown:
        write_text(Path(arguments.markdown), text + "\n")
    page = arguments.into or arguments.check
    if page is None:
        sys.stdout.write(text + "\n")
        return 0
    return _page(Path(page), text, write=arguments.into is not None)


def _page(path: Path, text: str, write: bool) -> int:
    from tilegate_ci.proof.render import BEGIN, END, between_markers

    try:
        old = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise GateError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    new = between_markers(old, text)
    if new is None:
        raise GateError(f"{path}: no {BEGIN} with {END} after it")
    if new == old:
        return 0
    if not write:
        sys.stderr.write(
            f"gate: {path}: not what the recordings say; ci/gate replay --into {path}\n"
        )
        return 1
    write_text(path, new)
    return 0
