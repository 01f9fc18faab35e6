"""What a change for the worse looks like: it fails, and the report names the line.

The unchanged tree is the baseline here, so that these tests say nothing about the committed table.
"""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from mutant import Mutant, Toolchain, read_toolchain

from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.counters.count import Counted, Sources, count
from tilegate_ci.counters.judge import Report, judge
from tilegate_ci.counters.table import table_row

SHAPE = "256x256x256/beta0.5"


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
    baseline = {name: table_row(clean, Sources(REPOSITORY))}
    changed = count(mutant.build(source), [name])
    return judge(baseline, changed, Sources(mutant.root))


def test_padding_removed(toolchain: Toolchain, mutant: Mutant) -> None:
    file = "06_vectorized/vectorized.cuh"
    mutant.replace(file, r"kPad = 4;", "kPad = 0;")
    mutant.replace(file, r"static_assert\(4 \* \(kBlockM \+ kPad\).*?;", "")
    source = "06_vectorized/vectorized.cu"
    report = report_of(toolchain, mutant, source, "Vectorized", SHAPE)
    assert report.exit_code == 1
    assert "shared_store.conflicts: 0 -> 4096" in report.text
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
        "common/include/tilegate/common/vector_access.cuh",
        r"v = device::load_vector<float4>\(row \+ col\);",
        "v = make_float4(row[col], row[col + 1], row[col + 2], row[col + 3]);",
    )
    report = report_of(toolchain, mutant, "10_warptile/warptile.cu", "Warptile", SHAPE)
    assert report.exit_code == 1
    assert re.search(r"shared_load\.requests: (\d+) -> \d+ \(\+29\d\.\d %\)", report.text)
    assert f"fragment.cuh:{from_shared}: const float* p" in report.text
    assert re.search(r"global_load\.requests: (\d+) -> \d+ \(\+", report.text)
    assert f"vector_access.cuh:{from_global}: " in report.text


