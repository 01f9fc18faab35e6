"""The committed pictures, bench/plots/*.svg."""

import argparse
from pathlib import Path

from tilegate_ci.checks.committed import CommittedTable, Report
from tilegate_ci.core.files import make_folder, read_text, write_text
from tilegate_ci.report.figures import BASELINE

PLOTS = Path("bench") / "plots"


class Plots(CommittedTable[dict[str, str]]):
    name = "plot"
    holds = "the pictures of the READMEs, from the committed baseline"
    exit_codes = {0: "up to date", 1: "a picture is not up to date", 2: "error"}

    def compute(self, asked: argparse.Namespace) -> dict[str, str]:
        from tilegate_ci.checks.pages.plot import (
            pictures,
        )  # with Altair, which takes long to import

        return pictures(asked.repository)

    def compare(self, asked: argparse.Namespace, found: dict[str, str]) -> Report:
        present = _present(asked.repository)
        lines = [
            f"{PLOTS / name}: not what the baseline says; {self.remedy} writes it"
            for name, text in found.items()
            if present.get(name) != text
        ]
        lines += [
            f"{PLOTS / name}: drawn from no baseline; {self.remedy} removes it"
            for name in present
            if name not in found
        ]
        return self._report(int(bool(lines)), lines, found)

    def write(self, asked: argparse.Namespace, found: dict[str, str]) -> Report:
        present, folder, lines = _present(asked.repository), asked.repository / PLOTS, []
        for name, text in found.items():
            if present.get(name) != text:
                make_folder(folder)
                write_text(folder / name, text)
                lines.append(f"{PLOTS / name}: written")
        for name in present:
            if name not in found:
                (folder / name).unlink()
                lines.append(f"{PLOTS / name}: removed")
        return self._report(0, lines, found)

    def _report(self, code: int, lines: list[str], found: dict[str, str]) -> Report:
        if not found:
            lines.append(f"no baseline committed yet ({BASELINE.as_posix()}): nothing to draw")
        elif not lines:
            lines.append(f"{len(found)} pictures are up to date")
        return Report(code, "\n".join(lines) + "\n")


def _present(repository: Path) -> dict[str, str]:
    return {path.name: read_text(path) for path in sorted((repository / PLOTS).glob("*.svg"))}
