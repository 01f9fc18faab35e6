"""ci/bench: from processes to a verdict, around a stand-in for the bench binary."""

import contextlib
import json
import os
import re
import subprocess
import sys

import pytest
from stage_builder import stage, write_stages

from tilegate_ci import model
from tilegate_ci.cli import main
from tilegate_ci.commands import bench, report
from tilegate_ci.core import git
from tilegate_ci.core.outputs import locked

BUILD = bench.build_preset
SHA = "0123456789abcdef0123456789abcdef01234567"

# Answers like the bench binary on a GPU, as fast as the file `speed` beside it says.
BENCH = f"""#!{sys.executable}
import json, pathlib, re, sys
folder = pathlib.Path(sys.argv[0]).parent
flags = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:])
if (folder / "fails").exists():
    sys.exit(1)
shapes = flags.get("shapes", "64x64x64").split(",")
end = "/cold" if "cold" in flags else ""
names = [rung + "/" + shape + end for rung in ("Naive", "Swizzle") for shape in shapes]
if "benchmark_list_tests" in flags:
    print("\\n".join(name + "/manual_time" for name in names))
    sys.exit()
with open(folder / "calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
count = len((folder / "calls").read_text().splitlines())
speed = float((folder / "speed").read_text()) * (1 + 1e-4 * count)
rows = [
    {{"name": name + "/manual_time", "run_type": "iteration", "GFLOPS": 1000 * speed,
      "ratio_to_cublas": speed, "bytes": 49152, "verified": 1.0}}
    for name in names if re.search(flags.get("benchmark_filter", ""), name)
]
kind = {{"device_kind": "cuda", "device_name": "NVIDIA H200", "cublas": "13.1.0"}}
text = json.dumps({{"context": {{**kind, "seed": "1"}}, "benchmarks": rows}})
pathlib.Path(flags["benchmark_out"]).write_text(text)
"""


SUITE = """set,m,n,k,lda,ldb,ldc,pointer_offset_bytes
Naive,64,64,64,64,64,64,0
Swizzle,4,8,8,9,9,9,0
"""


class Machine:
    """A repository whose bench binary is BENCH, and the answers of git and nvidia-smi."""

    def __init__(self, path):
        self.path = path
        self.bench = path / "build" / "gpu" / "bench"
        self.bench.mkdir(parents=True)
        (self.bench / "bench").write_text(BENCH)
        (self.bench / "bench").chmod(0o755)
        (path / "bench").mkdir()
        (path / "bench" / "gate.csv").write_text(SUITE)
        write_stages(path / "build" / "gpu", stage("01_naive", "Naive"))
        self.speed(0.9)

    def speed(self, ratio):
        (self.bench / "speed").write_text(str(ratio))

    def run(self, *arguments, commit=("--commit", SHA)):
        return main(["bench", "--preset", "gpu", *commit, *arguments])

    def calls(self):
        return [json.loads(line) for line in (self.bench / "calls").read_text().splitlines()]

    def result(self, name):
        folders = (self.path / "build" / "bench-results").iterdir()
        return max(folders, key=lambda folder: folder.stat().st_mtime_ns) / name

    def accept(self):
        target = self.path / "bench" / "baselines" / "nvidia-h200.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        candidate = str(self.result("candidate.json"))
        assert main(["accept", candidate, "--baseline", str(target)]) == 0


@pytest.fixture
def page(without_vega):
    """A test that asks for it gets the page drawn, which takes long."""


