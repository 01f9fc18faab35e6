"""ci/gate report: verdict files and runs, as text, Markdown, JUnit XML and one HTML page."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, check_outputs, write_text
from tilegate_ci.formats.stages import newest_stages
from tilegate_ci.judge import verdict_file
from tilegate_ci.model import OTHER, REPOSITORY
from tilegate_ci.report import render
from tilegate_ci.report.figures import Source, load_sources, of_fleet
from tilegate_ci.report.junit import junit as junit_of

DEFAULTS = {"repository": REPOSITORY}


def run(arguments: argparse.Namespace) -> int:
    names = ("html", "junit", "markdown", "json")
    outputs = {name: getattr(arguments, name) for name in names if getattr(arguments, name)}
    check_outputs(arguments.files, {f"--{name}": path for name, path in outputs.items()})
    if arguments.json and not arguments.merge:
        raise GateError("--json writes a merged verdict: give --merge too")
    if arguments.merge:
        fleet = verdict_file.merged(arguments.files)
        sources = of_fleet(fleet)
        write(sources, arguments.repository.resolve(), outputs)
        if arguments.json:
            write_text(Path(arguments.json), documents.to_text(fleet))
        sys.stdout.write(_console(sources[0]))
        return fleet.exit_code
    sources = [source for path in arguments.files for source in load_sources(path)]
    write(sources, arguments.repository.resolve(), outputs)
    if not outputs:
        sys.stdout.write("\n".join(_console(source) for source in sources))
    return 0


def write(sources: list[Source], repository: Path, outputs: Mapping[str, str | Path]) -> None:
    """Writes the reports that `outputs` has a path of: junit, markdown, html."""
    if "junit" in outputs:
        write_text(Path(outputs["junit"]), junit_of(sources))
    if "markdown" in outputs:
        write_text(
            Path(outputs["markdown"]),
            "\n".join(render.markdown(each.found, each.path, each.code) for each in sources),
        )
    if "html" in outputs:
        write_text(Path(outputs["html"]), _page(sources, repository))


def _console(source: Source) -> str:
    return render.console(source.found, path=source.path, code=source.code)


def _page(sources: list[Source], repository: Path) -> str:
    from tilegate_ci.report.html import html  # takes a second to import

    ours = any(source.run and source.run.device.kind != OTHER for source in sources)
    return html(sources, newest_stages(repository) if ours else [], repository)
