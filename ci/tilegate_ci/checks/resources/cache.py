"""What a rung's compilation gave, kept under build/ for as long as its sources stay the same."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.checks.resources import compile as resources_compile
from tilegate_ci.checks.resources.compile import Compiled, Launch, Toolkit, Usage
from tilegate_ci.core import documents
from tilegate_ci.core.documents import Model
from tilegate_ci.core.files import GateError, make_folder, write_text
from tilegate_ci.formats.stages import Stage


class CacheEntry(Model):
    """`sources`: the digest of what was compiled."""

    sources: str
    usage: Mapping[str, Usage]
    launches: Mapping[str, Launch]


class Cache:
    """One file for each rung, architecture and compiler."""

    def __init__(self, folder: Path, toolkit: Toolkit) -> None:
        self.folder = folder
        tools = (Path(resources_compile.__file__), resources_compile.LAUNCHES)
        made_by = [toolkit.full.encode(), *(path.read_bytes() for path in tools)]
        self._tool = hashlib.sha256(b"\n".join(made_by)).hexdigest()

    def load(self, stage: Stage, architecture: str, sources: str) -> Compiled | None:
        try:
            entry = documents.load(CacheEntry, self._path(stage, architecture))
        except GateError:
            return None  # none yet, or not one that this gate wrote: compile
        return Compiled(entry.usage, entry.launches) if entry.sources == sources else None

    def store(self, stage: Stage, architecture: str, sources: str, compiled: Compiled) -> None:
        entry = CacheEntry(sources=sources, usage=compiled.usage, launches=compiled.launches)
        make_folder(self.folder)
        write_text(self._path(stage, architecture), documents.to_text(entry))

    def _path(self, stage: Stage, architecture: str) -> Path:
        return self.folder / f"{stage.word}-{architecture}-{self._tool[:16]}.json"
