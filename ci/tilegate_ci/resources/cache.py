"""What a rung's compilation gave, kept under build/ for as long as its sources stay the same."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.resources import compile as resources_compile
from tilegate_ci.resources.compile import Compiled, Launch, Toolkit, Usage


class Cache:
    """One file a rung, architecture and compiler. It names the sources that it was made of, so
    that a header's change is seen without running the compiler."""

    def __init__(self, folder: Path, repository: Path, toolkit: Toolkit) -> None:
        self.folder = folder
        self.repository = repository
        self._known: dict[Path, str | None] = {}  # headers are shared by many rungs
        tools = (Path(resources_compile.__file__), resources_compile.LAUNCHES)
        made_by = [toolkit.full, *(self._digest(path) or "" for path in tools)]
        self._tool = hashlib.sha256("\n".join(made_by).encode()).hexdigest()

    def load(self, word: str, architecture: str) -> Compiled | None:
        try:
            entry = json.loads(self._path(word, architecture).read_text(encoding="utf-8"))
            for source, digest in entry["sources"].items():
                if self._digest(self.repository / source) != digest:
                    return None
            return Compiled(
                {name: Usage(**usage) for name, usage in entry["usage"].items()},
                {name: Launch(**launch) for name, launch in entry["launches"].items()},
                entry["requires"],
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # none yet, or not one of ours: compile

    def store(self, word: str, architecture: str, compiled: Compiled) -> None:
        entry = {
            "sources": self._digests(compiled.sources),
            "usage": {name: dataclasses.asdict(usage) for name, usage in compiled.usage.items()},
            "launches": {n: dataclasses.asdict(launch) for n, launch in compiled.launches.items()},
            "requires": compiled.requires,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise GateError(f"{self.folder}: cannot be made: {problem.strerror}") from problem
        write_text(self._path(word, architecture), json.dumps(entry, indent=1))

    def _path(self, word: str, architecture: str) -> Path:
        return self.folder / f"{word}-{architecture}-{self._tool[:16]}.json"

    def _digests(self, sources: Sequence[str]) -> dict[str, str | None]:
        """Of the repository's own files; those of the toolkit change with its version alone."""
        root = self.repository.resolve()
        own = [Path(source).resolve() for source in sources]
        return {
            path.relative_to(root).as_posix(): self._digest(path)
            for path in own
            if path.is_relative_to(root)
        }

    def _digest(self, path: Path) -> str | None:
        if path not in self._known:
            try:
                self._known[path] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError:
                self._known[path] = None
        return self._known[path]
