"""Fixtures of the profiler's tests.

`TILEGATE_UPDATE_GOLDEN=1 pytest tests/profile` rewrites the golden files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "ci"))


@pytest.fixture
def captured():
    """What ncu printed about one rung; see data/README.md."""

    def read(rung: str) -> str:
        return (FOLDER / "data" / f"{rung}.csv").read_text(encoding="utf-8")

    return read


@pytest.fixture
def golden():
    """Compares text with a golden file, or rewrites the file."""

    def check(name: str, text: str) -> None:
        path = FOLDER / "golden" / name
        if os.environ.get("TILEGATE_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check
