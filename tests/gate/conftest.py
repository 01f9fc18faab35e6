"""Fixtures of the gate's tests."""

import shutil
import subprocess
import sys
from pathlib import Path

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


@pytest.fixture
def world(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    shutil.copy(HERE / "fake_cmake.sh", tools / "cmake")
    monkeypatch.setenv("PATH", f"{tools}:{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    # A process of Python for each would take most of the test's time; one test has them.
    monkeypatch.setattr("tilegate_ci.measure.launcher._run", in_this_process)
    return World(tmp_path)


@pytest.fixture
def gate_run(world, capsys):
    def run(command: str, *more: object) -> Done:
        sides = ("--base", "base", "--head", "head", "--work", "work", "--pairs", 5)
        code = main([command, *map(str, (*sides, *more))])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


@pytest.fixture
def with_baseline(world, gate_run):
    assert gate_run("confirm").code == 0
    world.accept_baseline()
    return world
