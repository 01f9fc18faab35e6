"""ci/gate problems: prints random problems, as `bench --shapes` takes them."""

import argparse

from tilegate_ci.commands.arguments import whole
from tilegate_ci.lab.random_problems import random_problems

EXIT_CODES = {0: "printed", 2: "error"}
EXAMPLES = """examples:
  bench --shapes=$(ci/gate problems) --benchmark_filter=Sgemm
  bench --shapes=$(ci/gate problems) --benchmark_filter=Sgemm --configurations=8
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--count", metavar="N", type=whole(1, 100_000), default=200, help="default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=20261121, help="default: %(default)s")


def run(arguments: argparse.Namespace) -> int:
    print(",".join(random_problems(arguments.count, arguments.seed)))
    return 0
