"""ci/new-rung: the text of each rung's copy, by night its build too, and what is no name."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ladder_builder import REPOSITORY

from tilegate_ci import new_rung
from tilegate_ci.formats.stages import find_ladder

RUNGS = {stage.name: stage for stage in find_ladder(REPOSITORY) if stage.title != stage.name}
LIST = Path("kernels/CMakeLists.txt")


@pytest.fixture
def copy(tmp_path) -> Path:
    shutil.copytree(REPOSITORY / "kernels", tmp_path / "kernels")
    return tmp_path


def create(copy, name, origin):
    return new_rung.main([name, "--from", origin, "--repository", str(copy)])


def sources(folder):
    return {path.name: path.read_text("utf-8") for path in folder.iterdir() if path.suffix != ".md"}


@pytest.mark.parametrize("origin", RUNGS)
def test_a_copy_differs_from_its_rung_in_the_name_alone(copy, origin, capsys):
    word, folder = RUNGS[origin].word, copy / RUNGS[origin].folder
    before = (copy / LIST).read_text("utf-8")
    assert create(copy, "Zebra", origin) == 0
    (made,) = (copy / "kernels").glob("*_zebra")
    assert f"kernels/{made.name} is there" in capsys.readouterr().out
    shared = f"\nusing namespace tilegate::{word};\n"  # where headers in common/ have a part of it
    copied = {name: text.replace(shared, "") for name, text in sources(made).items()}
    assert {"zebra.cu"} <= copied.keys()
    back = {
        name.replace("zebra", word): text.replace("zebra", word).replace("Zebra", origin)
        for name, text in copied.items()
    }
    assert back == sources(folder)
    for name, text in copied.items():
        assert f"tilegate::{word}" not in text, name
        assert not re.search(rf'"{origin}[".]|"{word}["\s]', text), name
        local = re.findall(r'#include "([^"]*)"', text)
        assert set(local) <= copied.keys(), name
    assert copied["zebra.cu"].count("namespace tilegate::zebra") == 2
    assert '"Zebra"' in copied["zebra.cu"]
    # Its line, with the options of the rung's own, is the last of the ladder.
    (options,) = re.findall(rf"tilegate_add_stage\(\d+_{word}( [^)]*)?\)", before)
    line = f"tilegate_add_stage({made.name}{options})\n"
    after = (copy / LIST).read_text("utf-8")
    assert after.replace(line, "", 1) == before
    assert f"{line}tilegate_add_stage(sgemm" in after


def test_headers_of_others_with_the_same_word_stay(copy):
    assert create(copy, "Zebra", "InstructionOrder") == 0
    (header,) = (copy / "kernels").glob("*_zebra/zebra.cuh")
    text = header.read_text("utf-8")
    assert "common/instruction_order.cuh>" in text
    assert '"zebra", problem' in text


def test_the_next_copy_gets_the_next_number(copy):
    for name in ("Zebra", "ZebraTwo"):
        assert create(copy, name, "Naive") == 0
    numbers = [int(path.name.split("_")[0]) for path in (copy / "kernels").glob("*_zebra*")]
    assert sorted(numbers) == [len(RUNGS) + 1, len(RUNGS) + 2]
    assert list((copy / "kernels").glob("*_zebra_two/zebra_two.cu"))


@pytest.mark.parametrize(
    ("name", "origin", "message"),
    [
        ("Mine", "Nothing", "unknown rung 'Nothing'; there are Naive, Coalesced"),
        ("Mine", "Cublas", "unknown rung 'Cublas'"),
        ("mine", "Naive", "bad name 'mine': it should be CamelCase"),
        ("My-Rung", "Naive", "bad name"),
        ("Double", "Naive", "no keyword of C++"),
        ("Naive", "Naive", "name taken"),
        ("Sgemm", "Naive", "name taken"),
        ("Device", "Naive", "name taken"),
        ("Problem", "Naive", "name taken"),
    ],
)
def test_what_cannot_be_done_is_said_and_writes_nothing(copy, capsys, name, origin, message):
    before = sorted((copy / "kernels").rglob("*")), (copy / LIST).read_bytes()
    with pytest.raises(SystemExit) as stop:
        create(copy, name, origin)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert before == (sorted((copy / "kernels").rglob("*")), (copy / LIST).read_bytes())


def test_help_shows_an_example():
    out = subprocess.run(
        [REPOSITORY / "ci" / "new-rung", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "ci/new-rung Mine --from Warptile" in out


@pytest.mark.skipif(
    "TILEGATE_THOROUGH" not in os.environ, reason="TILEGATE_THOROUGH=1 builds a copy of every rung"
)
def test_a_copy_of_every_rung_is_built(copy):
    """All at once, in one tree; test_readme.py builds and runs one by day."""
    shutil.copytree(REPOSITORY / "tests" / "verifier", copy / "tests" / "verifier")
    for name in ("bench", "ci"):
        shutil.copytree(REPOSITORY / name, copy / name)
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy(REPOSITORY / name, copy)
    for origin in RUNGS:
        assert create(copy, f"{origin}Copy", origin) == 0
    libraries = [f"tilegate_{new_rung.word_of(f'{origin}Copy')}" for origin in RUNGS]
    options = [
        "-DTILEGATE_BUILD_TESTS=OFF",
        "-DTILEGATE_BUILD_BENCH=OFF",
        "-DCMAKE_BUILD_TYPE=None",
    ]
    for command in (
        ["cmake", "--preset", "cpu", *options],
        ["cmake", "--build", "--preset", "cpu", "--target", *libraries, "stages_json"],
    ):
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    listed = json.loads((copy / "build" / "cpu" / "stages.json").read_text())["stages"]
    assert {f"{origin}Copy" for origin in RUNGS} <= {stage["name"] for stage in listed}
