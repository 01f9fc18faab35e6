"""ci/gate problems: prints random problems, as `bench --shapes` takes them."""

import argparse

from tilegate_ci.core.files import GateError
from tilegate_ci.lab.random_problems import random_problems

EXIT_CODES = {0: "printed", 2: "error"}
EXAMPLES = """examples:
  bench --shapes=$(ci/gate problems) --benchmark_filter=Sgemm
  bench --shapes=$(ci/gate problems) --benchmark_filter=Sgemm --configurations=8
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=20261121, help="default: %(default)s")


def run(arguments: argparse.Namespace) -> int:
    if arguments.count < 1:
        raise GateError(f"--count {arguments.count}: at least one problem is needed")
    print(",".join(random_problems(arguments.count, arguments.seed)))
    return 0
