"""Random problems for Sgemm, and what its page says of its choice among configurations."""

from tilegate_ci.checks import tuning
from tilegate_ci.checks.pages.tables import kept_outside
from tilegate_ci.core.names import canonical_name
from tilegate_ci.lab.commands.problems import random_problems
from tilegate_ci.model import REPOSITORY
from tilegate_ci.report import templates
from tilegate_ci.report.figures import percent, read_results


def test_the_same_seed_gives_the_same_problems():
    problems = random_problems(200, 20261121)
    assert problems == random_problems(200, 20261121) != random_problems(200, 1)
    assert len(set(problems)) == 200
    assert all(canonical_name(f"Sgemm/{problem}") for problem in problems)


def test_the_committed_run_is_of_the_default_problems():
    run = read_results(REPOSITORY, "random")
    recorded = {name.partition("/")[2] for name in run.benchmarks if name.startswith("Sgemm/")}
    assert recorded == {
        canonical_name(f"Sgemm/{problem}").partition("/")[2]
        for problem in random_problems(200, 20261121)
    }


def test_the_page_says_what_the_choice_keeps():
    common = {"problem_class": "3x3x3/NN/vvv", "problem": "8x8x8", "code": "aa", "gpu": "H200"}
    common |= {"microseconds": 1.0, "spread": 0.0, "commit": 40 * "a"}
    outside = [
        tuning.Timing(configuration=name, rank=rank, of_cublas=of_cublas, **common)
        for name, rank, of_cublas in (("A:1", 1, 1.0), ("B:1", 2, 1.5), ("C:1", 3, 2.0))
    ]
    cell = tuning.Cell("H200", "3x3x3/NN/vvv", "B:1", 0.5, "aa")
    line = templates.text(
        "shapes.md",
        sets=[],
        shapes_made_on="",
        random_made_on="",
        forms=None,
        tuned=kept_outside(outside, [cell]),
        percent=percent,
    )
    assert "The choice keeps 75.0 % of the quickest one's speed (geometric mean)" in line
    assert "The cost models alone keep 50.0 %, the least 50.0 % at `8x8x8`." in line
    assert "1 cells, and 1 of these problems fall into one. H200, commit aaaaaaaaaaaa." in line
