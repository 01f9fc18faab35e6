"""ci/bench: from processes to a verdict, around a stand-in for the bench binary."""

import contextlib
import json
import os
import re
import shutil
import subprocess

import fake_bench
import pytest
from run_builder import HERE, in_this_process
from stage_builder import stage, write_stages

from tilegate_ci import model
from tilegate_ci.cli import main
from tilegate_ci.commands import bench, report
from tilegate_ci.core import git
from tilegate_ci.core.files import GateError, locked

BUILD = bench.build_preset
SHA = "0123456789abcdef0123456789abcdef01234567"
DEFAULT = ["Naive/64x64x64", "Swizzle/64x64x64"]  # what bench runs by itself

SUITE = """set,m,n,k,lda,ldb,ldc,pointer_offset_bytes
Naive,64,64,64,64,64,64,0
Swizzle,4,8,8,9,9,9,0
Cublas,1024,1024,1024,1024,1024,1024,0
"""


class Machine:
    """A repository, its build/gpu with the stand-in, and the answers of git and nvidia-smi."""

    def __init__(self, path):
        self.path, self.calls = path, []
        self.bench = path / "build" / "gpu" / "bench"
        self.bench.mkdir(parents=True)
        (path / "bench").mkdir()
        shutil.copy(HERE / "fake_bench.py", path / "bench" / "bench")
        (path / "bench" / "gate.csv").write_text(SUITE)
        (path / "kernels").mkdir()
        (path / "kernels" / "rung.cu").write_text("// a kernel\n")
        (path / ".gitignore").write_text("build\n")
        write_stages(path / "build" / "gpu", stage("01_naive", "Naive"))
        shutil.copy(path / "bench" / "bench", self.bench)
        self.set()

    def set(self, **settings):
        """What the stand-in of the working tree does."""
        (self.bench / "bench.json").write_text(json.dumps({"seed": len(self.calls), **settings}))

    def launch(self, command, timeout_s):
        self.calls.append([*command])
        in_this_process(command, timeout_s)

    def run(self, *arguments, commit=("--commit", SHA)):
        return main(["bench", "--preset", "gpu", *commit, *arguments])

    def result(self, name):
        folders = (self.path / "build" / "bench-results").iterdir()
        return max(folders, key=lambda folder: folder.stat().st_mtime_ns) / name

    def accept(self):
        target = self.path / "bench" / "baselines" / "nvidia-h200.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        candidate = str(self.result("candidate.json"))
        assert main(["accept", candidate, "--baseline", str(target)]) == 0

    def with_history(self, change="// changed\n"):
        """A commit, its baseline, and a change after it."""
        git_in(self.path, "init", "-q", "-b", "main")
        git_in(self.path, "add", ".")
        git_in(self.path, "commit", "-qm", "one")
        assert self.run(commit=()) == 0
        self.accept()
        git_in(self.path, "add", ".")
        git_in(self.path, "commit", "-qm", "its baseline")
        (self.path / "kernels" / "rung.cu").write_text(change)

    def verdicts(self):
        rows = json.loads(self.result("verdict.json").read_text())["rows"]
        return {row["name"]: row["verdict"] for row in rows}


@pytest.fixture
def page(without_vega):
    """A test that asks for it gets the page drawn, which takes long."""


@pytest.fixture
def machine(tmp_path, monkeypatch, request):
    if "page" not in request.fixturenames:
        monkeypatch.setattr(report, "_page", lambda *_: "")
    tools = tmp_path / "tools"
    tools.mkdir()
    shutil.copy(HERE / "fake_cmake.sh", tools / "cmake")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    here = tmp_path / "repository"
    here.mkdir()
    monkeypatch.chdir(here)
    for name in ("commands.arguments", "commands.bench", "measure.projects"):
        monkeypatch.setattr(f"tilegate_ci.{name}.REPOSITORY", here)
    monkeypatch.setattr(model, "REPOSITORY", here)
    monkeypatch.setattr(bench, "WORK", here / "build" / "gate-run")
    monkeypatch.setattr(bench, "build_preset", lambda preset, *_: here / "build" / preset)
    monkeypatch.setattr(bench, "names_of", lambda _: DEFAULT)
    monkeypatch.setattr("tilegate_ci.measure.conditions.read", lambda: {"temperature_c": 40})
    for name in ("GITHUB_STEP_SUMMARY", "TILEGATE_COMMIT"):
        monkeypatch.delenv(name, raising=False)
    made = Machine(here)
    monkeypatch.setattr("tilegate_ci.measure.launcher._run", made.launch)
    return made


def test_without_a_baseline_it_reports_and_says_how_to_accept(machine, page, capfd):
    assert machine.run() == 0
    out, err = capfd.readouterr()
    assert "process 3 of 3" in err
    found = re.search(r"ci/gate accept (build/bench-results/\S+/candidate\.json)", out)
    assert found is not None
    assert (machine.path / found.group(1)).exists()
    assert "| verified | `Naive/64x64x64` | 0.5" in machine.result("report.md").read_text("utf-8")
    assert "Naive/64x64x64" in machine.result("report.html").read_text("utf-8")


