"""The rungs as the build tells of them: which there are, in what order, by what idea."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


class LadderError(Exception):
    """No build that tells of the rungs; its text is one line for the user."""


@dataclass(frozen=True)
class Rung:
    """One stage. `folder` is below kernels/: "10_warptile"; the yardstick's has no number."""

    folder: str
    name: str
    idea: str

    @property
    def numbered(self) -> bool:
        return self.folder[0].isdigit()

    @property
    def title(self) -> str:
        """As a table of the ladder names it: "10 Warptile"."""
        return f"{self.folder.split('_')[0]} {self.name}" if self.numbered else self.name


def read_rungs(repository: Path) -> list[Rung]:
    """Every stage of the newest build, in its order."""
    found = sorted(
        (repository / "build").glob("*/stages.json"), key=lambda path: path.stat().st_mtime
    )
    if not found:
        raise LadderError("no build/*/stages.json: build first, as cmake --build --preset cpu")
    stages = json.loads(found[-1].read_text(encoding="utf-8"))["stages"]
    return [
        Rung(stage["folder"].removeprefix("kernels/"), stage["name"], stage["idea"])
        for stage in stages
    ]
