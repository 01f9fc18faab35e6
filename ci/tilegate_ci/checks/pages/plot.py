"""The pictures of the README, from the committed baseline."""

import re
from html import escape
from pathlib import Path
from typing import Any

import vl_convert
from altair.utils import schemapi

from tilegate_ci.checks.pages import distributed
from tilegate_ci.formats.stages import find_ladder
from tilegate_ci.report.charts import base, speeds
from tilegate_ci.report.charts.base import dark_style
from tilegate_ci.report.charts.scaling import scaling
from tilegate_ci.report.figures import PICTURES, ladder_of, read_baseline, rung_picture, rung_title

# Attributes that say where something stands, and what is less than a tenth of a pixel there.
_PLACES = re.compile(r' (?:d|x|y|x2|y2|transform)="[^"]*"')
_DIGITS = re.compile(r"(\.\d)\d+")


def pictures(repository: Path) -> dict[str, str]:
    """Each picture's file name and SVG text; none without a baseline."""
    # Altair would check each part by its schema, for half of the time; a test does it.
    with schemapi.debug_mode(False):
        return {
            name: _svg(chart.to_dict(validate=False), title)
            for name, (chart, title) in charts(repository).items()
        }


def charts(repository: Path) -> dict[str, tuple[base.Chart, str]]:
    """Each picture's file name, its chart and its title."""
    run = read_baseline(repository)
    if run is None:
        return {}
    rungs = find_ladder(repository)
    ladder, width = ladder_of(run, rungs, repository), base.PICTURE
    drawn: dict[str, base.Chart] = {
        "staircase.svg": speeds.staircase(ladder, width),
        "sizes.svg": speeds.sizes(ladder, width),
    }
    if ladder.profile is not None:
        drawn["roofline.svg"] = speeds.roofline(ladder, width)
    titled = {name: (chart, PICTURES[name]) for name, chart in drawn.items()}
    before: str | None = None
    for rung in rungs:
        if rung.yardstick or not any(
            each.rows for each in ladder.squares if each.name == rung.name
        ):
            continue
        chart = speeds.one_rung(ladder, rung.name, before, width)
        titled[rung_picture(rung)] = (chart, rung_title(rung))
        before = rung.name
    found = distributed.scaling(repository)
    if found is not None:
        panels, measured = found
        chart = scaling(panels, measured.gpus(), f"{measured.made_on()}.", width)
        titled["distributed.svg"] = (chart, "Efficiency of products over several GPUs")
    return titled


def _svg(spec: dict[str, Any], title: str) -> str:
    """With a title and the data in words for readers who cannot see it, and the colours of dark
    mode."""
    spec["config"]["aria"] = False  # those words are better than a label per mark
    drawn = vl_convert.vegalite_to_svg(spec).replace("><", ">\n<")  # for its diffs
    drawn = _PLACES.sub(lambda place: _DIGITS.sub(r"\1", place[0]), drawn)
    opened = drawn.index(">") + 1
    head = f"<title>{escape(title)}</title><desc>{escape(spec['description'])}</desc>"
    return f"{drawn[:opened]}{head}<style>{dark_style(drawn)}</style>{drawn[opened:]}\n"
