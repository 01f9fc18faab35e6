"""A small repository with a ladder, READMEs and numbers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stage_builder import stage, write_stages

REPOSITORY = Path(__file__).resolve().parents[2]

# In the order of the ladder; the numbers of the baseline in data/ are invented.
STAGES = (
    stage("01_naive", "Naive", "one thread per element"),
    stage("09_swizzle", "Swizzle", "no padding, no conflicts"),
    stage("10_warptile", "Warptile", "tiles of warps"),
    stage("cublas", "Cublas", "the yardstick"),
)


@dataclass(frozen=True)
class Ladder:
    """A repository of its own in a temporary folder."""

    path: Path

    @property
    def readme(self) -> Path:
        return self.path / "README.md"

    @property
    def kernels(self) -> Path:
        return self.path / "kernels" / "README.md"

    @property
    def baseline(self) -> Path:
        return self.path / "bench" / "baselines" / "nvidia-h200.json"

    def page(self, folder: str) -> Path:
        return self.path / "kernels" / folder / "README.md"

    def picture(self, name: str) -> Path:
        return self.path / "bench" / "plots" / name

    def write_baseline(self, **changes: Any) -> None:
        """The invented baseline; `changes` replace fields of its top level."""
        text = (Path(__file__).parent / "data" / "invented_h200.json").read_text("utf-8")
        document = {**json.loads(text), **changes}
        self.baseline.parent.mkdir(parents=True, exist_ok=True)
        self.baseline.write_text(json.dumps(document), encoding="utf-8")


def build(path: Path) -> Ladder:
    found = Ladder(path)
    found.readme.write_text(
        "# Top\n\n<!-- headline:begin -->\n<!-- headline:end -->\n\nrest\n", "utf-8"
    )
    found.kernels.parent.mkdir()
    found.kernels.write_text("<!-- ladder:begin -->\n<!-- ladder:end -->\n", "utf-8")
    write_stages(path / "build" / "cpu", *STAGES)
    for rung in STAGES[:-1]:
        page = path / rung["folder"] / "README.md"
        page.parent.mkdir(parents=True)
        page.write_text("text\n<!-- numbers:begin -->\n<!-- numbers:end -->\n")
    return found
