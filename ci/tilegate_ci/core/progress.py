"""Messages and progress on stderr."""

import contextlib
import sys
from typing import Self

from rich.console import Console
from rich.progress import Progress


def message(text: str) -> None:
    """Each line begins with our name and has no control characters, so that the contents of a file
    cannot inject a workflow command such as ::error into a log."""
    lines = [f"gate: {printable(line)}\n" for line in text.splitlines() or [""]]
    with contextlib.suppress(OSError, ValueError):
        print("".join(lines), end="", file=sys.stderr, flush=True)


def printable(line: str) -> str:
    shown = (c if c.isprintable() else ascii(c)[1:-1] for c in line.replace("\t", " "))
    return "".join(shown).replace("##[", "# #[")  # how older runners begin a command


class Steps:
    """Progress of long work: a line per step, and a bar on a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(console=console, disable=not console.is_terminal)
        self._task = self._progress.add_task("measuring", total=None)
        self._done = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def done(self, title: str, seconds: float, left: int, left_s: float) -> None:
        """One more step took `seconds`; `left` are to go and may take `left_s`."""
        self._done += 1
        self._progress.update(self._task, completed=self._done, total=self._done + left)
        message(f"{title}: {seconds:.1f} s; about {left_s / 60:.1f} min left")
