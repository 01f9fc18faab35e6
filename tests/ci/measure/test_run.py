"""ci/gate run and confirm, with stand-ins for cmake and for the bench binary."""

import json
import re
import shlex
import statistics
import subprocess
from pathlib import Path

import pytest
from run_builder import SUITE
from stage_builder import stage

from tilegate_ci.cli import main
from tilegate_ci.core.files import read_json
from tilegate_ci.formats import run_file
from tilegate_ci.judge import verdict_file
from tilegate_ci.measure.projects import Side
from tilegate_ci.model import Verdict


def test_an_unchanged_head_passes_the_screen_alone(with_baseline, gate_run):
    done = gate_run("run")
    assert done.code == 0, done
    assert [path.name for path in with_baseline.processes()] == ["process-screen-1.json"]


def test_what_one_process_leaves_open_is_measured_again(with_baseline, gate_run):
    with_baseline.set("head", slow={"Warptile": 0.75})  # more than half of the margin
    done = gate_run("run")
    assert done.code == 0, done
    assert "4 of 5 benchmarks need another process" in done.err
    again, first = ({*read_json(path)["readings"]} for path in with_baseline.processes())
    assert first - again == {"Naive/32x32x32"}
    assert processes_of_candidate(with_baseline) == {**dict.fromkeys(again, 2), "Naive/32x32x32": 1}


def test_where_two_processes_disagree_there_is_a_third(with_baseline, gate_run):
    with_baseline.set("head", slow={"Warptile": 1.1})
    done = gate_run("run", "--filter", "^Warptile")
    assert "3 of 4 benchmarks need another process" in done.err
    found = processes_of_candidate(with_baseline)
    assert sorted(found.values()) == [2, 3, 3, 3]  # the canaries are measured along
    steps = {path.stem.partition("-")[2] for path in with_baseline.processes()}
    assert {"screen-1", "again-1-1", "again-2-1"} < steps


def processes_of_candidate(world):
    """How many it has of each benchmark."""
    rows = run_file.load(next(world.folder.glob("work/run-*/candidate.json"))).benchmarks
    return {name: len(row.per_process["ratio_to_cublas"]) for name, row in rows.items()}


def test_a_slow_head_is_blocked(with_baseline, gate_run):
    with_baseline.set("base", old=True)  # the bench of an older commit
    with_baseline.set("head", slow={"Warptile": 3})
    done = gate_run("run", "--markdown", "summary.md", "--json", "verdict.json")
    assert done.code == 1, done
    assert done.out.splitlines()[1].startswith("5 judged: 2 regressed, 3 pass. Exit 1")
    assert "measure the worst again: ci/gate run --no-screen --base base" in done.out
    assert "2 benchmarks look slower, measuring them in pairs: Warptile/" in done.err
    assert "min left" in done.err
    assert Path("summary.md").read_text().startswith("### Gate: regressed")
    found = verdict_file.load("verdict.json")
    assert [row.verdict.value for row in found.rows[:2]] == ["regressed"] * 2
    assert len(with_baseline.processes()) == 2 + 2 * 5


def test_what_a_look_has_decided_is_not_measured_on(with_baseline, gate_run):
    with_baseline.set("base", slow={"Naive": 3})
    with_baseline.set("head", slow={"Naive": 3, "Warptile": 3})
    done = gate_run("run", "--pairs", 12, "--json", "verdict.json")
    assert done.code == 1, done
    pairs = {
        row.name.split("/")[0]: len(row.pairs) for row in verdict_file.load("verdict.json").rows
    }
    assert pairs == {"Naive": 4, "Warptile": 8, "Cublas": 8}
    first, last = (
        read_json(next(with_baseline.folder.glob(f"work/run-*/process-pair-{n}-head.json")))
        for n in (4, 8)
    )
    assert first["readings"].keys() - last["readings"].keys() == {"Naive/32x32x32"}


@pytest.mark.parametrize("places", [True, False])
def test_the_screen_measures_as_its_baseline_was_measured(with_baseline, gate_run, places):
    """At several places in memory or at one; pairs have several."""
    if not places:
        with_baseline.edit_baseline(
            lambda rows: [row.pop("placement_pct") for row in rows.values()]
        )
    with_baseline.set("head", slow={"Warptile": 3})
    assert gate_run("run").code == 1
    for path in with_baseline.processes():
        rows = read_json(path)["readings"].values()
        assert all(("placement_pct" in row) == (places or "pair" in path.name) for row in rows)


