"""Each call in the kernels that synchronises is removed, one at a time: a watched test is red.

synchronisation.json says which test, and why nothing sees the others. TILEGATE_THOROUGH=1 removes
all of them; else there is a sample, of one test of a rung that compiles quickly.
"""

import os
import re
from collections import Counter

import pytest
from mutant import read_toolchain
from removals import PAGE, Removals, section
from synchronisation import PRIMITIVES, Site, blank, read_table, rungs, sites, sources, wrappers

THOROUGH = bool(os.environ.get("TILEGATE_THOROUGH"))
SAMPLED = ("fp16x3",)
TABLE = read_table()


def chosen() -> list[Site]:
    seen = [site for site in sites() if site.key in TABLE and TABLE[site.key].test]
    if THOROUGH:
        return seen
    tests = Counter(TABLE[site.key].test for site in seen if TABLE[site.key].rung in SAMPLED)
    return [site for site in seen if TABLE[site.key].test == tests.most_common(1)[0][0]][::4]


@pytest.fixture(scope="session")
def removals(tmp_path_factory: pytest.TempPathFactory) -> Removals:
    folder = tmp_path_factory.mktemp("removals")
    return Removals(read_toolchain(), folder, rungs() if THOROUGH else SAMPLED)


@pytest.mark.parametrize("site", [pytest.param(site, id=site.key) for site in chosen()])
def test_removal_is_seen(removals: Removals, site: Site) -> None:
    row = TABLE[site.key]
    seen = removals.removed(site, row.rung, row.test)
    assert seen, f"{row.test} is green without {site.key} ({site.file})"
    assert seen.how == row.how


def test_nothing_is_seen_where_nothing_is_removed(removals: Removals) -> None:
    rows = [TABLE[site.key] for site in chosen()]
    for word, test in {(row.rung, row.test) for row in rows}:
        assert removals.passes(word, test), test


def test_the_table_has_every_site_and_no_other() -> None:
    update = "PYTHONPATH=ci python3 tests/counters/removals.py"
    assert set(TABLE) == {site.key for site in sites()}, f"make the table again: {update}"


def test_what_nothing_sees_has_a_reason() -> None:
    for key, row in TABLE.items():
        assert bool(row.reason) == (row.how == "nothing"), key


def test_every_call_is_a_site() -> None:
    calls = rf"\b(?:{PRIMITIVES})\b(?:<[^;(){{}}]*>)?\("
    for file, text in sources().items():
        found = re.findall(calls, blank(text))
        defined = re.findall(rf"\bvoid\s+(?:{PRIMITIVES})\(", blank(text))
        known = [site for site in sites() if site.file == file and site.kind not in wrappers()]
        assert len(found) - len(defined) == len(known), file


def test_sites_are_known_by_their_function() -> None:
    assert "int8x3::warp_arrive: __syncwarp()" in TABLE  # in a function
    assert "int8x3::store_partial: warp_arrive(smem.partial_ready)" in TABLE  # calls a wrapper
    assert "int8x3::TileEpilogue::store: __syncwarp()" in TABLE  # in a class
    assert "int8x3::multiply: __syncthreads()" in TABLE  # in a lambda


def test_the_page_has_the_table() -> None:
    assert section(TABLE) in PAGE.read_text("utf-8")
