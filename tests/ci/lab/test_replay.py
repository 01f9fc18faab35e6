"""ci/gate lab replay: on made-up recordings, whose spreads are known, and on the committed ones."""

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recording_builder import SUITE, Maker

from gate_builders import COMMIT, H200, REPOSITORY
from tilegate_ci.checks.committed import with_block
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.judge import paired
from tilegate_ci.lab.proof import recording
from tilegate_ci.lab.proof.others import (
    asv,
    compare_py,
    criterion,
    nvbench_legacy,
    nvbench_newer,
    plain,
)
from tilegate_ci.lab.proof.replay import Replay, figures, markdown, replay
from tilegate_ci.lab.proof.runs import (
    SCREEN,
    Baseline,
    Count,
    Rate,
    Sitting,
    baseline,
    gate_run,
    independent,
    sittings,
    upper_bound,
)
from tilegate_ci.lab.proof.simulate import (
    SCENARIOS,
    Components,
    Scenario,
    _judge,
    components,
    simulate,
)
from tilegate_ci.model import Process, Verdict, delta_of, margins

PAGE = REPOSITORY / "ci" / "proof.md"


def committed() -> list[str]:
    """From the moment that git lists a recording, the figures have to hold."""
    pattern = "bench/recordings/*.json.gz"
    listed = subprocess.run(
        ["git", "ls-files", pattern], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if listed.returncode:  # no git history here: what is there counts
        return sorted(str(path) for path in REPOSITORY.glob(pattern))
    return [str(REPOSITORY / name) for name in listed.stdout.split()]


def loaded(*makers: Maker, folder: Path) -> list[Sitting]:
    return sittings([recording.load(maker.save(folder)) for maker in makers])


@pytest.fixture(scope="module")
def quiet(tmp_path_factory) -> Replay:
    makers = [Maker(f"quiet-{n}").suite(20) for n in range(3)]
    makers[0].arms("Warptile")
    makers[1].arms("Warptile")
    for number in range(8):
        makers[2].process(number, "Naive")
        makers[2].process(number, "Naive", build="no_padding", slower=8)
    return replay(loaded(*makers, folder=tmp_path_factory.mktemp("quiet")))


def test_the_figures_hold_where_nothing_is_wrong(quiet):
    missed = {name for name, figure in figures(quiet).items() if not figure.reached}
    assert missed == {"independent"}  # it takes 59
    assert len(figures(quiet)) == 13


def test_independent_runs_share_no_process(quiet):
    """Of 60 processes five are the baseline, and a run takes one or three."""
    found = independent(quiet.sittings)
    assert (found.machines, found.false_blocks, found.unfinished) == (3, 0, 0)
    assert found.runs <= found.processes <= 55
    assert found.runs + 2 * (found.runs - 1) >= found.processes
    assert found.bound == pytest.approx(1 - 0.05 ** (1 / found.runs))
    assert independent([replace(s, suite=s.suite[:5]) for s in quiet.sittings]).runs == 0


def test_each_gpu_has_its_own_independent_runs(tmp_path):
    other = Maker("other").suite(10)
    other.document["device"]["name"] = "NVIDIA H100"
    left_out = other.document["benchmarks"].pop(0)  # a narrower suite
    for process in other.document["processes"]:
        process["rows"].pop(left_out)
    found = replay(loaded(other, Maker("one").suite(8), folder=tmp_path))
    assert [s.name for s in found.sittings] == ["one"]
    runs = {gpu: alone.runs for gpu, alone in found.independent.items()}
    assert list(runs) == ["NVIDIA H200", "NVIDIA H100"]
    assert runs["NVIDIA H100"] >= runs["NVIDIA H200"] == 1
    assert "unchanged code, NVIDIA H100: " in markdown(found)


def test_a_run_that_its_sitting_ends_counts_against_the_gate(quiet):
    first, *others = quiet.sittings
    slow = [shifted(process, -0.03) for process in others[0].suite[:10]]
    found = independent([first, replace(others[0], suite=tuple(slow))])
    assert found.unfinished == 1
    assert found.bound > 0.2
    slow = [shifted(process, -0.03) for process in (*others[0].suite, *others[1].suite)[:19]]
    found = independent(
        [replace(first, suite=(*first.suite, *slow[:1])), replace(others[0], suite=tuple(slow))]
    )
    assert (found.unfinished, found.confirmed, found.false_blocks) == (0, 1, 0)


def shifted(process, by):
    """With one benchmark slower, as in a session that differs from the baseline's."""
    name = "Warptile/1024x1024x1024"
    reading = process.readings[name]
    slower = reading.model_copy(update={"ratio_to_cublas": reading.ratio_to_cublas * (1 + by)})
    return process.model_copy(update={"readings": {**process.readings, name: slower}})


def test_what_is_independent_is_counted_once(quiet):
    ours = quiet.rules[0]
    assert [count.independent for count in ours.false_blocks.counts] == [1, 1, 1]
    assert [count.total for count in ours.false_blocks.counts] == [40, 40, 40]
    for rule in quiet.rules:  # the rung's four benchmarks, however many rounds there are of each
        assert [count.independent for count in rule.detected[3.0].counts] == [4, 4, 0]
    assert [count.total for count in ours.detected[3.0].counts] == [32, 32, 0]


def test_the_others_see_every_pair(quiet):
    rules = {rule.name: rule for rule in quiet.rules}
    assert rules["compare.py, p < .05"].false_blocks.total == 30
    assert rules["compare.py, p < .05"].false_blocks.share > 0.3  # pseudo-replication
    assert rules["plain 5 %"].detected[3.0].share == 0
    assert rules["plain 5 %"].detected[10.0].share == 1


def test_a_mutation_is_blocked(quiet):
    (mutation,) = quiet.mutations
    assert mutation.runs.share == mutation.benchmarks.share == 1
    assert all(0.07 < slower < 0.09 for slower in mutation.slowdowns.values())


def test_the_table_is_the_same_each_time(quiet):
    assert markdown(quiet) == markdown(quiet)
    assert "*Tilegate, simulated*" in markdown(quiet)
    assert "Independent gate runs on unchanged code, " in markdown(quiet)
    assert "| planted 3 % blocked | ≥ 99 % | 100 % (64 of 64, 8 cells) | yes |" in markdown(quiet)
    assert "On identical code 8 pairs confirm, not 12" in markdown(quiet)


def test_a_figure_that_is_not_reached_is_said_plainly(tmp_path):
    makers = [Maker(f"noisy-{n}", between=0.02).suite(20) for n in range(2)]
    text = markdown(replay(loaded(*makers, folder=tmp_path)))
    assert "| share of the suite whose delta is 1 % | ≥ 90 % | 0 % (0 of 14) | **no** |" in text
    assert "| planted 3 % blocked | ≥ 99 % | not recorded | **not recorded** |" in text


def test_delta_and_estimate_are_those_of_a_baseline_file(tmp_path):
    (sitting,) = loaded(Maker("one").suite(20), folder=tmp_path)
    stored = baseline(sitting.suite)
    name = SUITE[0]
    logs = [process.readings[name].log_ratio for process in sitting.suite]
    assert stored.log_ratio[name] == pytest.approx(np.median(logs))
    assert stored.delta[name] == pytest.approx(max(0.01, 3 * np.std(logs, ddof=1)))


def test_a_process_in_the_heat_does_not_count(tmp_path):
    maker = Maker("hot").suite(5)
    conditions = {"before": {"thermal_violation_ms": 1}, "after": {"thermal_violation_ms": 9}}
    maker.document["processes"][2]["conditions"] = conditions
    (sitting,) = loaded(maker, folder=tmp_path)
    assert (len(sitting.suite), sitting.void) == (4, 1)


def test_components_are_found_again(tmp_path):
    makers = [Maker(f"c{n}", between=0.002, drift=0.004).suite(20) for n in range(4)]
    found = components(loaded(*makers, folder=tmp_path))
    assert np.median(found.between_processes) == pytest.approx(0.002, rel=0.2)
    assert np.median(found.between_sittings) == pytest.approx(0.004, rel=0.5)
    assert np.median(found.within) == pytest.approx(1.2533 * 0.002 / 24**0.5, rel=0.2)
    assert len(found.residuals) == 80
    assert found.residuals.std(axis=0) == pytest.approx(found.between_processes, rel=0.05)


@pytest.fixture(scope="module")
def noise() -> Components:
    """Of 30 benchmarks, 0.1 % between processes and between sittings."""
    residuals = np.random.default_rng(5).normal(0, 0.001, (2000, 30))
    names = tuple(f"b{n}" for n in range(30))
    return Components(names, np.zeros(30), residuals.std(0), np.full(30, 0.001), residuals, 5)


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.places > 1], ids=lambda s: s.name)
def test_no_scenario_blocks_what_is_the_same_or_hides_what_is_slow(noise, scenario):
    model = simulate(noise, (2.0,), seed=3, runs=400, scenario=scenario)
    assert model.false_blocks == 0
    blocked, planted = model.detected[2.0]
    assert blocked >= 0.9 * planted > 0
    assert model.detected_anywhere[2.0] >= 0.85 * model.runs


