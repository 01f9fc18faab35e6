"""Markdown: tables, and the blocks of a page that a command writes."""

from collections.abc import Iterable, Sequence

from tilegate_ci.core.files import GateError


def table(heads: Sequence[str], rows: Iterable[Iterable[str]], left: int = 1) -> list[str]:
    """Its lines; all columns but the first `left` are of numbers."""
    ruler = "---|" * left + "---:|" * (len(heads) - left)
    lines = [
        "|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (heads, *rows)
    ]
    return [lines[0], f"|{ruler}", *lines[1:]]


def begin(block: str) -> str:
    return f"<!-- {block}:begin -->"


def with_block(text: str, block: str, content: str, path: object) -> str:
    """The text of the page at `path` with `content` between the block's markers."""
    first, last = begin(block), f"<!-- {block}:end -->"
    if text.count(first) != 1 or text.count(last) != 1 or text.index(first) > text.index(last):
        raise GateError(f"{path}: should hold {first} and, after it, {last}, once each")
    head, rest = text.split(first)
    return f"{head}{first}\n{content}\n{last}{rest.split(last)[1]}"
