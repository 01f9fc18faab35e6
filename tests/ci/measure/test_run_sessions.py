"""ci/gate run and confirm: interruptions, heat, other devices, what moves without a change."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from gate_builders import REPOSITORY
from tilegate_ci.cli import main
from tilegate_ci.judge import verdict_file
from tilegate_ci.measure import launcher
from tilegate_ci.measure.projects import Tilegate, digest_of_files


def test_an_interruption_loses_no_process(world, gate_run):
    world.set("head", slow={"Warptile": 3})
    world.set("base", fail_after=2, fail="out of memory")
    stopped = gate_run("confirm")
    assert stopped.code == 2
    assert "out of memory" in stopped.err
    before = {path.name: path.read_text() for path in world.processes()}
    assert before
    world.set("base")
    done = gate_run("confirm")
    assert done.code == 1
    assert f"{len(before)} processes are there already" in done.err
    for name, text in before.items():
        (path,) = world.folder.glob(f"work/run-*/{name}")
        assert path.read_text() == text
    assert len(world.processes()) == 10
    again = gate_run("confirm")  # the same verdict, and nothing is measured
    assert (again.code, again.out) == (done.code, done.out)


def test_a_termination_says_that_nothing_is_lost(world, gate_run, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    reports = ("--json", "verdict.json", "--markdown", "summary.md")
    assert gate_run("confirm", *reports).code == 0
    monkeypatch.setattr("tilegate_ci.measure.launcher.Launcher.run", interrupt)
    done = gate_run("confirm", "--seed", 2, *reports)
    assert done.code == 2
    assert "interrupted; completed processes are kept" in done.err
    assert "interrupted" in verdict_file.load("verdict.json")
    assert Path("summary.md").read_text().startswith("### Gate: error\n\n- **interrupted")


def test_a_killed_run_goes_on_where_it_was(world, capsys):
    world.set("head", slow={"Warptile": 3})
    sides = ["--base", "base", "--head", "head", "--work", "work", "--pairs", "4"]
    command = ["confirm", *sides]
    program = str(REPOSITORY / "ci" / "gate")
    with subprocess.Popen([program, *command], stderr=subprocess.PIPE, text=True) as running:
        for line in running.stderr:
            if "pair-2-" in line:
                running.kill()
                break
    assert running.returncode == -signal.SIGKILL
    kept = {path.name: path.read_text() for path in world.processes()}
    assert 3 <= len(kept) < 8
    assert main(command) == 1
    assert f"{len(kept)} processes are there already" in capsys.readouterr().err
    assert kept.items() <= {path.name: path.read_text() for path in world.processes()}.items()


def test_a_process_file_cut_short_is_an_error_that_names_it(world, gate_run):
    assert gate_run("confirm").code == 0
    path = world.processes()[0]
    path.write_text(path.read_text()[:100])
    done = gate_run("confirm")
    assert done.code == 2
    assert f"{path.name}: line" in done.err
    assert "truncated JSON" in done.err


def test_a_moved_canary_makes_it_incomparable_not_red(with_baseline, gate_run):
    with_baseline.set("head", slow={"Warptile": 3, "Cublas": 2})
    done = gate_run("run")
    assert done.code == 4, done
    assert "cuBLAS against itself, changed in time by" in done.out
    assert len(with_baseline.processes()) == 2


def test_another_gpu_is_incomparable(with_baseline, gate_run):
    path = with_baseline.folder / "base/bench/baselines/nvidia-h200.json"
    document = json.loads(path.read_text())
    document["device"]["cublas"] = "12.0.0"
    path.write_text(json.dumps(document))
    assert gate_run("run").code == 4


def test_a_baseline_that_moved_makes_it_another_run(with_baseline, gate_run):
    with_baseline.set("head", slow={"Warptile": 3})
    assert gate_run("run").code == 1

    def widen(rows):
        row = rows["Warptile/64x64x64"]
        spread = [row["ratio_to_cublas"] * (1 + 0.01 * n) for n in (-2, 2, -1, 1, 0)]
        row["per_process"]["ratio_to_cublas"] = spread

    with_baseline.edit_baseline(widen)
    done = gate_run("run")
    assert done.code == 1, done
    assert done.out.splitlines()[1].startswith("5 judged: 1 regressed, 4 pass.")


@pytest.mark.parametrize(
    ("path", "another"),
    [
        ("kernels/tile.inl", True),
        ("kernels/shapes.json", True),
        ("bench/gate.csv", True),
        ("bench/recordings/s.json.gz", False),
        ("bench/plots/staircase.svg", False),
        ("README.md", False),
        ("kernels/10_warptile/README.md", False),
    ],
)
def test_a_changed_source_of_any_kind_makes_it_another_build(tmp_path, path, another):
    project = Tilegate.at(tmp_path, (), launcher.Launcher())

    def digest():
        return digest_of_files(tmp_path, project.sources(tmp_path))

    (tmp_path / "kernels").mkdir()
    before = digest()
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("1")
    assert (digest() != before) == another


@pytest.mark.parametrize("command", ["run", "confirm"])
@pytest.mark.parametrize("field", ["device_name", "cublas"])
def test_pairs_of_two_devices_are_incomparable(with_baseline, gate_run, command, field):
    with_baseline.set("head", slow={"Warptile": 3})
    with_baseline.set("base", context={field: "another"})
    done = gate_run(command)
    assert done.code == 4, done
    assert "incomparable: measured on " in done.out
    assert "regressed" not in done.out


def test_a_run_that_went_on_elsewhere_is_incomparable(with_baseline, gate_run):
    with_baseline.set("head", slow={"Warptile": 3})
    assert gate_run("run").code == 1
    for path in with_baseline.processes():
        if path.name.startswith("process-pair-5-"):
            path.write_text(path.read_text().replace("NVIDIA H200", "NVIDIA A100"))
    assert gate_run("run").code == 4


HOT = {"throttle_reasons": ["hardware thermal slowdown"]}


@pytest.mark.parametrize(
    ("command", "message"),
    [("confirm", "only 0 of 5 pairs count"), ("run", "only 0 of 1 processes of the screen count")],
)
@pytest.mark.usefixtures("without_vega")
def test_heat_throughout_is_incomparable(with_baseline, gate_run, monkeypatch, command, message):
    monkeypatch.setattr("tilegate_ci.measure.conditions.read", lambda: HOT)
    done = gate_run(command, "--json", "verdict.json")
    assert done.code == 4, done
    assert f"incomparable: throttled: {message}" in done.out
    assert done.out.splitlines()[1].startswith("5 judged: 5 incomparable.")
    assert main(["report", "verdict.json", "--junit", "report.xml", "--html", "r.html"]) == 0


def test_heat_after_the_screen_is_incomparable(with_baseline, gate_run, monkeypatch):
    readings = iter([{}] * 6 + [HOT] * 1000)
    monkeypatch.setattr("tilegate_ci.measure.conditions.read", lambda: next(readings))
    with_baseline.set("head", slow={"Warptile": 3})
    done = gate_run("run")
    assert done.code == 4, done
    assert "only 0 of 5 pairs count" in done.out


def test_heat_within_the_screen_is_incomparable(with_baseline, gate_run, monkeypatch):
    readings = iter([{}] * 2 + [HOT] * 1000)
    monkeypatch.setattr("tilegate_ci.measure.conditions.read", lambda: next(readings))
    with_baseline.set("head", slow={"Warptile": 3})
    done = gate_run("run")
    assert done.code == 4, done
    assert "only 1 of 3 processes of the screen count" in done.out


@pytest.mark.parametrize(("conditions", "warned"), [({}, 1), ({"temperature_c": 41}, 0)])
def test_without_nvml_there_is_one_warning(world, gate_run, monkeypatch, conditions, warned):
    monkeypatch.setattr("tilegate_ci.measure.conditions.read", lambda: conditions)
    done = gate_run("confirm", "--markdown", "summary.md")
    assert done.code == 0
    assert done.err.count("warning: NVML is unavailable") == warned
    assert Path("summary.md").read_text().count("warning: NVML") == warned


def test_heat_voids_a_pair_and_another_is_measured(world, gate_run, monkeypatch):
    readings = iter([HOT] * 4 + [{}] * 1000)
    monkeypatch.setattr("tilegate_ci.measure.conditions.read", lambda: next(readings))
    done = gate_run("confirm")
    assert done.code == 0, done
    assert "pair 1 is void: hardware thermal slowdown" in done.err


def test_controls_that_move_make_it_incomparable(world, gate_run, monkeypatch):
    monkeypatch.setattr(
        "tilegate_ci.measure.gate_run.same_rungs", lambda base, head, rungs: {"Warptile"}
    )
    world.set("head", slow={"Warptile": 3, "Naive": 3})
    done = gate_run("confirm")
    assert done.code == 4, done
    assert "Warptile/64x64x64 changed in time by" in done.out
