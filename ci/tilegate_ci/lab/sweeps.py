"""Long work in parts, each kept when it ends: the same command goes on where it was stopped.

Over hosts `--shard I/N` takes every N-th part, from the I-th on, and keeps its results in a file of
its own; `--merge N` takes the files of all shards together."""

import argparse
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tilegate_ci.core.files import GateError, Steps

T = TypeVar("T")


@dataclass(frozen=True)
class Shard:
    index: int = 1
    count: int = 1

    def of(self, parts: Sequence[T]) -> list[T]:
        return [*parts[self.index - 1 :: self.count]]

    def path(self, path: Path) -> Path:
        """journal.jsonl as journal.2of8.jsonl."""
        if self.count == 1:
            return path
        return path.with_name(f"{path.stem}.{self.index}of{self.count}{path.suffix}")


def shard(text: str) -> Shard:
    index, _, number = text.partition("/")
    found = Shard(int(index), int(number))
    if not 1 <= found.index <= found.count:
        raise argparse.ArgumentTypeError(f"I/N with I from 1 to N, not {text}")
    return found


def paths_of(path: Path, number: int) -> list[Path]:
    return [Shard(index, number).path(path) for index in range(1, number + 1)]


def check_whole(expected: Collection[str], found: Mapping[Path, Collection[str]]) -> None:
    """GateError unless the files have each part once and nothing else."""
    for path, parts in found.items():
        if strange := [part for part in parts if part not in expected]:
            what = f"{strange[0]} is no part of this sweep: were the arguments others?"
            raise GateError(f"{path}: {what}")
    places = {part: [str(path) for path in found if part in found[path]] for part in expected}
    for part, files in places.items():
        if len(files) > 1:
            raise GateError(f"{part} is in {' and '.join(files)}")
    missing = [part for part, files in places.items() if not files]
    if missing:
        names = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise GateError(f"{len(missing)} of {len(places)} parts are in no shard: {names}")


def work_off(
    parts: Iterable[T],
    do: Callable[[T], None],
    title: Callable[[T], str],
    limit_s: float | None = None,
    kind: Callable[[T], object] = lambda _: None,
    jobs: int = 1,
) -> list[T]:
    """Does the parts in their order, `jobs` at a time; gives the parts that the time limit leaves.
    None but the first begins that would end too late, as the slowest of its kind so far did."""
    waiting, began = deque(parts), time.monotonic()
    longest: dict[object, float] = {}
    problems: list[BaseException] = []
    turn = threading.Lock()

    def likely_s(part: T) -> float:
        return longest.get(kind(part), max(longest.values(), default=0.0))

    def next_part() -> T | None:
        with turn:
            if not waiting or problems:
                return None
            spent = time.monotonic() - began
            if longest and limit_s is not None and spent + 1.2 * likely_s(waiting[0]) > limit_s:
                return None
            return waiting.popleft()

    def work() -> None:
        try:
            while (part := next_part()) is not None:
                start = time.monotonic()
                do(part)
                took = time.monotonic() - start
                with turn:
                    longest[kind(part)] = max(longest.get(kind(part), 0.0), took)
                    left_s = sum(map(likely_s, waiting)) / jobs
                    steps.done(title(part), took, len(waiting), left_s)
        except BaseException as problem:
            problems.append(problem)

    with Steps() as steps:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs - 1)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads if not problems else ():
            thread.join()
        if problems:  # the others end with this process, and what they run with them
            raise problems[0]
    return [*waiting]
