"""The report as one HTML page that needs no network: page/ holds its parts."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import vl_convert
from altair.utils import schemapi
from markupsafe import Markup

from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.formats.stages import Stage
from tilegate_ci.judge.compare import Comparison
from tilegate_ci.judge.drift import Version
from tilegate_ci.model import Run, Verdict
from tilegate_ci.report import figures, render, templates
from tilegate_ci.report.charts import base, slowdowns, speeds
from tilegate_ci.report.figures import SHARE_SIZE, Source, short

FEW, MANY = 12, 40  # benchmarks in the forest plot: where there are as many, and at most
_UNREMARKABLE = (Verdict.PASS, Verdict.IDENTICAL)
_WIDTHS, _DETAIL_WIDTHS = (base.WIDE, base.NARROW), (640, 310)

_IN_DETAIL = ("metric", "rerun", "pairs again")  # no columns of the table

Draw = Callable[[int], base.Chart]


def html(sources: Sequence[Source], rungs: Sequence[Stage], repository: Path) -> str:
    devices = {source.run.device.name: source.run.device for source in sources if source.run}
    histories = {name: figures.history(device, repository) for name, device in devices.items()}
    specs: dict[str, Any] = {}
    sections = []
    for number, source in enumerate(sources):
        drawn = _charts(source, rungs, repository, histories)
        # Altair would check each part by its schema, for half of the time; a test does it.
        with schemapi.debug_mode(False):
            for name, draw in drawn.items():
                widths = _DETAIL_WIDTHS if name == "detail" else _WIDTHS
                specs[f"{number}-{name}"] = [draw(w).to_dict(validate=False) for w in widths]
        sections.append(_section(source, rungs, set(drawn)))
    text = json.dumps(specs, allow_nan=False, separators=(",", ":"))
    return templates.html(
        "page.html",
        sections=sections,
        ratio_note=figures.RATIO_NOTE,
        numeric=render.NUMERIC,
        in_detail=("verdict", "benchmark", "model", "rerun", "pairs again"),
        at_once={"verdict", "benchmark", "model", "slow-down", "GFLOPS", "time"},  # on a phone
        foldable=lambda name: Markup("<wbr>").join(re.split(r"(?<=/)|(?<=\dx)(?=\d)", name)),
        specs=Markup(text.replace("<", "\\u003c")),  # no name or note can end its element
        vega=_vega(),
        script=Markup(templates.part("page.js")),
        style=Markup(templates.part("page.css") + base.dark_style()),
    )


@cache  # it takes longer than the rest of a page
def _vega() -> Markup:
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return Markup(bundle.replace("</script", "<\\/script"))


def _charts(
    source: Source,
    rungs: Sequence[Stage],
    repository: Path,
    histories: Mapping[str, Sequence[Version]],
) -> dict[str, Draw]:
    """What can be drawn of the source, by the name of its place on the page."""
    run, comparison = source.run, source.comparison
    if run is None:
        return {}
    drawn: dict[str, Draw] = {}
    rows = [row for row in comparison.rows if row.slowdown is not None] if comparison else []
    if comparison is not None and rows:
        rows.sort(key=lambda row: -(row.slowdown or 0.0))
        processes = {row.name: figures.of_processes(row, comparison) for row in rows}
        # What is not a mere pass, and some of those beside it.
        keen = [row for row in rows if row.verdict not in _UNREMARKABLE][:MANY]
        plain = [row for row in rows if row.verdict in _UNREMARKABLE][: max(0, FEW - len(keen))]
        chosen = [row for row in rows if row in keen or row in plain]
        means, others = figures.pooled(rows), len(rows) - len(chosen)
        drawn["forest"] = partial(slowdowns.forest, chosen, means, processes, others)
        drawn["detail"] = partial(slowdowns.detail, rows, processes)
    if run.device.kind != "cuda":  # the rest is of times of matrix multiplications
        return drawn
    ladder = figures.ladder_of(run, rungs, repository, others=True)
    shares = {rung.name for rung in ladder.squares if rung.shares()}
    if any(rung.rows for rung in ladder.squares):
        drawn["sizes"] = partial(speeds.sizes, ladder)
        drawn["ladder"] = partial(speeds.staircase, ladder)
    if shares - {YARDSTICK}:
        drawn["shares"] = partial(speeds.shares, ladder)
    if speeds.profiled(ladder):
        drawn["roofline"] = partial(speeds.roofline, ladder)
    if shares:
        drawn["history"] = partial(speeds.history, ladder, histories[run.device.name], run.commit)
    return drawn


def _section(source: Source, rungs: Sequence[Stage], drawn: set[str]) -> dict[str, object]:
    """What the page says of a source; of one without a run, the verdict alone."""
    run, comparison = source.run, source.comparison
    view = render.view_of(source.found, source.path, source.code)
    columns = [n for n in render.columns([e.cells for e in view.entries]) if n not in _IN_DETAIL]
    if run is None:
        return {"view": view, "columns": columns, "about": "", "facts": (), "of_matrices": False}
    about = f"{short(run.commit)}, {render.gpu(run)}"
    if comparison is not None:
        about = f"{short(comparison.baseline.commit)} → {about}"
    found = figures.at_common_sizes(figures.measured(run, rungs, others=True))
    sizes = sorted({size for rung in found for size in rung.squares()})
    share_size = SHARE_SIZE if SHARE_SIZE in sizes else max(sizes, default=SHARE_SIZE)
    ideas = {rung.name: rung.idea for rung in rungs}
    ladder = [
        (
            rung.name,
            ideas.get(rung.name, ""),
            [figures.gflops(rung.square(size)) for size in sizes],
            figures.percent(figures.share(rung.square(share_size))),
        )
        for rung in found
        if rung.rows
    ]
    return {
        "view": view,
        "columns": columns,
        "about": about,
        "facts": _facts(run, comparison),
        "sizes": sizes,
        "share_size": share_size,
        "ladder": ladder,
        "drawn": drawn,
        "of_matrices": run.device.kind == "cuda",  # it has a ladder, sizes, roofline and history
    }


def _facts(run: Run, comparison: Comparison | None) -> list[tuple[str, str, str | None]]:
    """Of each side, and of the base of the pairs where that is another commit than the baseline's:
    names, texts and addresses."""
    named: list[tuple[str, str, Run | None]] = [("run", run.commit, run)]
    if comparison is not None:
        baseline, base = comparison.baseline, comparison.base_commit or comparison.baseline.commit
        named = [("baseline", baseline.commit, baseline), ("candidate", run.commit, run)]
        if base != baseline.commit:
            named.insert(1, ("base of the pairs", base, None))
    facts: list[tuple[str, str, str | None]] = []
    for name, commit, side in named:
        link = figures.commit_link(comparison, commit) if comparison else None
        facts.append((name, f"commit {short(commit)}", link))
        if side is not None:
            facts.append(("", f"{side.path}, {figures.machine(side.device.fields)}", None))
            about = ", ".join(filter(None, [figures.started(side), *figures.conditions(side)]))
            facts += [("", about, None)] * bool(about)
    return facts
