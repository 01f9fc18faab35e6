"""ci/gate plot: keeps bench/plots/*.svg as the committed baseline has it."""

import argparse
from pathlib import Path

from tilegate_ci.commands.arguments import add_check
from tilegate_ci.core.files import read_text, write_text
from tilegate_ci.core.progress import message
from tilegate_ci.report.figures import BASELINE

PLOTS = Path("bench") / "plots"
EXIT_CODES = {0: "up to date", 1: "--check: a file is not up to date", 2: "error"}
EXAMPLES = """examples:
  ci/gate plot
  ci/gate plot --check
"""

add_arguments = add_check


def run(arguments: argparse.Namespace) -> int:
    from tilegate_ci.checks.pages.plot import pictures  # with Altair, which takes long to import

    wanted = pictures(arguments.repository)
    folder = arguments.repository / PLOTS
    present = {path.name: read_text(path) for path in sorted(folder.glob("*.svg"))}
    stale = [name for name, text in wanted.items() if present.get(name) != text]
    left_over = sorted(present.keys() - wanted.keys())
    for name in [*stale, *left_over]:
        if arguments.check:
            why = "drawn from no baseline" if name in left_over else "not what the baseline says"
            message(f"{PLOTS / name}: {why}; `ci/gate plot` mends it")
        elif name in left_over:
            (folder / name).unlink()
            print(f"{PLOTS / name}: removed")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / name, wanted[name])
            print(f"{PLOTS / name}: written")
    if not wanted:
        print(f"no baseline committed yet ({BASELINE.as_posix()}): nothing to draw")
    elif not stale and not left_over:
        print(f"{len(wanted)} pictures are up to date")
    return 1 if arguments.check and (stale or left_over) else 0