def test_two_speeds_drawn_by_process_hide_what_is_slow_but_block_nothing(noise):
    model = simulate(noise, (2.0,), 3, 400, Scenario("one place", 0.015, places=1))
    assert model.false_blocks == 0
    assert model.detected_anywhere[2.0] < 0.2 * model.runs


def test_quiet_runs_end_with_the_first_process(noise):
    model = simulate(noise, (2.0,), seed=3, runs=400)
    assert model.screened < 1.05
    assert model.pairs == {0.0: 0, 2.0: paired.EARLY}


def test_margins_of_many_baselines_are_those_of_each():
    steps = np.random.default_rng(1).normal(0, 0.004, (20, 5, 3))
    stored = np.moveaxis(steps.cumsum(axis=1), 1, -1)
    delta, drifts = margins(stored)
    for run, name in np.ndindex(20, 3):
        logs = list(stored[run, name])
        assert (delta[run, name], drifts[run, name]) == pytest.approx(margins(logs))
        if not drifts[run, name]:
            assert delta[run, name] == pytest.approx(delta_of(list(np.exp(logs))))
    assert 0 < drifts.sum() < drifts.size


def process(slower: np.ndarray) -> Process:
    """Whose benchmarks are slower by as much than at a log ratio of 0."""
    readings = {
        f"Naive/{n + 1}x1x1": {"gflops": 1.0, "ratio_to_cublas": ratio, "verified": True}
        for n, ratio in enumerate(np.exp(-slower))
    }
    return Process.model_validate({"device": H200, "readings": readings})


