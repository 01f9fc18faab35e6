"""One verdict over several GPU models: exit codes, the shared budget, models without a result."""

from dataclasses import replace

import pytest

from gate_builders import OTHER_COMMIT, WARPTILE, make_run, parsed, scaled
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.run_file import Role
from tilegate_ci.judge.compare import compare
from tilegate_ci.judge.paired import ALPHA
from tilegate_ci.judge.verdict_file import NOTE, merge
from tilegate_ci.model import Verdict


def verdict(model="NVIDIA H200", slower=0.0, p=None, share=1.0, more=(), commit=OTHER_COMMIT):
    """On three benchmarks, the first of which was tested; `more` are p-values of the others."""
    run = scaled(make_run(commit=commit), WARPTILE, 1 / (1 + slower))
    run["device"]["name"] = model
    base = make_run()
    base["device"]["name"] = model
    found = compare(parsed(base, Role.BASELINE), parsed(run))
    tests = {WARPTILE: p, **dict(zip((r.name for r in found.rows if r.name != WARPTILE), more))}
    rows = [
        replace(row, p=tests[row.name], pairs=(0.0,) * 12, share=share)
        if tests.get(row.name) is not None
        else row
        for row in found.rows
    ]
    return replace(found, rows=tuple(rows))


def codes(**models):
    fleet = merge(models)
    return [member.exit_code for member in fleet.models], fleet.exit_code


def test_each_model_has_its_exit_code_and_all_have_one():
    good, slow = verdict(), verdict("NVIDIA H100", slower=0.05, p=1e-9)
    assert codes(a=good) == ([0], 0)
    assert codes(a=good, b=slow) == ([0, 1], 1)
    assert codes(a=good, b=None) == ([0, 4], 4)
    assert codes(a=good, b="no nvcc") == ([0, 2], 2)
    assert codes(a="no nvcc", b=slow, c=None) == ([2, 1, 4], 2)
    noisy = replace(good.rows[0], verdict=Verdict.INCONCLUSIVE)
    noisy = replace(good, rows=(noisy, *good.rows[1:]))
    assert codes(a=noisy, b=None) == ([3, 4], 4)
    assert codes(a=noisy, b=slow) == ([3, 1], 1)


def test_a_model_without_a_result_is_not_judged():
    (member,) = merge({"h100.json": None}).models
    assert (member.exit_code, member.error) == (4, "not judged: the file is not there")


@pytest.mark.parametrize(("p", "share"), [(ALPHA / 2.5, 1.0), (ALPHA / 25, 0.1)])
def test_the_budget_is_one_for_all_models(p, share):
    """Of two tests the least p must be below half of 1 %, of four below a quarter."""
    slow = verdict(slower=0.05, p=p, share=share, more=(0.5,))
    assert merge({"a": slow}).models[0].exit_code == 1
    other = verdict("NVIDIA H100", p=0.4, more=(0.5,))
    fleet = merge({"a": slow, "b": other})
    first = fleet.models[0]
    assert (fleet.tests, first.alone, first.exit_code, first.changed) == (4, 1, 3, [WARPTILE])
    (row,) = (row for row in first.rows if row.name == WARPTILE)
    assert (row.verdict, row.note) == (Verdict.INCONCLUSIVE, NOTE)
    certain = verdict(slower=0.05, p=p / 2, share=share, more=(0.5,))
    assert merge({"a": certain, "b": other}).models[0].exit_code == 1


def test_what_the_first_look_tests_blocks_nothing():
    early = verdict(slower=0.05, p=1e-12, share=0.0)
    assert merge({"a": early}).models[0].changed == [WARPTILE]


def test_a_screen_has_no_test_and_stays_what_it_is():
    flagged = verdict(slower=0.05)
    assert codes(a=flagged, b=verdict("NVIDIA H100", p=0.5)) == ([1, 0], 1)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (verdict(p=0.5), "a and b: both are verdicts on NVIDIA H200"),
        (verdict("NVIDIA H100", commit="7" * 40), "b: commit 7777"),
    ],
)
def test_verdicts_that_are_no_fleet_are_refused(other, message):
    with pytest.raises(GateError, match=message):
        merge({"a": verdict(), "b": other})


def test_nothing_measured_is_of_no_model():
    same = replace(verdict(), rows=tuple(replace(r, metric=None) for r in verdict().rows))
    assert codes(a=same, b=same) == ([0, 0], 0)


def test_a_verdict_without_shares_is_an_error():
    old = verdict(slower=0.05, p=1e-9)
    old = replace(old, rows=tuple(replace(row, share=None) for row in old.rows))
    (member,) = merge({"a": old}).models
    assert (member.exit_code, member.error) == (
        2,
        "written by an older gate, without shares: judge again",
    )