LOOP = "common/include/tilegate/common/double_buffered.cuh"  # of four rungs
PARTIAL_SUMS = "17_skinny/partial_sums.cuh"
# Rungs that take long to build are spared unless TILEGATE_THOROUGH=1, and so are those with two
# barriers around a tile, as counters.hazards has planted, and all but one of those that share a
# loop.
THOROUGH = bool(os.environ.get("TILEGATE_THOROUGH"))
INTERLEAVED = "common/include/tilegate/common/interleaved/mainloop.cuh"
SLICED_STORE = "common/include/tilegate/common/interleaved/epilogue.cuh"
ASYNC = "common/include/tilegate/common/async/mainloop.cuh"
RESULTS = "common/include/tilegate/common/async/epilogue.cuh"
SPLIT_AHEAD = "18_int8x3/split_pipelined.cuh"
SPLIT_LONG = "18_int8x3/split_cluster.cuh"
WARPS = "18_int8x3/gemm_sm75.cuh"
# The first two are for long K; the barriers between a block's tiles need more tiles than blocks.
SHAPES = {SPLIT_AHEAD: "16x16x1056", SPLIT_LONG: "16x16x12320", WARPS: "1024x1088x128"}
SLOW = {
    "03_shared_memory", "04_blocktile_1d", "05_blocktile_2d", "06_vectorized", "07_rectangular",
    "08_prefetch", "09_swizzle", "11_instruction_order",  # Warptile has their loop
    "13_interleaved", "14_stream_k", "15_async_copy", "16_packed", "17_skinny", "18_int8x3",
    "19_tma", "20_fp16x3",
}  # fmt: skip
BARRIERS = [
    pytest.param(
        file,
        source,
        rung,
        number,
        id=f"{rung}-{Path(file).stem}-{number}",
        marks=pytest.mark.skipif(
            not THOROUGH and Path(source).parts[0] in SLOW,
            reason="TILEGATE_THOROUGH=1 removes this barrier too",
        ),
    )
    for file, source, rung in (
        ("03_shared_memory/shared_memory.cu", "03_shared_memory/shared_memory.cu", "SharedMemory"),
        ("04_blocktile_1d/blocktile_1d.cu", "04_blocktile_1d/blocktile_1d.cu", "Blocktile1D"),
        ("05_blocktile_2d/blocktile_2d.cuh", "05_blocktile_2d/blocktile_2d.cu", "Blocktile2D"),
        ("06_vectorized/vectorized.cuh", "06_vectorized/vectorized.cu", "Vectorized"),
        ("07_rectangular/rectangular.cuh", "07_rectangular/rectangular.cu", "Rectangular"),
        (LOOP, "08_prefetch/prefetch.cu", "Prefetch"),
        (LOOP, "09_swizzle/swizzle.cu", "Swizzle"),
        (LOOP, "10_warptile/warptile.cu", "Warptile"),
        (LOOP, "11_instruction_order/instruction_order.cu", "InstructionOrder"),
        ("17_skinny/skinny.cuh", "17_skinny/skinny.cu", "Skinny"),
        (PARTIAL_SUMS, "17_skinny/skinny.cu", "Skinny"),
        (INTERLEAVED, "13_interleaved/interleaved.cu", "Interleaved"),
        (SLICED_STORE, "13_interleaved/interleaved.cu", "Interleaved"),
        ("13_interleaved/interleaved.cuh", "13_interleaved/interleaved.cu", "Interleaved"),
        ("14_stream_k/stream_k.cuh", "14_stream_k/stream_k.cu", "StreamK"),
        (ASYNC, "15_async_copy/async_copy.cu", "AsyncCopy"),
        (RESULTS, "15_async_copy/async_copy.cu", "AsyncCopy"),
        ("16_packed/pack.cuh", "16_packed/packed.cu", "Packed"),
        ("18_int8x3/split_block.cuh", "18_int8x3/int8x3.cu", "Int8x3"),
        (SPLIT_AHEAD, "18_int8x3/int8x3.cu", "Int8x3"),
        (SPLIT_LONG, "18_int8x3/int8x3.cu", "Int8x3"),
        ("18_int8x3/gemm_sm90.cuh", "18_int8x3/int8x3.cu", "Int8x3"),
        (WARPS, "18_int8x3/int8x3.cu", "Int8x3@128x64warps"),
        ("19_tma/tma.cuh", "19_tma/tma.cu", "Tma"),
        ("20_fp16x3/split.cuh", "20_fp16x3/fp16x3.cu", "Fp16x3"),
        ("20_fp16x3/gemm_sm90.cuh", "20_fp16x3/fp16x3.cu", "Fp16x3"),
    )
    for number in range(
        (REPOSITORY / "kernels" / file).read_text("utf-8").count("__syncthreads();")
    )
]


@pytest.mark.parametrize(("file", "source", "rung", "number"), BARRIERS)
def test_barrier_removed(
    toolchain: Toolchain, mutant: Mutant, file: str, source: str, rung: str, number: int
) -> None:
    mutant.replace(file, r"__syncthreads\(\);", ";", number)
    shape = SHAPES.get(file, "128x128x256")
    report = report_of(toolchain, mutant, source, rung, shape)
    assert report.exit_code == 1
    hazard = r"HAZARD {}/.*\n.*: (race at|read of) byte \d+ of shared memory"
    found = re.search(hazard.format(rung), report.text)
    assert found, report.text
    if found.group(1) == "read of":  # what no copy has brought yet, so that there is one side
        assert f"kernels/{Path(source).parent}/" in report.text
        return
    # Both sides of the race are named, in the rung's own source or in the file with the barrier.
    sides = re.findall(
        r"this thread \w+ at (.*?); thread \S+(?: of block \d+)? \w+ at (.*?); ", report.text
    )
    assert len(sides) == 1
    places = (f"kernels/{Path(source).parent}/", f"kernels/{file}")
    assert all(any(place in side for place in places) for side in sides[0]), report.text


def test_every_file_with_barriers_is_mutated() -> None:
    kernels = REPOSITORY / "kernels"
    files = (
        path for path in kernels.rglob("*.cu*") if "__syncthreads();" in path.read_text("utf-8")
    )
    assert {path.relative_to(kernels).as_posix() for path in files} == {
        parameters.values[0] for parameters in BARRIERS
    }
