"""ci/gate check passport: what is compared, and the pages. make_passport is a script here."""

import copy
import json

import pytest
from ladder_builder import REPOSITORY

from tilegate_ci.checks.committed import filled
from tilegate_ci.checks.passport import Passports, load_all
from tilegate_ci.cli import main
from tilegate_ci.core.files import read_text

ERROR = {"of_bound": 0.25, "of_componentwise": 0.5, "bits": "00ff"}
GRADED = {"of_bound": 0.125, "of_componentwise": 0.5, "bits": "00fe"}
PASSPORT = {
    "error": {
        "problem": "3x3x3",
        "configuration": "",
        "classes": {"uniform": ERROR, "graded along K": GRADED},
        "keeps_zeros": True,
    },
    "invariance": {
        "problem": "7x5x3",
        "other_m": "1",
        "other_n": "none",
        "other_place": "none",
        "other_rows": False,
        "repeats": True,
    },
    "special": {"NaN in A": "as it must be", "Inf in A": "Inf became 3"},
    "sum": {
        "problem": "4x4x8",
        "configuration": "",
        "declared": 10,
        "additions": 7,
        "tree": "chain of 8",
    },
}


@pytest.fixture
def passports(ladder, tmp_path):
    """Runs the command over a program that prints these passports; its exit code."""
    for rung in ("01_naive", "09_swizzle", "10_warptile"):
        page = ladder.page(rung)
        page.write_text(page.read_text() + "<!-- passport:begin -->\n<!-- passport:end -->\n")
    (ladder.path / "tests/passport").mkdir(parents=True)
    program = tmp_path / "make_passport"

    def run(found: object, *options: str, device: str = "simt") -> int:
        text = json.dumps({"device": device, "stages": found})
        program.write_text(f"#!/bin/sh\necho '{text}'\n")
        program.chmod(0o755)
        fixed = ["--repository", str(ladder.path), "--commit", "a" * 40]
        return main(["check", "passport", "--program", str(program), *fixed, *options])

    return run


def test_what_is_committed_stays(ladder, passports, capsys):
    assert passports({"Naive": PASSPORT}, "--update") == 0
    assert passports({"Naive": PASSPORT}, "--rung", "Naive") == 0
    assert "1 passports as committed" in capsys.readouterr().out
    rows = ladder.page("01_naive").read_text()
    for row in (
        "| sum of 4x4x8 | chain of 8 |",
        "| additions on the longest way; roundings declared | 7; 10 |",
        "| greatest error at 3x3x3, of the bound | 25.0 %: uniform |",
        "| graded operands, of the componentwise bound | 50.0 % |",
        "| 2 cases of NaN, Inf, overflow | Inf in A: Inf became 3 |",
        "| a row of 7x5x3 has other bits at | M = 1 |",
        "executor, commit aaaaaaaaaaaa.",
    ):
        assert row in rows


def test_a_change_is_red(ladder, passports, capsys):
    assert passports({"Naive": PASSPORT}, "--update") == 0
    changed = copy.deepcopy(PASSPORT)
    changed["sum"]["additions"] = 8
    assert passports({"Naive": changed}) == 1
    assert "Naive: not as committed" in capsys.readouterr().out
    page = ladder.page("01_naive")
    page.write_text(page.read_text().replace("25.0 %", "24.0 %"))
    assert passports({"Naive": PASSPORT}) == 1
    assert "README.md: out of date" in capsys.readouterr().out


def test_two_devices_and_the_yardstick(ladder, passports, tmp_path):
    other = copy.deepcopy(PASSPORT)
    other["error"]["classes"]["uniform"]["bits"] = "11"
    assert passports({"Naive": PASSPORT}, "--update") == 0
    recorded, yardstick = tmp_path / "recorded", tmp_path / "yardstick"
    recorded.write_text(json.dumps({"device": "GPU", "stages": {"Naive": other}}))
    stages = {"Cublas": {"shapes": 3000, "seed": 1, "wrong": []}}
    yardstick.write_text(json.dumps({"device": "GPU", "stages": stages}))
    options = ("--preset", "gpu", "--recorded", str(recorded), "--yardstick", str(yardstick))
    assert passports({}, *options, "--made-with", "driver 1", "--update") == 0
    rows = ladder.page("01_naive").read_text()
    assert "| same bits as the executor's | - | 1 of 2 classes of inputs |" in rows
    assert "GPU, driver 1, commit aaaaaaaaaaaa." in rows
    file = load_all(ladder.path)["gpu"]
    assert file.yardstick is not None
    assert file.yardstick.shapes == 3000


def test_recorded_passports_join_those_of_the_same_software(ladder, passports, tmp_path):
    recorded = tmp_path / "recorded"

    def record(rung: str, commit: str, made_with: str) -> None:
        recorded.write_text(json.dumps({"device": "GPU", "stages": {rung: PASSPORT}}))
        options = ("--preset", "gpu", "--recorded", str(recorded), "--update")
        assert passports({}, *options, "--made-with", made_with, "--commit", commit) == 0

    record("Naive", "b" * 40, "driver 1")
    record("Swizzle", "c" * 40, "driver 1")
    record("Swizzle", "d" * 40, "driver 1")
    assert "driver 1, commit bbbbbbbbbbbb." in ladder.page("01_naive").read_text()
    assert "driver 1, commit dddddddddddd." in ladder.page("09_swizzle").read_text()
    record("Warptile", "e" * 40, "driver 2")
    assert {*load_all(ladder.path)["gpu"].stages} == {"Warptile"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rung", "None"), "no rung None; there are Naive, Swizzle, Warptile"),
        (("--rung", "Naive", "--update"), "--update writes the whole table; leave --rung out"),
    ],
)
def test_errors(passports, capsys, options, message):
    assert passports({"Naive": PASSPORT}, *options) == 2
    assert message in capsys.readouterr().err


def test_a_program_that_fails(ladder, passports, tmp_path, capsys):
    (tmp_path / "broken").write_text("#!/bin/sh\necho out of luck >&2; exit 1\n")
    (tmp_path / "broken").chmod(0o755)
    assert passports({}, "--program", str(tmp_path / "broken")) == 2
    assert "out of luck" in capsys.readouterr().err
    assert passports({}, "--program", str(tmp_path / "none")) == 2
    assert "none: cannot be run" in capsys.readouterr().err


def test_a_page_without_a_place_for_it(ladder, passports, capsys):
    ladder.page("01_naive").write_text("text\n")
    assert passports({"Naive": PASSPORT}, "--update") == 2
    assert "should hold <!-- passport:begin -->" in capsys.readouterr().err


def test_committed_pages_show_committed_passports():
    pages = filled(Passports().blocks(REPOSITORY))
    wrong = [path for path, text in pages.items() if read_text(path) != text]
    assert wrong == [], "ci/gate check passport --update writes them"
