"""ci/gate explain, on the rungs as they are, and the pages that quote the counters."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mutant import read_toolchain
from stage_builder import stage, write_stages

from tilegate_ci.checks.committed import filled
from tilegate_ci.checks.counters import BASELINE, Counters
from tilegate_ci.cli import main
from tilegate_ci.commands import explain
from tilegate_ci.formats.stages import find_stages
from tilegate_ci.model import REPOSITORY


@pytest.fixture
def program() -> list[str]:
    return ["--program", str(read_toolchain().program)]


def test_a_rung(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Prefetch", "128x128x64", *program]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Prefetch/128x128x64: ")
    for part in (
        r"^shared load +\d+ +\d+ +\d+\.\d\d +0$",
        r"^limit: shared wavefronts per warp FMA +0\.\d\d",
        r"^limit: bytes of global memory per FLOP +0\.\d\d",
        r"^Hazards: none",
        r"^Bank conflicts: none$",
        r"^Next, Swizzle: ",
    ):
        assert re.search(part, out, re.MULTILINE), part


def test_worst_lines_are_drawn(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Naive", "64x64x64", *program]) == 0
    out = capsys.readouterr().out
    assert re.search(r"kernels/01_naive/naive\.cu:\d+: sum \+= ", out)
    assert "0 0.......|........|........|........" in out


def test_two_rungs(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--diff", "Prefetch", "Swizzle", "128x128x64", *program]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^shared_load\.wavefronts +\d+ +\d+  x0\.67$", out, re.MULTILINE)


def test_the_choice_of_sgemm(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Sgemm", "4096x4096x4096", *program]) == 0
    out = capsys.readouterr().out
    assert re.match(r"Sgemm/4096x4096x4096: \w+:128x256x8, 0 bytes of workspace", out)
    assert re.search(r"^  class 12x12x12/NN/vvv: ", out, re.MULTILINE)
    assert "shared load" not in out  # too large to be counted
    assert main(["explain", "Sgemm", "4x4", *program]) == 2
    assert "4x4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Warptile", "64x64x64/TN"], "Warptile/64x64x64/TN: Warptile takes no transposed"),
        (["--diff", "Naive", "Warptile", "64x64x64/TN"], "takes no transposed"),
        (["--diff", "Naive", "Naive"], "--diff Naive Naive: the same rung"),
        (["Warptile", "64x64"], "malformed benchmark name 'Warptile/64x64'"),
        (["Warptile.nope", "64x64x64"], "no stage is called 'Warptile.nope'"),
    ],
)
def test_what_cannot_be_counted_is_an_error(
    program: list[str], capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["explain", *words, *program]) == 2
    assert message in capsys.readouterr().err


def test_a_variant(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Warptile.dealt", "64x64x64", *program]) == 0
    assert capsys.readouterr().out.startswith("Warptile.dealt/64x64x64")


def test_a_long_count_is_announced(
    printing: Callable[[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "Naive", "4096x4096x4096", *printing("")]) == 2
    said = capsys.readouterr().err
    assert "counting 6.9e+10 multiply-adds, about 344 s on a free core; 1024x1024x32" in said


def test_unknown_rung(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Nave", *program]) == 2
    assert "no rung Nave; there are Naive, " in capsys.readouterr().err


@pytest.fixture
def printing(tmp_path: Path) -> Callable[[str], list[str]]:
    """The option that names a program of one rung, Naive, which prints a text for its counters."""

    def make(text: str) -> list[str]:
        program = tmp_path / "count"
        lines = ["#!/bin/sh", "[ $1 = --list ] && echo Naive && exit", "cat <<'E'", text, "E", ""]
        program.write_text("\n".join(lines))
        program.chmod(0o755)
        return ["--program", str(program)]

    return make


@pytest.mark.parametrize(
    "text",
    ["", "[]", "[{", "[5]", '[{"barriers": 0}]', '[{"barriers": 0, "fma": 1, "lines": null}]',
     '[{"barriers": 0, "fma": 1, "global_load": 5}]'],
)  # fmt: skip
def test_counters_that_cannot_be_read(
    printing: Callable[[str], list[str]], capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert main(["explain", "Naive", *printing(text)]) == 2
    said = capsys.readouterr().err
    assert "prints no counters, but: '" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("text", ["", "[", '{"stages": 5}'])
def test_a_list_of_rungs_that_cannot_be_read(
    printing: Callable[[str], list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
) -> None:
    (tmp_path / "build" / "cpu").mkdir(parents=True)
    (tmp_path / "build" / "cpu" / "stages.json").write_text(text)
    monkeypatch.setattr(explain, "find_stages", lambda: find_stages(tmp_path))
    assert main(["explain", "Naive", *printing("")]) == 2
    said = capsys.readouterr().err
    assert "stages.json: " in said
    assert said.count("\n") == 1


def test_every_page_quotes_its_counters() -> None:
    quoted = [block.page for block in Counters().blocks(REPOSITORY)]
    folders = sorted((REPOSITORY / "kernels").glob("[0-9]*/"))
    assert [path.parent for path in quoted] == folders


def test_a_page_with_other_numbers_is_rewritten(tmp_path: Path) -> None:
    folder = tmp_path / "kernels" / "01_naive"
    folder.mkdir(parents=True)
    write_stages(tmp_path / "build" / "cpu", stage("01_naive", "Naive"))
    (folder / "README.md").write_text(
        "a\n<!-- counters:begin -->\nold\n<!-- counters:end -->\nb\n", "utf-8"
    )
    (tmp_path / BASELINE).parent.mkdir(parents=True)
    (tmp_path / BASELINE).symlink_to(REPOSITORY / BASELINE)
    (text,) = filled(Counters().blocks(tmp_path)).values()
    assert text.startswith("a\n<!-- counters:begin -->\n| | requests")
    assert "old" not in text
    assert text.endswith("<!-- counters:end -->\nb\n")