@pytest.fixture
def machine(tmp_path, monkeypatch, request):
    if "page" not in request.fixturenames:
        monkeypatch.setattr(report, "_page", lambda *_: "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "REPOSITORY", tmp_path)
    monkeypatch.setattr("tilegate_ci.commands.arguments.REPOSITORY", tmp_path)
    monkeypatch.setattr(model, "REPOSITORY", tmp_path)
    monkeypatch.setattr(bench, "build_preset", lambda preset, *_: tmp_path / "build" / preset)
    monkeypatch.setattr(bench.conditions, "read", lambda: {"temperature_c": 40})
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("TILEGATE_COMMIT", raising=False)
    return Machine(tmp_path)


def test_without_a_baseline_it_reports_and_says_how_to_accept(machine, page, capfd):
    assert machine.run() == 0
    out, err = capfd.readouterr()
    assert "process 3 of 3" in err
    found = re.search(r"ci/gate accept (build/bench-results/\S+/candidate\.json)", out)
    assert found is not None
    assert (machine.path / found.group(1)).exists()
    assert "| `Naive/64x64x64` | 900" in machine.result("report.md").read_text("utf-8")
    assert "Naive/64x64x64" in machine.result("report.html").read_text("utf-8")


def test_each_process_writes_a_file_of_its_own(machine):
    machine.run("--processes", "2")
    outs = [call[0] for call in machine.calls()]
    assert [out.rpartition("/")[2] for out in outs] == ["process-1.json", "process-2.json"]
    assert all(call[1] == "--benchmark_out_format=json" for call in machine.calls())


def test_the_run_carries_commit_and_conditions(machine):
    machine.run()
    document = json.loads(machine.result("candidate.json").read_text())
    assert document["commit"] == SHA
    (session,) = document["sessions"]
    assert session["processes"] == 3
    assert session["conditions"] == {
        "before": {"temperature_c": 40},
        "after": {"temperature_c": 40},
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", session["started"])


@pytest.mark.parametrize(("speed", "code"), [(0.9, 0), (0.95, 0), (0.8, 1)])
def test_the_exit_code_is_the_gates(machine, capfd, speed, code):
    machine.run()
    machine.accept()
    machine.speed(speed)
    assert machine.run() == code
    assert "### Gate" in machine.result("report.md").read_text("utf-8")
    assert machine.result("report.html").exists()
    assert ("ci/gate run --base REV" in capfd.readouterr().err) is (code == 1)


def test_a_filter_limits_what_runs_and_what_is_missing(machine):
    machine.run()
    machine.accept()
    assert machine.run("--filter", "^Naive/") == 0
    assert machine.calls()[-1][-3:] == [
        "--shapes=64x64x64",
        "--benchmark_filter=^(Naive/(64x64x64))(/manual_time)?$",
        "--benchmark_min_time=0.02",
    ]
    assert machine.run("--filter", "Nothing") == 2


def test_the_gated_suite_is_measured_along(machine):
    machine.run()
    document = json.loads(machine.result("candidate.json").read_text())
    shapes = ("Naive/64x64x64", "Swizzle/4x8x8/ld9x9x9", "Swizzle/64x64x64")
    assert tuple(sorted(document["benchmarks"])) == shapes


def test_shapes_chosen_by_hand_are_judged_by_themselves(machine, capfd):
    machine.run()
    machine.accept()
    assert machine.run("--shapes", "8x8x8", "--placements", "8") == 0
    assert {"--shapes=8x8x8", "--placements=8"} <= set(machine.calls()[-1])
    assert "2 judged (3 left out by --filter): 2 new" in capfd.readouterr().out


def test_what_stands_after_two_dashes_goes_to_bench(machine):
    machine.run()
    machine.accept()
    assert machine.run("--", "--cold") == 0
    assert machine.calls()[-1][-1] == "--cold"


def test_of_two_at_once_the_second_waits_and_says_so(machine, monkeypatch):
    said = []
    with contextlib.ExitStack() as first:

        def ends(text):
            said.append(text)
            assert not (machine.bench / "calls").exists()  # nothing measured beside the other one
            first.close()

        monkeypatch.setattr("tilegate_ci.core.outputs.message", ends)
        first.enter_context(locked(machine.path / "build"))
        assert machine.run("--processes", "1") == 0
    assert said == [
        f"{machine.path}/build: another command is at work there; waiting until it has ended"
    ]
    assert len(machine.calls()) == 1


def test_a_process_that_fails_is_an_error(machine, capfd):
    (machine.bench / "fails").touch()
    assert machine.run() == 2
    assert "ended with exit code 1" in capfd.readouterr().err
    (machine.bench / "fails").unlink()
    (machine.bench / "speed").unlink()
    assert machine.run() == 2
    assert "process-1 ended with exit code 1; nothing was judged" in capfd.readouterr().err


def test_without_cmake_it_says_so_and_judges_nothing(machine, monkeypatch, capfd):
    monkeypatch.setattr(bench, "build_preset", BUILD)
    monkeypatch.setenv("PATH", str(machine.path))
    assert machine.run() == 2
    error = "gate: error: cmake cannot be run: No such file or directory\n"
    assert capfd.readouterr().err.endswith(error)


def test_a_folder_that_cannot_be_written_is_an_error(machine, capfd):
    (machine.path / "build" / "bench-results").write_text("")
    assert machine.run() == 2
    assert ": Not a directory\n" in capfd.readouterr().err


def test_a_defect_of_its_own_does_not_end_as_regressed(machine, monkeypatch, capfd):
    monkeypatch.setattr(bench, "judge", lambda *_: {}["planted"])
    assert machine.run() == 2
    assert "planted" in capfd.readouterr().err


def test_a_filter_that_is_no_regular_expression_is_refused_before_anything_runs(machine):
    assert machine.run("--filter", "(") == 2
    assert not (machine.bench / "calls").exists()


def test_a_baseline_that_cannot_be_read_is_an_error_in_the_reports_too(machine, capfd):
    machine.run()
    machine.accept()
    (machine.path / "bench/baselines/nvidia-h200.json").write_text("{")
    assert machine.run() == 2
    assert "nvidia-h200.json: line 1 column 2: truncated JSON" in capfd.readouterr().err
    assert "truncated JSON" in machine.result("report.md").read_text("utf-8")


def test_an_interrupt_is_told_and_judges_nothing(machine, monkeypatch, capfd):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_run_process", interrupt)
    assert machine.run() == 2
    assert "interrupted; nothing was judged" in capfd.readouterr().err


def test_the_report_is_appended_to_the_step_summary(machine, monkeypatch, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    machine.run()
    report = machine.result("report.md").read_text("utf-8")
    assert summary.read_text("utf-8") == "before\n" + report


def git_in(path, *arguments):
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a"}
    environment = {**os.environ, **identity, "GIT_COMMITTER_EMAIL": "a"}
    command = ["git", "-C", str(path), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_of_a_clean_and_of_a_changed_tree(tmp_path):
    git_in(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("1")
    git_in(tmp_path, "add", ".")
    git_in(tmp_path, "commit", "-qm", "one")
    head = git_in(tmp_path, "rev-parse", "HEAD")
    assert git.checkout_commit(tmp_path) == head
    (tmp_path / "file").write_text("2")
    assert git.checkout_commit(tmp_path) == head + "-dirty"


def test_without_history_the_commit_must_be_told(machine, monkeypatch, capfd):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(machine.path.parent))
    assert machine.run(commit=()) == 2
    assert "--commit SHA, or TILEGATE_COMMIT=SHA" in capfd.readouterr().err
    monkeypatch.setenv("TILEGATE_COMMIT", SHA)
    assert machine.run(commit=()) == 0


def test_base_judges_by_the_baseline_of_the_common_ancestor(machine):
    machine.run()
    machine.accept()
    git_in(machine.path, "init", "-q", "-b", "main")
    (machine.path / ".gitignore").write_text("build\n")
    git_in(machine.path, "add", ".gitignore", "bench")
    git_in(machine.path, "commit", "-qm", "fast")
    # The branch lowers the baseline so that its own slow-down would pass.
    git_in(machine.path, "checkout", "-qb", "branch")
    machine.speed(0.5)
    machine.run()
    machine.accept()
    git_in(machine.path, "commit", "-qam", "slow")
    assert machine.run() == 0
    assert machine.run("--base", "main") == 1
    assert machine.run("--base", "nowhere") == 2


def test_base_without_a_baseline_there_reports(machine, capfd):
    git_in(machine.path, "init", "-q", "-b", "main")
    git_in(machine.path, "commit", "-q", "--allow-empty", "-m", "none yet")
    machine.run()
    machine.accept()
    assert machine.run("--base", "main") == 0
    assert "no baseline for NVIDIA H200" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("listed", "nvcc", "preset"),
    [
        ("GPU 0: NVIDIA H200 (UUID: GPU-1)", True, "gpu"),
        ("GPU 0: NVIDIA H200 (UUID: GPU-1)", False, "cpu"),
        ("No devices found.", True, "cpu"),
        (None, True, "cpu"),
    ],
)
def test_which_device_is_measured(tmp_path, monkeypatch, listed, nvcc, preset):
    tools = {"nvcc": "true"} if nvcc else {}
    if listed is not None:
        tools["nvidia-smi"] = f"echo '{listed}'"
    for name, script in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bench.detect_preset() == preset
