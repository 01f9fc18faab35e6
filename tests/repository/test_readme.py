"""Every command of the README runs, and every line of code in it is one that is built.

Code blocks of `sh` hold commands that run here. Those of `sh gpu` need a GPU: their presets,
options and arguments are tried without one. Those of `sh scratch` run in a copy of the repository.
`cpp` is the program of tests/consumer and `cmake` a part of its CMakeLists.txt; both are built and
run by themselves. `text` is what a program printed. A `|`, `&&` and comments mean what they mean to
a shell."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from ladder_builder import REPOSITORY
from stage_builder import stage, write_stages

from tilegate_ci.formats.stages import find_ladder

README = (REPOSITORY / "README.md").read_text("utf-8")

# Commands that cannot run as they stand inside a test, and what runs for them.
INSTEAD = {
    # Our caller, or a whole second run of the suite that we are part of.
    "ci/test": "ci/test --help",
    "ctest --preset cpu": "ctest --preset cpu --show-only",
    # Quick, and without a verdict on the machine's speed.
    "ci/bench": "ci/bench --preset cpu --filter '^Naive/64x64x64'",
}
CONSUMER = REPOSITORY / "tests" / "consumer"
NEW_RUNG = f"{len([s for s in find_ladder(REPOSITORY) if s.title != s.name]) + 1:02}_mine"
LIBRARIES = REPOSITORY / "build" / "cpu" / "kernels"


def blocks(kind, text=README):
    """The text of the code blocks whose info string is `kind`."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(kind, text=README):
    """Those of the code blocks whose info string is `kind`, one per line or `&&` part."""
    found = []
    for block in blocks(kind, text):
        for line in block.splitlines():
            words = shlex.split(line, comments=True, posix=False)
            found += [part.strip() for part in " ".join(words).split("&&") if part.strip()]
    return found


def run(command, folder=REPOSITORY):
    # No repository history is needed to record, and no baseline to report.
    environment = {**os.environ, "TILEGATE_COMMIT": "0" * 40, "TILEGATE_NO_INSTALL": "1"}
    environment.pop("GITHUB_STEP_SUMMARY", None)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def lines_of(code):
    """Without comments at their ends, indentation and empty lines."""
    without = (re.sub(r"\s*(//|#(?!include)).*", "", line).strip() for line in code.splitlines())
    return [line for line in without if line]


def test_commands_are_found():
    text = "```sh\na --b='c d' # e\nf && g\n```\n```sh gpu\nh\n```\n```\ni\n```\n"
    assert commands("sh", text) == ["a --b='c d'", "f", "g"]
    assert commands("sh gpu", text) == ["h"]


def test_every_block_is_of_a_kind_that_is_tested():
    assert {"ci/test", "ci/bench", "cmake --preset cpu"} <= set(commands("sh"))
    kinds = re.findall(r"^```(.*)$", README, re.MULTILINE)
    assert set(kinds[::2]) == {"sh", "sh gpu", "sh scratch", "cmake", "cpp", "text"}
    assert set(kinds[1::2]) == {""}


def test_a_failing_command_is_seen():
    with pytest.raises(AssertionError, match="no such preset"):
        run("echo no such preset; false")


@pytest.mark.parametrize("command", dict.fromkeys(commands("sh")))
def test_command(command):
    out = run(INSTEAD.get(command, command))
    if command == "ctest --preset cpu":
        assert int(re.search(r"Total Tests: (\d+)", out).group(1)) > 0


def test_every_replaced_command_is_there():
    assert INSTEAD.keys() <= set(commands("sh"))


@pytest.mark.parametrize("name", ["cpu", "gpu", "asan"])
def test_a_workflow_preset_configures_builds_and_tests(name):
    presets = json.loads((REPOSITORY / "CMakePresets.json").read_text())["workflowPresets"]
    (steps,) = [preset["steps"] for preset in presets if preset["name"] == name]
    assert [(s["type"], s["name"]) for s in steps] == [
        *(("configure", name), ("build", name), ("test", name))
    ]


@pytest.mark.parametrize("command", dict.fromkeys(commands("sh gpu")))
def test_gpu_command(command):
    words = shlex.split(command)
    if words[0].startswith("ci/"):
        out = run(f"{words[0]} --help")
        assert all(word in out for word in words[1:] if word.startswith("--"))
    elif words[0] in ("cmake", "ctest"):
        kind = "build" if words[1] == "--build" else ""
        kind = kind or {"cmake": "configure", "ctest": "test"}[words[0]]
        presets = json.loads((REPOSITORY / "CMakePresets.json").read_text())[f"{kind}Presets"]
        assert words[words.index("--preset") + 1] in {preset["name"] for preset in presets}
    else:
        # The same program as on a GPU lists what it would run.
        listed = run(
            f"{command.replace('build/gpu/', 'build/cpu/')} --benchmark_list_tests 2>/dev/null"
        )
        assert len(listed.splitlines()) == len(words[-1].split(","))


