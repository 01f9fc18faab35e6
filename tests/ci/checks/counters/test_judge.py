"""Counters against their baseline: verdicts, lines and pictures."""

import linecache
import subprocess
from pathlib import Path

import pytest

from gate_builders import REPOSITORY
from tilegate_ci.checks.counters import (
    Counted,
    Frame,
    SourceLine,
    cases_of,
    draw,
    judge,
    load,
    to_text,
)
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError

ALL_IN_BANK_0 = tuple(128 * lane for lane in range(32))


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "k.cu").write_text("// one\nsmem[i] = v;\n", encoding="utf-8")
    return tmp_path


def counted(wavefronts: int, name: str = "Rung/8x8x8") -> Counted:
    line = SourceLine(
        "shared_store", 2, wavefronts, wavefronts - 2, 4, ALL_IN_BANK_0, 32, 1,
        (Frame("k.cu", 2, "sgemm"),),
    )  # fmt: skip
    return Counted(name, {"shared_store.wavefronts": wavefronts}, (line,))


def baseline(tmp_path: Path, sources: Path, *cases: Counted) -> Path:
    path = tmp_path / "counters.json"
    path.write_text(to_text({case.name: case for case in cases}, sources), encoding="utf-8")
    return path


def test_same(tmp_path: Path, sources: Path) -> None:
    table = load(baseline(tmp_path, sources, counted(2)))
    report = judge(table, {"Rung/8x8x8": counted(2)}, sources)
    assert (report.exit_code, report.text) == (0, "1 cases as the baseline says\n")


def test_changed_names_the_line_and_draws_it(tmp_path: Path, sources: Path) -> None:
    table = load(baseline(tmp_path, sources, counted(2)))
    report = judge(table, {"Rung/8x8x8": counted(64)}, sources)
    assert report.exit_code == 1
    assert "shared_store.wavefronts: 2 -> 64 (+3100.0 %)" in report.text
    assert "k.cu:2: smem[i] = v;" in report.text
    assert "most 32" in report.text


def test_better_is_a_change_too(tmp_path: Path, sources: Path) -> None:
    table = load(baseline(tmp_path, sources, counted(64)))
    assert judge(table, {"Rung/8x8x8": counted(2)}, sources).exit_code == 1


def test_new_passes_and_missing_does_not(tmp_path: Path, sources: Path) -> None:
    assert judge({}, {"Rung/8x8x8": counted(2)}, sources).exit_code == 0
    table = load(baseline(tmp_path, sources, counted(2)))
    assert judge(table, {}, sources).exit_code == 2


def test_hazard_fails_without_a_baseline(sources: Path) -> None:
    hazard = Counted("Rung/8x8x8", {}, (), "rung: block 0: race at byte 4")
    report = judge({}, {hazard.name: hazard}, sources)
    assert report.exit_code == 1
    assert "HAZARD Rung/8x8x8\n  rung: block 0: race at byte 4" in report.text


def test_a_shifted_line_is_the_same_line(tmp_path: Path, sources: Path) -> None:
    path = baseline(tmp_path, sources, counted(2))
    (tmp_path / "k.cu").write_text("// one\n// two\nsmem[i] = v;\n", encoding="utf-8")
    linecache.checkcache()
    moved = SourceLine(
        "shared_store", 2, 2, 0, 4, ALL_IN_BANK_0, 32, 1, (Frame("k.cu", 3, "sgemm"),)
    )  # fmt: skip
    case = Counted("Rung/8x8x8", {"shared_store.wavefronts": 2}, (moved,))
    assert to_text({case.name: case}, sources) == path.read_text(encoding="utf-8")
    assert judge(load(path), {case.name: case}, sources).exit_code == 0


@pytest.mark.parametrize(
    "text", ["", "{}", '{"schema": 2, "cases": {}}', '{"schema": true, "cases": {}}']
)
def test_unreadable_baseline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "counters.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(GateError):
        load(path)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (".", "cannot be run: Permission denied"),
        ("none", "not built"),
        ("/bin/echo", "prints no counters, but: "),
        ("/bin/false", "exit code 1"),
    ],
)
def test_a_program_that_does_not_count_is_an_error_in_the_report_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, message: str
) -> None:
    report = tmp_path / "summary.md"
    assert main(["check", "counters", "--program", program, "--markdown", str(report)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("gate: error: ")
    assert message in error
    assert message in report.read_text(encoding="utf-8")


@pytest.mark.parametrize("option", [["--quick"], ["--rung", "New"]])
def test_a_part_of_the_table_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    program = tmp_path / "count"
    program.write_text("#!/bin/sh\necho New\n", encoding="utf-8")
    program.chmod(0o755)
    assert main(["check", "counters", "--update", "--program", str(program), *option]) == 2
    assert f"the whole table; leave {option[0]} out" in capsys.readouterr().err


def test_picture_of_shared_memory() -> None:
    rows = draw("shared_store", 4, [132 * lane for lane in range(32)])
    assert rows[2] == "     0 0..............................."
    assert rows[-1] == " words 11111111111111111111111111111111  most 1"


def test_picture_shows_the_worst_phase_of_vectors() -> None:
    addresses = [16 * lane for lane in range(24)] + [128 * lane for lane in range(8)]
    rows = draw("shared_load", 16, addresses)
    assert rows[0] == "lanes 24 to 31, by bank:"
    assert rows[-1].endswith("most 8")


def test_picture_of_global_memory() -> None:
    rows = draw("global_load", 4, [*(4 * lane for lane in range(31)), None])
    assert rows[1] == "     0 01234567|89abcdef|ghijklmn|opqrstu."


def test_a_rung_that_the_table_lacks_is_counted_on_every_shape(
    tmp_path: Path, sources: Path
) -> None:
    table = load(baseline(tmp_path, sources, counted(2, "Old/8x8x8")))
    ragged, whole = "129x65x17/beta0.5", "256x256x256/beta0.5"
    assert cases_of(["Old"], table) == [f"Old/{whole}", f"Old/{ragged}", "Old/8x8x8"]
    assert cases_of(["New"], table) == [
        f"New/{shape}" for shape in (whole, ragged, "1024x1024x32", "2048x2048x32")
    ]


def test_without_a_program_it_is_built_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "clang: no such file")

    monkeypatch.setattr("tilegate_ci.core.child.subprocess.run", run)
    assert main(["check", "counters"]) == 2
    assert commands == [["cmake", "--preset", "cpu"]]
    assert (
        f"failed with exit code 1 in {REPOSITORY}:\ngate: clang: no such file"
        in capsys.readouterr().err
    )


def test_what_does_not_apply_is_said_and_no_change(tmp_path: Path, sources: Path) -> None:
    table = load(baseline(tmp_path, sources, counted(2)))
    refused = Counted("Mine/9x9x9", {}, not_applicable="Mine takes M in multiples of 8")
    report = judge(table, {"Rung/8x8x8": counted(2), refused.name: refused}, sources)
    assert report.exit_code == 0
    assert "NOT APPLICABLE Mine/9x9x9: Mine takes M in multiples of 8" in report.text
    assert "1 cases as the baseline says, 1 not applicable" in report.text