def test_what_the_screen_flags_for_its_session_passes_the_confirmation(with_baseline, gate_run):
    for side in ("base", "head"):
        with_baseline.set(side, slow={"Warptile": 3})  # the whole session, not the change
    done = gate_run("run")
    assert done.code == 0, done
    assert "look slower" in done.err


def test_what_drifted_in_the_baseline_is_confirmed(with_baseline, gate_run):
    """The median of a drift hides the slow-down from the screen."""

    def drift(rows):
        row = rows["Naive/32x32x32"]
        row["ratio_to_cublas"] *= 0.97
        series = [row["ratio_to_cublas"] * (1 + 0.02 * n) for n in (-2, -1, 0, 1, 2)]
        row["per_process"]["ratio_to_cublas"] = series

    with_baseline.edit_baseline(drift)
    with_baseline.set("head", slow={"Naive": 3})
    done = gate_run("run")
    assert done.code == 1, done
    assert (
        "1 benchmark drifted when the baseline was recorded, measuring it in pairs: Naive"
        in done.err
    )
    assert done.out.splitlines()[1].startswith("5 judged: 1 regressed, 4 pass.")


def test_what_the_baseline_lacks_is_confirmed_at_once(with_baseline, gate_run):
    for name in ("Naive/32x32x32", "Warptile/64x64x64"):
        with_baseline.edit_baseline(lambda rows, name=name: rows.pop(name))
    suite = with_baseline.folder / "head/bench/gate.csv"
    suite.write_text(SUITE + "Naive,64,64,64,64,64,64,0\n")  # the base does not know this one
    with_baseline.set("head", slow={"Naive": 3})
    done = gate_run("run")
    assert done.code == 1, done
    assert (
        "2 benchmarks are not in the baseline, measuring them in pairs: Naive/32x32x32, Warp"
        in done.err
    )
    assert done.out.splitlines()[1].startswith("6 judged: 1 regressed, 1 new, 4 pass.")


def test_without_a_baseline_everything_is_confirmed(world, gate_run):
    world.set("head", slow={"Naive": 3})
    done = gate_run("run")
    assert "everything is measured in pairs" in done.err
    assert done.code == 1, done
    assert done.out.splitlines()[1].startswith("5 judged: 1 regressed, 4 pass.")


def test_confirm_judges_without_a_screen(world, gate_run):
    world.set("head", slow={"Warptile": 3})
    done = gate_run("confirm", "--filter", "^Warptile/64")
    assert done.code == 1, done
    assert done.out.splitlines()[1].startswith("3 judged: 1 regressed, 2 pass.")
    assert len(world.processes()) == 2 * 5


@pytest.mark.parametrize(("noise", "pairs"), [(0.001, 8), (0.02, 12)])
def test_it_ends_when_the_evidence_is_in(world, gate_run, noise, pairs):
    for side in ("base", "head"):
        world.set(side, noise=noise, quiet=["Cublas"], slow={"Warptile": 3 * (side == "head")})
    done = gate_run("confirm", "--pairs", 12, "--json", "verdict.json")
    assert len(world.processes()) == 2 * pairs
    rows = {row.name: row for row in verdict_file.load("verdict.json").rows}
    assert len(rows["Warptile/64x64x64"].pairs) == pairs
    assert done.code == (1 if pairs == 8 else 3), done
    assert gate_run("confirm", "--pairs", 12).out == done.out  # from the processes that are there


def test_the_verdict_file_has_the_pairs_and_what_they_come_to(world, gate_run):
    world.set("head", slow={"Warptile": 50})
    assert gate_run("confirm", "--json", "verdict.json").code == 1
    found = verdict_file.load("verdict.json")
    assert found.base_commit == found.baseline.commit
    for row in found.rows:
        assert row.lower <= row.slowdown <= row.upper, row
        assert row.lower <= statistics.median(row.pairs) <= row.upper, row
        assert len(row.pairs) == 5
        assert (row.p < 0.01) == (row.verdict is Verdict.REGRESSED)


def test_noise_is_inconclusive_on_too_much_of_the_suite(world, gate_run):
    for side in ("base", "head"):
        world.set(side, noise=0.05, quiet=["Cublas"])
    assert gate_run("confirm").code == 3


