"""Synchronisation removed, one call at a time, and what sees it.

    PYTHONPATH=ci python3 tests/counters/removals.py [RUNG...]   # the table and its page

Each rung is compiled once: every call asks whether it is the one that is removed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutant import Mutant, Toolchain, read_toolchain
from synchronisation import (
    Row,
    Site,
    reached_from,
    read_table,
    rungs,
    sites,
    wrappers,
    write_table,
)

from tilegate_ci.model import REPOSITORY

HERE = Path(__file__).resolve().parent
PAGE = REPOSITORY / "tests/mutants/README.md"
_BEGIN, _END = "<!-- synchronisation:begin -->", "<!-- synchronisation:end -->"
LADDER = "the ladder's cases"  # those that watched.<Rung> has beside paths
_NOT_DONE_S = 900.0  # the slowest case takes some 20


@dataclass(frozen=True)
class Seen:
    """`how`: hazard, deadlock or value; `what`: the beginning of the message."""

    how: str
    what: str


@dataclass(frozen=True)
class Case:
    """A path's test, or all of LADDER, and what it reaches."""

    test: str
    seconds: float
    reached: frozenset[int]


class Removals:
    """watched_test with the sites of some rungs in it."""

    def __init__(self, toolchain: Toolchain, folder: Path, words: Iterable[str]) -> None:
        self._toolchain, self._folder = toolchain, folder
        self._numbers = {site.key: number for number, site in enumerate(sites())}
        mutant = Mutant(toolchain, folder)
        for file in {site.file for site in sites()}:
            mutant.rewrite(file, self._with_questions)
        header = HERE / "removals.hpp"
        own = folder / "removals.o"
        mutant.run(toolchain.clang, "-std=c++20", "-O1", "-c", HERE / "removals.cpp", "-o", own)
        with ThreadPoolExecutor(max_workers=2) as pool:
            objects = pool.map(
                lambda each: mutant.compile(each[1], 2000 + each[0], "-include", header),
                enumerate(source for word in words for source in rungs()[word]),
            )
        inputs = [*toolchain.watched_objects, *objects, own, *toolchain.watched_libraries]
        self._program = mutant.link("watched_test", inputs)

    def _with_questions(self, file: str, text: str) -> str:
        of_file = [site for site in sites() if site.file == file]
        for site in sorted(of_file, key=lambda site: site.begin, reverse=True):
            call = text[site.begin : site.end]
            removed = "void()"
            if site.kind == "named_barrier_or":
                removed = call[call.index(",") + 1 : -1]  # the thread's own value
            asked = f"(::tilegate_removes({self._numbers[site.key]}) ? {removed} : {call})"
            text = text[: site.begin] + asked + text[site.end :]
        return text

    def cases(self, word: str) -> list[Case]:
        """The watched cases of a rung, the quickest first."""
        listed = subprocess.run(
            [self._program, "--gtest_list_tests", f"--gtest_filter={self._filter(word)[1]}"],
            env=_environment(), capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        suite = ""
        tests = [LADDER]
        for line in listed.splitlines():
            name = line.partition("#")[0].strip()
            if line.startswith(" "):
                tests.append(suite + name)
            elif name.endswith("."):
                suite = name
        found = []
        for test in tests:
            began = time.monotonic()
            status, output, reached = self._run(word, test)
            assert status in (0, 77), output
            found.append(Case(test, time.monotonic() - began, reached))
        return sorted(found, key=lambda case: case.seconds)

    def removed(self, site: Site, word: str, test: str) -> Seen | None:
        status, output, _ = self._run(word, test, self._numbers[site.key])
        if status in (0, 77) or "matches no test" in output:
            return None
        return _seen(status, output)

    def passes(self, word: str, test: str) -> bool:
        return self._run(word, test)[0] in (0, 77)

    def is_reached(self, site: Site, case: Case) -> bool:
        return self._numbers[site.key] in case.reached

    def _filter(self, word: str) -> tuple[str, str]:
        """Of LADDER, and of paths."""
        name = word.replace("_", "")
        filters = {rung.lower(): tests for rung, tests in self._toolchain.filters.items()}
        ladder, _, paths = filters[name].rpartition(":")
        return ladder, paths

    def _run(
        self, word: str, test: str, removed: int | None = None
    ) -> tuple[int | None, str, frozenset[int]]:
        tests = self._filter(word)[0] if test == LADDER else test
        with tempfile.NamedTemporaryFile(dir=self._folder) as reached:
            environment = _environment() | {"TILEGATE_REACHED": reached.name}
            if removed is not None:
                environment["TILEGATE_REMOVED"] = str(removed)
            try:
                done = subprocess.run(
                    [self._program, f"--gtest_filter={tests}", "--gtest_fail_fast"],
                    env=environment, capture_output=True, text=True, errors="replace",
                    timeout=_NOT_DONE_S,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return None, "", frozenset()
            numbers = Path(reached.name).read_text("utf-8").split()
            output = done.stdout + done.stderr
            return done.returncode, output, frozenset(int(number) for number in numbers)


def _environment() -> dict[str, str]:
    return os.environ | {"TILEGATE_THOROUGH": "1"}  # some cases are for the night alone


def _seen(status: int | None, output: str) -> Seen:
    if status is None:
        return Seen("deadlock", f"not done after {_NOT_DONE_S:.0f} s")
    check = re.search(r"fails the check `(\w+)`", output)
    if check is None:
        return Seen("hazard", f"ended with {status}")
    if check.group(1) != "status":
        return Seen("value", f"fails the check {check.group(1)}")
    found = re.search(r"thread \(\d+,\d+,\d+\)(?: of block \d+)?: (.*)", output)
    message = found.group(1) if found else output.partition("seed")[2].splitlines()[1].strip()
    what = re.split(r" at (?:/|kernels|tests)|: this thread|; |, which|: thread", message)[0]
    how = "deadlock" if re.match("deadlock|divergent", message) else "hazard"
    return Seen(how, re.sub(r"\d+", "N", what)[:90].rstrip(" ,"))


def reaching(site: Site) -> list[str]:
    """The rungs that include its file."""
    return [
        word
        for word, sources in rungs().items()
        if any(site.file in reached_from(source) for source in sources)
    ]


def find_rows(
    removals: Removals, words: Collection[str], table: dict[str, Row], chosen: Sequence[Site]
) -> Iterator[tuple[Site, Row]]:
    """What sees the removal of each site: what saw it before, or else the quickest that does."""
    cases = cache(removals.cases)
    for site in chosen:
        before = table.get(site.key, Row())
        tests = [(before.rung, before.test)] if before.rung in words else []
        row = _first_to_see(removals, site, tests) or _first_to_see(
            removals,
            site,
            (
                (word, case.test)
                for word in reaching(site)
                if word in words
                for case in cases(word)
                if removals.is_reached(site, case)
            ),
        )
        yield site, row or Row(reason=before.reason)


def _first_to_see(removals: Removals, site: Site, tests: Iterable[tuple[str, str]]) -> Row | None:
    for word, test in tests:
        if seen := removals.removed(site, word, test):
            return Row(word, test, seen.how, seen.what)
    return None


def section(table: dict[str, Row]) -> str:
    """Of the page: which kinds are seen how, and what nothing sees."""
    hows = ("hazard", "deadlock", "value", "nothing")
    counts = Counter((_kind(site), table[site.key].how) for site in sites() if site.key in table)
    lines = ["| removed | sites | " + " | ".join(hows) + " |", "|---|" + "---:|" * 5]
    for kind in [*sorted({kind for kind, _ in counts}), ""]:
        cells = [
            sum(n for (k, h), n in counts.items() if h == how and kind in ("", k)) for how in hows
        ]
        name = f"`{kind}`" if kind and " " not in kind else kind or "**all**"
        lines.append(f"| {name} | {sum(cells)} | " + " | ".join(map(str, cells)) + " |")
    lines += ["", "Nothing sees", ""]
    lines += [f"- `{key}`: {row.reason}" for key, row in sorted(table.items()) if row.reason]
    return "\n".join(lines)


def _kind(site: Site) -> str:
    return "functions that only synchronise" if site.kind in wrappers() else site.kind


def write_page(table: dict[str, Row]) -> None:
    before, begin, rest = PAGE.read_text("utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    PAGE.write_text(f"{before}{begin}\n{section(table)}\n{end}{after}", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rung", nargs="*", help="as its folder without the number; default: all")
    words = set(parser.parse_args().rung or rungs())
    known = {site.key for site in sites()}
    table = {key: row for key, row in read_table().items() if key in known}
    chosen = []
    for site in sites():
        by = table.get(site.key, Row()).rung
        if words & {by or word for word in reaching(site)}:
            chosen.append(site)
    # What no rung has seen yet any may see.
    words |= {word for site in chosen if site.key not in table for word in reaching(site)}
    with tempfile.TemporaryDirectory() as folder:
        removals = Removals(read_toolchain(), Path(folder), sorted(words))
        for site, row in find_rows(removals, words, table, chosen):
            print(f"{site.key}: {row.how} {row.what} {row.test}", flush=True)
            table[site.key] = row
            write_table(table)
    write_page(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
