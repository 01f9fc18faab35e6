"""ci/gate bisect: which commit made a rung slower, by git's bisection and the gate's own rule."""

import argparse
import contextlib
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.commands import run as gate_run_command
from tilegate_ci.commands.arguments import add_cmake, regex
from tilegate_ci.core.files import GateError
from tilegate_ci.core.git import git, said
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.core.names import matching
from tilegate_ci.core.progress import message
from tilegate_ci.core.stages import newest_stages
from tilegate_ci.measure.suite import parse_suite

FOUND, UNDECIDED = 0, 3

EXIT_CODES = {
    FOUND: "found",
    2: "error: not two commits of which the first is an ancestor, interrupted, ...",
    UNDECIDED: "cannot tell",
}
INTERRUPTED = gate_run_command.INTERRUPTED
EXAMPLES = """examples:
  ci/gate bisect v1.2 HEAD --filter '^Warptile/4096'
  ci/gate bisect origin/main~20 origin/main --filter '^Warptile/' --dry-run

Each step is that of `ci/gate confirm --base GOOD --head COMMIT`, beginning with BAD itself; waivers
do not count. A commit that does not build, or whose times do not decide, is skipped. The checkout
stays as it is. Run again after an interruption, the same command measures nothing twice.
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


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("good", metavar="GOOD", help="a commit before the slow-down")
    command.add_argument("bad", metavar="BAD", help="a later one, after it")
    command.add_argument(
        "--filter",
        metavar="REGEX",
        type=regex,
        required=True,
        help="the benchmarks that became slower",
    )
    add_cmake(command)
    command.add_argument("--dry-run", action="store_true", help="say what would be run")


def run(arguments: argparse.Namespace) -> int:
    span = _span(arguments.good, arguments.bad)
    suite = f"{span.bad}:bench/gate.csv"
    stages = newest_stages(REPOSITORY)
    names = parse_suite(_git("show", suite), suite, stages)
    if stages or names:  # without a build nobody knows which rungs there are
        matching(names, arguments.filter)
    options = [f"--filter={arguments.filter}", *(f"--cmake={a}" for a in arguments.cmake)]
    if arguments.dry_run:
        shown = shlex.join(["ci/gate", "confirm", "--base", span.good, *options, "--head"])
        sys.stdout.write(
            f"{span.commits} commits after {_title(span.good)}\n"
            f"up to {_title(span.bad)}\n"
            f"about {span.steps} of them measured, each by\n{shown} COMMIT\n"
        )
        return 0
    # Judges BAD first: git would take it for bad unseen, and so might blame it for nothing.
    word = judged(span.good, span.bad, options)
    if word != "bad":
        why = "is not slower than the good commit" if word == "good" else "cannot be judged itself"
        sys.stdout.write(f"cannot tell: {_title(span.bad)} {why}\n")
        return UNDECIDED
    if span.commits == 1:
        return _found(span.bad)
    with (
        tempfile.TemporaryDirectory(prefix="tilegate-bisect-") as folder,
        _worktree(Path(folder, "tree"), span.bad) as tree,
    ):
        return _bisected(span, tree, options)


def _bisected(span: Span, tree: Path, options: list[str]) -> int:
    output = _git("bisect", "start", "--no-checkout", span.bad, span.good, folder=tree)
    while True:
        first = re.search(r"^([0-9a-f]{40,64}) is the first bad commit$", output, re.MULTILINE)
        if first:
            return _found(first[1])
        _, undecided, rest = output.partition("The first bad commit could be any of:\n")
        if undecided:
            sys.stdout.write("cannot tell: these commits could not be judged, and it is one of\n")
            for commit in re.findall(r"^([0-9a-f]{40,64})$", rest, re.MULTILINE):
                sys.stdout.write(f"  {_title(commit)}\n")
            return UNDECIDED
        commit = _git("rev-parse", "--verify", "BISECT_HEAD", folder=tree)
        # Of git's exit codes 2 says that only skipped commits are left, as its output does.
        output = git(tree, "bisect", judged(span.good, commit, options), commit).stdout


def judged(good: str, commit: str, options: list[str]) -> str:
    """What git is to be told of the commit: good, bad or skip."""
    message(f"bisect: measuring {_title(commit)}")
    try:
        code = confirm(["--base", good, "--head", commit, *options])
    except GateError as problem:
        message(f"error: {problem}")
        code = 2
    skipped = ("skip", f"cannot be judged (exit code {code})")
    word, verdict = {0: ("good", "not slower"), 1: ("bad", "slower")}.get(code, skipped)
    message(f"bisect: {_title(commit)}: {verdict}")
    return word


def confirm(argv: list[str]) -> int:
    """The exit code of ci/gate confirm without waivers."""
    parser = argparse.ArgumentParser()
    gate_run_command.add_arguments(parser)
    job = gate_run_command.prepare(parser.parse_args(argv), screened=False)
    return gate_run_command.judged(job).exit_code


def _found(commit: str) -> int:
    who = _git("log", "-1", "--format=%H%n  %an, %ad%n  %s", "--date=iso", commit)
    sys.stdout.write(f"first bad commit: {who}\n")
    return FOUND


def _span(good: str, bad: str) -> Span:
    first, last = _commit(good), _commit(bad)
    if first == last:
        raise GateError(f"{good} and {bad} are the same commit")
    if git(REPOSITORY, "merge-base", "--is-ancestor", first, last).returncode:
        raise GateError(f"{good} is not an ancestor of {bad}: nothing lies between them")
    return Span(first, last, int(_git("rev-list", "--count", last, f"^{first}")))


def _commit(given: str) -> str:
    done = git(REPOSITORY, "rev-parse", "--verify", "--quiet", "--end-of-options", given + "^0")
    if done.returncode:
        raise GateError(f"{given!r} is not a commit of {REPOSITORY}{said(done)}")
    return done.stdout.strip()


def _title(commit: str) -> str:
    return _git("log", "-1", "--format=%h %s", commit)


@contextlib.contextmanager
def _worktree(tree: Path, commit: str) -> Iterator[Path]:
    """git keeps a bisection per worktree: the user's checkout, and a bisection there, stay as
    they are."""
    try:
        _git("worktree", "add", "--quiet", "--detach", "--no-checkout", str(tree), commit)
        yield tree
    finally:
        before = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)}
        git(REPOSITORY, "worktree", "remove", "--force", "--force", str(tree))
        for number, handler in before.items():
            signal.signal(number, handler)


def _git(*arguments: str, folder: Path | None = None) -> str:
    done = git(folder or REPOSITORY, *arguments)
    if done.returncode:
        raise GateError(f"git {shlex.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
