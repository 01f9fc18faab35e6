"""Fixtures of all Python tests.

`TILEGATE_UPDATE_GOLDEN=1 ci/pytest tests/gate` rewrites golden files, and likewise elsewhere."""

import os
from pathlib import Path

import pytest

from tilegate_ci.core.files import make_folder, write_text
from tilegate_ci.core.stages import FILE

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"

# The list of rungs that a build writes, until CMake writes it.
if not list(BUILD.glob(f"*/{FILE}")):
    make_folder(BUILD / "cpu")
    write_text(BUILD / "cpu" / FILE, (HERE / FILE).read_text(encoding="utf-8"))


@pytest.fixture
def golden(request):
    """Compares text with a golden file beside the test, or rewrites the file."""

    def check(name: str, text: str) -> None:
        path = request.path.parent / "golden" / name
        if os.environ.get("TILEGATE_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check
