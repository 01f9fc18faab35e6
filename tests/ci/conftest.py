"""Fixtures of the tests of the commands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "ci"))

import ladder_builder  # noqa: E402


@pytest.fixture
def ladder(tmp_path: Path) -> ladder_builder.Ladder:
    return ladder_builder.build(tmp_path)
