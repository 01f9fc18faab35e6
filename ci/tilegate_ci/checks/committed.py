"""Committed tables: computed again, compared exactly, written by `ci/gate check --update`."""

import argparse
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from tilegate_ci.core.files import GateError, make_folder, read_text, write_text
from tilegate_ci.core.markdown import Block, filled

Found = TypeVar("Found")


@dataclass(frozen=True)
class Report:
    exit_code: int
    text: str
    markdown: str = ""  # empty: the text as code


class Committed(ABC):
    """What `ci/gate check` knows by a name."""

    name: str
    holds: str  # for --help
    options: Sequence[str] = ()  # of the command line that this takes, beside those of all
    partial: Sequence[str] = ("rung",)  # options that choose a part, which --update does not take

    def ready(self) -> None:  # noqa: B027, few need something
        """GateError where it is left out unless it is named: this machine cannot compute it."""

    def add_arguments(self, group: argparse._ArgumentGroup) -> None:  # noqa: B027
        """Adds `options`, unless another table does."""

    def report(self, asked: argparse.Namespace) -> Report:
        """Compares it with what is committed, or with --update writes it."""
        for option in self.partial if asked.update else ():
            if getattr(asked, option):
                raise GateError(f"--update writes the whole table; leave --{option} out")
        return self.checked(asked)

    @abstractmethod
    def checked(self, asked: argparse.Namespace) -> Report:
        """As report."""

    def files(
        self,
        asked: argparse.Namespace,
        wanted: Mapping[Path, str],
        drafts: Collection[Path] = (),
        left_over: Iterable[Path] = (),
    ) -> tuple[str, int]:
        """Compares or writes files: what there is to say, and the exit code. Drafts may be out of
        date; what is left over should not be there."""
        lines, code, remedy = [], 0, f"`ci/gate check {self.name} --update`"
        for path, text in wanted.items():
            name = path.relative_to(asked.repository)
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
                code = 1
        for path in left_over:
            if asked.update:
                path.unlink()
            code = int(not asked.update)
            how = "removed" if asked.update else f"made from nothing committed; {remedy} removes it"
            lines.append(f"{path.relative_to(asked.repository)}: {how}")
        return "".join(f"{line}\n" for line in lines), code


class CommittedTable(Committed, Generic[Found]):
    """Numbers that are measured or counted."""

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

    def checked(self, asked: argparse.Namespace) -> Report:
        found = self.compute(asked)
        done = self.write(asked, found) if asked.update else self.compare(asked, found)
        text, code = self.files(asked, filled(self.blocks(asked.repository)))
        return replace(done, exit_code=done.exit_code or code, text=done.text + text)


class GeneratedFiles(Committed):
    """Files that are made from what is committed."""

    pattern: str = ""  # of files that are removed unless they are made
    empty: str = "nothing is committed to make them from"

    @abstractmethod
    def make(self, repository: Path) -> tuple[dict[Path, str], Collection[Path]]:
        """The files, and those of them that are drafts."""

    def checked(self, asked: argparse.Namespace) -> Report:
        wanted, drafts = self.make(asked.repository)
        every = sorted(asked.repository.glob(self.pattern)) if self.pattern else []
        left_over = [path for path in every if path not in wanted]
        text, code = self.files(asked, wanted, drafts, left_over)
        said = f"{len(wanted)} files are up to date" if wanted else self.empty
        return Report(code, text or f"{said}\n")


def chosen(names: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """These rungs, or all; GateError where there is no such rung."""
    every = list(known)
    unknown = [name for name in names or () if name not in every]
    if unknown:
        raise GateError(f"no rung {', '.join(unknown)}; there are {', '.join(every)}")
    return list(names or every)


def shape(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not MxNxK, each at least 1")
    return text
