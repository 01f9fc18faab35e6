"""ci/release: what needs no compiler, and what it refuses. The Debian package is what
tests/consumer installs; the workflow release makes the wheel and tries it."""

import re
import subprocess
import tarfile

import pytest
from ladder_builder import REPOSITORY


def git(*arguments):
    return subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


def release(*arguments):
    return subprocess.run(
        ["ci/release", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(git("rev-parse", "HEAD").returncode != 0, reason="no git history here")
def test_notes_and_archive(tmp_path):
    done = release("--out", str(tmp_path), "notes", "archive")
    assert done.returncode == 0, done.stderr
    cmake = (REPOSITORY / "CMakeLists.txt").read_text("utf-8")
    version = re.search(r"^project\(tilegate VERSION (\S+)", cmake, re.MULTILINE)[1]
    notes = (tmp_path / "notes.md").read_text("utf-8").splitlines()
    assert notes[0] == f"# Tilegate {version}"
    assert notes[-1] == "- " + git("log", "-1", "--no-merges", "--format=%s").stdout.strip()
    with tarfile.open(tmp_path / f"tilegate-{version}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CMakeLists.txt", "kernels/blas/tilegate.h", "ci/release"} <= names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "tpu"], "--device is 'tpu'; it is cuda or simt"),
        (["--out"], "--out needs a value"),
        (["rpm"], "unknown argument: rpm"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(arguments, message):
    done = release(*arguments)
    assert done.returncode == 2
    assert done.stderr.endswith(f"ci/release: error: {message}\n")
