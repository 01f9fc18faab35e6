"""ci/gate collect: makes a run of Google Benchmark's JSON files."""

import argparse
import os
import sys
from pathlib import Path

from tilegate_ci.commands.project_options import add_declared, declared_in
from tilegate_ci.core.files import GateError, dumps, parse_json, read_text, write_text
from tilegate_ci.core.outputs import check_outputs
from tilegate_ci.formats.collect import (
    check_distinct,
    collect,
    is_report,
    parse_process,
    read_sessions,
)
from tilegate_ci.formats.reading import Declared
from tilegate_ci.formats.reading import read_process as read_other
from tilegate_ci.model import Process

EXAMPLES = """examples:
  build/gpu/bench/bench --benchmark_out=process_1.json --benchmark_out_format=json
  ci/gate collect --out run.json --commit "$(git rev-parse HEAD)" process_*.json
  ci/gate collect --out run.json --commit "$SHA" --conditions sessions.json process_*.json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "processes", metavar="PROCESS.json", nargs="+", help="one for each process"
    )
    command.add_argument("--out", metavar="FILE", required=True)
    command.add_argument(
        "--commit", metavar="SHA", required=True, help="40 hex digits, -dirty after them if so"
    )
    command.add_argument(
        "--conditions", metavar="FILE", help="a JSON list of sessions; default: one, unknown"
    )
    add_declared(command.add_argument_group("another project's benchmarks"))


def run(arguments: argparse.Namespace) -> int:
    inputs, out = [*arguments.processes, *filter(None, [arguments.conditions])], arguments.out
    check_outputs(inputs, {"--out": out})
    if os.path.isfile(out) and is_report(read_text(out)):  # --out process_*.json takes the first
        raise GateError(f"--out {out}: Google Benchmark wrote it; give the name of another file")
    sessions = read_sessions(arguments.conditions) if arguments.conditions else None
    # Each is read once, because it may be a pipe.
    texts = {path: read_text(path) for path in arguments.processes}
    check_distinct(arguments.processes, texts)
    processes = [_parse(text, path, declared_in(arguments)) for path, text in texts.items()]
    collected = collect(processes, arguments.commit, sessions)
    write_text(Path(out), dumps(collected.fields) + "\n")
    rows = len(collected.benchmarks)
    sys.stdout.write(f"{out}: {rows} benchmarks, {len(processes)} processes\n")
    return 0


def _parse(text: str, path: str, declared: Declared) -> Process:
    """Our own bench tells the kind of its device; whatever else there is is another project's."""
    root = parse_json(text, path)
    context = root.get("context") if isinstance(root, dict) else None
    if isinstance(context, dict) and "device_kind" in context:
        if declared != Declared():
            options = "--time, --yardstick and --verified"
            raise GateError(f"{path}: {options} are for another project's benchmarks")
        return parse_process(text, path)
    return read_other(text, path, declared)
