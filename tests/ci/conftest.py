"""Fixtures of the tests of the commands."""

from pathlib import Path

import ladder_builder
import pytest


@pytest.fixture
def ladder(tmp_path: Path) -> ladder_builder.Ladder:
    return ladder_builder.build(tmp_path)