def test_exit_code_3_says_what_to_try(world, gate_run):
    for side in ("base", "head"):
        world.set(side, noise=0.05, quiet=["Cublas"])
    done = gate_run("confirm")
    assert done.code == 3
    last = done.err.splitlines()[-1]
    assert re.search(r"after 5 pairs; (about \d+ pairs would decide: --pairs \d+|no number)", last)
    assert re.search(r"the load is \d+\.\d on \d+ cores; or try a quiet machine", last)


@pytest.mark.parametrize(
    ("square", "marked", "code"), [(False, False, 0), (False, True, 3), (True, False, 3)]
)
def test_a_key_benchmark_must_not_stay_undecided(with_baseline, gate_run, square, marked, code):
    """The largest gated square of a rung is one, and what the baseline marks."""
    more = "".join(f"Naive,{m},32,32,32,32,32,0\n" for m in range(100, 200))
    suite = SUITE if square else SUITE.replace("Warptile,64,64,64", "Warptile,64,64,63", 1)
    for side in ("base", "head"):
        (with_baseline.folder / side / "bench/gate.csv").write_text(suite + more)
        with_baseline.set(side, noise=0.05, quiet=["Cublas", "Naive"])
    with_baseline.edit_baseline(lambda rows: rows["Warptile/33x35x37"].update(key=marked))
    done = gate_run("confirm")
    assert done.code == code, done
    assert "2 inconclusive" in done.out


def test_a_benchmark_that_the_head_lost_is_an_error(world, gate_run):
    suite = world.folder / "head/bench/gate.csv"
    suite.write_text(suite.read_text().replace("Naive,32", "Naive,48", 1))
    done = gate_run("confirm")
    assert done.code == 2
    assert "missing in the head's suite" in done.out
    assert "not in the base's suite" in done.out


def test_what_neither_the_head_nor_the_baseline_has_is_an_error_too(with_baseline, gate_run):
    with_baseline.edit_baseline(lambda rows: rows.pop("Naive/32x32x32"))
    suite = with_baseline.folder / "head/bench/gate.csv"
    suite.write_text(suite.read_text().replace("Naive,32", "Naive,48", 1))
    done = gate_run("run")
    assert done.code == 2
    assert "missing in the head's suite" in done.out
    assert done.out.splitlines()[1].startswith("6 judged: 1 error, 1 new, 4 pass.")


RUNGS = (stage("01_naive", "Naive"), stage("cublas", "Cublas"))
MINE = stage("99_mine", "Mine", folder="/elsewhere/99_mine", external=True)


@pytest.mark.parametrize("command", ["run", "confirm"])
def test_a_rung_that_joins_is_measured_and_gated_from_then_on(world, gate_run, command):
    """Also one from outside the repository, without a word in bench/gate.csv."""
    for side in ("base", "head"):
        world.gate(side, "benchmark\n", *RUNGS)
    assert gate_run("confirm").code == 0
    world.accept_baseline()
    world.gate("head", "benchmark\n", *RUNGS, MINE)
    done = gate_run(command, "--json", "verdict.json")
    assert done.code == 0, done
    found = verdict_file.load("verdict.json")
    new = {row.name: row.candidate for row in found.rows if row.verdict is Verdict.NEW}
    assert [*sorted(new)] == [
        f"Mine/{n}"
        for n in ("1024x1024x1024", "2047x2049x2051", "2048x2048x2048", "4096x4096x4096")
    ]
    assert all(new.values())
    world.gate("base", "benchmark\n", *RUNGS, MINE)  # merged; the baseline does not have it yet
    world.set("head", slow={"Mine": 3})
    done = gate_run(command)
    assert done.code == 1, done
    assert " 4 regressed" in done.out


def test_a_changed_rung_from_outside_makes_it_another_run(world, gate_run):
    folder = world.folder / "elsewhere"
    folder.mkdir()
    option = f"-DTILEGATE_EXTRA_STAGES={folder}"
    for text in ("// as it was\n", "// changed\n"):
        (folder / "mine.cu").write_text(text)
        assert gate_run("confirm", "--cmake", option).code == 0
    assert len([*Path("work").glob("run-*")]) == 2


