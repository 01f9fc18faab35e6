"""The shapes on Sgemm's page: speed beside cuBLAS, speed by form, and how close its choice comes to
the quickest configuration."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilegate_ci.checks import tuning
from tilegate_ci.core.files import read_text
from tilegate_ci.core.markdown import table
from tilegate_ci.measure.launcher import name_of as suite_name
from tilegate_ci.model import GFLOPS, Run
from tilegate_ci.report.figures import percent, provenance, read_results, share
from tilegate_ci.report.templates import code

FORMS = ("NN", "NT", "TN", "TT")


def block(repository: Path) -> str:
    """Empty where the shapes were not recorded."""
    shapes, random = read_results(repository, "sgemm"), read_results(repository, "random")
    if shapes is None or random is None:
        return ""
    outside = tuning.load_timings(repository / tuning.OUTSIDE)
    cells = tuning.load_table(repository / tuning.TABLE)
    lines = [
        shapes_block(shapes, random, shape_sets(repository / "bench" / "shapes.csv")),
        *forms_lines(read_results(repository, "forms")),
        *tuned_lines(outside, cells),
    ]
    return "\n".join(lines)


def forms_lines(forms: Run | None) -> list[str]:
    """TFLOP/s of squares by form, and the share of NN's that each reaches."""
    if forms is None:
        return []
    speeds: dict[str, dict[str, float]] = {}
    for name, row in forms.benchmarks.items():
        shape, _, form = name.removeprefix("Sgemm/").partition("/")
        speeds.setdefault(shape, {})[form or "NN"] = row.summary[GFLOPS] / 1000
    lines = [
        [
            f"{shape.partition('x')[0]}³",
            *(f"{of[f]:.2f}, {percent(of[f] / of['NN'])}" for f in FORMS),
        ]
        for shape, of in speeds.items()
    ]
    note = "TFLOP/s by form of op(A) and op(B), and the share of NN's"
    made_on = provenance(forms, forms.benchmarks.values())
    return ["", *table(("", *FORMS), lines), "", f"{note}. {made_on}."]


def shapes_block(shapes: Run, random: Run, sets: Mapping[str, str]) -> str:
    """How Sgemm stands to cuBLAS, by set of shapes."""
    by_set: dict[str, dict[str, float]] = {}
    for runs, set_of in ((shapes, sets), (random, {})):
        for name, row in runs.benchmarks.items():
            stage, _, shape = name.partition("/")
            ratio = share(row)
            if ratio is not None and stage == "Sgemm":
                by_set.setdefault(set_of.get(shape, "random"), {})[shape] = ratio
    listed = {s: r for name, of in by_set.items() if name != "random" for s, r in of.items()}
    cells = []
    for name, of in [*by_set.items(), ("all but random", listed)]:
        worst = min(of, key=lambda shape: of[shape])
        below = str(sum(ratio < 1 for ratio in of.values()))
        mean = statistics.geometric_mean(of.values())
        cells.append([name, code(worst), str(len(of)), f"{mean:.3f}", f"{of[worst]:.3f}", below])
    heads = ("set", "least at", "problems", "geometric mean", "least", "below 1")
    made_on = provenance(shapes, shapes.benchmarks.values())
    note = f"cuBLAS's time over Sgemm's; above 1 Sgemm is faster. {made_on}."
    return "\n".join([*table(heads, cells, left=2), "", note])


def tuned_lines(outside: Sequence[tuning.Timing], cells: Sequence[tuning.Cell]) -> list[str]:
    """How much of the quickest configuration's speed the choice keeps where nothing was tuned."""
    if not outside:
        return []
    problems = {row.problem: row.problem_class for row in outside}
    classes = {cell.problem_class for cell in cells}
    met = sum(problem_class in classes for problem_class in problems.values())
    timed = max(row.rank for row in outside)
    both, models = tuning.kept(outside, cells), tuning.kept(outside, [])
    return [
        "",
        f"Of {len(problems)} of the random problems up to {timed} configurations each were timed, "
        f"of those that the cost models rank first. The choice keeps {percent(both.mean)} of the "
        f"quickest one's speed (geometric mean), the least {percent(both.least)} at `{both.at}`. "
        f"The cost models alone keep {percent(models.mean)}, the least {percent(models.least)} at "
        f"`{models.at}`. The table has {len(cells)} cells, and {met} of these problems fall into "
        f"one. {_made_on(outside)}.",
    ]


def _made_on(timed: Sequence[tuning.Timing]) -> str:
    commits = dict.fromkeys(row.commit[:12] for row in timed)
    return f"{timed[0].gpu}, commit{'s'[: len(commits) > 1]} {', '.join(commits)}"


def shape_sets(path: Path) -> dict[str, str]:
    """The set of each shape of bench/shapes.csv, by the problem's text."""
    names = [line.split(",", 1) for line in read_text(path).splitlines()[1:] if line]
    return {suite_name(f"Sgemm,{rest}").partition("/")[2]: name for name, rest in names}