def test_each_process_is_kept_and_makes_the_run_again(machine):
    machine.run("--processes", "2")
    files = [str(machine.result(f"process-{number}.json")) for number in (1, 2)]
    assert main(["compare", "--no-baseline", "--out", "again.json", "--commit", SHA, *files]) == 0
    again = json.loads((machine.path / "again.json").read_text())
    first = json.loads(machine.result("candidate.json").read_text())
    assert again["benchmarks"] == first["benchmarks"]


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


@pytest.mark.parametrize("board", [{"clock": 8, "ratio": 2}, {"clock": -5, "ratio": -2}])
def test_another_board_passes_by_pairs_with_the_baseline_s_commit(machine, capfd, board):
    machine.with_history()
    machine.set(**board)
    set_base(machine, {"seed": 7, **board})
    assert machine.run(commit=()) == 0
    assert set(machine.verdicts().values()) == {"pass"}
    assert "2 of 3 benchmarks differ from the baseline" in capfd.readouterr().err


def set_base(machine, settings):
    """What the stand-in of the baseline's commit does, once it is built."""
    cmake = shutil.which("cmake")
    text = (HERE / "fake_cmake.sh").read_text()
    with open(cmake, "w") as stream:
        stream.write(f"{text}echo '{json.dumps(settings)}' >\"$2/bench/bench.json\"\n")


def test_a_slowed_rung_is_regressed_and_named_on_another_board_too(machine, capfd):
    machine.with_history()
    machine.set(clock=8, ratio=1, slow={"Naive": 5})
    set_base(machine, {"clock": 8, "ratio": 1})
    assert machine.run(commit=()) == 1
    assert machine.verdicts() == {
        "Naive/64x64x64": "regressed",
        "Swizzle/4x8x8/ld9x9x9": "pass",
        "Cublas/1024x1024x1024": "pass",
    }
    out = capfd.readouterr().out
    assert "Naive/64x64x64" in out
    assert "ci/gate run --no-screen --base" in out


def test_what_twelve_pairs_leave_open_is_measured_on(machine):
    machine.with_history()
    board = {"clock": 8, "ratio": 1, "slow": {"Naive": 4}, "noise": 0.015}
    machine.set(**board)
    set_base(machine, {"seed": 7, **board})
    assert machine.run(commit=()) == 0
    assert machine.verdicts()["Naive/64x64x64"] == "pass"
    assert machine.result("pairs/process-pair-36-head.json").exists()


def test_the_baseline_s_own_sources_are_identical_whatever_their_times(machine, capfd):
    machine.with_history("// a kernel\n")
    calls = len(machine.calls)
    machine.set(slow={"Naive": 5})
    assert machine.run(commit=()) == 0
    assert machine.verdicts()["Naive/64x64x64"] == "identical"
    assert len(machine.calls) == calls + 3  # no pairs


@pytest.mark.parametrize(
    ("settings", "code"), [({"ratio": 1}, 0), ({"ratio": -4}, 0), ({"slow": {"Naive": 5}}, 1)]
)
def test_without_history_two_boards_may_differ(machine, capfd, settings, code):
    machine.run()
    machine.accept()
    machine.set(**settings)
    assert machine.run() == code
    assert "### Gate" in machine.result("report.md").read_text("utf-8")
    assert machine.result("report.html").exists()
    assert "judged by a recording of another board" in capfd.readouterr().err
    assert (machine.verdicts()["Naive/64x64x64"] == "regressed") is (code == 1)


def test_without_history_the_same_board_is_held_to_the_margin(machine, monkeypatch):
    monkeypatch.setattr("tilegate_ci.measure.conditions.read", lambda: {"board": "a"})
    machine.run()
    machine.accept()
    machine.set(slow={"Naive": 2})
    assert machine.run() == 1


def test_what_is_not_gated_is_information(machine, capfd):
    machine.run()
    machine.accept()
    path = machine.path / "bench/baselines/nvidia-h200.json"
    document = json.loads(path.read_text())
    rows = document["benchmarks"]
    rows["Naive/8x8x8"] = rows["Swizzle/64x64x64"]  # recorded once, not measured by default
    path.write_text(json.dumps(document))
    machine.set(slow={"Swizzle": 0})
    assert machine.run() == 0
    assert sorted(machine.verdicts()) == [
        "Cublas/1024x1024x1024",
        "Naive/64x64x64",
        "Swizzle/4x8x8/ld9x9x9",
    ]
    assert "3 judged, 2 not: 3 pass." in capfd.readouterr().out
    measured = json.loads(machine.result("verdict.json").read_text())["candidate"]["measured"]
    assert "Swizzle/64x64x64" in measured


