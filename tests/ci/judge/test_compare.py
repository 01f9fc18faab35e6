"""One planted case for each verdict, and for each way that verdicts add up."""

import copy
import math
from dataclasses import replace

import pytest

from gate_builders import (
    NAIVE,
    VECTORIZED,
    WARPTILE,
    make_row,
    make_run,
    make_simt_run,
    parsed,
    scaled,
)
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.run_file import Role
from tilegate_ci.judge.compare import compare
from tilegate_ci.model import (
    EXIT_MEANINGS,
    RunRow,
    Verdict,
    delta_of,
    exit_code,
    margins,
    slowdown,
)
from tilegate_ci.report.render import cells


def judged(baseline, candidate, pattern=None):
    return compare(parsed(baseline, Role.BASELINE, "base.json"), parsed(candidate), pattern)


def verdict_of(comparison, name) -> Verdict:
    return next(row.verdict for row in comparison.rows if row.name == name)


def test_a_speed_that_depends_on_the_place_is_noted():
    row = make_row(0.89, 45000.0)
    for percent, noted in ((0.4, ""), (1.5, "1.5 % between places in memory")):
        run = make_run({WARPTILE: {**row, "placement_pct": percent}})
        (found,) = judged(make_run({WARPTILE: row}), run).rows
        assert found.placement == pytest.approx(percent / 100)
        assert cells(found)["note"] == noted


def test_a_run_against_itself_passes():
    comparison = judged(make_run(), make_run())
    assert {row.verdict for row in comparison.rows} == {Verdict.PASS}
    assert len(comparison.rows) == 3
    assert comparison.exit_code == 0


@pytest.mark.parametrize(
    ("factor", "verdict", "code"),
    [
        (0.5, Verdict.REGRESSED, 1),
        (0.95, Verdict.REGRESSED, 1),
        (0.989, Verdict.REGRESSED, 1),
        (0.991, Verdict.PASS, 0),
        (0.995, Verdict.PASS, 0),
        (1.009, Verdict.PASS, 0),
        (1.011, Verdict.IMPROVED, 0),
        (2.0, Verdict.IMPROVED, 0),
    ],
)
def test_the_margin_is_one_percent(factor, verdict, code):
    comparison = judged(make_run(), scaled(make_run(), WARPTILE, factor))
    assert verdict_of(comparison, WARPTILE) is verdict
    assert comparison.exit_code == code
    row = next(row for row in comparison.rows if row.name == WARPTILE)
    assert row.slowdown == pytest.approx(1 / factor - 1)
    assert row.metric == "ratio_to_cublas"


def test_a_stored_delta_is_the_margin():
    baseline = make_run({WARPTILE: make_row(0.89, 45000.0, spread=0.02)})
    assert judged(baseline, scaled(baseline, WARPTILE, 0.95)).exit_code == 0
    baseline["benchmarks"][WARPTILE]["delta"] = 0.03  # narrower than its evidence: stricter
    found = judged(baseline, scaled(baseline, WARPTILE, 0.95))
    assert (found.exit_code, len(found.warnings)) == (1, 1)
    assert "0.03 is narrower than what its per_process values give, 0.06" in found.warnings[0]


def test_a_stored_delta_wider_than_its_evidence_is_an_error():
    baseline = make_run()
    baseline["benchmarks"][WARPTILE]["delta"] = 0.06
    with pytest.raises(GateError, match=r"delta: 0\.06 is wider than what its per_process values"):
        judged(baseline, make_run())


def test_the_candidate_cannot_bring_its_own_margin():
    candidate = scaled(make_run(), WARPTILE, 0.95)
    candidate["benchmarks"][WARPTILE]["delta"] = 0.9
    assert judged(make_run(), candidate).exit_code == 1


def test_without_a_stored_delta_the_noise_of_the_baseline_is_the_margin():
    noisy = make_run({WARPTILE: make_row(0.89, 45000.0, spread=0.03)})
    assert judged(noisy, scaled(noisy, WARPTILE, 0.95)).exit_code == 0
    assert judged(noisy, scaled(noisy, WARPTILE, 0.90)).exit_code == 1


def test_a_stored_delta_is_of_the_deciding_metric_only():
    row = parsed(make_run({WARPTILE: {**make_row(0.89, 45000.0), "delta": 0.3}})).benchmarks[
        WARPTILE
    ]
    assert row.margin("ratio_to_cublas") == 0.3
    assert row.margin("gflops") == 0.01


