"""What `ci/gate check` compares exactly and --update writes: tables, files made of them, and blocks
of pages."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilegate_ci.core.files import GateError, make_folder, read_text, write_text


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


@dataclass(frozen=True)
class Report:
    exit_code: int
    text: str
    markdown: str = ""  # empty: the text as code


class Committed:
    """What `ci/gate check` knows by a name."""

    name: str
    options: Sequence[str] = ()  # of the command line that this takes, beside those of all
    partial: Sequence[str] = ("rung",)  # options that choose a part, which --update does not take
    pattern: str = ""  # of files that are removed unless they are in `files`
    empty: str = "nothing is committed to make them from"

    def ready(self) -> None:
        """GateError where it is left out unless it is named: this machine cannot compute it."""

    def numbers(self, asked: argparse.Namespace) -> Report:
        """Measures or counts, then compares with the committed numbers, or with --update writes
        them."""
        return Report(0, "")

    def blocks(self, repository: Path) -> Sequence[Block]:
        """What pages quote of the committed numbers."""
        return ()

    def files(self, repository: Path) -> Mapping[Path, str]:
        """Files made from the committed numbers."""
        return {}

    def report(self, asked: argparse.Namespace) -> Report:
        """Compares the numbers, and then all that is made from them; with --update writes both."""
        for option in self.partial if asked.update else ():
            if getattr(asked, option):
                raise GateError(f"--update writes the whole table; leave --{option} out")
        found = self.numbers(asked)
        repository, remedy = asked.repository, f"`ci/gate check {self.name} --update`"
        blocks = self.blocks(repository)
        wanted = {**filled(blocks), **self.files(repository)}
        drafts = {block.page for block in blocks if block.draft}
        lines, code = [], found.exit_code
        for path, text in wanted.items():
            name = path.relative_to(repository)
            if path.exists() and read_text(path) == text:
                continue
            if asked.update:
                make_folder(path.parent)
                write_text(path, text)
                lines.append(f"{name}: written")
            elif path in drafts:
                lines.append(f"{name}: the rung is not in the baseline; {remedy} says so there")
            else:
                lines.append(f"{name}: out of date; {remedy} writes it")
                code = code or 1
        for path in sorted(repository.glob(self.pattern)) if self.pattern else ():
            name = path.relative_to(repository)
            if path not in wanted and asked.update:
                path.unlink()
                lines.append(f"{name}: removed")
            elif path not in wanted:
                lines.append(f"{name}: made from nothing committed; {remedy} removes it")
                code = code or 1
        if not found.text and not lines:
            lines = [f"{len(wanted)} files are up to date" if wanted else self.empty]
        text = found.text + "".join(f"{line}\n" for line in lines)
        return replace(found, exit_code=code, text=text)


def chosen(names: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """These rungs, or all; GateError where there is no such rung."""
    every = list(known)
    unknown = [name for name in names or () if name not in every]
    if unknown:
        raise GateError(f"no rung {', '.join(unknown)}; there are {', '.join(every)}")
    return list(names or every)
