"""The paired test, Holm, and what makes a session one that cannot be judged."""

import math
import statistics

import pytest

from tilegate_ci.judge.confirm import moved, void_reason
from tilegate_ci.judge.paired import (
    ALPHA,
    WHOLE,
    Estimate,
    Share,
    estimate,
    holm,
    judge,
    looks,
    pairs_needed,
    undecided,
)
from tilegate_ci.model import Conditions, Verdict

NOISE = (0.001, -0.001, 0.0015, -0.0005, 0.0, -0.0015, 0.0005, 0.0)


def around(slowdown):
    return estimate([slowdown + noise for noise in NOISE], 0.01)


def test_the_t_test_is_the_textbook_one():
    found = estimate([0.02, 0.03, 0.04], 0.01)
    assert found.mean == pytest.approx(0.03)
    # t = 0.02 / (0.01 / sqrt 3) = 3.4641 on 2 degrees of freedom.
    assert found.p == pytest.approx(0.037090, abs=1e-6)
    assert found.upper == pytest.approx(0.03 + 2.919986 * 0.01 / math.sqrt(3), abs=1e-6)
    assert found.lower == pytest.approx(0.03 - 2.919986 * 0.01 / math.sqrt(3), abs=1e-6)


@pytest.mark.parametrize(("slowdown", "p"), [(0.02, 0.0), (0.01, 1.0), (0.0, 1.0)])
def test_without_spread_the_sign_decides(slowdown, p):
    assert estimate([slowdown] * 4, 0.01).p == p


def test_one_pair_is_no_evidence():
    with pytest.raises(ValueError, match="one pair"):
        estimate([0.5], 0.01)


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        ([], []),
        ([0.009], [True]),
        ([0.011], [False]),
        ([0.004, 0.004], [True, True]),
        ([0.006, 0.006], [False, False]),  # Bonferroni's first step fails, so all stand
        ([0.9, 0.002, 0.004, 0.0001], [False, True, True, True]),
        ([0.9, 0.002, 0.006, 0.0001], [False, True, False, True]),
    ],
)
def test_holm(p_values, rejected):
    assert holm(p_values, 0.01) == rejected


@pytest.mark.parametrize(
    ("slowdown", "verdict"),
    [
        (-0.03, Verdict.IMPROVED),
        (-0.01, Verdict.PASS),
        (0.0, Verdict.PASS),
        (0.005, Verdict.PASS),
        (0.01, Verdict.INCONCLUSIVE),
        (0.02, Verdict.REGRESSED),
        (0.10, Verdict.REGRESSED),
    ],
)
def test_verdicts(slowdown, verdict):
    assert judge({"a": around(slowdown)}, {"a": 0.01}) == {"a": verdict}


def test_noise_makes_it_inconclusive_not_regressed():
    noisy = estimate([20 * noise + 0.02 for noise in NOISE], 0.01)
    assert judge({"a": noisy}, {"a": 0.01}) == {"a": Verdict.INCONCLUSIVE}


def test_all_looks_together_have_the_errors_of_one():
    assert looks(5) == {5: WHOLE}
    assert [list(looks(wanted)) for wanted in (12, 36)] == [[4, 8, 12], [4, 8, 12, 36]]
    for wanted in (9, 12, 13, 36):
        assert sum(share.block for share in looks(wanted).values()) == pytest.approx(1)
        assert sum(share.let_pass for share in looks(wanted).values()) == pytest.approx(1)
    few = Share(0.1, 0.1)
    sure = estimate([0.02 + noise for noise in NOISE], 0.01, few)
    assert sure.upper > around(0.02).upper
    barely = estimate([3 * noise + 0.0145 for noise in NOISE], 0.01)
    assert ALPHA / 10 < barely.p < ALPHA
    assert judge({"a": barely}, {"a": 0.01}) == {"a": Verdict.REGRESSED}
    assert judge({"a": barely}, {"a": 0.01}, few) == {"a": Verdict.INCONCLUSIVE}


def test_the_first_look_lets_pass_but_blocks_nothing():
    share = looks(12)[4]
    for slowdown, verdict in ((0.0, Verdict.PASS), (0.3, Verdict.INCONCLUSIVE)):
        found = estimate([slowdown] * 4, 0.01, share)
        assert judge({"a": found}, {"a": 0.01}, share) == {"a": verdict}


def test_what_passed_at_an_earlier_look_is_of_the_same_family():
    found = Estimate(0.02, 0.01, 0.03, 0.7 * ALPHA, 1.0, ())
    for before, verdict in (
        ({}, Verdict.REGRESSED),
        ({"b": Verdict.REGRESSED}, Verdict.REGRESSED),  # one hypothesis less
        ({"b": Verdict.PASS}, Verdict.INCONCLUSIVE),
    ):
        assert judge({"a": found}, {"a": 0.01}, WHOLE, before) == {"a": verdict}


@pytest.mark.parametrize(
    ("slower", "more"),
    [
        ([0.004], False),
        ([0.006], True),
        ([0.03], True),
        ([0.006, 0.009], False),
        ([0.012, 0.03], False),
        ([-0.012, -0.03], False),
        ([0.009, 0.011], True),
        ([-0.012, 0.03], True),
        ([0.009, 0.011, 0.05], False),
    ],
)
def test_the_screen_measures_until_its_median_is_known_to_be_in_or_out(slower, more):
    assert undecided(slower, 0.01) == more


def test_each_benchmark_has_its_own_margin():
    estimates = {"a": estimate([0.02, 0.021] * 4, 0.01), "b": estimate([0.02, 0.021] * 4, 0.05)}
    assert judge(estimates, {"a": 0.01, "b": 0.05}) == {
        "a": Verdict.REGRESSED,
        "b": Verdict.PASS,
    }


def test_a_control_moves_either_way_but_only_for_certain():
    def certain(mean, reach):
        return {"Cublas/1x1x1": Estimate(mean, mean - reach, mean + reach, 0.5, 0.5, ())}

    deltas = {"Cublas/1x1x1": 0.01}
    assert moved(certain(0.0, 0.001), deltas) == []
    assert moved(certain(0.015, 0.02), deltas) == []
    assert len(moved(certain(0.015, 0.001), deltas)) == 1
    assert "-1.49 %" in moved(certain(-0.015, 0.001), deltas)[0]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({}, {}, None),
        ({"throttle_reasons": ["software power cap"]}, {"throttle_reasons": ["idle"]}, None),
        ({}, {"throttle_reasons": ["hardware power brake"]}, "hardware power brake"),
        ({"throttle_reasons": ["software thermal slowdown"]}, {}, "software thermal slowdown"),
        ({"thermal_violation_ms": 5}, {"thermal_violation_ms": 5}, None),
        ({"thermal_violation_ms": 5}, {"thermal_violation_ms": 47}, "42 ms slowed down by heat"),
    ],
)
def test_heat_and_power_brakes_void_a_process(before, after, reason):
    assert void_reason(Conditions(before=before, after=after)) == reason


@pytest.mark.parametrize(("mean", "needed"), [(0.0, 16), (0.005, 64), (0.01, 1000)])
def test_pairs_that_would_decide(mean, needed):
    scatter = 0.02
    measured = [mean - scatter, mean + scatter, mean - scatter / 2, mean + scatter / 2]
    scaled = [mean + (value - mean) * scatter / statistics.stdev(measured) for value in measured]
    assert pairs_needed(scaled, 0.01) == needed
    if mean < 0.01:
        last = Share(0.9, 0.8)
        assert estimate(measured, 0.01, last).upper > 0.01
        assert estimate(measured * (needed // 4), 0.01, last).upper < 0.01
