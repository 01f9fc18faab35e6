"""The lines of a rung that are its idea, taken from the source for the rung's page.

A source marks them with `// idea:begin Warptile` and `// idea:end`, each on a line of its own. A
rung may have several such places, also in headers that it shares."""

import os
import re
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.core.files import GateError, read_text

_BEGIN = re.compile(r" *// idea:begin (\w+)")
_END = "// idea:end"
_SUFFIXES = (".cu", ".cuh", ".hpp")


@dataclass(frozen=True)
class Excerpt:
    path: Path
    lines: list[str]


def excerpts(kernels: Path) -> Mapping[str, Sequence[Excerpt]]:
    """By rung; those of numbered folders come before those of common/."""
    found: dict[str, list[Excerpt]] = defaultdict(list)
    paths = [path for path in kernels.rglob("*") if path.suffix in _SUFFIXES]
    for path in sorted(paths):  # digits sort before letters
        rung = None
        for line in read_text(path).splitlines():
            begins, ends = _BEGIN.fullmatch(line), line.strip() == _END
            if (begins and rung) or (ends and not rung):
                raise GateError(f"{path}: {line.strip()!r} out of turn")
            if begins:
                rung = begins[1]
                found[rung].append(Excerpt(path, []))
            elif ends:
                rung = None
            elif rung:
                found[rung][-1].lines.append(line)
        if rung:
            raise GateError(f"{path}: '// idea:begin {rung}' without '{_END}'")
    return found


def idea_block(name: str, found: Sequence[Excerpt], page: Path) -> str:
    """What stands between the markers of the page."""
    if not found:
        return f"No source has `// idea:begin {name}` yet."
    parts = []
    for excerpt in found:
        link = Path(os.path.relpath(excerpt.path, page.parent)).as_posix()
        code = textwrap.dedent("\n".join(_indented(excerpt.lines)))
        parts.append(f"From [{excerpt.path.name}]({link}):\n\n```cpp\n{code}\n```")
    return "\n\n".join(parts)


def _indented(lines: Sequence[str]) -> list[str]:
    """A directive stands at the margin; on the page it is indented like the line after it."""
    shown = list(lines)
    for index in reversed(range(len(shown) - 1)):
        if shown[index].startswith("#"):
            after = shown[index + 1]
            shown[index] = " " * (len(after) - len(after.lstrip())) + shown[index]
    return shown
