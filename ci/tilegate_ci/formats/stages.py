"""The stages of a build, from build/<preset>/stages.json."""

from pathlib import Path
from typing import Literal

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Line, Model, Natural, Text
from tilegate_ci.core.files import GateError
from tilegate_ci.model import REPOSITORY

FILE = "stages.json"
HOW_TO_BUILD = "cmake --preset cpu && cmake --build --preset cpu --target stages_json"


class Stage(Model):
    """One rung or the yardstick. Paths are relative to the repository, absolute where `external`
    says that the rung lives outside of it."""

    name: Line
    title: Line  # as a table of the ladder names it: "10 Warptile"
    idea: Text  # may be empty
    folder: Path
    library: Line
    chooses_from: list[Line] | None = None  # libraries whose kernels it launches too; None: unknown
    sources: list[Path]
    tile_sizes: list[Natural]
    compute_capability: Natural
    multiple_of: list[Natural] = [1, 1, 1]  # of M, N and K that it supports
    not_on_simt: str  # why the executor cannot run it; empty: it can
    splits: bool  # operands, for tensor cores, whatever the problem allows
    yardstick: bool
    external: bool
    variants: list[Line]

    @property
    def word(self) -> str:
        """How C++ calls it: "split_k"."""
        return self.library.removeprefix("tilegate_")


class StagesFile(Model):
    device: Literal["cuda", "simt"]
    stages: list[Stage]  # in ladder order, the yardstick last


def read_stages(build: Path) -> list[Stage]:
    """Those of one build tree."""
    return documents.load(StagesFile, build / FILE).stages


def stages_of(build: Path) -> list[Stage]:
    """As read_stages; [] where the build is too old to list them, or has not been made yet."""
    return read_stages(build) if (build / FILE).exists() else []


def find_stages(repository: Path = REPOSITORY) -> list[Stage]:
    """Those of the newest build tree; GateError says what to build where there is none."""
    found = newest_stages(repository)
    if not found:
        raise GateError(f"no build tree of {repository} lists its rungs: {HOW_TO_BUILD}")
    return found


def newest_stages(repository: Path) -> list[Stage]:
    """As find_stages; [] where nothing is built."""
    found = sorted((repository / "build").glob(f"*/{FILE}"), key=lambda f: f.stat().st_mtime_ns)
    return read_stages(found[-1].parent) if found else []


def find_ladder(repository: Path = REPOSITORY) -> list[Stage]:
    """This repository's own stages, which its pages and pictures show."""
    return [stage for stage in find_stages(repository) if not stage.external]
