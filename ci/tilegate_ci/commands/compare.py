"""ci/gate compare: file against file; makes a run of the JSON of several processes."""

import argparse
import os
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, check_outputs, message, read_text, write_text
from tilegate_ci.formats import run_file
from tilegate_ci.formats.reading import Declared, is_process, read_any
from tilegate_ci.formats.run_file import Role, check_distinct, collect, load, read_sessions
from tilegate_ci.judge import verdict_file, waivers
from tilegate_ci.judge.compare import Comparison, Margin, compare
from tilegate_ci.model import MIN_DELTA, RunFile
from tilegate_ci.report import render

DEFAULTS = {"waivers": str(waivers.WAIVERS)}


def margin_in(arguments: argparse.Namespace, least: float = MIN_DELTA) -> Margin:
    return Margin(arguments.margin or least, arguments.margin_abs or 0.0)


def declared_in(arguments: argparse.Namespace, pattern: str = "") -> Declared:
    """What the owner of another project's benchmarks says of them."""
    said = (arguments.time, arguments.yardstick, arguments.verified, pattern)
    return Declared(*(word or "" for word in said))


def check_verdict_options(
    arguments: argparse.Namespace, *inputs: str, out: str | None = None
) -> None:
    outputs = {"--markdown": arguments.markdown, "--json": arguments.json, "--out": out}
    check_outputs([*inputs, arguments.waivers], outputs)


def run(arguments: argparse.Namespace) -> int:
    paths, out = list(arguments.files), arguments.out
    conditions = filter(None, [arguments.conditions])
    check_verdict_options(arguments, *paths, *conditions, out=out)
    if out and os.path.isfile(out) and is_process(read_text(out)):  # --out process_*.json
        raise GateError(f"--out {out}: a benchmark wrote it; give the name of another file")
    if arguments.no_baseline:
        if not out:
            raise GateError("--no-baseline: nothing to compare; give --out FILE for the run")
        made = collected({path: read_text(path) for path in paths}, paths, arguments)
        rows, count = len(made.benchmarks), len(paths)
        sys.stdout.write(f"{out}: {rows} benchmarks, {count} processes\n")
        return 0
    if len(paths) < 2:
        raise GateError(f"{paths[0]}: only a baseline; give a candidate too")
    accepted = waivers.load(Path(arguments.waivers), date.today())
    baseline = load(paths[0], Role.BASELINE)
    texts = {path: read_text(path) for path in paths[1:]}  # each once: it may be a pipe
    if is_process(texts[paths[1]]) or paths[2:]:
        candidate = collected(texts, paths[1:], arguments)
    else:
        candidate = run_file.parse(texts[paths[1]], paths[1])
    found = compare(baseline, candidate, arguments.filter, margin_in(arguments, 0.0))
    return show(waivers.apply(found, accepted), arguments.markdown, arguments.json)


def collected(texts: Mapping[str, str], paths: list[str], arguments: argparse.Namespace) -> RunFile:
    """The run that these processes make, written where --out says."""
    if arguments.commit is None:
        raise GateError("--commit SHA: say which commit the processes measured")
    sessions = read_sessions(arguments.conditions) if arguments.conditions else None
    check_distinct(paths, texts)
    declared = declared_in(arguments)
    processes = [read_any(text, path, declared) for path, text in texts.items()]
    made = collect(processes, arguments.commit, sessions, arguments.out or paths[0])
    if arguments.out:
        write_text(Path(arguments.out), documents.to_text(made))
    return made


def show(found: Comparison, markdown: str | None, json: str | Path | None) -> int:
    if markdown:
        write_text(Path(markdown), render.markdown(found))
    if json:
        verdict_file.write(Path(json), found)
    for warning in found.warnings:
        message(f"warning: {warning}")
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    sys.stdout.write(render.console(found, colour))
    return found.exit_code