def test_the_simulation_judges_as_the_gate_does():
    """Arrays of many runs by the simulation, each run by the gate's own functions."""
    draw = np.random.default_rng(2)
    runs, count = 60, 4
    delta = draw.uniform(0.01, 0.02, (runs, count))
    wanders = draw.random((runs, count)) < 0.2
    shift = draw.choice([0.0, 0.01, 0.02, 0.05, -0.03], (runs, 1, count))
    screens = shift + draw.normal(0, 0.004, (runs, SCREEN, count))
    pairs = shift + draw.normal(0, 0.008, (runs, paired.PAIRS, count))
    model = _judge(screens, pairs, delta, wanders)
    names = [f"Naive/{n + 1}x1x1" for n in range(count)]
    base, seen = process(np.zeros(count)), Counter()
    for run in range(runs):
        drifting = frozenset(name for name, off in zip(names, wanders[run]) if off)
        stored = Baseline(dict.fromkeys(names, 0.0), dict(zip(names, delta[run])), drifting)
        screen = [process(each) for each in screens[run]]
        heads = [(base, process(each)) for each in pairs[run]]
        found = gate_run(stored, screen, heads, paired.PAIRS)
        for name, blocked, undecided in zip(names, model.blocked[run], model.undecided[run]):
            seen[found.verdicts[name]] += 1
            assert blocked == (found.verdicts[name] is Verdict.REGRESSED)
            assert undecided == (found.verdicts[name] is Verdict.INCONCLUSIVE)
    assert min(seen[v] for v in (Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.PASS)) >= 5


