"""ci/gate check: several tables at once, and words that name none."""

import json

import pytest

from tilegate_ci.cli import main
from tilegate_ci.commands.check import TABLES
from tilegate_ci.core.files import GateError


def check(ladder, *words):
    return main(["check", *words, "--repository", str(ladder.path)])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Table"], "no table Table; there are resources, counters, passport, tables, plot"),
        (["Warptile"], "no table Warptile"),
        (["tables", "--arch", "90a"], "--arch is not an option of tables"),
        (["accuracy", "--commit", "a" * 40], "accuracy: give --rung NAME, whose accuracy is"),
        (["counters", "--made-with", "x"], "--made-with is not an option of counters"),
        (["tables", "--rung", "Naive", "--update"], "the whole table; leave --rung out"),
    ],
)
def test_what_does_not_fit_is_refused(ladder, words, message, capsys):
    assert check(ladder, *words) == 2
    assert message in capsys.readouterr().err


def test_a_table_in_error_does_not_stop_the_others(ladder, capsys, tmp_path):
    ladder.kernels.write_text("no markers")
    report = tmp_path / "report.md"
    assert check(ladder, "tables", "plot", "profile", "--markdown", str(report)) == 2
    out = capsys.readouterr().out
    assert "tables:\nerror: " in out
    assert "plot:\nno baseline committed yet" in out
    assert "profile:\nnothing is committed" in out
    assert "should hold <!-- ladder:begin -->" in report.read_text()


def fail():
    raise GateError("no nvcc")


def test_without_a_name_all_that_this_machine_can_compute(ladder, monkeypatch, capsys):
    monkeypatch.setattr("tilegate_ci.checks.resources.table.find_toolkit", fail)
    monkeypatch.setattr("tilegate_ci.commands.check.TABLES", tables := {})
    for name in ("resources", "plot", "accuracy"):
        tables[name] = TABLES[name]
    assert check(ladder) == 0
    said = capsys.readouterr()
    assert "gate: accuracy is left out: it needs a GPU and --rung NAME" in said.err
    assert "gate: resources is left out: no nvcc" in said.err
    assert "no baseline committed yet" in said.out


def test_a_page_of_a_profile_is_as_its_json(ladder, capsys):
    folder = ladder.path / "bench" / "profile"
    folder.mkdir(parents=True)
    file = {"schema": 1, "commit": "a", "ncu": "2025", "shape": "8x8x8", "rungs": []}
    device = dict.fromkeys(("driver", "cuda", "cublas"), "1")
    file["device"] = {**device, "name": "GPU", "compute_capability": 90, "multiprocessors": 2}
    (folder / "gpu.json").write_text(json.dumps(file))
    assert check(ladder, "profile") == 1
    assert "gpu.md: out of date; `ci/gate check profile --update`" in (capsys.readouterr().out)
    assert check(ladder, "profile", "--update") == 0
    assert check(ladder, "profile") == 0


def test_old_commands_write_unless_they_check(ladder, capsys):
    before = ladder.readme.read_text()
    assert main(["tables", "--check", "--repository", str(ladder.path)]) == 1
    assert ladder.readme.read_text() == before
    assert main(["tables", "--repository", str(ladder.path)]) == 0
    assert ladder.readme.read_text() != before
    assert "ci/gate tables is now ci/gate check --update tables" in capsys.readouterr().err
