"""ci/gate bisect on small git histories, with a stand-in for measuring and judging a commit."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gate_builders import REPOSITORY
from tilegate_ci.cli import main
from tilegate_ci.commands import bisect
from tilegate_ci.core.files import GateError

SUITE = """set,m,n,k,lda,ldb,ldc,pointer_offset_bytes
Warptile,4096,4096,4096,4096,4096,4096,0
"""
FILTER = "^Warptile/4096"
CONFIRM = bisect.confirm


class History:
    """A repository with a commit for each speed; names are their positions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "repository"
        self.calls: list[list[str]] = []

    def create(self) -> None:
        self.path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        (self.path / "bench").mkdir()
        (self.path / "bench" / "gate.csv").write_text(SUITE)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commits(self, *speeds: object) -> None:
        for position, speed in enumerate(speeds):
            (self.path / "speed").write_text(f"{speed}\n")
            (self.path / "position").write_text(f"{position}\n")
            self.git("add", ".")
            self.git("commit", "-q", "-m", f"change {position}")
            self.git("tag", f"c{position}")

    def confirm(self, argv: list[str]) -> int:
        """What a commit's file `speed` says: an exit code, `crash` for a build that fails, or
        `wait` for a measurement that goes on until somebody ends it."""
        self.calls.append(argv)
        speed = self.git("show", f"{argv[3]}:speed")
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
    monkeypatch.setattr(bisect, "REPOSITORY", made.path)
    monkeypatch.setattr(bisect, "confirm", made.confirm)
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
    assert history.calls[0] == ["--base", good, "--head", bad, f"--filter={FILTER}"]
    assert {call[1] for call in history.calls} == {good}


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
def test_a_bad_commit_that_is_not_bad_blames_nobody(history, find, speed, message):
    history.commits(0, 0, 0, speed)
    code, out, _ = find("c0", "c3")
    assert code == 3
    assert message in out
    assert len(history.calls) == 1


def test_the_real_confirm_takes_these_arguments(history, find, monkeypatch):
    monkeypatch.setattr(bisect, "confirm", CONFIRM)
    history.commits(0, 1)  # of which its own repository knows nothing
    code, _, err = find("c0", "c1", "--cmake=-DA=1")
    assert code == 3
    good = history.git("rev-parse", "c0")
    assert f"{good!r} is neither a folder nor a commit of {REPOSITORY}" in err


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
    assert f"ci/gate confirm --base {good} '--filter={FILTER}' --cmake=-DA=1 --head" in out
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
def test_an_interruption_removes_the_worktree(history, speeds, number):
    history.commits(*speeds)
    before = history.state()
    script = f"""
import sys, tempfile
from pathlib import Path
sys.path[:0] = [{str(REPOSITORY / "ci")!r}, {str(Path(__file__).parent)!r}]
from test_bisect import History
from tilegate_ci.cli import main
from tilegate_ci.commands import bisect
bisect.REPOSITORY = Path({str(history.path)!r})
bisect.confirm = History(Path({str(history.folder)!r})).confirm
tempfile.tempdir = {str(history.folder / "tmp")!r}
sys.exit(main(["bisect", "c0", "c2", "--filter", {FILTER!r}]))
"""
    waiting = history.folder / "waiting"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        while not waiting.exists():
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.01)
        running.send_signal(number)
        said = running.stderr.read()
        assert running.wait(timeout=30) == 2, said
    assert "interrupted; every process that ended is kept" in said
    assert history.state() == before
    assert not list((history.folder / "tmp").iterdir())
