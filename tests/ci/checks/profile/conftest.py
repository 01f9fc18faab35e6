"""Fixtures of the profiler's tests."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent


@pytest.fixture
def captured():
    """What ncu printed about one rung; see data/README.md."""

    def read(rung: str) -> str:
        return (FOLDER / "data" / f"{rung}.csv").read_text(encoding="utf-8")

    return read
