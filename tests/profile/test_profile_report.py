"""The JSON document and the Markdown made from it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tilegate_ci.core.files import dumps
from tilegate_ci.profile.metrics import ProfileError, kernel_record, parse_csv
from tilegate_ci.profile.report import document, markdown

RECORDED = Path(__file__).resolve().parents[2] / "bench" / "profile"
DEVICE = {
    "device_kind": "cuda",
    "device_name": "NVIDIA H200",
    "driver": "580.159.04",
    "cuda": "13.0",
    "cublas": "13.1.0",
    "compute_capability": "90",
    "multiprocessors": "132",
}


@pytest.fixture
def profile(captured):
    rungs = [
        {"name": name, "kernels": [kernel_record(row) for row in parse_csv(captured(name))]}
        for name in ("SplitK", "Cublas")
    ]
    return document("79" * 20, DEVICE, "2025.3.1.0", "1024x1024x1024", rungs)


def without_numbers(profile):
    """As on a GPU that has none of the metrics."""

    def clear(value):
        if isinstance(value, dict):
            return {key: clear(child) for key, child in value.items()}
        return value if isinstance(value, (str, list)) else None

    for rung in profile["rungs"]:
        rung["kernels"] = [{**clear(kernel), "stalls": []} for kernel in rung["kernels"]]
    return profile


def test_json(golden, profile):
    golden("profile.json", dumps(profile) + "\n")


def test_markdown(golden, profile):
    golden("profile.md", markdown(profile))


def test_markdown_comes_from_the_json_alone(profile):
    assert markdown(json.loads(dumps(profile))) == markdown(profile)


def test_a_row_a_kernel(profile):
    text = markdown(profile)
    for label in ("SplitK: sgemm", "SplitK: reduce", "Cublas"):
        assert len(re.findall(rf"^\| {label} \|", text, re.MULTILINE)) == 6


def test_tables_have_as_many_cells_in_each_row(profile):
    for text in (markdown(profile), markdown(without_numbers(profile))):
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({line.count("|") for line in block.splitlines()}) == 1


def test_what_is_not_known_is_a_dash(profile):
    rows = re.findall(r"^\| Cublas .*$", markdown(without_numbers(profile)), re.MULTILINE)
    assert rows[0] == "| Cublas " + "| - " * 7 + "|"


def test_a_rung_that_failed_is_listed(profile):
    profile["rungs"].append({"name": "Tma", "kernels": [], "error": "needs sm_90"})
    assert markdown(profile).endswith("## Not profiled\n\n- Tma: needs sm_90\n")


def test_another_schema_is_refused(profile):
    with pytest.raises(ProfileError, match="schema 2, not 1"):
        markdown({**profile, "schema": 2})


def test_the_recorded_pages_are_those_of_their_json():
    """ci/profile --render bench/profile/<device>.json writes a page anew."""
    for path in sorted(RECORDED.glob("*.json")):
        written = path.with_suffix(".md").read_text(encoding="utf-8")
        assert written == markdown(json.loads(path.read_text(encoding="utf-8"))), path
