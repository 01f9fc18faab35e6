"""Fixtures of the tests of the commands."""

import shutil
import subprocess
import sys
from pathlib import Path

import ladder_builder
import pytest
from run_builder import HERE, Done, World, in_this_process

from gate_builders import REPOSITORY
from tilegate_ci.cli import main


@pytest.fixture
def gate(tmp_path):
    """Runs ci/gate as a user does, in a folder of its own."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(REPOSITORY / "ci" / "gate"), *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    shutil.copy(HERE / "fake_cmake.sh", tools / "cmake")
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H200'\n")
    (tools / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.chdir(folder)
    # A process of Python for each would take most of the test's time; one test has them.
    monkeypatch.setattr("tilegate_ci.measure.launcher._run", in_this_process)
    return World(folder)


@pytest.fixture
def world(tmp_path, monkeypatch):
    folder = tmp_path / "a folder with spaces, and é"
    folder.mkdir()
    return enter(folder, monkeypatch)


def gate_command(command: str, *more: object) -> int:
    sides = ("--base", "base", "--head", "head", "--work", "work", "--pairs", 5)
    return main([command, *map(str, (*sides, *more))])


@pytest.fixture
def gate_run(world, capsys):
    def run(command: str, *more: object) -> Done:
        code = gate_command(command, *more)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def accepted(tmp_path_factory):
    """The folder of a world whose base has a baseline, to be copied."""
    folder = tmp_path_factory.mktemp("accepted")
    with pytest.MonkeyPatch.context() as monkeypatch:
        world = enter(folder, monkeypatch)
        assert gate_command("confirm") == 0
        world.accept_baseline()
    return folder


@pytest.fixture
def with_baseline(accepted, world):
    shutil.copytree(accepted, world.folder, dirs_exist_ok=True)
    return world


@pytest.fixture
def ladder(tmp_path: Path) -> ladder_builder.Ladder:
    return ladder_builder.build(tmp_path)