def test_the_simulation_blocks_what_is_slow_and_little_else(quiet):
    model = simulate(quiet.simulation.components, (0.5, 3.0), seed=3, runs=300)
    assert model.false_blocks == 0
    hit, planted = model.detected[3.0]
    assert hit >= 0.99 * planted > 0
    assert model.detected[0.5][0] <= 0.01 * model.detected[0.5][1]


def test_the_upper_bound_is_clopper_and_pearsons():
    assert upper_bound(0, 3) == pytest.approx(1 - 0.05 ** (1 / 3))
    assert upper_bound(3, 3) == 1
    assert upper_bound(1, 100) == pytest.approx(0.0466, abs=1e-4)


def test_an_interval_needs_two_sittings():
    draw = np.random.default_rng(1)
    assert Rate((Count(1, 2), Count(0, 0))).interval(draw) is None
    assert Rate((Count(0, 2), Count(2, 2))).interval(draw) == (0.0, 1.0)


BASE = np.linspace(0.999, 1.001, 24)


@pytest.mark.parametrize(
    ("blocks", "least"),
    [
        (compare_py, 0.001),
        (nvbench_legacy, 0.002),
        (nvbench_newer, 0.007),
        (lambda base, head: asv(base, head, 1.01), 0.012),
        (lambda base, head: asv(base, head, 1.1), 0.11),
        (lambda base, head: criterion(base, head, np.random.default_rng(1)), 0.013),
        (plain, 0.06),
    ],
)
def test_a_rule_blocks_from_its_own_size_on(blocks, least):
    assert not blocks(BASE, BASE)
    assert not blocks(BASE, BASE * (1 + least / 10))
    assert blocks(BASE, BASE * (1 + least))


def test_only_the_older_nvbench_fails_on_a_speed_up():
    assert nvbench_legacy(BASE, BASE * 0.95)
    assert not compare_py(BASE, BASE * 0.95)


def test_compare_py_marks_by_the_exact_u_test_of_few_repetitions():
    base = np.array([100.0, 101, 102, 103])
    assert compare_py(base, base + 10)  # fully apart, 4 and 4: p = 2 / 70
    assert not compare_py(base[:3], base[:3] + 10)  # 3 and 3: p = 2 / 20
    assert not compare_py(base[:1], base[:1] + 10)  # no test of a single repetition


def test_the_older_nvbench_knows_no_noise_of_fewer_than_five_samples():
    base = np.array([99.0, 100, 100, 100, 101])  # 0.7 % of noise
    assert nvbench_legacy(base, base + 1)
    assert not nvbench_legacy(base, base + 0.5)
    assert not nvbench_legacy(base[:4], base[:4] + 50)  # unknown, which is no failure
    assert nvbench_legacy(base, base[:4] + 50)  # one side's noise is enough
    assert not nvbench_legacy(np.full(5, 100.0), base + 50)  # no noise is unknown too


def test_the_newer_nvbench_asks_for_a_gap_above_the_third_quartile():
    base = np.array([190.0, 200, 200, 200, 300])  # the third quartile is the fourth of five
    assert nvbench_newer(base, np.array([201.0, 250, 250, 250, 250]))  # 0.5 % is enough
    assert not nvbench_newer(base, np.array([200.9, 250, 250, 250, 250]))  # the fastest decides
    assert not nvbench_newer(np.array([100.0, 200]), np.array([190.0, 190]))  # of two, the slower


def test_asv_wants_the_factor_beside_the_u_test():
    base = np.array([100.0, 101, 102, 103, 104, 105, 106])
    assert asv(base, base + 10, 1.05)  # 7 and 7 fully apart: p = 2 / 3432
    assert not asv(base, base + 10, 1.1)
    assert not asv(base[:6], base[:6] + 10, 1.05)  # 6 and 6: p = 2 / 924 is above 0.002
    assert asv(base[:1], base[:1] + 10, 1.05)  # of a single sample the factor alone decides
    assert not asv(base[:1], base[:1] + 10, 1.1)


