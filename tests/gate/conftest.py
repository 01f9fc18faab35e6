"""Fixtures of the gate's tests.

`TILEGATE_UPDATE_GOLDEN=1 pytest tests/gate` rewrites the golden files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "ci"))


@pytest.fixture
def golden():
    """Compares text with a golden file, or rewrites the file."""

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if os.environ.get("TILEGATE_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def gate(tmp_path):
    """Runs ci/gate as a user does, in a folder of its own."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(REPOSITORY / "ci" / "gate"), *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run
