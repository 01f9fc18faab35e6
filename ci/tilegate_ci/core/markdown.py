"""Markdown: tables, and the blocks of a page that a command writes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.core.files import GateError, read_text


def table(heads: Sequence[str], rows: Iterable[Iterable[str]], left: int = 1) -> list[str]:
    """Its lines; all columns but the first `left` are of numbers."""
    ruler = "---|" * left + "---:|" * (len(heads) - left)
    lines = [
        "|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (heads, *rows)
    ]
    return [lines[0], f"|{ruler}", *lines[1:]]


@dataclass(frozen=True)
class Block:
    """The text between two markers of a page. A draft's page may be out of date."""

    page: Path
    name: str
    content: str
    draft: bool = False


def has_block(page: Path, name: str) -> bool:
    return page.exists() and _begin(name) in read_text(page)


def filled(blocks: Iterable[Block]) -> dict[Path, str]:
    """What each page should hold."""
    pages: dict[Path, str] = {}
    for block in blocks:
        if not block.page.exists():
            raise GateError(f"{block.page}: missing; it should hold {_begin(block.name)}")
        text = pages.get(block.page) or read_text(block.page)
        pages[block.page] = with_block(text, block.name, block.content, block.page)
    return pages


def _begin(block: str) -> str:
    return f"<!-- {block}:begin -->"


def with_block(text: str, block: str, content: str, path: object) -> str:
    """The text of the page at `path` with `content` between the block's markers."""
    first, last = _begin(block), f"<!-- {block}:end -->"
    if text.count(first) != 1 or text.count(last) != 1 or text.index(first) > text.index(last):
        raise GateError(f"{path}: should hold {first} and, after it, {last}, once each")
    head, rest = text.split(first)
    return f"{head}{first}\n{content}\n{last}{rest.split(last)[1]}"
