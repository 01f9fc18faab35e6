"""What a rung's compilation gave, kept under build/ for as long as its sources stay the same."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilegate_ci.core import formats
from tilegate_ci.core.files import GateError, make_folder, write_text
from tilegate_ci.core.formats import Model
from tilegate_ci.core.stages import Stage
from tilegate_ci.resources import compile as resources_compile
from tilegate_ci.resources.compile import Compiled, Launch, Toolkit, Usage


class CacheEntry(Model):
    """Names the sources that it was made of, so that a header's change is seen without running
    the compiler."""

    sources: Mapping[str, str | None]
    usage: Mapping[str, Usage]
    launches: Mapping[str, Launch]


class Cache:
    """One file for each rung, architecture and compiler."""

    def __init__(self, folder: Path, repository: Path, toolkit: Toolkit) -> None:
        self.folder = folder
        self.repository = repository
        self._known: dict[Path, str | None] = {}  # headers are shared by many rungs
        tools = (Path(resources_compile.__file__), resources_compile.LAUNCHES)
        made_by = [toolkit.full, *(self._digest(path) or "" for path in tools)]
        self._tool = hashlib.sha256("\n".join(made_by).encode()).hexdigest()

    def load(self, stage: Stage, architecture: str) -> Compiled | None:
        try:
            entry = formats.load(CacheEntry, self._path(stage, architecture))
        except GateError:
            return None  # none yet, or not one that this gate wrote: compile
        for source, digest in entry.sources.items():
            if self._digest(self.repository / source) != digest:
                return None
        return Compiled(entry.usage, entry.launches)

    def store(self, stage: Stage, architecture: str, compiled: Compiled) -> None:
        entry = CacheEntry(
            sources=self._digests(stage, compiled.sources),
            usage=compiled.usage,
            launches=compiled.launches,
        )
        make_folder(self.folder)
        write_text(self._path(stage, architecture), formats.to_text(entry))

    def _path(self, stage: Stage, architecture: str) -> Path:
        return self.folder / f"{stage.word}-{architecture}-{self._tool[:16]}.json"

    def _digests(self, stage: Stage, sources: Sequence[str]) -> dict[str, str | None]:
        """Of the repository's files and the rung's own; those of the toolkit change with its
        version alone."""
        roots = (self.repository.resolve(), (self.repository / stage.folder).resolve())
        paths = [Path(source).resolve() for source in sources]
        own = [path for path in paths if any(path.is_relative_to(root) for root in roots)]
        return {os.path.relpath(path, roots[0]): self._digest(path) for path in own}

    def _digest(self, path: Path) -> str | None:
        if path not in self._known:
            try:
                self._known[path] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError:
                self._known[path] = None
        return self._known[path]
