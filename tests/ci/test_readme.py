"""Every command of the README runs.

Code blocks of `sh` hold commands that run here, those of `sh gpu` need a GPU, so that only their
programs are looked for, and those of `sh scratch` run in a copy of the repository. A `|`, `&&` and
comments mean what they mean to a shell."""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest
from ladder_builder import REPOSITORY
from stage_builder import stage, write_stages

from tilegate_ci.core.stages import find_ladder

README = (REPOSITORY / "README.md").read_text("utf-8")

# Commands that cannot run as they stand inside a test, and what runs for them.
INSTEAD = {
    # Our caller, or a whole second run of the suite that we are part of.
    "ci/test": "ci/test --help",
    "ctest --preset cpu": "ctest --preset cpu --show-only",
    "cmake --workflow --preset cpu": "cmake --workflow --list-presets",
    # Quick, and without a verdict on the machine's speed.
    "ci/bench": "ci/bench --preset cpu --filter '^Naive/64x64x64'",
    "ci/bench --filter '^Warptile/'": "ci/bench --preset cpu --filter '^Warptile/64x64x64'",
}


def blocks(kind, text=README):
    """The commands of the code blocks whose info string is `kind`, one a line or `&&` part."""
    found = []
    for block in re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
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


def test_commands_are_found():
    text = "```sh\na --b='c d' # e\nf && g\n```\n```sh gpu\nh\n```\n```\ni\n```\n"
    assert blocks("sh", text) == ["a --b='c d'", "f", "g"]
    assert blocks("sh gpu", text) == ["h"]


def test_the_readme_has_commands_and_no_other_shell_blocks():
    assert {"ci/test", "ci/bench", "cmake --preset cpu"} <= set(blocks("sh"))
    kinds = set(re.findall(r"^```(\w.*)$", README, re.MULTILINE))
    assert kinds == {"sh", "sh gpu", "sh scratch"}


def test_a_failing_command_is_seen():
    with pytest.raises(AssertionError, match="no such preset"):
        run("echo no such preset; false")


@pytest.mark.parametrize("command", dict.fromkeys(blocks("sh")))
def test_command(command):
    out = run(INSTEAD.get(command, command))
    if command == "cmake --workflow --preset cpu":
        assert '"cpu"' in out
    if command == "ctest --preset cpu":
        assert int(re.search(r"Total Tests: (\d+)", out).group(1)) > 0


def test_every_replaced_command_is_there():
    assert INSTEAD.keys() <= set(blocks("sh"))


def test_the_workflow_preset_is_the_three_commands_that_ran():
    presets = json.loads((REPOSITORY / "CMakePresets.json").read_text())["workflowPresets"]
    (steps,) = [preset["steps"] for preset in presets if preset["name"] == "cpu"]
    assert [(s["type"], s["name"]) for s in steps] == [
        *(("configure", "cpu"), ("build", "cpu"), ("test", "cpu"))
    ]


@pytest.mark.parametrize("command", dict.fromkeys(blocks("sh gpu")))
def test_gpu_command(command):
    words = shlex.split(command)
    if words[0].startswith("ci/"):
        out = run(f"{words[0]} --help")
        assert all(word in out for word in words[1:] if word.startswith("--"))
    elif words[0] in ("cmake", "ctest"):
        kind = {"--build": "build", "--workflow": "workflow"}.get(words[1], "")
        kind = kind or {"cmake": "configure", "ctest": "test"}[words[0]]
        presets = json.loads((REPOSITORY / "CMakePresets.json").read_text())[f"{kind}Presets"]
        assert words[words.index("--preset") + 1] in {preset["name"] for preset in presets}
    else:
        # The same program as on the CPU, which tells whether it knows the flags.
        flags = [word.partition("=")[0] for word in words[1:]]
        out = run(f"{words[0].replace('build/gpu/', 'build/cpu/')} --help")
        assert all(flag in out for flag in flags)


def test_a_rung_is_added_by_the_steps_of_the_readme(tmp_path):
    for name in ("CMakeLists.txt", "CMakePresets.json", "README.md"):
        shutil.copy(REPOSITORY / name, tmp_path)
    for name in ("kernels", "bench", "ci"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    ladder = [json.loads(rung.model_dump_json()) for rung in find_ladder(REPOSITORY)]
    write_stages(tmp_path / "build" / "cpu", *ladder[:-1], stage("12_mine", "Mine"), ladder[-1])
    for command in blocks("sh scratch"):
        if not command.startswith("cmake "):  # which would build every rung; see write_stages
            run(command, tmp_path)
    run(
        "cmake --preset cpu -DTILEGATE_BUILD_TESTS=OFF -DTILEGATE_BUILD_BENCH=OFF"
        " && cmake --build --preset cpu --target tilegate_mine",
        tmp_path,
    )
    assert run("ci/gate tables --check", tmp_path)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_link(target):
    if not target.startswith("http"):
        assert (REPOSITORY / target).exists()


@pytest.mark.parametrize("option", sorted(set(re.findall(r"\bTILEGATE_[A-Z_]+\b", README))))
def test_option_exists(option):
    assert option in (REPOSITORY / "CMakeLists.txt").read_text("utf-8")


def test_the_readme_is_short():
    assert len(README.splitlines()) < 250
