"""ci/gate report: verdict files and runs, as text, Markdown, JUnit XML and one HTML page."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.commands.arguments import add_repository
from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, check_outputs, write_text
from tilegate_ci.core.options import flag, option
from tilegate_ci.formats.stages import newest_stages
from tilegate_ci.judge import verdict_file
from tilegate_ci.model import EXIT_MEANINGS, OTHER
from tilegate_ci.report import render
from tilegate_ci.report.data import Source, load_sources, of_fleet
from tilegate_ci.report.junit import junit as junit_of

EXIT_CODES = {
    0: "the reports were written; with --merge: no model regressed",
    **{code: f"{meaning}; with --merge" for code, meaning in EXIT_MEANINGS.items() if code},
    2: "error",
}
EXAMPLES = """examples:
  ci/gate compare bench/baselines/nvidia-h200.json run.json --json verdict.json
  ci/gate report verdict.json --html report.html --junit report.xml --markdown summary.md
  ci/gate report bench/baselines/nvidia-h200.json --html baseline.html
  ci/gate report --merge h200.json h100.json --json fleet.json --html fleet.html

The exit code says whether the reports were written: 0 or 2. The verdict is compare's and run's.
With --merge it is the verdict on all models: the first of 2, 1, 4, 3 that a model has. A file that
is not there counts as 4. The models share one budget of false alarms.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    option(command, "files", "VERDICT-OR-RUN", "verdict files, candidates or baselines", nargs="+")
    flag(
        command,
        "--merge",
        "one verdict on verdict files of several GPU models, one of which may be missing",
    )
    option(command, "--json", "FILE", "with --merge: the merged verdict")
    option(command, "--html", "FILE", "one page, which needs no network")
    option(command, "--junit", "FILE", "JUnit XML")
    option(command, "--markdown", "FILE", "as compare --markdown writes it")
    add_repository(command)


def run(arguments: argparse.Namespace) -> int:
    names = ("html", "junit", "markdown", "json")
    outputs = {name: getattr(arguments, name) for name in names if getattr(arguments, name)}
    check_outputs(arguments.files, {f"--{name}": path for name, path in outputs.items()})
    if arguments.json and not arguments.merge:
        raise GateError("--json writes a merged verdict: give --merge too")
    fleet = verdict_file.merged(arguments.files) if arguments.merge else None
    if fleet is None:
        sources = [source for path in arguments.files for source in load_sources(path)]
    else:
        sources = of_fleet(fleet)
    write(sources, arguments.repository.resolve(), outputs)
    if fleet is not None and arguments.json:
        write_text(Path(arguments.json), documents.to_text(fleet))
    if fleet is not None:
        sys.stdout.write(_console(sources[0]))
        return fleet.exit_code
    if not outputs:
        sys.stdout.write("\n".join(_console(source) for source in sources))
    return 0


def write(sources: list[Source], repository: Path, outputs: Mapping[str, str | Path]) -> None:
    """Writes the reports that `outputs` has a path of: junit, markdown, html."""
    if "junit" in outputs:
        write_text(Path(outputs["junit"]), junit_of(sources))
    if "markdown" in outputs:
        write_text(Path(outputs["markdown"]), "\n".join(map(_markdown, sources)))
    if "html" in outputs:
        write_text(Path(outputs["html"]), _page(sources, repository))


def _console(source: Source) -> str:
    return render.console(source.found, path=source.path, code=source.code)


def _markdown(source: Source) -> str:
    return render.markdown(source.found, source.path, source.code)


def _page(sources: list[Source], repository: Path) -> str:
    from tilegate_ci.report.html import html  # takes a second to import

    ours = any(source.run and source.run.device.kind != OTHER for source in sources)
    return html(sources, newest_stages(repository) if ours else [], repository)
