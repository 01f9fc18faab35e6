"""ci/gate check accuracy: what bench/accuracy prints becomes a file and a table."""

import argparse
import re

import pytest
from stage_builder import stage, write_stages

from tilegate_ci.checks import accuracy
from tilegate_ci.checks.accuracy import (
    AccuracyFile,
    accuracy_block,
    accuracy_file,
    judge,
    parse_rows,
    save,
)
from tilegate_ci.cli import main
from tilegate_ci.core.documents import load
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import read_stages
from tilegate_ci.model import REPOSITORY

COMMIT = "0123456789" * 4
DEVICE = (
    "device_kind\tcuda\ndevice_name\tNVIDIA H200\ndriver\t580.1\ncuda\t13.0\n"
    "cublas\t13.1.0\ncompute_capability\t90\nmultiprocessors\t132\n"
)
HEADS = (
    "case\tinput\tdecision\tseconds\tratio_to_cublas\tratio_to_fp32\tfrobenius\tfrobenius_cublas\tweighted\t"
    "weighted_cublas\tmedian\tmedian_cublas\tlargest\tlargest_cublas\n"
)


def line(
    shape,
    name,
    decision,
    error,
    largest="2",
    speed=3.5,
    weighted="1\t2",
    cublas="2e-7",
    fp32="1",
    stage="Int8x3",
):
    errors = f"{error}\t{cublas}\t{weighted}\t3\t3\t{largest}\t4"
    return f"{stage}/{shape}\t{name}\t{decision}\t1e-3\t{speed}\t{fp32}\t{errors}\n"


GOOD = line("100x200x300", "normal", 6, "1e-7") + line("16x16x16", "a|b", 32, "2e-7", "inf")
WORSE = (
    GOOD
    + line("9x9x9", "normal", 6, "1e-7", speed=2.5)
    + line("8x8x8", "normal", 8, "3e-7", speed=1.5)
)


def write(folder, rows, commit=COMMIT, device=DEVICE):
    found = accuracy_file(f"{device}\n{HEADS}{rows}", commit)
    report = judge(found, save(found, folder))
    print(report.text)
    return report.exit_code


def written(tmp_path, rows):
    return write(tmp_path, rows), load(AccuracyFile, tmp_path / "nvidia-h200-accuracy.json")


def test_no_less_accurate_than_cublas(tmp_path, capsys):
    code, found = written(tmp_path, GOOD)
    assert code == 0
    assert "2 rows, 0 of them above cuBLAS's error and 2^-24" in capsys.readouterr().out
    assert (found.commit, found.device.name, found.inputs) == (COMMIT, "NVIDIA H200", 2)
    first, second = found.rows
    assert (first.stage, first.decision, first.gflops, first.ratio_to_cublas) == (
        "Int8x3",
        6,
        12.0,
        3.5,
    )
    assert first.frobenius.ratio == 0.5
    assert second.largest.ratio > 1e300  # JSON has no infinity


def test_what_is_above_cublas_is_named(tmp_path, capsys):
    code, found = written(tmp_path, WORSE)
    assert code == 1
    assert (
        "Int8x3/8x8x8 normal: 1.500 times the larger of cuBLAS's error and 2^-24"
        in capsys.readouterr().out
    )
    block = accuracy_block(found, "Int8x3")
    assert (
        "| normal | 3 | six 2 at 3.00, eight 1 at 1.50 | 1.50 at `8x8x8` | 1 | 0.50 | 1.00 | 0.50 "
        "| 2.50 |" in block
    )
    assert "| a\\|b | 1 | FP32 1 at 3.50 | 1.00 at `16x16x16` | 0 |" in block
    assert "| `8x8x8` | normal | eight | 3e-07 | 2e-07 | 1 | 2 | 1.5 |" in block
    assert "commit 012345678901." in block


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (line("8x8x8", "normal", 6, "5.9e-8", cublas="1e-9"), 0),  # below one rounding
        (line("8x8x8", "normal", 6, "6.1e-8", cublas="1e-9"), 1),
        (line("8x8x8", "normal", 6, "1e-7", weighted="2.1e-7\t2e-7"), 1),
        (line("8x8x8", "normal", 6, "1e-7", weighted="2e-7\t2e-7"), 0),
    ],
)
def test_both_measures_count_from_one_rounding_on(tmp_path, row, code):
    assert written(tmp_path, row)[0] == code


