"""Fixtures of all Python tests.

`TILEGATE_UPDATE_GOLDEN=1 ci/pytest tests/ci` rewrites golden files, and likewise elsewhere."""

import os

import pytest


@pytest.fixture
def golden(request):
    """Compares text with a golden file beside the test, or rewrites the file."""

    def check(name: str, text: str) -> None:
        path = request.path.parent / "golden" / name
        if os.environ.get("TILEGATE_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="module")
def without_vega():
    """Pages without Vega itself, which takes longer to bundle than the rest of a page to draw."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tilegate_ci.report.html._vega", str)
        yield
