"""ci/gate lab record: the order of a sitting, its file, interruptions."""

import gzip
import json
import math
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import fake_bench
import pytest

from gate_builders import COMMIT, REPOSITORY
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import find_ladder
from tilegate_ci.lab.commands.record import plan
from tilegate_ci.lab.proof import recording
from tilegate_ci.lab.proof.recording import Arm, Step
from tilegate_ci.measure.launcher import filter_of

SUITE = """set,m,n,k,lda,ldb,ldc,pointer_offset_bytes
Naive,32,32,32,32,32,32,0
Warptile,64,64,64,64,64,64,0
Warptile,33,35,37,37,35,35,0
Cublas,64,64,64,64,64,64,0
"""


@pytest.fixture
def bench(tmp_path) -> Path:
    (tmp_path / "suite.csv").write_text(SUITE)
    return Path(shutil.copy(Path(fake_bench.__file__), tmp_path / "bench.py"))


@dataclass
class Done:
    returncode: int
    stderr: str


@pytest.fixture
def record(bench, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        common = ("--sitting", "s", "--out", "s.json.gz", "--suite", "suite.csv", "--bench", bench)
        common = ("lab", "record", *common, "--commit", COMMIT, "--processes", 2, *arguments)
        return Done(main([*map(str, common)]), capsys.readouterr().err)

    return run


def recorded(folder) -> list[recording.RecordedProcess]:
    return recording.load(str(folder / "s.json.gz")).processes


def document(folder) -> dict:
    return json.loads(gzip.decompress((folder / "s.json.gz").read_bytes()))


def test_a_sitting_is_recorded(record, tmp_path):
    done = record("--rounds", 1, "--plant", "Warptile=5")
    assert done.returncode == 0, done.stderr
    kinds = [(p.round, p.rung, p.plant_percent) for p in recorded(tmp_path)]
    assert sorted(kinds, key=str) == [
        (0, "Warptile", 5.0),
        (0, "Warptile", None),
        (0, None, None),
        (1, None, None),
    ]
    for process in recorded(tmp_path):
        slow = process.plant_percent or 0
        names = {"Warptile/64x64x64", "Warptile/33x35x37"}
        if process.rung is None:
            names |= {"Naive/32x32x32", "Cublas/64x64x64"}
        assert set(process.rows) == names
        row = process.rows["Warptile/64x64x64"]
        rung, cublas, ratio = row.log
        assert rung - cublas == pytest.approx(slow / 100, abs=0.006)
        assert ratio == pytest.approx(cublas - rung, abs=1e-3)
        assert row.planted_percent == process.plant_percent


def test_a_recorded_process_reads_as_one_that_was_measured(record, tmp_path):
    assert record("--rounds", 1, "--plant", "Warptile=5").returncode == 0
    found = recording.load(str(tmp_path / "s.json.gz"))
    process = found.by_step[Step(0, Arm("Warptile", 5.0))]
    assert process.device.name == "NVIDIA H200"
    reading = process.readings["Warptile/64x64x64"]
    (slowed,) = (p for p in found.processes if p.plant_percent)
    logs = slowed.rows["Warptile/64x64x64"].log
    assert reading.log_ratio == pytest.approx(logs[2])
    assert reading.gflops == pytest.approx(2e-9 * 64**3 / 1.05e-3, rel=0.01)
    assert len(reading.rung_s) == 9
    assert math.log(reading.rung_s[0]) == pytest.approx(logs[0], abs=1e-3)


def test_an_interruption_loses_nothing(record, bench, tmp_path):
    bench.with_suffix(".json").write_text('{"fail": "out of memory"}')
    assert record().returncode == 2
    assert not (tmp_path / "s.json.gz").exists()
    bench.with_suffix(".json").unlink()
    stopped = record("--time-limit", 1e-9)
    assert stopped.returncode == 3
    assert "1 processes left" in stopped.stderr
    first = recorded(tmp_path)[0]
    bench.with_suffix(".json").write_text('{"fail": "out of memory"}')
    failed = record()
    assert failed.returncode == 2
    assert "out of memory" in failed.stderr
    assert recorded(tmp_path) == [first]
    bench.with_suffix(".json").unlink()
    assert record().returncode == 0
    assert recorded(tmp_path)[0] == first
    assert len(recorded(tmp_path)) == 2
    assert "2 processes are there, 0 to go" in record().stderr


def test_another_protocol_does_not_join_a_recording(record):
    assert record().returncode == 0
    done = record("--min-time", 0.2)
    assert done.returncode == 2
    assert "protocol is" in done.stderr


def test_another_binary_does_not_join_a_recording(record, bench, tmp_path):
    mutant = shutil.copy(bench, tmp_path / "mutant.py")
    arguments = ("--rounds", 1, "--mutation", f"Warptile:slow={mutant}")
    assert record(*arguments).returncode == 0
    assert record(*arguments).returncode == 0
    for path, title in ((mutant, "Warptile alone, slow"), (bench, "the suite")):
        before = path.read_text()
        path.write_text(before + "# built again\n")
        done = record("--processes", 3, *arguments)
        assert done.returncode == 2
        assert f"{title}: recorded with another binary than {path} is now" in done.stderr
        path.write_text(before)


def test_a_recording_that_does_not_name_its_binary_goes_on(record, tmp_path):
    assert record().returncode == 0
    old = document(tmp_path)
    for process in old["processes"]:
        del process["binary"]
    (tmp_path / "s.json.gz").write_bytes(gzip.compress(json.dumps(old).encode()))
    assert record("--processes", 3).returncode == 0
    assert [(process.binary is not None) for process in recorded(tmp_path)] == [False, False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plant", "Naive=2", "--plant", "Naive=2.0"], "Naive, 2 % planted: given twice"),
        (["--mutation", "Naive:a=x", "--mutation", "Naive:a=y"], "Naive alone, a: given twice"),
        (["--plant", "Warptiel=3"], "not RUNG=PERCENT with a rung of the suite"),
        (["--plant", "Warptile=0"], "not RUNG=PERCENT"),
        (["--plant", "Warptile=nan"], "not RUNG=PERCENT"),
        (["--mutation", "Warptile=bench"], "not RUNG:NAME=BENCH"),
        (["--filter", "Nothing"], "matches none of the 4"),
        (["--bench", "none"], "none: cannot be run"),
        (["--suite", "none.csv"], "none.csv: cannot be read"),
        (["--commit", "HEAD"], "commit"),
    ],
)
def test_what_makes_no_sense_is_exit_2(record, arguments, message):
    done = record(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("data", [b"", b"{}", gzip.compress(b'{"schema": 1')])
def test_a_broken_recording_is_not_overwritten(record, tmp_path, data):
    (tmp_path / "s.json.gz").write_bytes(data)
    assert record().returncode == 2
    assert (tmp_path / "s.json.gz").read_bytes() == data


def test_a_recording_cut_short_is_an_error(record, tmp_path):
    record()
    path = tmp_path / "s.json.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(GateError, match="not a whole gzip file"):
        recording.load(str(path))


def test_a_recording_with_a_wrong_byte_is_an_error(record, tmp_path):
    record()
    path = tmp_path / "s.json.gz"
    data = bytearray(path.read_bytes())
    data[12] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(GateError, match="not a whole gzip file: Error -3"):
        recording.load(str(path))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(schema=2), "schema: unknown schema 2"),
        (lambda d: d.pop("device"), '"device" is missing'),
        (lambda d: d["processes"].append(d["processes"][0]), "is there twice"),
        (
            lambda d: d["processes"][0].update(wall_s=0),
            r"processes\[0\].wall_s: must be greater than 0",
        ),
        (
            lambda d: d["processes"][0]["rows"].update(x={"log": [1]}),
            r"processes\[0\].rows.x.log\[1\]: ",
        ),
        (lambda d: d["processes"][0].update(rows={}), r"processes\[0\].rows: must not be empty"),
        (
            lambda d: d["processes"][1]["rows"].pop("Naive/32x32x32"),
            r"processes: \(1, None, None, None\): Naive/32x32x32 is not in all of its kind",
        ),
    ],
)
def test_a_faulty_recording_is_an_error(record, tmp_path, edit, message):
    record()
    edit(edited := document(tmp_path))
    path = tmp_path / "edited.json.gz"
    path.write_bytes(gzip.compress(json.dumps(edited).encode()))
    with pytest.raises(GateError, match=message):
        recording.load(str(path))