def test_a_rung_that_this_gpu_cannot_run_is_left_out_and_told(world, gate_run, monkeypatch):
    monkeypatch.setattr("tilegate_ci.measure.conditions.compute_capability", lambda: 75)
    for side in ("base", "head"):
        world.gate(side, "benchmark\nMine/8x8x8\n", *RUNGS, {**MINE, "compute_capability": 90})
    done = gate_run("confirm")
    assert (done.code, "Mine" in done.out) == (0, False), done
    assert (
        done.err.count("Mine is left out: it needs compute capability 90, and this GPU has 75") == 1
    )


def test_a_rung_that_left_is_an_error_until_the_base_has_lost_it_too(world, gate_run):
    for side in ("base", "head"):
        world.gate(side, "benchmark\n", *RUNGS, MINE)
    assert gate_run("confirm").code == 0
    world.accept_baseline()
    world.gate("head", "benchmark\n", *RUNGS)
    done = gate_run("run")
    assert (done.code, done.out.count("\n    missing in the head's suite")) == (2, 4), done
    world.gate("base", "benchmark\n", *RUNGS)
    assert gate_run("run").code == 0


def test_what_looks_faster_is_confirmed_before_it_is_called_so(with_baseline, gate_run):
    for side in ("base", "head"):
        with_baseline.set(side, slow={"Warptile": -3})  # the session, not the change
    done = gate_run("run")
    assert (
        done.code,
        "2 benchmarks look faster, measuring them in pairs: Warptile/" in done.err,
    ) == (0, True), done
    assert done.out.splitlines()[1].startswith("5 judged: 5 pass.")
    with_baseline.set("base", slow={"Warptile": 0})
    assert "2 improved" in gate_run("run", "--seed", 2).out


def test_what_looks_faster_passes_where_pairs_leave_it_open(with_baseline, gate_run):
    for side in ("base", "head"):
        with_baseline.set(side, slow={"Warptile": -9}, noise=0.02)
    done = gate_run("run", "--filter", "^Warptile/")
    assert (done.code, "look faster, measuring them in pairs: Warptile/" in done.err) == (0, True)
    assert len([*Path("work").glob("run-*/process-pair-5-*.json")]) == 2  # no look decided


