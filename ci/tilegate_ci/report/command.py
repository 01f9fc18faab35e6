"""`ci/gate report`: verdict files and runs, as text, Markdown, JUnit XML and one HTML page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import write_text
from tilegate_ci.core.model import GFLOPS, RATIO, REPOSITORY
from tilegate_ci.core.stages import find_stages
from tilegate_ci.report import render
from tilegate_ci.report.data import Source, history, load_profile, load_source
from tilegate_ci.report.html import html
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
    if source.error is not None:
        return f"{source.title}\nerror: {source.error}\n"
    if source.comparison is not None:
        return render.console(source.comparison)
    lines = [f"{name}: {_numbers(values)}" for name, values in sorted(source.measured.items())]
    return "\n".join([source.title, *lines]) + "\n"


def markdown(source: Source) -> str:
    if source.error is not None:
        return render.markdown_error(source.error)
    if source.comparison is not None:
        return render.markdown(source.comparison)
    lines = [
        f"### {render.escaped(source.title)}",
        "",
        "| benchmark | GFLOPS | of cuBLAS |",
        "|---|---:|---:|",
    ]
    for name, values in sorted(source.measured.items()):
        share = values.get(RATIO)
        told = "-" if share is None else f"{100 * share:.1f} %"
        lines.append(f"| `{name}` | {values[GFLOPS]:.6g} | {told} |")
    return "\n".join(lines) + "\n"


def _numbers(values: Mapping[str, Any]) -> str:
    share = values.get(RATIO)
    told = "" if share is None else f", {100 * share:.1f} % of cuBLAS"
    return f"{values[GFLOPS]:.6g} GFLOPS{told}"


def _page(sources: Sequence[Source], repository: Path) -> str:
    devices = {source.device.name: source.device for source in sources if source.device}
    return html(
        sources,
        find_stages(repository),
        {name: history(device, repository) for name, device in devices.items()},
        {name: load_profile(device, repository) for name, device in devices.items()},
    )
