"""The rungs as the sources tell of them: which there are, in what order, by what idea."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_REGISTERED = re.compile(r"^tilegate_add_stage\(([\w/]+)\)", re.MULTILINE)
_TEXT = r'"((?:[^"\\]|\\.)*)"'


class LadderError(Exception):
    """Sources that this module cannot read; its text is one line for the user."""


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
    """Every stage that kernels/CMakeLists.txt registers, in its order."""
    registry = repository / "kernels" / "CMakeLists.txt"
    folders = _REGISTERED.findall(registry.read_text(encoding="utf-8"))
    if not folders:
        raise LadderError(f"{registry}: no tilegate_add_stage(<folder>) in it")
    return [_read_rung(registry.parent, folder) for folder in folders]


def _read_rung(kernels: Path, folder: str) -> Rung:
    word = re.sub(r"^\d+_", "", folder)
    source = kernels / folder / f"{word}.cu"
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as problem:
        raise LadderError(f"{source}: registered, but {problem.strerror}") from problem
    # The descriptor's first text is its name, be it `stage{.name = "…"` or `stage = make("…"`.
    name = _first(rf"\bStage stage\s*[{{=][^\"]*({_TEXT})", text)
    idea = _first(rf"\.idea\s*=\s*({_TEXT}(?:\s*{_TEXT})*)", text)
    if name is None or idea is None:
        wanted = "const Stage stage" if name is None else '.idea = "…"'
        raise LadderError(f"{source}: no `{wanted}` in it")
    return Rung(folder, name, idea)


def _first(pattern: str, text: str) -> str | None:
    """What the first match holds; adjacent literals are one string, as in C++."""
    found = re.search(pattern, text)
    return "".join(re.findall(_TEXT, found.group(1))) if found else None
