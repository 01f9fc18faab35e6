"""Committed tables: computed again, compared exactly, written by `ci/gate check --update`."""

import argparse
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from tilegate_ci.core.files import GateError, read_text, write_text
from tilegate_ci.core.markdown import Block, filled

Found = TypeVar("Found")


@dataclass(frozen=True)
class Report:
    exit_code: int
    text: str
    markdown: str = ""  # empty: the text as code


class CommittedTable(ABC, Generic[Found]):
    name: str
    holds: str  # for --help
    exit_codes: Mapping[int, str]
    options: Sequence[str] = ()  # of the command line that this table takes, beside those of all
    partial: Sequence[str] = ("rung",)  # options that choose a part, which --update does not take

    def ready(self) -> None:
        """GateError where this machine cannot compute the table."""

    def add_arguments(self, group: argparse._ArgumentGroup) -> None:
        """Adds `options`, unless another table does."""

    @abstractmethod
    def compute(self, asked: argparse.Namespace) -> Found:
        """What the table should hold, as far as it is asked for."""

    @abstractmethod
    def compare(self, asked: argparse.Namespace, found: Found) -> Report:
        """The verdict by the committed table."""

    @abstractmethod
    def write(self, asked: argparse.Namespace, found: Found) -> Report:
        """Writes the table."""

    def blocks(self, repository: Path) -> Iterable[Block]:
        """What pages quote of the committed table."""
        return ()

    def report(self, asked: argparse.Namespace) -> Report:
        """Compares the table and the pages that quote it, or writes them."""
        for option in self.partial if asked.update else ():
            if getattr(asked, option):
                raise GateError(f"--update writes the whole table; leave --{option} out")
        found = self.compute(asked)
        done = self.write(asked, found) if asked.update else self.compare(asked, found)
        text, failed, blocks = done.text, False, [*self.blocks(asked.repository)]
        drafts = {block.page for block in blocks if block.draft}
        for page, wanted in filled(blocks).items():
            if read_text(page) == wanted:
                continue
            name = page.relative_to(asked.repository)
            if asked.update:
                write_text(page, wanted)
                text += f"{name}: written\n"
            elif page in drafts:
                text += f"{name}: the rung is not in the baseline; {self.remedy} says so there\n"
            else:
                text += f"{name}: not what the committed table says; {self.remedy} writes it\n"
                failed = True
        return replace(done, exit_code=done.exit_code or int(failed), text=text)

    @property
    def remedy(self) -> str:
        return f"`ci/gate check {self.name} --update`"


def chosen(names: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """These rungs, or all; GateError where there is no such rung."""
    every = list(known)
    unknown = [name for name in names or () if name not in every]
    if unknown:
        raise GateError(f"no rung {', '.join(unknown)}; there are {', '.join(every)}")
    return list(names or every)
