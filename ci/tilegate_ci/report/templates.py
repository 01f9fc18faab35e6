"""Markdown, HTML and XML by jinja2. Whatever a template prints is escaped for its language, so that
no name, note or message can become markup; what is markup already says so by its type. Only the
templates in text/ print values as they are: none of theirs comes from others' files."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_HERE = Path(__file__).parent


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def escaped(value: object) -> str:
    """As text, on one line: no table, code, emphasis, link, heading or HTML out of it."""
    if isinstance(value, Markdown):
        return value
    text = "" if value is None else str(value)
    for character in "\\`*_|<[&~#":
        text = text.replace(character, "\\" + character)
    return "<br>".join(text.splitlines())


def code(text: str) -> Markdown:
    """A code span, also in a table, where it must escape a |. What could end the span, or undo
    that escape, is shown as text instead."""
    if not text or set(text) & set("`\\") or len(text.splitlines()) > 1:
        return Markdown(escaped(text))
    return Markdown("`" + text.replace("|", "\\|") + "`")


def link(text: str, address: str | None) -> Markdown:
    """Plain text without an address."""
    return Markdown(f"[{escaped(text)}](<{address}>)" if address else escaped(text))


@cache
def _environment(folder: str) -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    if folder == "page":
        made.autoescape = True
    elif folder == "markdown":
        made.finalize = escaped
        made.filters.update(code=code, link=link, raw=Markdown)
    return made


def markdown(template: str, **values: object) -> str:
    return _environment("markdown").get_template(f"{template}.md").render(values)


def text(template: str, **values: object) -> str:
    return _environment("text").get_template(template).render(values)


def html(template: str, **values: object) -> str:
    """Or XML; `template` is a file of the page."""
    return _environment("page").get_template(template).render(values)


def part(name: str) -> str:
    """A file of the page as it is."""
    return (_HERE / "page" / name).read_text(encoding="utf-8")
