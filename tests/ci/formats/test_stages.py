"""The rungs, as a build lists them."""

import json
import os

import pytest
from ladder_builder import REPOSITORY, STAGES
from stage_builder import stage, write_stages

from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import find_ladder, find_stages, read_stages


def test_all_that_the_build_says_is_read(ladder):
    found = read_stages(ladder.path / "build" / "cpu")
    assert [json.loads(rung.model_dump_json()) for rung in found] == list(STAGES)
    assert [rung.word for rung in found] == ["naive", "swizzle", "warptile", "cublas"]


def test_the_newest_build_counts(ladder):
    old = ladder.path / "build" / "cpu" / "stages.json"
    new = write_stages(ladder.path / "build" / "gpu", stage("01_naive", "Newest"))
    os.utime(old, (1, 1))
    assert [rung.name for rung in find_stages(ladder.path)] == ["Newest"]
    os.utime(new, (0, 0))
    assert find_stages(ladder.path)[0].name == "Naive"


def test_a_rung_from_outside_is_a_stage_but_not_of_this_ladder(ladder):
    outside = stage("20_mine", "Mine", idea="", folder="/elsewhere/20_mine", external=True)
    write_stages(ladder.path / "build" / "cpu", STAGES[0], outside, STAGES[-1])
    assert [rung.name for rung in find_stages(ladder.path)] == ["Naive", "Mine", "Cublas"]
    assert [rung.name for rung in find_ladder(ladder.path)] == ["Naive", "Cublas"]


def test_without_a_build_it_says_what_to_build(tmp_path):
    with pytest.raises(GateError) as caught:
        find_stages(tmp_path)
    assert str(caught.value) == (
        f"no build tree of {tmp_path} lists its rungs: "
        "cmake --preset cpu && cmake --build --preset cpu --target stages_json"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("device"), '"device" is missing'),
        (lambda d: d["stages"][1].pop("idea"), 'stages[1]: "idea" is missing'),
        (
            lambda d: d["stages"][0].update(sources="a.cu"),
            "stages[0].sources: must be a valid array",
        ),
        (lambda d: d["stages"][0].update(number=1), 'stages[0]: "number" is not known here'),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_place(ladder, change, message):
    path = ladder.path / "build" / "cpu" / "stages.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(GateError) as caught:
        find_stages(ladder.path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_the_numbers_of_the_folders_are_the_order_of_the_ladder():
    folders = [rung.folder for rung in find_ladder(REPOSITORY) if not rung.yardstick]
    assert folders == sorted(folders)
    assert all((REPOSITORY / source).exists() for rung in find_ladder() for source in rung.sources)
