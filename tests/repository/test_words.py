"""The words that ci/format looks for in all text."""

import re
import subprocess
import sys

import pytest
from ladder_builder import REPOSITORY

COMMAND = [sys.executable, "-m", "codespell_lib", "--config", "ci/codespell.cfg"]


def findings(path):
    dictionaries = ["-D", "-", "-D", "ci/words.txt"]  # as ci/format has them
    done = subprocess.run(
        [*COMMAND, *dictionaries, path], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == (65 if done.stdout else 0), done.stderr
    return re.findall(r": (\w+) ==> ", done.stdout)


@pytest.mark.parametrize("name", ["page.md", "kernel.cuh", "tool.py"])
def test_misspelt_and_replaced_words_are_seen(tmp_path, name):
    path = tmp_path / name
    path.write_text("Whoever recieves kInf draws it anew.\n")
    assert findings(path) == ["Whoever", "recieves", "anew"]


def test_each_word_of_the_list_is_seen(tmp_path):
    lines = (REPOSITORY / "ci" / "words.txt").read_text().splitlines()
    words = [line.partition("->")[0] for line in lines]
    assert words == sorted(words)
    path = tmp_path / "page.md"
    path.write_text("\n".join(words))
    assert findings(path) == words


def test_the_folders_that_are_left_out_exist():
    (skip,) = re.findall(r"^skip = (.*)$", (REPOSITORY / "ci/codespell.cfg").read_text(), re.M)
    folders = [entry for entry in skip.split(",") if entry.startswith("./")]
    assert folders
    assert all(list(REPOSITORY.glob(folder)) for folder in folders)


def test_ci_format_uses_these_dictionaries():
    script = (REPOSITORY / "ci" / "format").read_text("utf-8")
    assert "codespell_lib --config ci/codespell.cfg -D - -D ci/words.txt" in script
