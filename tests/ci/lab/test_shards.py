"""Sweeps in shards, by several processes, and their merge."""

import json
import os
import shutil
import subprocess

import pytest

from gate_builders import REPOSITORY
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.lab.commands.mutants import merge, of_shard
from tilegate_ci.lab.mutants.rules import Mutant
from tilegate_ci.lab.mutants.table import MutantJournal, Record
from tilegate_ci.lab.sweeps import Shard, paths_of

PROGRAM = """#!/bin/sh
[ "$TILEGATE_SWEEP_SEED" != 3 ] || { echo "FAILED Naive 3x3x3"; exit 1; }
"""


def sweep_in(folder):
    """The arguments of a sweep over seeds 1 to 7, of which the third fails."""
    program = folder / "program"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    results = folder / "seeds.json"
    return ["lab", "seeds", "--count", "7", f"--program={program}", f"--results={results}"]


@pytest.fixture
def sweep(tmp_path):
    return sweep_in(tmp_path)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The folder of three tasks of an array that ran at the same time, to be copied."""
    folder = tmp_path_factory.mktemp("swept")
    sweep = sweep_in(folder)

    def task(number):
        array = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": "3"}
        command = ["bash", REPOSITORY / "ci" / "slurm.sh", *sweep]
        return subprocess.Popen(command, cwd=REPOSITORY, env={**os.environ, **array})

    codes = [process.wait() for process in [task(number) for number in (1, 2, 3)]]
    assert codes == [0, 0, 1]
    return folder


@pytest.fixture
def shards(swept, tmp_path):
    """The files of these tasks."""
    shutil.copytree(swept, tmp_path, dirs_exist_ok=True)
    return paths_of(tmp_path / "seeds.json", 3)


def test_all_shards_are_the_whole(sweep, shards, tmp_path, capsys):
    assert main([*sweep, "--merge", "3"]) == 1
    assert capsys.readouterr().out == "seed 3: FAILED Naive 3x3x3\n7 seeds, 1 failures\n"
    assert main(sweep) == 1  # nothing is left to do
    results = json.loads((tmp_path / "seeds.json").read_text())
    assert results == {seed: [] for seed in "124567"} | {"3": ["FAILED Naive 3x3x3"]}


def test_a_merge_refuses_gaps_overlaps_and_strangers(sweep, shards, capsys):
    merged = [*sweep, "--merge", "3"]
    first = json.loads(shards[0].read_text())
    shards[0].write_text('{"1": [], "7": []}')
    assert main(merged) == 2
    assert "1 of 7 parts are in no shard: 4" in capsys.readouterr().err
    shards[0].write_text(json.dumps({**first, "5": []}))
    assert main(merged) == 2
    assert f"5 is in {shards[0]} and {shards[1]}" in capsys.readouterr().err
    shards[0].write_text(json.dumps({**first, "8": []}))
    assert main(merged) == 2
    assert f"{shards[0]}: 8 is no part of this sweep" in capsys.readouterr().err
    shards[2].unlink()
    shards[0].write_text(json.dumps(first))
    assert main(merged) == 2
    assert "2 of 7 parts are in no shard: 3, 6" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/x"])
def test_bad_shards(sweep, text, capsys):
    assert main([*sweep, "--shard", text]) == 2
    assert "--shard" in capsys.readouterr().err


def mutant(file: str, line: int) -> Mutant:
    return Mutant(file=file, line=line, kind="k", before=f"a{line}", after="b")


def test_shards_of_mutants_have_whole_files(tmp_path):
    drawn = [mutant(file, line) for line in (1, 2) for file in "pqr"]
    parts = [of_shard(drawn, Shard(index, 2)) for index in (1, 2)]
    assert [{each.file for each in part} for part in parts] == [{"p", "r"}, {"q"}]
    paths, whole = paths_of(tmp_path / "mutants.jsonl", 2), MutantJournal(tmp_path / "whole.jsonl")

    def write(path, part, commit):
        path.unlink(missing_ok=True)
        for each in part:
            line = {name: getattr(each, name) for name in ("file", "line", "kind")}
            line |= {"before": each.before, "after": each.after, "outcome": "killed"}
            MutantJournal(path).add(Record(**line, preset="cpu", commit=commit))

    for path, part in zip(paths, parts, strict=True):
        write(path, part, "a" * 40)
    merge(drawn, paths, whole)
    assert {record.key for record in whole.read()} == {each.key for each in drawn}
    write(paths[1], parts[1][1:], "a" * 40)
    with pytest.raises(GateError, match="1 of 6 parts are in no shard: q: a1 ==> b"):
        merge(drawn, paths, whole)
    write(paths[1], parts[1], "b" * 40)
    with pytest.raises(GateError, match="shards of several commits"):
        merge(drawn, paths, whole)
