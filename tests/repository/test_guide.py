"""The guide, word by word: its shell blocks are run in one shell, in a folder with a checkout."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ruamel.yaml import YAML

from gate_builders import REPOSITORY
from tilegate_ci.formats.reading import Declared, read_process

GUIDE = (REPOSITORY / "ci" / "guide.md").read_text("utf-8")
ACTION = REPOSITORY / ".github" / "actions" / "gate" / "action.yml"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def environment(folder: Path) -> dict[str, str]:
    """As in a virtual environment of the reader's, which holds the packages that ours does; no
    index is asked."""
    paths = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {
        **os.environ,
        "PATH": ":".join(paths),
        "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}",
        "PIP_TARGET": str(folder),
        **dict.fromkeys(("PIP_NO_DEPS", "PIP_NO_INDEX", "PIP_NO_COMPILE"), "1"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # this is how pip spells it
        "GIT_CONFIG_GLOBAL": os.devnull,
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"), "a@b"),
        **dict.fromkeys(("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "a@b"),
    }


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The folder that the guide was followed in, and what it printed."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "tilegate").symlink_to(REPOSITORY)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks("sh"))],
        cwd=folder,
        env=environment(folder / "installed"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "kernel", done.stdout


def test_unchanged_sources_pass(followed):
    promised = re.findall(r"`(\d+ judged: [^`]*)`", " ".join(GUIDE.split()))
    assert len(promised) == 2
    assert all(each in followed[1] for each in promised)


def test_five_per_cent_are_blocked(followed):
    kernel, said = followed
    assert "blocked with exit code 1" in said
    assert "4 judged: 2 regressed, 2 pass." in said
    rows = json.loads((kernel / ".gate/verdict.json").read_text())["rows"]
    slower = {row["name"]: row["slowdown"] for row in rows if row["verdict"] == "regressed"}
    assert slower == {f"Transpose/{n}/manual_time": pytest.approx(0.05, abs=2e-4) for n in (64, 96)}


def test_the_page_is_of_these_benchmarks(followed):
    page = (followed[0] / ".gate/report.html").read_text("utf-8")
    assert "vegaEmbed" in page.rpartition("<script")[0]  # the library itself, not our call
    assert "Transpose/<wbr>96" in page
    assert "of the yardstick" in page
    assert "Roofline" not in page.partition("<script")[0]


def test_the_work_leaves_git_alone(followed):
    command = ["git", "status", "--porcelain"]
    done = subprocess.run(command, cwd=followed[0], capture_output=True, text=True, check=True)
    assert done.stdout == " M bench.cpp\n"


def test_what_do_bench_measures_is_read(tmp_path, monkeypatch):
    """The guide's program, with stand-ins for a GPU."""
    fakes = {
        "torch": SimpleNamespace(
            randn=lambda *_, **__: 0,
            softmax=lambda *_: 0,
            allclose=lambda *_: True,
            cuda=SimpleNamespace(get_device_name=lambda: "NVIDIA H200"),
        ),
        "triton": SimpleNamespace(testing=SimpleNamespace(do_bench=lambda *_, **__: 0.0125)),
        "my_kernels": SimpleNamespace(softmax=lambda _: 0),
    }
    for name, fake in fakes.items():
        monkeypatch.setitem(sys.modules, name, fake)
    out = tmp_path / "out.csv"
    monkeypatch.setattr(sys, "argv", ["bench.py", str(out)])
    (program,) = blocks("python")
    exec(compile(program, "bench.py", "exec"), {})
    declared = Declared(yardstick="Reference/*", verified="right")
    found = read_process(out.read_text(), "out.csv", declared)
    assert found.device.name == "NVIDIA H200"
    assert found.readings["Softmax/4096"].per_second == pytest.approx(80000)
    assert found.readings["Softmax/4096"].ratio_to_yardstick == 1
    assert all(row.verified for row in found.readings.values())


def test_the_workflow_of_the_guide_gives_inputs_that_the_action_has():
    yaml = YAML(typ="safe", pure=True)
    (block,) = blocks("yaml")
    steps = yaml.load(block)["jobs"]["gate"]["steps"]
    given, known = steps[-1]["with"], yaml.load(ACTION)["inputs"]
    assert given.keys() <= known.keys()
    assert {name for name, entry in known.items() if entry.get("required")} <= given.keys()
