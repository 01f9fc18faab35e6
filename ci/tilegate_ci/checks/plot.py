"""The committed pictures, bench/plots/*.svg."""

from pathlib import Path

from tilegate_ci.checks.committed import Committed
from tilegate_ci.report.figures import BASELINE


class Plots(Committed):
    name = "plot"
    holds = "the pictures of the READMEs, from the committed baseline"
    pattern = "bench/plots/*.svg"
    empty = f"no baseline committed yet ({BASELINE.as_posix()}): nothing to draw"

    def files(self, repository: Path) -> dict[Path, str]:
        from tilegate_ci.checks.pages.plot import (
            pictures,  # with Altair, which takes long to import
        )

        folder = repository / "bench" / "plots"
        return {folder / name: text for name, text in pictures(repository).items()}