def test_a_gated_benchmark_that_the_baseline_lacks_is_new(machine):
    machine.run()
    machine.accept()
    path = machine.path / "bench/baselines/nvidia-h200.json"
    document = json.loads(path.read_text())
    del document["benchmarks"]["Naive/64x64x64"]
    path.write_text(json.dumps(document))
    assert machine.run() == 0
    assert machine.verdicts()["Naive/64x64x64"] == "new"


def test_a_filter_limits_what_runs_and_what_is_missing(machine):
    machine.run()
    machine.accept()
    assert machine.run("--filter", "^Naive/") == 0
    assert [word for word in machine.calls[-1] if word.startswith(("--shapes", "--bench"))][:3] == [
        "--shapes=64x64x64",
        "--benchmark_filter=^(Naive/(64x64x64))(/manual_time)?$",
        "--benchmark_min_time=0.02",
    ]
    assert machine.run("--filter", "Nothing") == 2


def test_it_measures_at_as_many_places_as_the_baseline(machine):
    machine.run()
    assert "--placements=8" in machine.calls[-1]  # as a baseline should be
    machine.run("--placements", "1")
    machine.accept()
    machine.run()
    assert "--placements=1" in machine.calls[-1]


def test_the_gated_suite_is_measured_along(machine):
    machine.run()
    document = json.loads(machine.result("candidate.json").read_text())
    shapes = ("Cublas/1024x1024x1024", "Naive/64x64x64", "Swizzle/4x8x8/ld9x9x9")
    assert tuple(sorted(document["benchmarks"])) == (*shapes, "Swizzle/64x64x64")


def test_shapes_chosen_by_hand_are_judged_by_themselves(machine, capfd):
    machine.run()
    machine.accept()
    assert machine.run("--shapes", "8x8x8", "--placements", "8") == 0
    assert {"--shapes=8x8x8", "--placements=8"} <= set(machine.calls[-1])
    assert "2 judged, 4 not: 2 new" in capfd.readouterr().out


def test_what_stands_after_two_dashes_goes_to_bench(machine):
    machine.run()
    machine.accept()
    assert machine.run("--", "--cold") == 0
    assert "--cold" in machine.calls[-1]


def test_of_two_at_once_the_second_waits_and_says_so(machine, monkeypatch):
    said = []
    with contextlib.ExitStack() as first:

        def ends(text):
            said.append(text)
            assert not machine.calls  # nothing measured beside the other one
            first.close()

        monkeypatch.setattr("tilegate_ci.core.files.message", ends)
        first.enter_context(locked(machine.path / "build"))
        assert machine.run("--processes", "1") == 0
    assert said == [
        f"{machine.path}/build: another command is running there; waiting for it to end"
    ]
    assert len(machine.calls) == 1


def test_a_process_that_fails_is_an_error(machine, capfd):
    machine.set(fail="out of memory")
    assert machine.run() == 2
    assert "out of memory" in capfd.readouterr().err


def test_a_process_is_a_program(machine, monkeypatch, capfd):
    """By the real launcher, which lists the benchmarks first."""
    monkeypatch.undo()
    program = machine.bench / "bench"
    program.chmod(0o755)
    assert fake_bench.main.__module__ == "fake_bench"
    with pytest.raises(GateError, match=r"(?s)bench: Traceback.*"):
        bench.names_of(program)


def test_what_does_not_apply_is_not_listed(machine, monkeypatch):
    monkeypatch.undo()
    program = machine.bench / "bench"
    program.write_text(
        "#!/bin/sh\necho Naive/64x64x64/manual_time\necho 'Not applicable to Mine: …' >&2\n"
    )
    program.chmod(0o755)
    assert bench.names_of(program) == ["Naive/64x64x64"]


def test_without_cmake_it_says_so_and_judges_nothing(machine, monkeypatch, capfd):
    monkeypatch.setattr(bench, "build_preset", BUILD)
    monkeypatch.setenv("PATH", str(machine.path))
    assert machine.run() == 2
    error = "gate: error: cmake: cannot be run: No such file or directory\n"
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
    assert not machine.calls


def test_a_baseline_that_cannot_be_read_is_an_error_in_the_reports_too(machine, capfd):
    machine.run()
    machine.accept()
    (machine.path / "bench/baselines/nvidia-h200.json").write_text("{")
    assert machine.run() == 2
    assert "nvidia-h200.json: line 1 column 2: truncated JSON" in capfd.readouterr().err
    assert "truncated JSON" in machine.result("report.md").read_text("utf-8")


def test_an_interrupt_is_told_and_judges_nothing(machine, monkeypatch, capfd):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "launch", interrupt)
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
    git_in(machine.path, "add", ".gitignore", "bench", "kernels")
    git_in(machine.path, "commit", "-qm", "fast")
    # The branch lowers the baseline so that its own slow-down would pass.
    git_in(machine.path, "checkout", "-qb", "branch")
    machine.set(slow={"Naive": 50})
    machine.run()
    machine.accept()
    (machine.path / "kernels" / "rung.cu").write_text("// slow\n")
    git_in(machine.path, "commit", "-qam", "slow")
    assert machine.run() == 0
    set_base(machine, {})
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
