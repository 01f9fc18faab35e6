"""ci/gate lab tune: the table that measurements lead to, and which of them are made."""

import re
from dataclasses import replace

import pytest

from gate_builders import COMMIT, H200, REPOSITORY
from tilegate_ci.checks import tuning
from tilegate_ci.checks.tuning import Timing
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.lab.commands import tune as command
from tilegate_ci.measure.launcher import Launcher
from tilegate_ci.model import Process

GPU = "NVIDIA H200"
CLASS = "10x10x10/NN/vvv"


def row(configuration: str, rank: int, of_cublas: float, **fields) -> Timing:
    values = {"problem_class": CLASS, "problem": "1024x1024x1024", "spread": 0.002, "gpu": GPU}
    values |= {"code": "aa", "microseconds": 10.0, "commit": COMMIT, **fields}
    return Timing(configuration=configuration, rank=rank, of_cublas=of_cublas, **values)


def table_of(*measured: Timing) -> dict[str, str]:
    return {cell.problem_class: cell.family for cell in tuning.cells(measured)}


def test_what_is_quicker_than_the_model_thinks_gets_a_cell():
    quicker = row("StreamK:8split3", 2, 1.1, code="bb")
    (cell,) = tuning.cells([row("Skinny:4", 1, 1.0), quicker])
    assert cell == tuning.Cell(GPU, CLASS, "StreamK:8split*", 0.1, "bb")


@pytest.mark.parametrize(("speed", "spread"), [(1.008, 0.001), (1.04, 0.05), (0.9, 0.0)])
def test_a_gain_within_noise_gets_none(speed, spread):
    assert table_of(row("A:1", 1, 1.0), row("B:1", 2, speed, spread=spread)) == {}


def test_a_cell_is_for_all_problems_of_its_class():
    other = {"problem": "1000x1000x1000"}
    both = [row("A:1", 1, 1.0), row("B:1", 2, 1.2), row("A:1", 1, 1.0, **other)]
    assert table_of(*both, row("B:1", 2, 0.7, **other)) == {}  # 1.2 · 0.7 is below 1
    assert table_of(*both) == {}  # B was not timed on the other
    assert table_of(*both, row("B:1", 2, 1.1, **other)) == {CLASS: "B:1"}


def test_a_tie_goes_to_the_choice_of_the_neighbours():
    tied = [row("A:1", 1, 1.0), row("B:1", 2, 1.200), row("C:1", 3, 1.199)]
    assert table_of(*tied) == {CLASS: "B:1"}
    near = {"problem_class": "10x11x10/NN/vvv", "problem": "1024x2048x1024"}
    neighbour = [row("A:1", 1, 1.0, **near), row("C:1", 2, 1.2, **near)]
    assert table_of(*tied, *neighbour)[CLASS] == "C:1"
    far = [replace(each, problem_class="10x11x11/NN/vvv") for each in neighbour]
    assert table_of(*tied, *far)[CLASS] == "B:1"


def test_what_a_choice_keeps():
    outside = [row("A:1", 1, 1.0), row("B:1split2", 2, 1.25), row("B:1split3", 3, 2.0)]
    assert tuning.kept(outside, []) == tuning.Kept(0.5, 0.5, "1024x1024x1024")
    cell = tuning.Cell(GPU, CLASS, "B:1split*", 0.1, "aa")
    assert tuning.kept(outside, [cell]).mean == pytest.approx(0.625)


def test_files_come_back_as_they_were(tmp_path):
    kept = [row("A:1", 1, 1.5), row("B:1", 2, 1.25)]
    tuning.save_timings(tmp_path / "grid.csv", reversed(kept))
    assert tuning.load(tmp_path / "grid.csv", tuning.Timing) == kept
    table = [tuning.Cell(GPU, CLASS, "B:1", 0.25, "bb")]
    tuning.save(tmp_path / "table.csv", tuning.Cell, table)
    assert tuning.load(tmp_path / "table.csv", tuning.Cell) == table
    (tmp_path / "grid.csv").write_text("a,b\n")
    with pytest.raises(GateError, match=r"grid\.csv:1: the first line must be problem_class,"):
        tuning.load(tmp_path / "grid.csv", tuning.Timing)


def test_machine_code_is_told_apart_by_kernel():
    text = "\t\tFunction : one\n\tFFMA R0\n\t\tFunction : two\n\tFFMA R1\n"
    found = command.digests(text)
    changed = command.digests(text.replace("R1", "R2"))
    assert [name for name in found if found[name] != changed[name]] == ["two"]
    both = command.code_of(["one", "two"], found, "A:1")
    assert [command.is_current(both, build) for build in (found, changed)] == [True, False]
    with pytest.raises(GateError, match="A:1: its kernels are not in the build: three"):
        command.code_of(["three"], found, "A:1")


