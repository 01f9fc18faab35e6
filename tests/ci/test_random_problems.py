"""Random problems for Sgemm, and what its page says of its choice among configurations."""

from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.core.names import canonical_name
from tilegate_ci.measure.random_problems import random_problems
from tilegate_ci.report.figures import read_results
from tilegate_ci.report.tables import shape_sets, shapes_block


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
    listed, random = read_results(REPOSITORY, "sgemm"), read_results(REPOSITORY, "random")
    name, row = next((n, r) for n, r in random.benchmarks.items() if n.startswith("Sgemm/"))
    shape = name.partition("/")[2]
    quicker = row.model_copy(update={"ratio_to_cublas": 2 * row.ratio_to_cublas})
    timed = {name: row, f"Sgemm@Skinny:rows16x64/{shape}": quicker}
    sets = shape_sets(REPOSITORY / "bench/shapes.csv")
    block = shapes_block(listed, random.model_copy(update={"benchmarks": timed}), sets)
    assert "keeps 50.0 % of the quickest one's speed (geometric mean)" in block
    assert f"the least 50.0 % at `{shape}`" in block
