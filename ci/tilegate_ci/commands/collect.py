"""ci/gate collect: makes a run of Google Benchmark's JSON files."""

import argparse
import sys
from pathlib import Path

from tilegate_ci.core.files import dumps, write_text
from tilegate_ci.measure.collect import check_distinct, collect, read_process, read_sessions

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


def run(arguments: argparse.Namespace) -> int:
    check_distinct(arguments.processes)
    sessions = read_sessions(arguments.conditions) if arguments.conditions else None
    processes = [read_process(path) for path in arguments.processes]
    collected = collect(processes, arguments.commit, sessions)
    write_text(Path(arguments.out), dumps(collected.fields) + "\n")
    rows = len(collected.benchmarks)
    sys.stdout.write(f"{arguments.out}: {rows} benchmarks, {len(processes)} processes\n")
    return 0
