"""A small repository with a ladder, READMEs and numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]

# In the order of the ladder; the numbers of the baseline in data/ are invented.
RUNGS = {
    "01_naive": ("Naive", '"one thread an element"'),
    "09_swizzle": ("Swizzle", '"no padding, "\n            "no conflicts"'),
    "10_warptile": ("Warptile", '"tiles of warps"'),
    "cublas": ("Cublas", '"the yardstick"'),
}


@dataclass(frozen=True)
class Ladder:
    """A repository of its own in a temporary folder."""

    path: Path

    @property
    def readme(self) -> Path:
        return self.path / "README.md"

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
        "# Top\n\n<!-- ladder:begin -->\n<!-- ladder:end -->\n\nrest\n", "utf-8"
    )
    for folder, (name, idea) in RUNGS.items():
        source = path / "kernels" / folder / f"{folder.split('_')[-1]}.cu"
        source.parent.mkdir(parents=True)
        source.write_text(f'const Stage stage{{\n    .name = "{name}",\n    .idea = {idea},\n}};\n')
        if folder[0].isdigit():
            found.page(folder).write_text("text\n<!-- numbers:begin -->\n<!-- numbers:end -->\n")
    lines = [f"tilegate_add_stage({folder})\n" for folder in RUNGS]
    lines.insert(1, "#tilegate_add_stage(99_left_out)\n  tilegate_add_stage(${folder})\n")
    (path / "kernels" / "CMakeLists.txt").write_text("".join(lines))
    return found
