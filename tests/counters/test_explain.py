"""ci/gate explain, on the rungs as they are, and the pages that quote the counters."""

import re
from pathlib import Path

import pytest
from mutant import read_toolchain
from stage_builder import stage, write_stages

from tilegate_ci.cli import main
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.counters.pages import pages
from tilegate_ci.counters.table import BASELINE


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


def test_unknown_rung(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Nave", *program]) == 2
    assert "no rung Nave; there are Naive, " in capsys.readouterr().err


def test_every_page_quotes_its_counters() -> None:
    quoted = pages(REPOSITORY, REPOSITORY / BASELINE)
    folders = sorted((REPOSITORY / "kernels").glob("[0-9]*/"))
    assert [path.parent for path in quoted] == folders


def test_a_page_with_other_numbers_is_rewritten(tmp_path: Path) -> None:
    folder = tmp_path / "kernels" / "01_naive"
    folder.mkdir(parents=True)
    write_stages(tmp_path / "build" / "cpu", stage("01_naive", "Naive"))
    (folder / "README.md").write_text(
        "a\n<!-- counters:begin -->\nold\n<!-- counters:end -->\nb\n", "utf-8"
    )
    (text,) = pages(tmp_path, REPOSITORY / BASELINE).values()
    assert text.startswith("a\n<!-- counters:begin -->\n| | requests")
    assert "old" not in text
    assert text.endswith("<!-- counters:end -->\nb\n")