def test_delta_is_three_standard_deviations_of_the_logs_or_one_percent():
    assert delta_of([100.0]) == 0.01
    assert delta_of([100.0, 100.1, 99.9]) == 0.01
    step = 0.02
    assert delta_of([100 * math.exp(-step), 100.0, 100 * math.exp(step)]) == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("logs", "wanders"),
    [
        ([0.0, 0.0075, 0.015, 0.0225, 0.03], True),  # 3 % from the first process to the last
        ([0.0, 0.03, 0.0075, 0.0225, 0.015], False),  # the same values, without order
        ([0.0, 0.001, 0.002, 0.003, 0.004], False),  # within the least margin
        ([0.0, 0.015, 0.03], False),  # three say nothing of a trend
        ([0.0], False),
    ],
)
def test_a_baseline_that_drifts_is_not_taken_for_a_noisy_one(logs, wanders):
    assert margins(logs)[1] == wanders
    row = RunRow(
        gflops=1.0,
        ratio_to_cublas=1.0,
        per_process={"gflops": [1.0] * len(logs), "ratio_to_cublas": [math.exp(v) for v in logs]},
    )
    assert row.drifts("ratio_to_cublas") is wanders
    known = delta_of([math.exp(value) for value in logs])
    assert row.margin("ratio_to_cublas") == pytest.approx(0.01 if wanders else known)


def test_the_margin_of_a_drift_is_its_scatter_around_the_line():
    logs = [0.0, 0.02, 0.04 + 0.012, 0.06, 0.08]
    assert margins(logs)[0] == pytest.approx(3 * math.sqrt(0.012**2 * 0.8 / 3))


def test_the_slow_down_of_extreme_values_is_a_number():
    assert math.isfinite(slowdown(1e308, 1e-300))
    assert slowdown(1e-300, 1e308) == pytest.approx(-1.0)


def test_the_ratio_decides_where_both_have_one():
    candidate = make_run()
    row = candidate["benchmarks"][WARPTILE]
    row["gflops"] /= 2
    row["per_process"]["gflops"] = [value / 2 for value in row["per_process"]["gflops"]]
    assert judged(make_run(), candidate).exit_code == 0


def drop_ratio(document):
    result = copy.deepcopy(document)
    for row in result["benchmarks"].values():
        del row["ratio_to_cublas"], row["per_process"]["ratio_to_cublas"]
    return result


@pytest.mark.parametrize(("factor", "code"), [(0.95, 1), (1.0, 0)])
def test_gflops_decide_where_a_ratio_is_absent(factor, code):
    candidate = scaled(drop_ratio(make_run()), WARPTILE, factor)
    comparison = judged(make_run(), candidate)
    assert comparison.exit_code == code
    assert {row.metric for row in comparison.rows} == {"gflops"}
    assert len(comparison.warnings) == 3
    assert "ratio_to_cublas on one side only; compared by gflops" in comparison.warnings[0]
    assert judged(drop_ratio(make_run()), candidate).exit_code == code


def test_a_missing_benchmark_is_an_error():
    candidate = make_run()
    del candidate["benchmarks"][NAIVE]
    comparison = judged(make_run(), candidate)
    assert verdict_of(comparison, NAIVE) is Verdict.ERROR
    assert comparison.exit_code == 2


def test_a_benchmark_of_the_candidate_only_is_new():
    baseline = make_run()
    del baseline["benchmarks"][NAIVE]
    comparison = judged(baseline, make_run())
    assert verdict_of(comparison, NAIVE) is Verdict.NEW
    assert comparison.exit_code == 0


@pytest.mark.parametrize("name", [WARPTILE, "Extra/1x1x1"])
def test_an_unverified_candidate_is_an_error_also_where_it_is_new(name):
    candidate = make_run()
    candidate["benchmarks"][name] = {**make_row(0.9, 45500.0), "verified": False}
    comparison = judged(make_run(), candidate)
    assert verdict_of(comparison, name) is Verdict.ERROR
    assert comparison.exit_code == 2


def test_an_unverified_baseline_is_an_error():
    baseline = make_run()
    del baseline["benchmarks"][WARPTILE]["verified"]
    assert judged(baseline, make_run()).exit_code == 2


@pytest.mark.parametrize(("field", "value"), [("name", "NVIDIA H100 PCIe"), ("cublas", "12.9.1")])
def test_another_device_or_cublas_is_incomparable_not_regressed(field, value):
    candidate = scaled(make_run(), WARPTILE, 0.5)
    candidate["device"][field] = value
    comparison = judged(make_run(), candidate)
    assert {row.verdict for row in comparison.rows} == {Verdict.INCOMPARABLE}
    assert comparison.exit_code == 4
    old = make_run()["device"][field]
    assert comparison.differences == (
        f"{field} {old!r} in the baseline, {value!r} in the candidate",
    )


def test_another_driver_is_comparable():
    candidate = make_run()
    candidate["device"]["driver"] = "999.1"
    assert judged(make_run(), candidate).exit_code == 0


def test_incomparable_runs_with_new_benchmarks_only_are_incomparable():
    candidate = make_run({"Extra/1x1x1": make_row(0.9, 1.0)})
    candidate["device"]["name"] = "NVIDIA H100 PCIe"
    assert judged(make_run(), candidate, "Extra").exit_code == 4


