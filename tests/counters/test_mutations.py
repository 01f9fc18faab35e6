"""What a change for the worse looks like: it fails, and the report names the line.

The unchanged tree is the baseline here, so that these tests say nothing about the committed table.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from mutant import Mutant, Toolchain, read_toolchain

from tilegate_ci.checks.committed import Report
from tilegate_ci.checks.counters import Counted, count, judge, table_row
from tilegate_ci.model import REPOSITORY

SHAPE = "128x128x64/beta0.5"


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return read_toolchain()


@pytest.fixture
def mutant(toolchain: Toolchain, tmp_path: Path) -> Mutant:
    return Mutant(toolchain, tmp_path)


@cache
def unchanged(program: Path, name: str) -> Counted:
    clean = count(program, [name])[name]
    assert not clean.error
    return clean


def report_of(toolchain: Toolchain, mutant: Mutant, source: str, rung: str, shape: str) -> Report:
    name = f"{rung}/{shape}"
    clean = unchanged(toolchain.program, name)
    baseline = {name: table_row(clean, REPOSITORY)}
    changed = count(mutant.build(source), [name])
    return judge(baseline, changed, mutant.root)


def test_padding_removed(toolchain: Toolchain, mutant: Mutant) -> None:
    file = "06_vectorized/vectorized.cuh"
    mutant.replace(file, r"kPad = 4;", "kPad = 0;")
    mutant.replace(file, r"static_assert\(4 \* \(kBlockM \+ kPad\).*?;", "")
    source = "06_vectorized/vectorized.cu"
    report = report_of(toolchain, mutant, source, "Vectorized", SHAPE)
    assert report.exit_code == 1
    assert "shared_store.conflicts: 0 -> 256" in report.text
    assert re.search(r"tile_load\.cuh:\d+: smem\[tile_col_ \+ 0\]\[to\]", report.text)
    assert re.search(
        r"called from kernels/06_vectorized/vectorized\.cuh:\d+: reader_a", report.text
    )
    assert re.search(r"^ +words .*2.* +most 2$", report.text, re.MULTILINE)


def test_swizzle_removed(toolchain: Toolchain, mutant: Mutant) -> None:
    mutant.replace("09_swizzle/swizzle.cuh", r"return m \^ \(.*?\);", "return m + 0 * k;")
    report = report_of(toolchain, mutant, "09_swizzle/swizzle.cu", "Swizzle", SHAPE)
    assert report.exit_code == 1
    assert "shared_store.conflicts: 0 -> " in report.text
    assert re.search(r"tile_load\.cuh:\d+: smem\[tile_col_", report.text)
    assert re.search(
        r"called from kernels/common/\S+/double_buffered\.cuh:\d+: reader_a", report.text
    )


def test_vector_loads_removed(toolchain: Toolchain, mutant: Mutant) -> None:
    from_shared = mutant.replace(
        "common/include/tilegate/common/fragment.cuh",
        r"const float4 v = device::load_vector<float4>\(smem \+ offset\(i\)\);",
        "const float* p = smem + offset(i); const float4 v = make_float4(p[0], p[1], p[2], p[3]);",
    )
    from_global = mutant.replace(
        "common/include/tilegate/common/tile_load.cuh",
        r"v = device::load_vector<float4>\(row \+ col\);",
        "v = make_float4(row[col], row[col + 1], row[col + 2], row[col + 3]);",
    )
    report = report_of(toolchain, mutant, "10_warptile/warptile.cu", "Warptile", SHAPE)
    assert report.exit_code == 1
    assert re.search(r"shared_load\.requests: (\d+) -> \d+ \(\+29\d\.\d %\)", report.text)
    assert f"fragment.cuh:{from_shared}: const float* p" in report.text
    assert re.search(r"global_load\.requests: (\d+) -> \d+ \(\+", report.text)
    assert f"tile_load.cuh:{from_global}: " in report.text
