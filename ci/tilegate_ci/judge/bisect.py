"""ci/gate bisect: which commit made a rung slower, by `git bisect run` over ci/gate confirm."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.core.files import GateError, dumps, write_text
from tilegate_ci.core.git import GIT, environment, git
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.judge import waivers
from tilegate_ci.measure.suite import matching, parse_suite

CONFIRM = (sys.executable, "-B", str(REPOSITORY / "ci" / "gate"), "confirm")
GOOD, BAD, CANNOT_TELL = 0, 1, 125  # of a step, to git
FOUND, UNDECIDED = 0, 3
END_S = 10.0

_MEANINGS = {
    FOUND: "found",
    2: "error: not two commits of which the first is an ancestor, interrupted, ...",
    UNDECIDED: "cannot tell",
}
EXAMPLES = """examples:
  ci/gate bisect v1.2 HEAD --filter '^Warptile/4096'
  ci/gate bisect origin/main~20 origin/main --filter '^Warptile/' --dry-run

Each step is `ci/gate confirm --base GOOD --head COMMIT`, beginning with BAD itself; waivers do not
count. A commit that does not build, or whose times do not decide, is skipped. Works in a worktree
of its own, which is removed afterwards. Run again after an interruption, the same command measures
nothing twice.

exit codes:
""" + "".join(f"  {code}  {meaning}\n" for code, meaning in _MEANINGS.items())

# $1 is the file for confirm's verdict, the rest is confirm's command. An interpreter that crashes
# ends with 1 too, which means regressed; hence no verdict without the file. The trap keeps the
# step there until confirm, which gets the same signal, has ended.
_STEP = f"""
trap : TERM
verdict=$1
shift
head=$(git rev-parse HEAD) || exit {CANNOT_TELL}
title=$(git log -1 --format='%h %s')
echo "gate: bisect: measuring $title" >&2
rm -f "$verdict"
"$@" --json "$verdict" --head "$head" >&2
code=$?
told="cannot be judged (exit code $code)" step={CANNOT_TELL}
if [ -s "$verdict" ]; then
  case $code in
    0) told="not slower" step={GOOD} ;;
    1) told=slower step={BAD} ;;
  esac
