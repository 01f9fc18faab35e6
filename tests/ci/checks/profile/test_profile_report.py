"""The JSON document and the Markdown made from it."""

import json
import re

import pytest

from gate_builders import REPOSITORY
from tilegate_ci.checks.profile import markdown, parse_csv, read_kernel
from tilegate_ci.core import documents
from tilegate_ci.core.documents import parse, to_text
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.profile import ProfiledDevice, ProfiledRung, ProfileFile

RECORDED = REPOSITORY / "bench" / "profile"
DEVICE = ProfiledDevice(
    name="NVIDIA H200",
    driver="580.159.04",
    cuda="13.0",
    cublas="13.1.0",
    compute_capability=90,
    multiprocessors=132,
)


@pytest.fixture
def profile(captured) -> ProfileFile:
    rungs = [
        ProfiledRung(name=name, kernels=[read_kernel(row) for row in parse_csv(captured(name))])
        for name in ("SplitK", "Cublas")
    ]
    return ProfileFile(
        schema=1,
        commit="79" * 20,
        device=DEVICE,
        ncu="2025.3.1.0",
        shape="1024x1024x1024",
        rungs=rungs,
    )


def without_numbers(profile: ProfileFile) -> ProfileFile:
    """As on a GPU that has none of the metrics."""

    def clear(value):
        if isinstance(value, dict):
            return {key: clear(child) for key, child in value.items()}
        return value if isinstance(value, (str, list)) else None

    document = json.loads(to_text(profile))
    for rung in document["rungs"]:
        rung["kernels"] = [{**clear(kernel), "stalls": []} for kernel in rung["kernels"]]
    return parse(ProfileFile, json.dumps(document), "profile.json")


def test_json(golden, profile):
    golden("profile.json", to_text(profile))


def test_markdown(golden, profile):
    golden("profile.md", markdown(profile))


def test_markdown_comes_from_the_json_alone(profile):
    assert markdown(parse(ProfileFile, to_text(profile), "profile.json")) == markdown(profile)


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
    failed = ProfiledRung(name="Tma", kernels=[], error="needs sm_90")
    profile = profile.model_copy(update={"rungs": [*profile.rungs, failed]})
    assert markdown(profile).endswith("## Not profiled\n\n- Tma: needs sm_90\n")


def test_another_schema_is_refused(profile):
    document = {**json.loads(to_text(profile)), "schema": 2}
    with pytest.raises(GateError, match="unknown schema 2"):
        parse(ProfileFile, json.dumps(document), "profile.json")


def test_the_recorded_pages_are_those_of_their_json():
    """ci/gate profile --render bench/profile/<device>.json rewrites a page."""
    for path in sorted(RECORDED.glob("*.json")):
        written = path.with_suffix(".md").read_text(encoding="utf-8")
        assert written == markdown(documents.load(ProfileFile, path)), path


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.clear(), '"schema" is missing'),
        (lambda d: d.update(shape="512x512"), "shape: "),
        (lambda d: d["rungs"][0]["kernels"][0].update(flop=10**400), "flop: must be less than"),
        (
            lambda d: d["rungs"][0]["kernels"][0]["grid"].append(10**400),
            "grid[3]: must be less than",
        ),
        (lambda d: d["rungs"][0]["kernels"][0]["dram"].update(gb_per_s=10**400), "gb_per_s: must"),
    ],
)
def test_a_malformed_profile_is_refused_with_its_place(profile, tmp_path, edit, message):
    document = json.loads(to_text(profile))
    edit(document)
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document))
    with pytest.raises(GateError, match=r"p\.json: ") as caught:
        documents.load(ProfileFile, path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
