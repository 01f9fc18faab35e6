"""ci/gate lab problems: prints random problems, as `bench --shapes` takes them, to see how Sgemm
does on shapes that it was not tuned for."""

import argparse
import math
import random

from tilegate_ci.commands.arguments import whole

SMALLEST, LARGEST = 8, 12_000

TYPES = {"count": whole(1, 100_000), "seed": int}
DEFAULTS = {"count": 200, "seed": 20261121}


def run(arguments: argparse.Namespace) -> int:
    print(",".join(random_problems(arguments.count, arguments.seed)))
    return 0


def random_problems(count: int, seed: int) -> list[str]:
    """As bench names them. Extents are log-uniform; every third problem has padded rows or pointers
    that are off by 4, 8 or 12 bytes."""
    source = random.Random(seed)

    def extent() -> int:
        return round(math.exp(source.uniform(math.log(SMALLEST), math.log(LARGEST))))

    problems = []
    for index in range(count):
        m, n, k = (extent() for _ in range(3))
        problem = f"{m}x{n}x{k}"
        if index % 3 == 0:
            if source.random() < 0.5:
                lda, ldb, ldc = (columns + source.randint(1, 7) for columns in (k, n, n))
                problem += f"/ld{lda}x{ldb}x{ldc}"
            if source.random() < 0.6:
                problem += f"/off{source.choice([4, 8, 12])}"
        problems.append(problem)
    return problems
