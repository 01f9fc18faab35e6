"""The workflows: valid, pinned, read-only, and never a fork's code on a machine of our own."""

import argparse
import re
import shlex
import subprocess
import sys

import pytest
from ladder_builder import REPOSITORY
from ruamel.yaml import YAML

from tilegate_ci import cli

FILES = sorted((REPOSITORY / ".github" / "workflows").glob("*.y*ml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
OURS = "$/.github/actions/gate"  # of the same commit
HOSTED = "ubuntu-24.04"
# Events that run a fork's code, or run beside it with more rights than it should have.
OPEN_TO_FORKS = {"pull_request", "pull_request_target", "workflow_run", "issue_comment"}


def load(path):
    return YAML(typ="safe", pure=True).load(path.read_text("utf-8"))


def problems(workflow):
    """What breaks the rules, one sentence each."""
    found = []
    jobs = workflow["jobs"]
    events = workflow["on"]
    if "pull_request_target" in events:
        found.append("pull_request_target gives a fork's code the rights of this repository")
    if workflow.get("permissions") != {"contents": "read"}:
        found.append("the token must be read-only")
    for name, job in jobs.items():
        if "permissions" in job:
            found.append(f"{name}: permissions of its own")
        if "timeout-minutes" not in job:
            found.append(f"{name}: no time limit")
        if job["runs-on"] != HOSTED:
            if OPEN_TO_FORKS & set(events):
                found.append(f"{name}: self-hosted, and a fork can trigger it")
            if job.get("concurrency", {}).get("cancel-in-progress") is not False:
                found.append(f"{name}: one at a time, without cancellation")
        for step in job["steps"]:
            uses = step.get("uses")
            if uses not in (None, OURS) and not PINNED.fullmatch(uses):
                found.append(f"{name}: {uses} is not pinned by commit")
            credentials = step.get("with", {}).get("persist-credentials")
            if uses is not None and "/checkout@" in uses and credentials is not False:
                found.append(f"{name}: checkout leaves its token behind")
            if "${{" in step.get("run", ""):
                found.append(f"{name}: an expression in a script; pass it through env")
    if "secrets." in str(workflow):
        found.append("a secret")
    return found + _summary_problems(jobs)


def _summary_problems(jobs):
    """One job depends on all others, runs whatever became of them, and looks at each result."""
    last = list(jobs)[-1]
    summary, others = jobs[last], set(jobs) - {last}
    text = str(summary)
    found = []
    if summary.get("if") != "always()":
        found.append(f"{last}: does not always run")
    if set(summary["needs"]) != others:
        found.append(f"{last}: does not need every other job")
    found += [
        f"{last}: does not look at {name}" for name in others if f"needs.{name}.result" not in text
    ]
    return found


def test_there_are_workflows():
    assert [path.name for path in FILES] == ["ci.yml", "gpu.yml", "nightly.yml", "release.yml"]


def test_valid_by_the_public_schema():
    done = validate(*FILES)
    assert done.returncode == 0, done.stdout


def validate(*paths):
    command = ["check_jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, paths)]
    return subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )


def test_the_schema_rejects_an_invalid_workflow(tmp_path):
    path = tmp_path / "bad.yml"
    path.write_text("on: push\njobs: {a: {runs-on: x, steps: [{runs: ls}]}}\n")
    assert validate(path).returncode == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rules(path):
    assert problems(load(path)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_pin_tells_its_version(path):
    lines = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    lines = [line for line in lines if not line.endswith(OURS)]
    assert all(re.search(r"@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line) for line in lines)


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("gpu.yml", {"push", "workflow_dispatch"}),
        ("nightly.yml", {"schedule", "workflow_dispatch"}),
        ("release.yml", {"push", "workflow_dispatch"}),
    ],
)
def test_a_gpu_runs_vetted_commits_only(name, events):
    assert set(load(REPOSITORY / ".github/workflows" / name)["on"]) == events


def test_one_job_at_a_time_on_a_gpu_whichever_workflow_it_is_of():
    jobs = [job for path in FILES for job in load(path)["jobs"].values()]
    ours = [job for job in jobs if job["runs-on"] != HOSTED]
    models = [job["runs-on"][2] for job in ours]
    assert sorted(models) == ["${{ matrix.model }}", "h200", "h200"]
    assert [job["concurrency"]["group"] for job in ours] == [f"gpu-{model}" for model in models]


def test_the_merged_verdict_is_on_every_model():
    """And on it alone the required check depends."""
    jobs = load(REPOSITORY / ".github/workflows/gpu.yml")["jobs"]
    runs = [step["run"] for step in jobs["gpu"]["steps"] if "run" in step]
    words = shlex.split(runs[-1].removeprefix("build/gate/bin/gate "))
    arguments = cli.parse(words, argparse.Namespace())
    models = jobs["judge"]["strategy"]["matrix"]["model"]
    assert arguments.files == [f"build/gate-{model}/gate.json" for model in models]
    assert arguments.merge
    assert jobs["judge"]["steps"][-1]["with"]["name"] == "gate-${{ matrix.model }}"
    assert "build/gate.*" in jobs["judge"]["steps"][-1]["with"]["path"]


def test_a_release_is_a_tag():
    assert load(REPOSITORY / ".github/workflows/release.yml")["on"]["push"] == {"tags": ["v*"]}


def test_the_night_is_of_main_and_uploads_what_a_person_looks_at():
    job = load(REPOSITORY / ".github/workflows/nightly.yml")["jobs"]["record"]
    assert job["if"] == "github.ref_name == 'main'"
    uploads = [step for step in job["steps"] if "/upload-artifact@" in step.get("uses", "")]
    assert [step["with"]["name"] for step in uploads] == [
        "aa-recording",
        "trend",
        "baseline-candidate",
    ]
    # The numbers of a red night are wanted most.
    assert all(step["if"] == "${{ !cancelled() }}" for step in job["steps"][2:])


def test_the_night_is_thorough():
    steps = load(REPOSITORY / ".github/workflows/nightly.yml")["jobs"]["thorough"]["steps"]
    thorough = [step["run"] for step in steps if step.get("env") == {"TILEGATE_THOROUGH": 1}]
    assert thorough == ["ci/test --cpu", "ci/pytest tests/counters"]


def test_every_pull_request_sees_resources_and_counters():
    workflow = load(REPOSITORY / ".github/workflows/ci.yml")
    assert workflow["on"]["pull_request"] is None  # no branch or path left out
    jobs = workflow["jobs"]
    commands = [step["run"] for name in jobs for step in jobs[name]["steps"] if "run" in step]
    for command in ("ci/gate check resources", "ci/gate check counters"):
        assert any(text.startswith(command) for text in commands)


def test_the_gate_takes_these_arguments():
    """Parsed as on the runner, each variable as a word of its own; nothing is run."""
    jobs = [job for path in FILES for job in load(path)["jobs"].values()]
    texts = [step.get("run", "") for job in jobs for step in job["steps"]]
    lines = [shlex.split(re.sub(r"\$\w+", "word", text), comments=True) for text in texts]
    commands = [words[1:] for words in lines if words[:1] == ["ci/gate"]]
    for command in commands:
        cli.parse(command, argparse.Namespace())
    assert [" ".join(words[: 1 + (words[0] == "lab")]) for words in commands] == [
        "check",
        "check",
        "run",
        "run",
        "report",
        "report",
        "lab record",
        "accept",
        "drift",
        "lab mutants",
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_steps_are_commands_that_run_locally_too(path):
    for name, job in list(load(path)["jobs"].items())[:-1]:
        runs = [step["run"] for step in job["steps"] if "run" in step]
        assert runs, name
        for run in runs:
            command = run.split()[0]
            assert command.startswith("ci/")
            assert (REPOSITORY / command).exists()


BREAK = {
    "pull_request_target": lambda w: w["on"].update(pull_request_target=None),
    "a fork can trigger it": lambda w: w["on"].update(pull_request=None),
    "read-only": lambda w: w.update(permissions={"contents": "write"}),
    "permissions of its own": lambda w: w["jobs"]["judge"].update(permissions={}),
    "not pinned": lambda w: w["jobs"]["judge"]["steps"][0].update(uses="actions/checkout@v4"),
    "leaves its token": lambda w: w["jobs"]["judge"]["steps"][0].pop("with"),
    "always run": lambda w: w["jobs"]["gpu"].pop("if"),
    "does not need": lambda w: w["jobs"]["gpu"].update(needs=[]),
    "does not look at": lambda w: w["jobs"]["gpu"].update(steps=[]),
    "without cancellation": lambda w: w["jobs"]["judge"].pop("concurrency"),
    "no time limit": lambda w: w["jobs"]["judge"].pop("timeout-minutes"),
    "a secret": lambda w: w["jobs"]["judge"].update(env={"A": "${{ secrets.A }}"}),
    "expression in a script": lambda w: w["jobs"]["judge"]["steps"][1].update(run="${{ a }}"),
}


@pytest.mark.parametrize("message", BREAK)
def test_each_rule_can_fail(message):
    workflow = load(REPOSITORY / ".github/workflows/gpu.yml")
    BREAK[message](workflow)
    assert any(message in problem for problem in problems(workflow))