fi
echo "gate: bisect: $title: $told" >&2
exit $step
"""


@dataclass(frozen=True)
class Span:
    good: str
    bad: str
    commits: int  # after good, up to bad

    @property
    def steps(self) -> int:
        """About as many commits are measured."""
        return 1 + (self.commits - 1).bit_length()


def add_command(add: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    command = add("bisect", "find the commit that made a rung slower", EXAMPLES)
    command.set_defaults(command=run)
    command.add_argument("good", metavar="GOOD", help="a commit before the slow-down")
    command.add_argument("bad", metavar="BAD", help="a later one, after it")
    command.add_argument(
        "--filter", metavar="REGEX", required=True, help="the benchmarks that became slower"
    )
    command.add_argument(
        "--cmake", metavar="ARGUMENT", action="append", default=[], help="may be repeated"
    )
    command.add_argument("--dry-run", action="store_true", help="say what would be run")


def run(arguments: argparse.Namespace) -> int:
    try:
        re.compile(arguments.filter)
    except re.error as problem:
        raise GateError(f"--filter: not a regular expression: {problem}") from problem
    span = _span(arguments.good, arguments.bad)
    suite = f"{span.bad}:bench/gate.csv"
    matching(parse_suite(_checked(REPOSITORY, "show", suite), suite), arguments.filter)
    options = ["--base", span.good, f"--filter={arguments.filter}"]
    options += [f"--cmake={argument}" for argument in arguments.cmake]
    if arguments.dry_run:
        shown = shlex.join(["ci/gate", "confirm", *options, "--head"])
        sys.stdout.write(
            f"{span.commits} commits after {_title(span.good)}\n"
            f"up to {_title(span.bad)}\n"
            f"about {span.steps} of them measured, each by\n{shown} COMMIT\n"
        )
        return 0
    try:
        with _interruptible(), tempfile.TemporaryDirectory(prefix="tilegate-bisect-") as folder:
            none = Path(folder, "none.json")  # what waivers excuse counts too
            write_text(none, dumps({"schema": waivers.SCHEMA, "waivers": []}))
            options.append(f"--waivers={none}")
            verdict = str(Path(folder, "verdict.json"))
            step = ["sh", "-c", _STEP, "step", verdict, *CONFIRM, *options]
            with _worktree(Path(folder, "tree"), span.bad) as tree:
                return _bisect(span, tree, step)
    except KeyboardInterrupt:
        _tell("interrupted; every process that ended is kept, run again to go on")
        return 2


def _bisect(span: Span, tree: Path, step: Sequence[str]) -> int:
    """Judges BAD first: git would take it for bad unseen, and so might blame it for nothing."""
    code, _ = _ended(step, tree)
    if code == GOOD:
        sys.stdout.write(f"cannot tell: {_title(span.bad)} is not slower than the good commit\n")
        return UNDECIDED
    if code != BAD:
        sys.stdout.write(f"cannot tell: {_title(span.bad)} cannot be judged itself\n")
        return UNDECIDED
    if span.commits == 1:
        return _found(span.bad)
    _checked(tree, "bisect", "start", span.bad, span.good)
    code, told = _ended([*GIT, "bisect", "run", *step], tree)
    first = re.search(r"^([0-9a-f]{40,64}) is the first bad commit$", told, re.MULTILINE)
    if code == 0 and first:
        return _found(first[1])
    _, skipped, rest = told.partition("The first bad commit could be any of:\n")
    if not skipped:
        raise GateError(f"git bisect run ended with exit code {code}:\n{told.strip()}")
    sys.stdout.write("cannot tell: these commits could not be judged, and it is one of\n")
    for commit in re.findall(r"^([0-9a-f]{40,64})$", rest, re.MULTILINE):
        sys.stdout.write(f"  {_title(commit)}\n")
    return UNDECIDED


def _found(commit: str) -> int:
    told = _checked(REPOSITORY, "log", "-1", "--format=%H%n  %an, %ad%n  %s", "--date=iso", commit)
    sys.stdout.write(f"first bad commit: {told}\n")
    return FOUND


def _span(good: str, bad: str) -> Span:
    first, last = _commit(good), _commit(bad)
    if first == last:
        raise GateError(f"{good} and {bad} are the same commit")
    if git(REPOSITORY, "merge-base", "--is-ancestor", first, last).returncode:
        raise GateError(f"{good} is not an ancestor of {bad}: nothing lies between them")
    return Span(first, last, int(_checked(REPOSITORY, "rev-list", "--count", last, f"^{first}")))


def _commit(given: str) -> str:
    done = git(REPOSITORY, "rev-parse", "--verify", "--quiet", "--end-of-options", given + "^0")
    if done.returncode:
        raise GateError(f"{given!r} is not a commit of {REPOSITORY}")
    return done.stdout.strip()


def _title(commit: str) -> str:
    return _checked(REPOSITORY, "log", "-1", "--format=%h %s", commit)


@contextlib.contextmanager
def _worktree(tree: Path, commit: str) -> Iterator[Path]:
    """git keeps a bisection per worktree: the user's checkout, and a bisection there, stay as
    they are."""
    try:
        _checked(REPOSITORY, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        yield tree
    finally:
        with _undisturbed():
            git(REPOSITORY, "worktree", "remove", "--force", "--force", str(tree))


def _ended(command: Sequence[str], tree: Path) -> tuple[int, str]:
    """Exit code and output. An interruption ends the whole process group, and waits for it: all
    of it holds the pipe."""
    with subprocess.Popen(
        command,
        cwd=tree,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as running:
        try:
            told, _ = running.communicate()
        except BaseException:
            with _undisturbed():
                _end(running)
            raise
    return running.returncode, told


def _end(running: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGTERM)
    try:
        running.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def _handled(handler: object) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _SIGNALS}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _interruptible() -> contextlib.AbstractContextManager[None]:
    """A termination ends like Ctrl-C, and so leaves no worktree behind."""
    return _handled(_interrupt)


def _undisturbed() -> contextlib.AbstractContextManager[None]:
    return _handled(signal.SIG_IGN)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _checked(folder: Path, *arguments: str) -> str:
    done = git(folder, *arguments)
    if done.returncode:
        raise GateError(f"git {shlex.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def _tell(text: str) -> None:
    print(f"gate: bisect: {text}", file=sys.stderr, flush=True)