def test_a_nan_in_a_recording_is_an_error(record, tmp_path):
    record()
    data = gzip.decompress((tmp_path / "s.json.gz").read_bytes())
    path = tmp_path / "edited.json.gz"
    path.write_bytes(gzip.compress(re.sub(rb'"log": \[[^,]+', b'"log": [NaN', data, count=1)))
    with pytest.raises(GateError, match="must be a finite number, not NaN"):
        recording.load(str(path))


def test_the_order_within_a_round_is_drawn_anew():
    arms = [Arm("Warptile", plant_percent=percent) for percent in (1, 2, 3)]
    orders = {
        tuple(step.arm for step in plan("s", 30, arms, 30) if step.round == number)
        for number in range(30)
    }
    assert len(orders) > 10
    assert plan("s", 5, arms, 2) == plan("s", 5, arms, 2)
    assert plan("s", 5, arms, 2) != plan("t", 5, arms, 2)
    assert len(plan("s", 5, arms, 2)) == 5 + 2 * 3


def test_a_filter_selects_what_it_is_made_of():
    pattern = filter_of(["Warptile/64x64x64", "Warptile/1x2x3/off4", "Naive/64x64x64"])
    candidates = "Warptile/64x64x64\nWarptile/64x64x640\nNaive/1x2x3\nNaive/64x64x64/manual_time\n"
    done = subprocess.run(
        ["grep", "-E", pattern], input=candidates, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["Warptile/64x64x64", "Naive/64x64x64/manual_time"]


@pytest.mark.parametrize("patch", sorted((REPOSITORY / "bench/recordings/mutations").iterdir()))
def test_a_mutation_still_applies(patch, tmp_path):
    rung, _, rest = patch.name.partition(".")
    assert rung in {stage.name for stage in find_ladder()}
    assert rest.endswith(".patch")
    shutil.copytree(REPOSITORY / "kernels", tmp_path / "kernels")
    applied = subprocess.run(
        ["git", "apply", str(patch)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert applied.returncode == 0, applied.stderr
    same = subprocess.run(
        ["diff", "-rq", REPOSITORY / "kernels", "kernels"], cwd=tmp_path, capture_output=True
    )
    assert same.returncode == 1  # it changed something