class Bench:
    """Offers A and B for every problem; B is 20 % quicker. Writes down what it times."""

    def __init__(self) -> None:
        self.timed: list[str] = []
        self.order = "AB"

    def output(self, command):
        if command[0].endswith("plan"):
            return "".join(f"{case}: A:1\n  class {CLASS}: chosen\n" for case in command[1:])
        problems = re.search(r"--shapes=(\S+)", " ".join(command))[1].split(",")
        return "".join(f"Sgemm@{c}:1/{p}/manual_time\n" for p in problems for c in self.order)

    def run(self, launcher, binary, names):
        self.timed += [name for name in names if "@" in name]
        readings = {
            name: {
                "gflops": 1.0,
                "ratio_to_cublas": 1.2 if "@B" in name else 1.0,
                "verified": True,
            }
            for name in names
        }
        process = Process.model_validate({"device": H200, "readings": readings})
        timed = {
            name: reading.model_copy(update={"kernels": f"k{name[6]}", "rung_s": [1e-5]})
            for name, reading in process.readings.items()
            if "@" in name
        }
        return process.model_copy(update={"readings": {**process.readings, **timed}})


@pytest.fixture
def bench(tmp_path, monkeypatch):
    fake = Bench()
    monkeypatch.setattr("tilegate_ci.core.child.output", fake.output)
    monkeypatch.setattr(Launcher, "run", lambda *arguments: fake.run(*arguments))
    monkeypatch.setattr(tuning, "GRID", tmp_path / "grid.csv")
    monkeypatch.setattr(tuning, "OUTSIDE", tmp_path / "outside.csv")
    monkeypatch.setattr(tuning, "TABLE", tmp_path / "table.csv")
    fake.kernels = {"kA": "aa", "kB": "bb"}
    monkeypatch.setattr("tilegate_ci.lab.commands.tune.kernels_in", lambda build: fake.kernels)
    monkeypatch.setattr("tilegate_ci.lab.commands.tune.shapes", lambda: ["64x64x64"])
    return fake


def tune(*arguments):
    return main(["lab", "tune", "--commit", COMMIT, *arguments])


def test_a_table_is_made(bench, capsys):
    assert tune() == 0
    assert bench.timed == 2 * ["Sgemm@A:1/64x64x64", "Sgemm@B:1/64x64x64"]  # two processes
    assert [(cell.family, cell.code) for cell in tuning.load(tuning.TABLE, tuning.Cell)] == [
        ("B:1", "bb")
    ]
    assert "ci/gate lab tune --outside" in capsys.readouterr().out
    assert tune("--outside") == 0
    assert "the bare model keeps 83.3 %" in capsys.readouterr().out
    assert len(tuning.load(tuning.OUTSIDE, tuning.Timing)) == 400


def test_only_what_is_new_or_changed_is_timed(bench):
    tune()
    bench.timed.clear()
    tune("--problems", "32x32x32")
    assert {*bench.timed} == {"Sgemm@A:1/32x32x32", "Sgemm@B:1/32x32x32"}
    bench.timed.clear()
    bench.kernels["kB"] = "b2"
    tune()
    assert {*bench.timed} == {"Sgemm@B:1/64x64x64", "Sgemm@B:1/32x32x32"}


def test_known_timings_get_the_ranks_of_today(bench):
    tune()
    bench.timed.clear()
    bench.order = "BA"
    tune()
    assert bench.timed == []
    ranks = {row.configuration: row.rank for row in tuning.load(tuning.GRID, tuning.Timing)}
    assert ranks == {"A:1": 2, "B:1": 1}


def test_it_goes_on_after_a_time_limit(bench, capsys, monkeypatch):
    monkeypatch.setattr(command, "PROBLEMS_PER_PROCESS", 1)
    both = ("--problems", "64x64x64,32x32x32")
    assert tune(*both, "--time-limit", "1e-9") == 3
    assert "1 problems left" in capsys.readouterr().err
    bench.timed.clear()
    assert tune(*both) == 0
    assert {*bench.timed} == {"Sgemm@A:1/32x32x32", "Sgemm@B:1/32x32x32"}


def test_shards_are_merged(bench, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "REPOSITORY", tmp_path)
    (tmp_path / "build").mkdir()
    three = ("--problems", "64x64x64,32x32x32,16x16x16")
    assert tune(*three, "--shard", "1/2") == 0
    assert tune(*three, "--merge", "2") == 2
    assert "1 of 3 parts are in no shard: 32x32x32" in capsys.readouterr().err
    assert tune(*three, "--shard", "2/2") == 0
    assert not tuning.GRID.exists()
    assert tune(*three, "--merge", "2") == 0
    merged = tuning.load(tuning.GRID, tuning.Timing)
    assert len(merged) == 6
    assert [cell.family for cell in tuning.load(tuning.TABLE, tuning.Cell)] == ["B:1"]
    part = tmp_path / "build" / "grid.2of2.csv"
    tuning.save_timings(part, tuning.load(part, tuning.Timing)[1:])  # a configuration is missing
    assert tune(*three, "--merge", "2") == 2
    assert "1 of 6 parts are in no shard" in capsys.readouterr().err


def test_a_stale_cell_is_told(bench, capsys):
    tune()
    assert tune("--check") == 0
    bench.kernels["kB"] = "b2"
    assert tune("--check") == 1
    assert f"{GPU}, {CLASS}: B:1 has other machine code now" in capsys.readouterr().err


def test_the_committed_table_follows_from_the_committed_rows():
    grid = tuning.load(REPOSITORY / tuning.GRID, tuning.Timing)
    assert tuning.load(REPOSITORY / tuning.TABLE, tuning.Cell) == tuning.cells(grid)
