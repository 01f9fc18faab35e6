"""ci/gate bisect on small git histories, with a stand-in for measuring and judging a commit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilegate_ci.cli import main
from tilegate_ci.commands import bisect
from tilegate_ci.core.files import GateError
from tilegate_ci.measure import gate_run
from tilegate_ci.measure.projects import Project

SUITE = """set,m,n,k,lda,ldb,ldc,pointer_offset_bytes
Warptile,4096,4096,4096,4096,4096,4096,0
"""
FILTER = "^Warptile/4096"
MEASURED = bisect.measured


class Judged:
    exit_code = 1


class History:
    """A repository with a commit for each speed; names are their positions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "repository"
        self.calls: list[tuple[str, str, str]] = []

    def create(self) -> None:
        self.path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    def git(self, *arguments: str, given: str | None = None) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commits(self, *speeds: object) -> None:
        """On an empty branch, all by one call of git; tagged c0, c1 and so on."""
        stream = []
        for position, speed in enumerate(speeds):
            files = {"bench/gate.csv": SUITE, "speed": f"{speed}\n"}
            files |= {"position": f"{position}\n", "kernels/rung.cu": f"// {position}\n"}
            message = f"change {position}"
            stream += ["commit refs/heads/main", f"committer Ada <a@b> {position} +0000"]
            stream += [f"data {len(message)}\n{message}"]
            for name, text in files.items():
                stream += [f"M 644 inline {name}", f"data {len(text)}\n{text}"]
            stream += [f"reset refs/tags/c{position}", "from refs/heads/main", ""]
        self.git("fast-import", "--quiet", given="\n".join(stream))
        self.git("reset", "-q", "--hard")

    def measured(self, project: Project, base: str, head: str, pattern: str) -> int:
        """What a commit's file `speed` says: an exit code, `crash` for a build that fails, or
        `wait` for a measurement that goes on until it is ended."""
        self.calls.append((base, head, pattern))
        speed = self.git("show", f"{head}:speed")
        if speed == "wait":
            (self.folder / "waiting").write_text("")
            time.sleep(60)
        if speed == "crash":
            raise GateError("does not build")
        return int(speed)

    def state(self) -> tuple[str, ...]:
        """What a bisection must leave as it was."""
        asked = (["status", "--porcelain", "--branch"], ["worktree", "list"], ["show-ref"])
        return tuple(self.git(*arguments) for arguments in asked)


@pytest.fixture
def history(tmp_path, monkeypatch):
    made = History(tmp_path)
    made.create()
    monkeypatch.setattr("tilegate_ci.measure.projects.REPOSITORY", made.path)
    monkeypatch.setattr(bisect, "measured", made.measured)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return made


@pytest.fixture
def find(history, capfd):
    def run(good: str, bad: str, *more: str) -> tuple[int, str, str]:
        before = history.state()
        code = main(["bisect", good, bad, "--filter", FILTER, *more])
        said = capfd.readouterr()
        assert history.state() == before
        assert not list((history.folder / "tmp").iterdir())
        return code, said.out, said.err

    return run


@pytest.mark.parametrize("planted", [1, 2, 5, 7])
def test_finds_the_planted_commit(history, find, planted):
    history.commits(*[0] * planted, *[1] * (8 - planted))
    code, out, err = find("c0", "c7")
    assert code == 0, err
    assert out.splitlines()[0] == f"first bad commit: {history.git('rev-parse', f'c{planted}')}"
    assert f"change {planted}" in out
    assert "change 7: slower" in err


def test_each_step_compares_with_the_good_commit(history, find):
    history.commits(0, 0, 0, 1, 1)
    find("c0", "main")
    good, bad = history.git("rev-parse", "c0"), history.git("rev-parse", "main")
    assert history.calls[0] == (good, bad, FILTER)
    assert {call[0] for call in history.calls} == {good}


def test_two_neighbours(history, find):
    history.commits(0, 1)
    code, out, _ = find("c0", "c1")
    assert code == 0
    assert "change 1" in out


@pytest.mark.parametrize("speed", [2, 3, 4, "crash"])
def test_a_commit_that_cannot_be_judged_is_skipped(history, find, speed):
    history.commits(0, 0, 0, speed, 0, 1, 1, 1)
    code, out, err = find("c0", "c7")
    assert code == 0, err
    assert "change 5" in out


def test_it_may_be_the_one_that_cannot_be_judged(history, find):
    history.commits(0, 0, 2, 1)
    code, out, err = find("c0", "c3")
    assert code == 3, err
    assert out.startswith("cannot tell: these commits could not be judged")
    assert "change 2" in out
    assert "change 3" in out
    assert "change 1" not in out
    assert "change 2: cannot be judged (exit code 2)" in err


@pytest.mark.parametrize(
    ("speed", "message"),
    [(0, "is not slower"), (2, "cannot be judged itself"), ("crash", "cannot be judged itself")],
)
def test_a_bad_commit_that_is_not_bad_blames_no_commit(history, find, speed, message):
    history.commits(0, 0, 0, speed)
    code, out, _ = find("c0", "c3")
    assert code == 3
    assert message in out
    assert len(history.calls) == 1


