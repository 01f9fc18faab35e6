"""The pictures of the README, from the committed baseline."""

from html import escape
from pathlib import Path
from typing import Any

import vl_convert

from tilegate_ci.formats.stages import find_ladder
from tilegate_ci.report.charts import base, roofline, speeds
from tilegate_ci.report.data import load_profile
from tilegate_ci.report.figures import (
    PICTURES,
    at_common_sizes,
    measured,
    provenance,
    read_baseline,
)
from tilegate_ci.report.palette import dark_style


def pictures(repository: Path) -> dict[str, str]:
    """Each picture's file name and SVG text; none without a baseline."""
    run = read_baseline(repository)
    if run is None:
        return {}
    found = measured(run, find_ladder(repository))
    squares = at_common_sizes(found)
    note = f"{provenance(run, run.benchmarks.values())}."
    profile = load_profile(run.device, repository)
    drawn = {
        "ladder.svg": speeds.sizes(squares, note, base.PICTURE),
        "share.svg": speeds.bars(squares, note, base.PICTURE),
    }
    if profile is not None:
        drawn["roofline.svg"] = roofline.roofline(found, profile, note, base.PICTURE)
    return {name: _svg(chart.to_dict(), PICTURES[name]) for name, chart in drawn.items()}


def _svg(spec: dict[str, Any], title: str) -> str:
    """With a title and the data in words for who cannot see it, and the colours of dark mode."""
    drawn = vl_convert.vegalite_to_svg(spec).replace("><", ">\n<")  # for its diffs
    opened = drawn.index(">") + 1
    head = f"<title>{escape(title)}</title><desc>{escape(spec['description'])}</desc>"
    return f"{drawn[:opened]}{head}<style>{dark_style()}</style>{drawn[opened:]}\n"
