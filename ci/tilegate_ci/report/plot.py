"""ci/plot: draws bench/plots/*.svg from the committed baseline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.ladder import LadderError, read_rungs
from tilegate_ci.report.data import load_profile
from tilegate_ci.report.figures import BASELINE, PICTURES, measured, provenance, read_baseline
from tilegate_ci.report.palette import dark_style

REPOSITORY = Path(__file__).resolve().parents[3]
PLOTS = Path("bench") / "plots"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="ci/plot", description=f"Draws {PLOTS}/*.svg from {BASELINE.as_posix()}."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a file is not up to date"
    )
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    try:
        wanted = pictures(arguments.repository)
        return _update(arguments.repository / PLOTS, wanted, arguments.check)
    except (GateError, LadderError, OSError) as problem:
        print(f"plot: error: {problem}", file=sys.stderr)
    except ImportError as problem:
        print(f"plot: error: {problem}; `ci/test` installs it into build/venv", file=sys.stderr)
    return 2


def pictures(repository: Path) -> dict[str, str]:
    """Each picture's file name and SVG text; none without a baseline."""
    from tilegate_ci.report import charts  # needs altair and vl-convert

    run = read_baseline(repository)
    if run is None:
        return {}
    found = measured(run, read_rungs(repository))
    note = f"{provenance(run, run.benchmarks.values())}."
    profile = load_profile(run.device, repository)
    drawn = {
        "ladder.svg": charts.sizes(found, note, charts.PICTURE),
        "share.svg": charts.bars(found, note, charts.PICTURE),
    }
    if profile is not None:
        drawn["roofline.svg"] = charts.roofline(found, profile, note, charts.PICTURE)
    return {name: _svg(chart.to_dict(), PICTURES[name]) for name, chart in drawn.items()}


def _svg(spec: dict[str, Any], title: str) -> str:
    """With a title and the data in words for who cannot see it, and the colours of dark mode."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(spec).replace("><", ">\n<")  # for its diffs
    opened = drawn.index(">") + 1
    head = f"<title>{escape(title)}</title><desc>{escape(spec['description'])}</desc>"
    return f"{drawn[:opened]}{head}<style>{dark_style()}</style>{drawn[opened:]}\n"


def _update(folder: Path, wanted: dict[str, str], check: bool) -> int:
    """Writes what differs and removes what is not wanted, or says so."""
    present = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.svg"))}
    stale = [name for name, text in wanted.items() if present.get(name) != text]
    left_over = sorted(present.keys() - wanted.keys())
    for name in [*stale, *left_over]:
        if check:
            message = (
                "drawn from no baseline" if name in left_over else "not what the baseline says"
            )
            print(f"{PLOTS / name}: {message}; `ci/plot` mends it", file=sys.stderr)
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
    return 1 if check and (stale or left_over) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