def test_a_step_is_a_gate_run_without_a_screen(history, find, monkeypatch):
    jobs = []
    monkeypatch.setattr(bisect, "measured", MEASURED)
    monkeypatch.setattr("tilegate_ci.commands.run.WORK", history.folder / "work")
    monkeypatch.setattr("tilegate_ci.measure.gate_run.build", lambda *_: None)
    monkeypatch.setattr("tilegate_ci.measure.conditions.gpu_answers", lambda: True)
    monkeypatch.setattr(gate_run.GateRun, "__init__", lambda _, job, steps: jobs.append(job))
    monkeypatch.setattr(gate_run.GateRun, "judged", lambda _: Judged())
    history.commits(0, 1)
    assert find("c0", "c1", "--cmake=-DA=1")[0] == 0
    (job,) = jobs
    assert [side.commit for side in (job.base, job.head)] == [
        history.git("rev-parse", commit) for commit in ("c0", "c1")
    ]
    assert job.options == gate_run.Options(filter=FILTER, screened=False)
    assert "-DA=1" in job.project.build


def test_a_bisection_of_the_user_s_own_goes_on(history, find):
    history.commits(0, 0, 0, 1, 1)
    history.git("bisect", "start", "c4", "c0")
    code, _, _ = find("c0", "c4")
    assert code == 0
    assert "c2" in history.git("tag", "--points-at", "HEAD")
    history.git("bisect", "good")


def test_a_hook_of_the_repository_does_not_run(history, find):
    history.commits(0, 0, 1)
    hook = history.path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert find("c0", "c2")[0] == 0


def test_a_dry_run_measures_nothing(history, find):
    history.commits(*[0] * 9)
    code, out, _ = find("c0", "c8", "--dry-run", "--cmake=-DA=1")
    assert code == 0
    assert out.startswith("8 commits after ")
    assert "about 4 of them" in out
    good = history.git("rev-parse", "c0")
    assert f"ci/gate run --no-screen --base {good} '--filter={FILTER}' --cmake=-DA=1 --head" in out
    assert history.calls == []


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("c1", "c0", "c1 is not an ancestor of c0"),
        ("side", "c1", "side is not an ancestor of c1"),
        ("c1", "main", "the same commit"),
        ("nowhere", "c1", "'nowhere' is not a commit"),
        ("c0", "--all", "'--all' is not a commit"),
        ("c0", "c0:speed", "'c0:speed' is not a commit"),
    ],
)
def test_what_cannot_be_bisected(history, capfd, good, bad, message):
    history.commits(0, 1)
    history.git("branch", "side", history.git("commit-tree", "c0^{tree}", "-m", "no parent"))
    assert main(["bisect", "--filter", FILTER, "--", good, bad]) == 2
    assert message in capfd.readouterr().err
    assert history.calls == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["c0", "c1"], "required: --filter"),
        (["c0", "--filter", "x"], "required: BAD"),
        (["c0", "c1", "--filter", "("], "not a regular expression"),
        (["c0", "c1", "--filter", "x", "--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_wrong_usage(history, capfd, arguments, message):
    assert main(["bisect", *arguments]) == 2
    assert message in capfd.readouterr().err


def test_a_filter_that_matches_nothing_measures_nothing(history, capfd):
    history.commits(0, 1)
    assert main(["bisect", "c0", "c1", "--filter", "^Warptiel/"]) == 2
    assert "--filter '^Warptiel/': matches none of the 1 benchmarks" in capfd.readouterr().err
    assert history.calls == []


def test_help(capfd):
    assert main(["bisect", "--help"]) == 0
    out = capfd.readouterr().out
    assert "examples:\n  ci/gate bisect " in out
    assert "cannot tell" in out


@pytest.mark.parametrize(
    ("speeds", "number"),
    [
        ((0, 0, "wait"), signal.SIGINT),
        ((0, "wait", 1), signal.SIGINT),
        ((0, "wait", 1), signal.SIGTERM),
        ((0, "wait", 1), signal.SIGHUP),
    ],
)
def test_an_interruption_leaves_nothing_behind(history, speeds, number):
    history.commits(*speeds)
    before = history.state()
    waiting, said = history.folder / "waiting", history.folder / "said"
    child = os.fork()
    if not child:  # a new interpreter would first have to import everything
        code = 1
        try:
            with said.open("w") as sys.stderr:
                code = main(["bisect", "c0", "c2", "--filter", FILTER])
        finally:
            os._exit(code)
    while not waiting.exists():
        assert os.waitpid(child, os.WNOHANG) == (0, 0), said.read_text()
        time.sleep(0.01)
    os.kill(child, number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert "interrupted; completed processes are kept" in said.read_text()
    assert history.state() == before
    assert not list((history.folder / "tmp").iterdir())