def test_the_cmake_block_is_that_of_an_installed_consumer():
    (block,) = blocks("cmake")
    program = lines_of((CONSUMER / "installed" / "CMakeLists.txt").read_text("utf-8"))
    assert set(lines_of(block)) <= set(program)
    libraries = {stage.library for stage in find_ladder(REPOSITORY)} | {"tilegate_ladder"}
    named = re.findall(r"tilegate::(\w+)", block)
    assert {f"tilegate_{word}" for word in named} <= libraries


def test_the_program_is_the_consumer():
    """Whole, but for the comment that heads the file."""
    (block,) = blocks("cpp")
    program = (CONSUMER / "consumer.cpp").read_text("utf-8")
    assert block == program[program.index("#include") :]


def test_the_page_of_the_c_api_has_the_program_that_is_tested():
    (block,) = blocks("c", (REPOSITORY / "kernels" / "blas" / "README.md").read_text("utf-8"))
    assert block == (REPOSITORY / "tests" / "blas" / "program.c").read_text("utf-8")


@pytest.fixture
def copy(tmp_path) -> Path:
    """What configures of the repository, with the list of rungs that its build would write."""
    for name in ("CMakeLists.txt", "CMakePresets.json", "README.md"):
        shutil.copy(REPOSITORY / name, tmp_path)
    for name in ("kernels", "bench", "ci", "tests/verifier"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    rungs = [json.loads(rung.model_dump_json()) for rung in find_ladder(REPOSITORY)]
    place = [rung["name"] for rung in rungs].index("Sgemm")
    rungs.insert(place, stage(NEW_RUNG, "Mine"))
    write_stages(tmp_path / "build" / "cpu", *rungs)
    return tmp_path


def test_a_rung_is_added_by_the_steps_of_the_readme(copy):
    for command in commands("sh scratch"):
        run(command, copy)
    # The library of the rung and nothing that it would be linked with, as fast as it compiles.
    quick = "-DCMAKE_OPTIMIZE_DEPENDENCIES=ON -DCMAKE_BUILD_TYPE=None"
    run(
        f"cmake --preset cpu -DTILEGATE_BUILD_TESTS=OFF -DTILEGATE_BUILD_BENCH=OFF {quick}"
        " && cmake --build --preset cpu --target tilegate_mine",
        copy,
    )
    ladder = (copy / "build" / "cpu" / "kernels" / "ladder.cpp").read_text("utf-8")
    rungs = re.findall(r"&(\w+)::stage", ladder)
    assert rungs[-2:] == ["mine", "sgemm"]
    # The program of the README multiplies with it.
    program = (CONSUMER / "consumer.cpp").read_text("utf-8").replace("sgemm", "mine")
    (copy / "program.cpp").write_text(program, "utf-8")
    built = copy / "build" / "cpu" / "kernels"
    includes = f"-I{copy}/kernels/include -I{built}/include"
    libraries = f"{built}/libtilegate_mine.a {LIBRARIES}/libtilegate_core.a"
    libraries += f" {LIBRARIES}/device/libtilegate_device.a -lboost_context -lpthread"
    run(f"${{CXX:-c++}} -std=c++20 {includes} program.cpp {libraries} -o program", copy)
    assert run("./program", copy).endswith(": 42\n")
    page = (copy / "kernels" / NEW_RUNG / "README.md").read_text("utf-8")
    assert "Mine is not in the baseline" in page
    run("ci/gate check tables", copy)


def test_a_rung_outside_of_the_repository_joins(copy, tmp_path_factory):
    for command in commands("sh scratch"):
        run(command, copy)
    shutil.copy(REPOSITORY / "kernels" / "CMakeLists.txt", copy / "kernels")  # without its line
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "99_mine"
    shutil.move(copy / "kernels" / NEW_RUNG, elsewhere)
    (option,) = re.findall(r"`(-DTILEGATE_EXTRA_STAGES)=/path/to/99_mine`", README)
    run(f"cmake --preset cpu -DTILEGATE_BUILD_TESTS=OFF {option}={elsewhere}", copy)
    ladder = (copy / "build" / "cpu" / "kernels" / "ladder.cpp").read_text("utf-8")
    assert re.findall(r"&(\w+)::stage", ladder)[-2:] == ["sgemm", "mine"]


@pytest.mark.parametrize("option", sorted(set(re.findall(r"\bTILEGATE_[A-Z_]+\b", README))))
def test_option_exists(option):
    assert option in (REPOSITORY / "CMakeLists.txt").read_text("utf-8")


def test_the_readme_is_two_screens():
    """Without its program and the other blocks, which are looked at rather than read."""
    assert len(re.sub(r"^```.*?^```$", "", README, flags=re.M | re.S).splitlines()) <= 130
    assert len(README.split()) <= 1300
