"""Exit code 1 means regressed, and nothing else does: not a stream, a name or a package."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from gate_builders import REPOSITORY, WARPTILE, make_run, scaled, write
from tilegate_ci.cli import main
from tilegate_ci.core.files import message

SLOW = scaled(make_run(), WARPTILE, 0.95)


def in_a_shell(tmp_path, redirections: str, candidate, path: str = "") -> int:
    """The exit code of a comparison whose streams the shell has redirected."""
    base, run = write(tmp_path / "base.json", make_run()), tmp_path / "run.json"
    if candidate is not None:
        write(run, candidate)
    words = [sys.executable, "-m", "tilegate_ci", "compare", str(base), str(run)]
    command = f"{shlex.join(words)} {redirections}"
    environment = {**os.environ, "PYTHONPATH": f"{path}:{REPOSITORY / 'ci'}"}
    return subprocess.run(["sh", "-c", command], env=environment, check=False).returncode


@pytest.mark.parametrize(
    ("redirections", "candidate", "code"),
    [
        ("2>/dev/full", None, 2),  # there is no such file, and no stream left to say so
        (">&- 2>&-", SLOW, 1),
        (">/dev/full 2>&1", SLOW, 2),
    ],
)
def test_streams_that_are_full_or_closed(tmp_path, redirections, candidate, code):
    assert in_a_shell(tmp_path, redirections, candidate) == code


def test_packages_that_are_broken(tmp_path):
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("raise OSError('a truncated wheel')")
    assert in_a_shell(tmp_path, f"2>'{tmp_path}/said'", SLOW, str(tmp_path)) == 2
    assert "a truncated wheel; if the packages of" in (tmp_path / "said").read_text()


def test_a_link_to_a_wrapper(tmp_path):
    link = tmp_path / "gate"
    link.symlink_to(REPOSITORY / "ci" / "gate")
    done = subprocess.run([link, "compare", "a", "b"], capture_output=True, text=True, check=False)
    assert (done.returncode, "a: cannot be read" in done.stderr) == (2, True), done


@pytest.mark.parametrize("wrapper", ["gate", "bench"])
def test_a_wrapper_that_fails(tmp_path, wrapper):
    shutil.copy(REPOSITORY / "ci" / wrapper, tmp_path)  # without the setup.sh beside it
    assert subprocess.run([tmp_path / wrapper], capture_output=True, check=False).returncode == 2


def test_a_report_in_ascii_only(tmp_path, monkeypatch):
    run = make_run()
    run["device"]["name"] = "NVIDIA ÅÜ"
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    assert in_a_shell(tmp_path, f">'{tmp_path}/said'", run) == 4
    assert r"NVIDIA \xc5\xdc" in (tmp_path / "said").read_text()


def test_a_name_that_is_not_utf_8_in_every_report(tmp_path, capsys):
    base, reports = write(tmp_path / "base.json", make_run()), (tmp_path / "m", tmp_path / "j")
    options = ["--markdown", str(reports[0]), "--json", str(reports[1])]
    assert main(["compare", str(base), "\udcff.json", *options]) == 2
    assert "\\udcff.json: cannot be read" in capsys.readouterr().err
    assert "udcff.json: cannot be read" in reports[0].read_text()
    assert json.loads(reports[1].read_text())["error"].startswith("\\udcff.json: cannot be read")


def test_half_a_character_in_a_key(tmp_path):
    document = make_run()
    document["benchmarks"]["\ud800"] = 1
    run = str(write(tmp_path / "run.json", document))
    assert main(["compare", run, run, "--markdown", str(tmp_path / "m")]) == 2


@pytest.mark.parametrize("fault", ["a value", "a key", "a key twice"])
def test_a_key_of_a_file_is_no_command_to_a_workflow(tmp_path, capsys, fault):
    document, waivers = make_run(), {"schema": 1, "waivers": []}
    key = "\n::error::owned\x1b[31m"
    if fault == "a value":
        document["benchmarks"][WARPTILE][key] = float("nan")
    elif fault == "a key":
        waivers[key] = 1
    run = str(write(tmp_path / "run.json", document))
    text = json.dumps(waivers)
    if fault == "a key twice":
        text = text.replace('"schema": 1', f"{json.dumps(key)}: 1, {json.dumps(key)}: 1")
    assert main(["compare", run, run, "--waivers", str(write(tmp_path / "w", text))]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "\x1b" not in said


def test_each_line_of_a_message_has_our_name_before_it(capsys):
    message("one\n::error::two\r##[error]three\x9b\ttab")
    assert capsys.readouterr().err == (
        "gate: one\ngate: ::error::two\ngate: # #[error]three\\x9b tab\n"
    )
