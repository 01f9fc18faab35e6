"""What commands write: never over what they read, one at a time, checked before they measure."""

import fnmatch
import gzip
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from recording_builder import Maker

from gate_builders import REPOSITORY, make_run, write
from tilegate_ci.cli import main
from tilegate_ci.core import files, git, names
from tilegate_ci.core.files import GateError, locked, read_text, write_text
from tilegate_ci.lab.proof import recording

DATA = REPOSITORY / "tests" / "ci" / "formats" / "data"
LONG = "x" * 300


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("base.json", "run.json"):
        write(tmp_path / name, make_run())
    os.link("base.json", "linked.json")
    Path("loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("compare base.json run.json --json ./base.json", "it is read as base.json too"),
        ("compare base.json run.json --markdown linked.json", "it is read as base.json too"),
        ("compare base.json run.json --json new --markdown new", "--markdown writes it too"),
        ("report run.json --html X --junit X", "--html writes it too"),
        ("report run.json --junit run.json", "it is read as run.json too"),
        ("accept run.json --baseline run.json", "it is read as run.json too"),
        ("collect {data}/cuda_process_1.json --commit x --out {copy}", "a benchmark wrote it"),
        ("compare base.json run.json --json loop", "Too many levels of symbolic links"),
        (f"compare base.json run.json --json {LONG}", "File name too long"),
        ("profile --render .", "Is a directory"),
        (f"compare base.json {LONG}", "File name too long"),
        (f"run --base {LONG}", "File name too long"),
        (f"accept run.json --baseline {LONG}", "File name too long"),
        ("record --sitting s --processes 1 --out none/s.json.gz", "No such file or directory"),
        ("replay s.json.gz --markdown none/t.md", "No such file or directory"),
        ("run --base=--", "argument --base: expected a value"),
        ("run --base HEAD --pairs 1" + 400 * "0", "a whole number from 4 to 1000"),
        ("record --sitting s --out s.gz --processes 1" + 400 * "0", "a whole number from 1"),
        ("bench --commit main", "--commit, or $TILEGATE_COMMIT: must be 40 hex digits"),
        ("bench --base no-such-branch --commit " + 40 * "0", "no merge base of no-such-branch"),
    ],
)
def test_an_error_of_one_sentence_and_nothing_lost(here, capsys, monkeypatch, command, message):
    def never(*_):
        raise AssertionError("something was built before the arguments were looked at")

    monkeypatch.setattr("tilegate_ci.commands.bench.build_preset", never)
    copy = here / "copy.json"
    copy.write_text((DATA / "cuda_process_2.json").read_text())
    before = {path: path.read_bytes() for path in here.glob("*.json")}
    assert main(command.format(data=DATA, copy=copy).split()) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert {path: path.read_bytes() for path in here.glob("*.json")} == before


def test_reports_that_cannot_be_written_are_found_before_anything_is_measured(world, gate_run):
    for option in ("--markdown", "--json"):
        assert gate_run("confirm", option, "none/report").code == 2
    assert not Path("work").exists()


def test_a_writer_that_is_killed_leaves_nothing_that_git_sees(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(files.os, "replace", lambda old, new: seen.append(Path(old)))
    write_text(tmp_path / "README.md", "new")
    ignored = (REPOSITORY / ".gitignore").read_text().split()
    assert [any(fnmatch.fnmatch(path.name, line) for line in ignored) for path in seen] == [True]


def test_a_name_as_long_as_names_may_be_is_written(tmp_path):
    path = tmp_path / ("y" * 255)
    write_text(path, "x")
    assert path.read_text() == "x"


def test_the_second_waits_for_the_first(tmp_path, capsys):
    order = []

    def second():
        with locked(tmp_path):
            order.append("second")

    with locked(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert "another command is running there" in capsys.readouterr().err


def test_an_endless_input_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    monkeypatch.setattr(recording, "MOST_BYTES", 1000)
    with pytest.raises(GateError, match="/dev/zero: longer than"):
        read_text("/dev/zero")
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(bytes(100000)))
    with pytest.raises(GateError, match=r"bomb\.json\.gz: longer than"):
        recording.load(str(path))


@pytest.mark.parametrize("value", [1e308, -1e308, 61])
def test_a_recording_of_impossible_times_is_refused(tmp_path, value):
    path = Path(Maker("s").suite(2).save(tmp_path))
    text = gzip.decompress(path.read_bytes()).decode()
    changed = re.sub(r'"log": \[[^,]+', f'"log": [{value}', text, count=1)
    path.write_bytes(gzip.compress(changed.encode()))
    with pytest.raises(GateError, match=r"log\[0\]: must be (less|greater) than or equal to -?60"):
        recording.load(str(path))


def test_a_pattern_that_searches_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(names, "MOST_SEARCH_S", 0.02)
    with pytest.raises(GateError, match=r"'\(a\|aa\)\+\$' takes longer than 0\.02 s"):
        names.search(re.compile("(a|aa)+$"), ["a" * 60 + "b"])
    assert names.matching(["ab", "b"], "a") == ["ab"]


def test_cmake_s_own_options_need_no_equals_sign(world, gate_run):
    done = gate_run("run", "--cmake", "-DX=1", "--cmake=-DY=2", "--dry-run")
    assert done.code == 0, done.err


def test_a_folder_without_git_is_no_commit_of_the_repository_around_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    git.git(tmp_path, "init", "-q")
    assert git.git(tmp_path, *who, "commit", "-q", "--allow-empty", "-m", "a").returncode == 0
    inner = tmp_path / "unpacked"
    inner.mkdir()
    assert len(git.checkout_commit(tmp_path)) == 40
    with pytest.raises(GateError, match="not a git repository"):
        git.checkout_commit(inner)


def test_git_s_own_reason_is_told(tmp_path, world, gate_run, monkeypatch):
    (world.folder / ".git").write_text("gitdir: nowhere\n")
    monkeypatch.setattr("tilegate_ci.measure.projects.REPOSITORY", world.folder)
    done = gate_run("confirm", "--base", "main")
    assert done.code == 2
    assert "of " + str(world.folder) + "; git says: fatal: not a git repository" in done.err


def test_each_process_is_read_once(tmp_path):
    """So that it may be a pipe, as of collect <(...)."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = (DATA / "cuda_process_1.json").read_text()
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    done = main(["collect", str(pipe), "--commit", 40 * "0", "--out", str(tmp_path / "run.json")])
    writer.join()
    assert done == 0


def test_what_measures_nothing_needs_no_statistics():
    script = "import sys, tilegate_ci.commands.run as run; print('numpy' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "ci")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
