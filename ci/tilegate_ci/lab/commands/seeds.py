"""ci/gate lab seeds: the ladder's random cases, with one seed after the other."""

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path

from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, dumps, make_folder, read_json, write_text
from tilegate_ci.lab.sweeps import Shard, check_whole, paths_of, shard, work_off
from tilegate_ci.model import REPOSITORY

PROGRAM = REPOSITORY / "build" / "cpu" / "tests" / "ladder_test"
RESULTS = REPOSITORY / "build" / "seeds.json"
INTERRUPTED = "the same command goes on from here"

TYPES = {"shard": shard}
DEFAULTS = {"first": 1, "program": PROGRAM, "results": RESULTS, "shard": Shard()}


def run(arguments: argparse.Namespace) -> int:
    seeds = [str(arguments.first + number) for number in range(arguments.count)]
    path = arguments.shard.path(arguments.results)
    if arguments.merge:
        found = {each: load(each) for each in paths_of(path, arguments.merge)}
        check_whole(seeds, found)
        results = {seed: lines for of in found.values() for seed, lines in of.items()}
        write_text(path, dumps(results) + "\n")
    else:
        results = sweep(arguments.program, arguments.shard.of(seeds), path)
    failed = [f"seed {seed}: {line}" for seed, lines in results.items() for line in lines]
    print("\n".join([*failed, f"{len(results)} seeds, {len(failed)} failures"]))
    return int(bool(failed))


def sweep(program: Path, seeds: Sequence[str], path: Path) -> dict[str, list[str]]:
    """The failures of each seed; `path` has them, too."""
    make_folder(path.parent)
    results = {seed: lines for seed, lines in load(path).items() if seed in seeds}

    def try_seed(seed: str) -> None:
        results[seed] = failures(program, seed)
        write_text(path, dumps(results) + "\n")

    work_off([each for each in seeds if each not in results], try_seed, lambda seed: f"seed {seed}")
    return results


def failures(program: Path, seed: str) -> list[str]:
    command = [str(program), "--gtest_filter=Ladder/RandomSweep.*", "--gtest_brief=1"]
    environment = {**os.environ, "TILEGATE_SWEEP_SEED": seed}
    done = child.finished(command, capture_output=True, env=environment)
    lines = re.findall(r"^FAILED .*", done.stdout + done.stderr, re.MULTILINE)
    if done.returncode and not lines:
        raise GateError(f"{program}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return lines


def load(path: Path) -> dict[str, list[str]]:
    return dict(read_json(path)) if path.exists() else {}