def test_a_side_is_named_by_its_commit_where_that_is_all_of_it(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    sha = 40 * "a"

    def again(given, commit):
        return Side("head", str(given), commit, 40 * "d", tmp_path, tmp_path).again(here)

    assert [again(given, sha) for given in ("HEAD~1", here)] == [sha] * 2
    assert again(there, sha) == str(there)  # of another repository, perhaps
    assert [again(here, commit) for commit in (f"{sha}-dirty", 40 * "d")] == [str(here)] * 2


def test_a_red_row_has_the_command_that_measures_its_pairs_again(world, gate_run, capsys):
    world.set("head", slow={"Naive": 3})
    done = gate_run("run", "--json", "verdict.json", "--markdown", "summary.md")
    rows = {row.name: row.again for row in verdict_file.load("verdict.json").rows}
    sides = "--base base --head head"
    command = f"ci/gate run --no-screen {sides} --filter '^Naive/32x32x32$'"
    assert (rows.pop("Naive/32x32x32"), {*rows.values()}) == (command, {""})
    assert command in done.out
    assert f"`{command}`" in Path("summary.md").read_text()
    words = shlex.split(command)[1:]
    assert main([*words, "--work", "work", "--pairs", "5"]) == 1
    assert "3 judged: 1 regressed" in capsys.readouterr().out  # and two canaries


def test_a_dry_run_before_the_build_takes_any_filter(world, gate_run):
    for side in ("base", "head"):
        (world.folder / side / "bench" / "gate.csv").write_text("benchmark\n")
    done = gate_run("run", "--dry-run", "--filter", "^Warptile")
    assert (done.code, "some benchmarks of the gated suite" in done.out) == (0, True), done


def test_a_dry_run_measures_nothing(world, gate_run):
    done = gate_run("run", "--dry-run")
    assert done.code == 0
    assert "screen, where most rungs differ: a process of head, and up to 2 more" in done.out
    assert "5 pairs of processes" in done.out
    assert not Path("work").exists()


@pytest.fixture
def git(world, monkeypatch):
    """git in the head's folder, which becomes the repository, with one commit on main."""
    monkeypatch.setattr("tilegate_ci.measure.projects.REPOSITORY", world.folder / "head")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")

    def run(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", "head", *who, *words], check=True, capture_output=True)

    run("init", "-qb", "main")
    run("add", ".")
    run("commit", "-qm", "first")
    return run


def test_a_branch_is_judged_by_the_commit_where_it_left_main(world, gate_run, git):
    (world.folder / "head/kernels/rung.cu").write_text("// slower\n")
    world.set("head", slow={"Warptile": 2})
    git("checkout", "-qb", "branch")
    git("commit", "-qam", "slower by a little")
    git("checkout", "-q", "main")
    (world.folder / "head/kernels/rung.cu").write_text("// faster\n")
    world.set("head", slow={"Naive": -10})
    git("commit", "-qam", "faster elsewhere, since")
    git("checkout", "-q", "branch")
    for head in ("branch", "head"):
        done = gate_run("run", "--base", "main", "--head", head)
        assert done.code == 1, done
        assert "5 judged: 2 regressed, 3 pass." in done.out
    done = gate_run("run", "--base", "main", "--head", "branch", "--dry-run")
    assert "base: main, commit " in done.out
    done = gate_run("confirm", "--base", "main", "--head", "branch")
    assert "5 judged: 3 regressed, 2 pass." in done.out
    done = gate_run("run", "--base", "main", "--head", "no-such-branch")
    assert (done.code, "no merge base of main and no-such-branch" in done.err) == (2, True)
    done = gate_run("run", "--base", "base", "--head", "head", "--dry-run")
    assert (done.code, "base: base, commit " in done.out) == (0, True)


def test_commits_are_taken_from_git(world, gate_run, git):
    world.set("head", slow={"Warptile": 3})
    (world.folder / "head/kernels/rung.cu").write_text("// slower\n")
    done = gate_run("confirm", "--base", "HEAD")
    assert done.code == 1, done
    assert "-dirty" in done.out
    done = gate_run("confirm", "--base", "no-such-branch")
    assert done.code == 2
    assert "'no-such-branch' is neither a folder nor a commit" in done.err


def same(monkeypatch, *rungs):
    """These rungs have the same machine code in base and head."""
    monkeypatch.setattr(
        "tilegate_ci.measure.gate_run.same_rungs", lambda base, head, asked: {*rungs} & asked
    )


def test_the_same_machine_code_is_identical_whatever_its_times(world, gate_run, monkeypatch):
    same(monkeypatch, "Warptile")
    world.set("head", slow={"Warptile": 0.5, "Naive": 3})
    done = gate_run("confirm")
    assert done.code == 1, done
    assert "5 judged: 1 regressed, 2 pass, 2 identical." in done.out
    assert gate_run("confirm", "--no-identity").out.count("identical") == 0


def test_a_change_of_one_rung_takes_that_rung_s_pairs(with_baseline, gate_run, monkeypatch):
    """And no screen: it is known which benchmarks differ before the GPU is used."""
    monkeypatch.setattr("tilegate_ci.measure.gate_run.CONTROLS", 1)
    same(monkeypatch, "Warptile")
    with_baseline.set("head", slow={"Naive": 3, "Warptile": 0.5})
    done = gate_run("run")
    assert done.code == 1, done
    assert "5 judged: 1 regressed, 2 pass, 2 identical." in done.out
    assert {path.stem.split("-")[1] for path in with_baseline.processes()} == {"pair"}
    for path in with_baseline.processes():
        rungs = sorted(name.split("/")[0] for name in read_json(path)["readings"])
        assert rungs == ["Cublas", "Cublas", "Naive", "Warptile"]  # canaries, and a control


def test_a_change_of_most_rungs_is_screened_first(with_baseline, gate_run, monkeypatch):
    monkeypatch.setattr("tilegate_ci.measure.gate_run.CONTROLS", 0)
    same(monkeypatch, "Naive")
    with_baseline.set("head", slow={"Warptile": 3})
    done = gate_run("run")
    assert done.code == 1, done
    assert "5 judged: 2 regressed, 2 pass, 1 identical." in done.out
    first = read_json(next(with_baseline.folder.glob("work/run-*/process-screen-1.json")))
    assert {name.split("/")[0] for name in first["readings"]} == {"Cublas", "Warptile"}


def without_gpu(world):
    (world.folder / "tools" / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")


def never(*_):
    raise AssertionError("the GPU was used")


@pytest.mark.parametrize("command", ["run", "confirm"])
@pytest.mark.usefixtures("without_vega")
def test_the_same_machine_code_throughout_measures_nothing(world, gate_run, monkeypatch, command):
    same(monkeypatch, "Naive", "Warptile")
    monkeypatch.setattr("tilegate_ci.measure.launcher._run", never)
    done = gate_run(command, "--json", "verdict.json")
    assert done.code == 0, done
    assert "5 judged: 5 identical. Exit 0" in done.out
    assert main(["report", "verdict.json", "--junit", "r.xml", "--html", "r.html"]) == 0


def test_a_change_of_documents_needs_neither_a_build_nor_a_gpu(world, gate_run, monkeypatch):
    without_gpu(world)
    (world.folder / "tools" / "cmake").write_text("exit 1\n")
    (world.folder / "head/kernels/rung.cu").write_text("// base\n")
    for page in ("README.md", "kernels/README.md", "bench/waivers.json"):
        (world.folder / "head" / page).write_text("# better words\n")
    done = gate_run("run", "--markdown", "summary.md")
    assert done.code == 0, done
    assert "identical. Exit 0" in done.out
    assert "the same sources: identical, nothing to measure" in done.err
    assert gate_run("run", "--no-identity").code == 2


def test_without_a_gpu_nothing_is_built(world, gate_run):
    without_gpu(world)
    done = gate_run("run")
    assert (done.code, "building" in done.err) == (2, False), done
    assert "no GPU answers `nvidia-smi -L`, and the sources differ" in done.err


def test_a_rung_that_joins_is_measured_though_all_others_are_the_same(world, gate_run, monkeypatch):
    same(monkeypatch, "Naive", "Cublas")
    world.gate("base", "benchmark\n", *RUNGS)
    world.gate("head", "benchmark\n", *RUNGS, MINE)
    done = gate_run("run", "--json", "verdict.json")
    assert done.code == 0, done
    found = verdict_file.load("verdict.json")
    assert sum(row.verdict is Verdict.NEW for row in found.rows) == 4
    assert found.candidate.device.name == "NVIDIA H200"


def test_a_build_that_fails_is_exit_2(world, gate_run):
    (world.folder / "head/bench/broken").write_text("")
    done = gate_run("run")
    assert done.code == 2
    assert "expected ';'" in done.err


def test_a_waiver_lets_a_slow_down_pass_up_to_its_ceiling(world, gate_run):
    world.set("head", slow={"Warptile": 3})
    waiver = {
        "id": "T2-1", "benchmarks": "^Warptile/", "ceiling": 0.05, "expires": "2999-01-01",
        "reason": "waits for a faster reduction",
    }  # fmt: skip
    Path("w.json").write_text(json.dumps({"schema": 1, "waivers": [waiver]}))
    done = gate_run("confirm", "--waivers", "w.json")
    assert done.code == 0, done
    assert "waiver T2-1: up to 5 % until 2999-01-01" in done.out
    Path("w.json").write_text(json.dumps({"schema": 1, "waivers": [waiver | {"ceiling": 0.02}]}))
    assert gate_run("confirm", "--waivers", "w.json").code == 1
    Path("w.json").write_text(
        json.dumps({"schema": 1, "waivers": [waiver | {"expires": "2020-01-01"}]})
    )
    done = gate_run("confirm", "--waivers", "w.json")
    assert done.code == 2
    assert "waiver T2-1 expired on 2020-01-01" in done.err


@pytest.mark.parametrize("command", ["run", "confirm", "record"])
@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1", "1e999", "a"])
def test_a_time_is_a_finite_number_above_zero(world, capsys, command, value):
    assert main([command, f"--min-time={value}"]) == 2
    assert "argument --min-time: " in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--pairs", "3"], ["--no-such-flag"], ["--base"]])
def test_unknown_flags_and_too_few_pairs_are_exit_2(gate_run, more):
    assert gate_run("run", *more).code == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--filter", "Nothing"], "matches none of"),
        (["--filter", "("], "not a regular expression"),
        (["--head", "work"], "neither a folder nor a commit"),
    ],
)
def test_what_makes_no_sense_is_exit_2(gate_run, more, message):
    done = gate_run("confirm", *more)
    assert done.code == 2
    assert message in done.err
