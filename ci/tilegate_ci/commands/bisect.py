"""ci/gate bisect: which commit made a rung slower, by git's bisection and the gate's own rule."""

import argparse
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.commands.run import INTERRUPTED, project_of
from tilegate_ci.core.files import GateError, message
from tilegate_ci.core.git import git, git_output, resolve_commit
from tilegate_ci.core.names import matching
from tilegate_ci.formats.stages import newest_stages
from tilegate_ci.measure import gate_run
from tilegate_ci.measure.gate_run import Options
from tilegate_ci.measure.launcher import parse_suite
from tilegate_ci.measure.projects import Project, Tilegate

__all__ = ["INTERRUPTED", "run"]

FOUND, UNDECIDED = 0, 3


@dataclass(frozen=True)
class Span:
    repository: Path
    good: str
    bad: str
    commits: int  # after good, up to bad

    @property
    def steps(self) -> int:
        """About as many commits are measured."""
        return 1 + (self.commits - 1).bit_length()


def run(arguments: argparse.Namespace) -> int:
    project = project_of(arguments)
    return search(project, arguments.good, arguments.bad, arguments.filter, arguments.dry_run)


def search(project: Project, good: str, bad: str, pattern: str, dry_run: bool = False) -> int:
    """Finds the commit that made the benchmarks slower, and prints it; the exit code."""
    span = _span(project.repository, good, bad)
    if isinstance(project, Tilegate):
        _check_filter(span, pattern)
    if dry_run:
        options = [f"--filter={pattern}", *project.options()]
        shown = shlex.join([*project.command, "--base", span.good, *options, "--head"])
        sys.stdout.write(
            f"{span.commits} commits after {_title(span, span.good)}\n"
            f"up to {_title(span, span.bad)}\n"
            f"about {span.steps} of them measured, each by\n{shown} COMMIT\n"
        )
        return 0
    # BAD is judged first: git takes it for bad without measuring it.
    word = judged(project, span, span.bad, pattern)
    if word != "bad":
        why = "is not slower than the good commit" if word == "good" else "cannot be judged itself"
        sys.stdout.write(f"cannot tell: {_title(span, span.bad)} {why}\n")
        return UNDECIDED
    if span.commits == 1:
        return _found(span, span.bad)
    # In a clone that borrows its commits: the user's repository, and a bisection there, stay as
    # they are.
    with tempfile.TemporaryDirectory(prefix="tilegate-bisect-") as folder:
        git_output(span.repository, "clone", "--quiet", "--bare", "--shared", ".", folder)
        return _bisected(project, span, Path(folder), pattern)


def _check_filter(span: Span, pattern: str) -> None:
    """GateError where no benchmark of the gated suite matches."""
    suite = f"{span.bad}:bench/gate.csv"
    stages = newest_stages(span.repository)
    names = parse_suite(git_output(span.repository, "show", suite), suite, stages)
    if stages or names:  # without a build the rungs are unknown
        matching(names, pattern)


def _bisected(project: Project, span: Span, clone: Path, pattern: str) -> int:
    output = git_output(clone, "bisect", "start", span.bad, span.good)
    while True:
        first = re.search(r"^([0-9a-f]{40,64}) is the first bad commit$", output, re.MULTILINE)
        if first:
            return _found(span, first[1])
        _, undecided, rest = output.partition("The first bad commit could be any of:\n")
        if undecided:
            sys.stdout.write("cannot tell: these commits could not be judged, and it is one of\n")
            for commit in re.findall(r"^([0-9a-f]{40,64})$", rest, re.MULTILINE):
                sys.stdout.write(f"  {_title(span, commit)}\n")
            return UNDECIDED
        commit = git_output(clone, "rev-parse", "--verify", "BISECT_HEAD")
        # git's exit code 2: only skipped commits are left, as its output says too.
        output = git(clone, "bisect", judged(project, span, commit, pattern), commit).stdout


def judged(project: Project, span: Span, commit: str, pattern: str) -> str:
    """What git is to be told of the commit: good, bad or skip."""
    message(f"bisect: measuring {_title(span, commit)}")
    try:
        code = measured(project, span.good, commit, pattern)
    except GateError as problem:
        message(f"error: {problem}")
        code = 2
    skipped = ("skip", f"cannot be judged (exit code {code})")
    word, verdict = {0: ("good", "not slower"), 1: ("bad", "slower")}.get(code, skipped)
    message(f"bisect: {_title(span, commit)}: {verdict}")
    return word


def measured(project: Project, base: str, head: str, pattern: str) -> int:
    """The exit code of a gate run without a screen, and without waivers."""
    options = Options(pattern, screened=False)
    return gate_run.judged(gate_run.prepare(project, base, head, None, options)).exit_code


def _found(span: Span, commit: str) -> int:
    form = "--format=%H%n  %an, %ad%n  %s"
    who = git_output(span.repository, "log", "-1", form, "--date=iso", commit)
    sys.stdout.write(f"first bad commit: {who}\n")
    return FOUND


def _span(repository: Path, good: str, bad: str) -> Span:
    first, last = resolve_commit(good, repository), resolve_commit(bad, repository)
    if first == last:
        raise GateError(f"{good} and {bad} are the same commit")
    if git(repository, "merge-base", "--is-ancestor", first, last).returncode:
        raise GateError(f"{good} is not an ancestor of {bad}: nothing lies between them")
    count = int(git_output(repository, "rev-list", "--count", last, f"^{first}"))
    return Span(repository, first, last, count)


def _title(span: Span, commit: str) -> str:
    return git_output(span.repository, "log", "-1", "--format=%h %s", commit)
