"""Sweeps over hosts. `--shard I/N` takes every N-th part, from the I-th on, and keeps its results
in a file of its own; `--merge N` takes the files of all shards together."""

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tilegate_ci.core.files import GateError

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
    places: dict[str, list[str]] = {part: [] for part in expected}
    for path, parts in found.items():
        for part in parts:
            if part not in places:
                raise GateError(
                    f"{path}: {part} is no part of this sweep: were the arguments others?"
                )
            places[part].append(str(path))
    for part, files in places.items():
        if len(files) > 1:
            raise GateError(f"{part} is in {' and '.join(files)}")
    missing = [part for part, files in places.items() if not files]
    if missing:
        names = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise GateError(f"{len(missing)} of {len(places)} parts are in no shard: {names}")
