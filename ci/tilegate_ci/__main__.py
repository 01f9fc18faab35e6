"""python -m tilegate_ci: what ci/gate runs.

Python itself exits with 1 over an exception, or where a stream is closed or full, and 1 means
`regressed`. So whatever goes wrong here exits 2."""

import contextlib
import os
import sys


def _open_streams() -> None:
    """Closed streams become /dev/null, or the next opened file would take their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _flushed(code: int) -> int:
    """The exit code, 2 where stdout did not take the report."""
    try:
        sys.stdout.flush()
    except OSError as problem:
        if code != 2 and not isinstance(problem, BrokenPipeError):
            _complain(f"stdout: cannot be written: {problem.strerror}")
        code = 2
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)  # for what is left in their buffers when the interpreter ends
    return code


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):  # a full stderr
        print(f"gate: error: {text}", file=sys.stderr, flush=True)


def run() -> None:
    """The command `gate`, where pip installed the package."""
    _open_streams()
    sys.exit(_flushed(_judged()))


def _judged() -> int:
    try:
        from tilegate_ci.cli import main

        return main(sys.argv[1:])
    except ModuleNotFoundError as problem:
        _complain(
            f"{sys.executable} lacks {problem.name}: run ci/test, which makes "
            "build/venv, or pip install -r ci/requirements.txt"
        )
    except Exception as problem:
        _complain(
            f"{type(problem).__name__}: {problem}; if the packages of {sys.executable} are broken, "
            "remove build/venv and run ci/test, which makes it again"
        )
    return 2


if __name__ == "__main__":
    run()