def test_other_stages_keep_their_rows_and_commit(tmp_path):
    written(tmp_path, WORSE)
    write(tmp_path, GOOD.replace("Int8x3", "Fp16x3"), "f" * 40)
    write(tmp_path, GOOD.replace("Int8x3", "Fp16x3"), "e" * 40)
    found = load(AccuracyFile, tmp_path / "nvidia-h200-accuracy.json")
    assert [row.stage for row in found.rows] == ["Int8x3"] * 4 + ["Fp16x3"] * 2
    assert f"commit {COMMIT[:12]}." in accuracy_block(found, "Int8x3")
    assert "commit eeeeeeeeeeee." in accuracy_block(found, "Fp16x3")
    write(tmp_path, GOOD, device=DEVICE.replace("580.1", "590.2"))
    assert len(load(AccuracyFile, tmp_path / "nvidia-h200-accuracy.json").rows) == 2


def test_split_operands_are_compared_with_fp32(tmp_path):
    """100x200x300 in 1 ms; the limit is 1.03 times FP32, 3 µs and 0.36 MB at 4 TB/s."""
    both = [
        line("100x200x300/split", "normal", 6, "1e-7", fp32=fp32, stage="Sgemm")
        for fp32 in ("2", "0.5")
    ]
    _, found = written(tmp_path, "".join(both) + GOOD)
    assert found.rows[0].shape == "100x200x300"
    assert [row.ratio_to_fp32 for row in found.rows] == [2, 0.5, None, None]
    assert found.rows[1].of_limit == pytest.approx(1e-3 / (1.03 * 0.5e-3 + 3e-6 + 0.36e6 / 4e12))
    block = accuracy_block(found, "Sgemm")
    assert "| normal | 1.25 | 0.50 | 1.21 | 1.93 at `100x200x300` | 1 |" in block
    assert "The limit" not in accuracy_block(found, "Int8x3")


def test_a_stage_that_chooses_splits_operands(tmp_path):
    asked = argparse.Namespace(shape=["8x8x8"])
    chooses = stage("sgemm", "Sgemm", chooses_from=["tilegate_int8x3"])
    write_stages(tmp_path, chooses, stage("18_int8x3", "Int8x3"))
    cases = [accuracy.cases_of(each, asked) for each in read_stages(tmp_path)]
    assert cases == [["Sgemm/8x8x8/split"], ["Int8x3/8x8x8"]]


def test_a_page_without_exceptions(tmp_path):
    block = accuracy_block(written(tmp_path, GOOD)[1], "Int8x3")
    assert block.endswith("On no problem is an error above the larger of cuBLAS's and 2⁻²⁴.")


@pytest.mark.parametrize("row", ["Int8x3/8x8\tnormal\n", line("8x8x8", "normal", "six", "1")])
def test_a_line_that_makes_no_sense(row):
    with pytest.raises(GateError, match="printed a line that is none of its own"):
        parse_rows(HEADS + row)


@pytest.mark.parametrize(("option", "where"), [((), "not written"), (("--update",), ".json")])
def test_nothing_is_written_unless_asked(tmp_path, monkeypatch, capsys, option, where):
    program, results = tmp_path / "bench" / "accuracy", tmp_path / "results"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{DEVICE}\n{HEADS}{WORSE}END\n")
    program.chmod(0o755)
    write_stages(tmp_path, stage("18_int8x3", "Int8x3"))
    monkeypatch.setattr(accuracy, "check_gpu", lambda: None)
    monkeypatch.setattr(accuracy, "build_preset", lambda *_: tmp_path)
    asked = ("--rung", "Int8x3", "--out", str(results), "--commit", COMMIT)
    assert main(["check", "accuracy", *asked, *option]) == 1
    assert f"{where}: 4 rows, 1 of them above cuBLAS's error and 2^-24" in capsys.readouterr().out
    assert results.exists() == bool(option)


def test_without_a_gpu_nothing_is_built(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["check", "accuracy", "--rung", "Int8x3", "--commit", COMMIT]) == 2
    assert capsys.readouterr().err.startswith("gate: error: no GPU answers")
    assert main(["accuracy", "Int8x3", "Fp16x3", "--shape", "8x8x8", "--commit", COMMIT]) == 2
    assert "gate: error: no GPU answers" in capsys.readouterr().err


def test_every_decision_of_the_rungs_has_a_word():
    """Otherwise the problems of that decision would be left out of the page without a word."""
    digits = (REPOSITORY / "kernels/18_int8x3/digits.cuh").read_text("utf-8")
    declared = re.search(r"enum class Path .*?\{(.*?)\}", digits).group(1)
    numbers = {int(number) for number in re.findall(r"= (\d+)", declared)}
    assert 10 in numbers
    assert numbers <= accuracy._DECISIONS.keys()
