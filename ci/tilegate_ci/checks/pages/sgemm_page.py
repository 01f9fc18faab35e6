"""The shapes on Sgemm's page, by report/text/shapes.md: speed beside cuBLAS, speed by form, and how
close its choice comes to the quickest configuration."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilegate_ci.checks import tuning
from tilegate_ci.core.files import read_text
from tilegate_ci.measure.launcher import name_of as suite_name
from tilegate_ci.model import GFLOPS, Run
from tilegate_ci.report import templates
from tilegate_ci.report.figures import percent, provenance, read_results, share


def block(repository: Path) -> str:
    """Empty where the shapes were not recorded."""
    shapes, random = read_results(repository, "sgemm"), read_results(repository, "random")
    if shapes is None or random is None:
        return ""
    forms = read_results(repository, "forms")
    return templates.text(
        "shapes",
        sets=_sets(shapes, random, shape_sets(repository / "bench" / "shapes.csv")),
        shapes_made_on=provenance(shapes, shapes.benchmarks.values()),
        forms=forms and _by_form(forms),
        forms_made_on=forms and provenance(forms, forms.benchmarks.values()),
        tuned=kept_outside(
            tuning.load_timings(repository / tuning.OUTSIDE),
            tuning.load_table(repository / tuning.TABLE),
        ),
        percent=percent,
    ).rstrip("\n")


def _by_form(forms: Run) -> list[tuple[str, dict[str, float]]]:
    """TFLOP/s of each square by form."""
    speeds: dict[str, dict[str, float]] = {}
    for name, row in forms.benchmarks.items():
        shape, _, form = name.removeprefix("Sgemm/").partition("/")
        speeds.setdefault(shape.partition("x")[0], {})[form or "NN"] = row.summary[GFLOPS] / 1000
    return [*speeds.items()]


def _sets(shapes: Run, random: Run, sets: Mapping[str, str]) -> Sequence[tuple[object, ...]]:
    """How Sgemm stands to cuBLAS, by set of shapes."""
    by_set: dict[str, dict[str, float]] = {}
    for runs, set_of in ((shapes, sets), (random, {})):
        for name, row in runs.benchmarks.items():
            stage, _, shape = name.partition("/")
            ratio = share(row)
            if ratio is not None and stage == "Sgemm":
                by_set.setdefault(set_of.get(shape, "random"), {})[shape] = ratio
    listed = {s: r for name, of in by_set.items() if name != "random" for s, r in of.items()}
    found = []
    for name, of in [*by_set.items(), ("all but random", listed)]:
        worst = min(of, key=lambda shape: of[shape])
        mean, below = statistics.geometric_mean(of.values()), sum(r < 1 for r in of.values())
        found.append((name, worst, len(of), mean, of[worst], below))
    return found


def kept_outside(
    outside: Sequence[tuning.Timing], cells: Sequence[tuning.Cell]
) -> dict[str, object]:
    """How much of the quickest configuration's speed the choice keeps where nothing was tuned."""
    if not outside:
        return {}
    problems = {row.problem: row.problem_class for row in outside}
    classes = {cell.problem_class for cell in cells}
    return {
        "problems": len(problems),
        "timed": max(row.rank for row in outside),
        "both": tuning.kept(outside, cells),
        "models": tuning.kept(outside, []),
        "cells": len(cells),
        "met": sum(problem_class in classes for problem_class in problems.values()),
        "gpu": outside[0].gpu,
        "commits": list(dict.fromkeys(row.commit[:12] for row in outside)),
    }


def shape_sets(path: Path) -> dict[str, str]:
    """The set of each shape of bench/shapes.csv, by the problem's text."""
    names = [line.split(",", 1) for line in read_text(path).splitlines()[1:] if line]
    return {suite_name(f"Sgemm,{rest}").partition("/")[2]: name for name, rest in names}
