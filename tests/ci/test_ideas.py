"""The lines that are a rung's idea: taken from the source, shown on its page."""

import pytest
from ladder_builder import REPOSITORY

from tilegate_ci.checks.pages.tables import excerpts
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import find_ladder

SOURCE = """int before;
  // idea:begin Warptile
#pragma unroll
  for (;;) {
    one();  // says why
  }
  // idea:end
int after;
"""
MARKED = excerpts(REPOSITORY / "kernels")


@pytest.fixture
def run(ladder):
    page = ladder.page("10_warptile")
    page.write_text(page.read_text() + "<!-- idea:begin -->\n<!-- idea:end -->\n")
    return lambda option="--update": main(
        ["check", "tables", *[option] * bool(option), "--repository", str(ladder.path)]
    )


def test_a_page_shows_the_marked_lines(ladder, run):
    (ladder.path / "kernels" / "10_warptile" / "warptile.cu").write_text(SOURCE)
    (ladder.path / "kernels" / "common").mkdir()
    (ladder.path / "kernels" / "common" / "tiles.cuh").write_text(SOURCE.replace("one", "two"))
    assert run() == 0
    shown = ladder.page("10_warptile").read_text().partition("<!-- idea:begin -->\n")[2]
    code = "```cpp\n#pragma unroll\nfor (;;) {\n  one();  // says why\n}\n```"
    assert shown == (
        f"From [warptile.cu](warptile.cu):\n\n{code}\n\n"
        f"From [tiles.cuh](../common/tiles.cuh):\n\n{code.replace('one', 'two')}\n"
        "<!-- idea:end -->\n"
    )
    assert run("") == 0


def test_check_sees_a_changed_line(ladder, run):
    source = ladder.path / "kernels" / "10_warptile" / "warptile.cu"
    source.write_text(SOURCE)
    ladder.write_baseline()
    assert run() == 0
    assert run("") == 0
    source.write_text(SOURCE.replace("one", "two"))
    assert run("") == 1


def test_a_rung_without_marked_lines_says_how_to_mark_them(ladder, run):
    assert run() == 0
    assert "No source has `// idea:begin Warptile` yet." in ladder.page("10_warptile").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SOURCE.replace("  // idea:end\n", ""), "'// idea:begin Warptile' without '// idea:end'"),
        (SOURCE + "// idea:end\n", "'// idea:end' out of turn"),
        (SOURCE.replace("#pragma unroll", "// idea:begin Naive"), "'// idea:begin Naive' out of"),
    ],
)
def test_marks_come_in_pairs(tmp_path, text, message):
    (tmp_path / "x.cu").write_text(text)
    with pytest.raises(GateError, match=message):
        excerpts(tmp_path)


def test_each_rung_marks_about_ten_lines():
    rungs = {stage.name for stage in find_ladder(REPOSITORY) if not stage.yardstick}
    assert MARKED.keys() == rungs
    counts = {name: sum(len(each.lines) for each in marked) for name, marked in MARKED.items()}
    assert {name: count for name, count in counts.items() if not 4 <= count <= 20} == {}


@pytest.mark.parametrize("stage", [s for s in find_ladder(REPOSITORY) if s.name in MARKED])
def test_the_page_of_a_marked_rung_shows_them(stage):
    page = (REPOSITORY / stage.folder / "README.md").read_text("utf-8")
    assert "<!-- idea:begin -->\nFrom [" in page
