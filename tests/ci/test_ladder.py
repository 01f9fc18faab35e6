"""The rungs as read from the sources."""

import pytest
from ladder_builder import REPOSITORY

from tilegate_ci.core.ladder import LadderError, Rung, read_rungs


def test_order_names_and_ideas(ladder):
    assert read_rungs(ladder.path) == [
        Rung("01_naive", "Naive", "one thread an element"),
        Rung("09_swizzle", "Swizzle", "no padding, no conflicts"),
        Rung("10_warptile", "Warptile", "tiles of warps"),
        Rung("cublas", "Cublas", "the yardstick"),
    ]


def test_title_has_the_number_of_the_folder(ladder):
    assert [rung.title for rung in read_rungs(ladder.path)][2:] == ["10 Warptile", "Cublas"]


def test_a_rung_whose_descriptor_a_function_makes(ladder):
    (ladder.path / "kernels" / "10_warptile" / "warptile.cu").write_text(
        "Stage make_stage(std::string_view name) { return {.name = name, .idea = "
        '"tiles"}; }\nconst Stage other = make_stage("Warptile.wide");\n'
        'extern const Stage stage;\nconst Stage stage = make_stage<Tiles>("Warptile", kVariants);\n'
    )
    assert Rung("10_warptile", "Warptile", "tiles") in read_rungs(ladder.path)


@pytest.mark.parametrize("missing", [".idea", "const Stage stage"])
def test_a_rung_without_name_or_idea_is_an_error(ladder, missing):
    source = ladder.path / "kernels" / "01_naive" / "naive.cu"
    source.write_text(source.read_text().replace(missing, "something"))
    with pytest.raises(LadderError, match=rf"naive\.cu: no `{missing}"):
        read_rungs(ladder.path)


def test_a_registered_rung_without_source_is_an_error(ladder):
    (ladder.path / "kernels" / "10_warptile" / "warptile.cu").unlink()
    with pytest.raises(LadderError, match=r"warptile\.cu: registered, but"):
        read_rungs(ladder.path)


def test_the_numbers_of_the_folders_are_the_order_of_the_registry():
    folders = [rung.folder for rung in read_rungs(REPOSITORY) if rung.numbered]
    assert folders == sorted(folders)