def test_simt_gates_presence_and_verification_only():
    baseline = make_simt_run()
    slower = scaled(baseline, WARPTILE, 0.1)
    slower["device"]["name"] = "another machine"
    comparison = judged(baseline, slower)
    assert comparison.exit_code == 0
    assert all(row.metric is None and row.slowdown is None for row in comparison.rows)
    missing = copy.deepcopy(baseline)
    del missing["benchmarks"][NAIVE]
    assert judged(baseline, missing).exit_code == 2
    unverified = copy.deepcopy(baseline)
    unverified["benchmarks"][NAIVE]["verified"] = False
    assert judged(baseline, unverified).exit_code == 2


def test_simt_against_cuda_is_incomparable():
    cuda = make_run({WARPTILE: make_row(0.89, 45000.0)})
    simt = make_run({WARPTILE: make_row(None, 6.0)}, device=make_simt_run()["device"])
    for baseline, candidate in ((cuda, simt), (simt, cuda)):
        assert judged(baseline, candidate).exit_code == 4


def test_a_filter_limits_what_is_missing_and_what_is_judged():
    candidate = scaled(make_run(), WARPTILE, 0.95)
    del candidate["benchmarks"][NAIVE]
    assert judged(make_run(), candidate).exit_code == 2
    assert judged(make_run(), candidate, "Warp|Vector").exit_code == 1
    assert judged(make_run(), candidate, "4096x4096").exit_code == 1
    comparison = judged(make_run(), candidate, "^Vectorized/")
    assert [row.name for row in comparison.rows] == [VECTORIZED]
    assert comparison.left_out == 2
    assert comparison.exit_code == 0
    assert judged(make_run(), candidate, r"^Naive/1024x1024x1024(/|$)").exit_code == 2


@pytest.mark.parametrize(
    ("pattern", "message"), [("Warptiel", "matches none of the 3"), ("(", "not a regular exp")]
)
def test_a_filter_that_cannot_match_is_an_error(pattern, message):
    with pytest.raises(GateError, match=message):
        judged(make_run(), make_run(), pattern)


def test_rows_come_worst_first():
    baseline, candidate = make_run(), make_run()
    for index, factor in enumerate((1.2, 1.0, 0.9, 0.8, 0.998)):
        name = f"Scaled/{index + 1}x1x1"
        baseline["benchmarks"][name] = make_row(0.5, 100.0)
        candidate["benchmarks"][name] = make_row(0.5, 100.0)
        candidate = scaled(candidate, name, factor)
    candidate["benchmarks"]["Extra/1x1x1"] = make_row(0.9, 1.0)
    del candidate["benchmarks"][NAIVE]
    assert [row.name for row in judged(baseline, candidate).rows] == [
        NAIVE,
        "Scaled/4x1x1",
        "Scaled/3x1x1",
        "Extra/1x1x1",
        "Scaled/5x1x1",
        "Scaled/2x1x1",
        VECTORIZED,
        WARPTILE,
        "Scaled/1x1x1",
    ]


def test_an_error_precedes_a_regression():
    candidate = scaled(make_run(), WARPTILE, 0.9)
    candidate["benchmarks"][NAIVE]["verified"] = False
    assert judged(make_run(), candidate).exit_code == 2


def test_an_error_precedes_another_device():
    candidate = make_run()
    candidate["device"]["cublas"] = "12.9.1"
    candidate["benchmarks"][NAIVE]["verified"] = False
    assert judged(make_run(), candidate).exit_code == 2


def test_precedence_is_2_1_4_3_0():
    order = [
        (Verdict.ERROR, 2),
        (Verdict.REGRESSED, 1),
        (Verdict.INCOMPARABLE, 4),
        (Verdict.INCONCLUSIVE, 3),
        (Verdict.NEW, 0),
        (Verdict.IMPROVED, 0),
        (Verdict.IDENTICAL, 0),
        (Verdict.PASS, 0),
    ]
    assert {verdict for verdict, _ in order} == set(Verdict)
    assert set(EXIT_MEANINGS) == {code for _, code in order}
    for index, (_, code) in enumerate(order):
        assert exit_code([verdict for verdict, _ in order[index:]]) == code
        assert exit_code([verdict for verdict, _ in reversed(order[index:])]) == code
    assert exit_code([Verdict.REGRESSED] * 256) == 1


@pytest.mark.parametrize(
    ("undecided", "key", "code"),
    [(0, False, 0), (1, False, 0), (2, False, 3), (1, True, 3)],
)
def test_inconclusive_counts_above_two_percent_or_on_a_key(undecided, key, code):
    rows = {f"Warptile/{size}x1x1": make_row(0.5, 1.0) for size in range(1, 51)}
    comparison = judged(make_run(rows), make_run(rows))
    changed = [
        replace(row, verdict=Verdict.INCONCLUSIVE, key=key) if index < undecided else row
        for index, row in enumerate(comparison.rows)
    ]
    assert replace(comparison, rows=tuple(changed)).exit_code == code