def test_asv_compares_intervals_of_few_samples():
    base = np.array([99.0, 101.0])  # 99 % of the median's posterior: 100 ± 50
    assert asv(base, base + 101, 1.1)
    assert not asv(base, base + 99, 1.1)  # overlaps, though nearly twice as slow
    assert asv(np.full(3, 100.0), np.full(3, 111.0), 1.1)  # no spread, no interval
    # 2 and 24: the U test cannot reach 0.002. The 24 have an interval of order statistics.
    many = np.linspace(99, 101, 24)
    assert asv(base, many + 60, 1.1)
    assert not asv(base, many + 40, 1.1)


def test_criterion_wants_a_t_test_and_the_noise_threshold():
    def verdict(base: list[float], head: list[float]) -> bool:
        return criterion(np.array(base), np.array(head), np.random.default_rng(1))

    base = [100.0, 100.1, 99.9, 100.2, 99.8, 100.05]
    assert verdict(base, [value * 1.02 for value in base])
    assert not verdict(base, [value * 1.009 for value in base])  # surely slower, by under 1 %
    # The interval of the change is above 2 %, but drawn from all four together such a t is common.
    assert not verdict([100.0, 101.0], [103.0, 104.0])


def test_the_command_fills_a_page(tmp_path, monkeypatch, capsys):
    paths = [Maker(f"s{n}").suite(6).save(tmp_path) for n in range(2)]
    once = replay(sittings([recording.load(path) for path in paths]))
    monkeypatch.setattr("tilegate_ci.lab.proof.replay.replay", lambda _: once)  # it takes a second
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- replay:begin -->\nold\n<!-- replay:end -->\nafter\n")
    assert main(["lab", "replay", *paths, "--check", str(page)]) == 1
    assert "not what the recordings say" in capsys.readouterr().err
    assert main(["lab", "replay", *paths, "--into", str(page)]) == 0
    assert page.read_text().startswith("before\n<!-- replay:begin -->\nRecorded processes")
    assert (
        f"NVIDIA H200, driver 580.65.06, CUDA 13.0, cuBLAS 13.1.0, commit {COMMIT[:12]}."
        in page.read_text()
    )
    assert page.read_text().endswith("<!-- replay:end -->\nafter\n")
    assert main(["lab", "replay", *paths, "--check", str(page)]) == 0
    page.write_text("nothing")
    assert main(["lab", "replay", *paths, "--into", str(page)]) == 2
    assert "should hold <!-- replay:begin -->" in capsys.readouterr().err


def test_recordings_of_two_gpus_are_not_mixed(tmp_path):
    makers = [Maker(f"s{n}").suite(6) for n in range(2)]
    makers[1].document["device"]["name"] = "NVIDIA L4"
    with pytest.raises(GateError, match=r"device\.name: 'NVIDIA L4', but 'NVIDIA H200'"):
        loaded(*makers, folder=tmp_path)
    with pytest.raises(GateError, match="the same sitting is there twice"):
        loaded(makers[0], makers[0], folder=tmp_path)
    with pytest.raises(GateError, match="no recording given"):
        sittings([])


def test_the_committed_recordings_hold_what_the_gate_promises():
    paths = committed()
    if not paths:
        return  # nothing is claimed before the first recording is committed
    assert all(Path(path).exists() for path in paths)
    everything = sittings([recording.load(path) for path in paths])
    assert len(everything) >= 3
    assert sum(len(sitting.suite) for sitting in everything) >= 60
    assert sum(Path(path).stat().st_size for path in paths) < 10_000_000
    result = replay(everything)
    found = figures(result)
    missed = {name for name, figure in found.items() if not figure.reached}
    assert missed == set(), "\n".join(map(str, found.items()))
    text = PAGE.read_text(encoding="utf-8")
    stale = f"ci/gate lab replay --into {PAGE.relative_to(REPOSITORY)}"
    assert with_block(text, "replay", markdown(result), PAGE) == text, stale
