"""The composite action: valid, pinned, without expressions in its scripts, and what these run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gate_builders import REPOSITORY
from tilegate_ci import cli

FILE = REPOSITORY / ".github" / "actions" / "gate" / "action.yml"
STEPS = YAML(typ="safe", pure=True).load(FILE.read_text("utf-8"))["runs"]["steps"]
STAND_IN = """#!/bin/sh
printf '%s\\n' "$(basename "$0")" "$@" >> "$LOG"
case "$1" in run) touch "$RUNNER_TEMP/gate-report/verdict.json"; exit 1;; esac
"""


def check(*command):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*command, str(FILE)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_valid_by_the_public_schema():
    check("check-jsonschema", "--builtin-schema", "vendor.github-actions")


def test_zizmor_finds_nothing():
    check("zizmor", "--offline", "--no-progress", "--color=never")


def test_rules():
    for step in STEPS:
        assert "${{" not in step.get("run", "")
        assert "uses" in step or step["shell"] == "bash"
    pins = [line for line in FILE.read_text("utf-8").splitlines() if "uses:" in line]
    assert all(re.search(r"@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line) for line in pins)
    conditions = [step.get("if") for step in STEPS]
    assert conditions == [None, None, "${{ !cancelled() }}", "${{ !cancelled() }}"]


@pytest.fixture
def runner(tmp_path):
    """Runs a step's script where pip and gate note what they are given; gate run finds a
    regression."""
    for name in ("gate", "pip"):
        tool = tmp_path / "gate" / "bin" / name
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text(STAND_IN)
        tool.chmod(0o755)
    (tmp_path / "python3").write_text("#!/bin/sh\n")  # makes no virtual environment
    (tmp_path / "python3").chmod(0o755)
    log = tmp_path / "log"

    def run(step, **inputs):
        log.unlink(missing_ok=True)
        given = dict.fromkeys(step.get("env", ()), "") | inputs
        env = {
            "PATH": f"{tmp_path}:/usr/bin:/bin", "RUNNER_TEMP": str(tmp_path), "LOG": str(log),
            "GITHUB_ACTION_PATH": str(FILE.parent), "GITHUB_STEP_SUMMARY": "summary.md", **given,
        }  # fmt: skip
        # As GitHub runs `shell: bash`.
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        code = subprocess.run(command, env=env, check=False).returncode
        return code, log.read_text().splitlines() if log.exists() else []

    return run


def test_the_package_that_is_installed_is_this_one(runner):
    code, (name, *words) = runner(STEPS[0])
    assert (code, name, words[:-1]) == (0, "pip", ["install", "--quiet"])
    assert (Path(words[-1]) / "pyproject.toml").samefile(REPOSITORY / "ci" / "pyproject.toml")


def test_each_input_is_an_option_and_the_step_fails_like_the_gate(runner, tmp_path):
    names = {name: f"OPTION_{name.replace('-', '_').upper()}" for name in inputs()}
    assert STEPS[1]["env"] == {names[n]: f"${{{{ inputs.{n} }}}}" for n in names}
    code, (name, *words) = runner(
        STEPS[1],
        OPTION_BASE="main",
        OPTION_RUN="'a b' {out}",
        OPTION_PAIRS="5",
        OPTION_MARGIN_ABS="2us",
    )
    assert (code, name) == (1, "gate")
    given = ["run", "--base=main", "--margin-abs=2us", "--pairs=5", "--run='a b' {out}"]
    assert words[:5] == given
    arguments = cli.parse(words, cli.argparse.Namespace())
    assert arguments.json == str(tmp_path / "gate-report" / "verdict.json")
    code, words = runner(STEPS[2])
    report = ["gate", "report", "verdict.json", "--html", "report.html", "--junit", "report.xml"]
    assert (code, words) == (0, report)


def inputs():
    every = YAML(typ="safe", pure=True).load(FILE.read_text("utf-8"))["inputs"]
    return [name for name in every if name != "artifact"]
