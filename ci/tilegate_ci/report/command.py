"""`ci/gate report`: verdict files and runs, as text, Markdown, JUnit XML and one HTML page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.ladder import LadderError, Rung, read_rungs
from tilegate_ci.core.model import GFLOPS, REPOSITORY, Run
from tilegate_ci.report import render, templates
from tilegate_ci.report.data import Source, load_source
from tilegate_ci.report.figures import RATIO_NOTE, percent, share
from tilegate_ci.report.junit import junit

EXAMPLES = """examples:
  ci/gate compare bench/baselines/nvidia-h200.json run.json --json verdict.json
  ci/gate report verdict.json --html report.html --junit report.xml --markdown summary.md
  ci/gate report bench/baselines/nvidia-h200.json --html baseline.html

The exit code says whether the reports were written: 0 or 2. The verdict is compare's and run's.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.set_defaults(command=run)
    command.add_argument(
        "files", metavar="VERDICT-OR-RUN", nargs="+", help="verdict files, candidates or baselines"
    )
    command.add_argument("--html", metavar="FILE", help="one page, which needs no network")
    command.add_argument("--junit", metavar="FILE", help="JUnit XML")
    command.add_argument("--markdown", metavar="FILE", help="as compare --markdown writes it")
    command.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    sources = [load_source(path) for path in arguments.files]
    if arguments.junit:
        write_text(Path(arguments.junit), junit(sources))
    if arguments.markdown:
        text = "\n".join(markdown(source) for source in sources)
        write_text(Path(arguments.markdown), text)
    if arguments.html:
        write_text(Path(arguments.html), _page(sources, arguments.repository.resolve()))
    if not (arguments.html or arguments.junit or arguments.markdown):
        sys.stdout.write("\n".join(console(source) for source in sources))
    return 0


def console(source: Source) -> str:
    if source.comparison is not None:
        return render.console(source.comparison)
    if source.run is None:
        return f"{source.title}\nerror: {source.error}\n"
    lines = [
        f"{name}: {gflops} GFLOPS" + f", {of} of cuBLAS" * (of != "-")
        for name, gflops, of in _rows(source.run)
    ]
    return "\n".join([source.title, *lines]) + "\n"


def markdown(source: Source) -> str:
    if source.comparison is not None:
        return render.markdown(source.comparison)
    if source.run is None:
        return render.markdown_error(source.error or "")
    return templates.markdown("run", title=source.title, rows=_rows(source.run), note=RATIO_NOTE)


def _rows(run: Run) -> list[tuple[str, str, str]]:
    return [
        (name, f"{row.summary[GFLOPS]:.6g}", percent(share(row)))
        for name, row in sorted(run.benchmarks.items())
    ]


def _page(sources: list[Source], repository: Path) -> str:
    try:
        from tilegate_ci.report.html import html  # needs altair and vl-convert
    except ImportError as problem:
        told = f"{problem.name} is not installed; pip install -r ci/requirements.txt"
        raise GateError(f"--html: {told}") from problem
    return html(sources, _rungs(repository), repository)


def _rungs(repository: Path) -> list[Rung]:
    try:
        return read_rungs(repository)
    except (LadderError, OSError) as problem:
        raise GateError(str(problem)) from problem
