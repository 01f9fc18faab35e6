"""The compiler's report and the recorder's, read."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from resources_builder import GOOD, KERNEL, SPILLED, Repository, launches
from stage_builder import stage

from tilegate_ci.checks.resources.compile import (
    ARCHITECTURES,
    Launch,
    Usage,
    blocks_per_sm,
    demangle,
    find_toolkit,
    occupancy,
    parse_launches,
    parse_ptxas,
    source_files,
    sources_digest,
    target_of,
)
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import Stage

DATA = Path(__file__).parent / "data"
CALLEE = """\
ptxas info    : Compiling entry function 'k' for 'sm_100'
ptxas info    : Function properties for k
    8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 4096 bytes smem, 400 bytes cmem[0]
ptxas info    : Function properties for helper
    64 bytes stack frame, 16 bytes spill stores, 12 bytes spill loads
"""


def test_what_ptxas_said_of_a_clean_rung():
    found = parse_ptxas((DATA / GOOD).read_text())
    assert list(found) == ["80", "90a"]
    assert found["80"][KERNEL.format(1)] == Usage(registers=127)
    assert found["90a"][KERNEL.format(0)] == Usage(registers=128)


def test_what_ptxas_said_of_a_forced_spill():
    found = parse_ptxas((DATA / SPILLED).read_text())
    assert found["90a"][KERNEL.format(1)] == Usage(64, 1404, 1412, 512)
    assert found["80"][KERNEL.format(0)] == Usage(64, 1656, 1648, 616)


def test_functions_that_a_kernel_calls_count_as_its_own():
    assert parse_ptxas(CALLEE) == {"100": {"k": Usage(32, 20, 20, 64, 4096)}}


def test_rungs_of_9_0_are_built_for_the_families_of_later_architectures():
    assert [target_of(90, a) for a in ARCHITECTURES][-3:] == ["90a", "100f", "120f"]
    assert [target_of(80, a) for a in ARCHITECTURES] == [*ARCHITECTURES]


def test_the_largest_launch_of_a_kernel_counts():
    text = launches() + f"kernel\t{KERNEL.format(1)}\t128\t49152\tSwizzle.small\n"
    found = parse_launches(text)
    assert found[KERNEL.format(1)] == Launch(256, 49152, default=True)


def test_a_kernel_of_a_variant_is_not_on_the_default_path():
    found = parse_launches(launches("Swizzle.small"))
    assert not any(launch.default for launch in found.values())


def stage_of(**changes):
    return Stage.model_validate_json(json.dumps(stage("09_swizzle", "Swizzle", **changes)))


def test_sources_are_followed_through_headers(tmp_path):
    repository = Repository(tmp_path)
    beside = repository.rung.with_name("loop.cuh")
    repository.rung.write_text('#include <cstdio>\n#if 0\n# include "loop.cuh"\n#endif\n')
    beside.write_text("#include <tilegate/tile.hpp>\n#include <tilegate/device/cpu/device.hpp>\n")
    executor = tmp_path / "kernels/device/include/tilegate/device/cpu/device.hpp"
    executor.parent.mkdir(parents=True)
    executor.write_text("// nvcc never reads it\n")
    swizzle = stage_of()
    assert source_files(tmp_path, swizzle) == [beside, repository.rung, repository.header]
    before = sources_digest(tmp_path, swizzle)
    repository.header.write_text("// version 2\n")
    assert sources_digest(tmp_path, swizzle) != before


def test_a_source_that_is_not_there(tmp_path):
    gone = stage_of(sources=["kernels/09_swizzle/gone.cu"])
    with pytest.raises(GateError, match=r"gone\.cu: .*No such file"):
        source_files(tmp_path, gone)


@pytest.mark.skipif(not shutil.which("c++filt"), reason="no c++filt in PATH")
@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("_ZN8tilegate5naive5sgemmENS_9SgemmArgsE", "sgemm"),
        (
            "_ZN8tilegate5naive5sgemmINS0_6ConfigINS0_1AEEELb1EEEvNS_9SgemmArgsEi",
            "sgemm<Config<A>, true>",
        ),
        ("_ZN8tilegate5naive1kILi3EEEvPFviE", "k<3>"),
        ("_ZN8tilegate6common1kINS_5naive1CINS_1AEEEEEvv", "common::k<C<A>>"),
    ],
)
def test_names_are_shortened(name, short):
    assert demangle({name}, "naive") == {name: short}


@pytest.mark.skipif(not shutil.which("c++filt"), reason="no c++filt in PATH")
def test_overloads_keep_their_parameters():
    names = demangle({"_ZN8tilegate5naive1fEi", "_ZN8tilegate5naive1fEf"}, "naive")
    assert sorted(names.values()) == ["tilegate::naive::f(float)", "tilegate::naive::f(int)"]


# Registers and shared memory of a block of 256 threads, by what limits the blocks.
@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "blocks"),
    [
        ("90a", 256, 128, 0, 2),  # registers: 16 warps a multiprocessor
        ("90a", 256, 32, 0, 8),  # warps
        ("86", 256, 32, 0, 6),
        ("75", 1024, 32, 0, 1),
        ("90a", 32, 16, 0, 32),  # blocks
        ("89", 32, 16, 0, 24),
        ("90a", 128, 32, 48 * 1024, 4),  # 228 KiB, of which each block takes 1 KiB more
        ("80", 128, 32, 163 * 1024, 1),
        ("80", 128, 32, 164 * 1024, 0),  # more than a block may have
        ("90a", 1024, 65, 0, 0),  # more registers than there are
        ("90a", 2048, 16, 0, 0),
    ],
)
def test_blocks_per_multiprocessor(architecture, threads, registers, shared, blocks):
    assert blocks_per_sm(ARCHITECTURES[architecture], threads, registers, shared) == blocks


def test_occupancy_is_of_warps():
    assert occupancy(ARCHITECTURES["90a"], 256, 2) == 0.25
    assert occupancy(ARCHITECTURES["86"], 256, 6) == 1.0


OCCUPANCY = """
#include <cuda_occupancy.h>
#include <cstdio>
int main() {
  int major, minor, threads, registers, warps, shared_sm, shared_block, reserved, shared;
  while (std::scanf("%d %d %d %d %d %d %d %d %d", &major, &minor, &warps, &shared_sm, &shared_block,
                    &reserved, &threads, &registers, &shared) == 9) {
    cudaOccDeviceProp device;
    device.computeMajor = major;
    device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = 32 * warps;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.numSms = 1;
    device.sharedMemPerBlock = 48 * 1024;
    device.sharedMemPerBlockOptin = shared_block;
    device.sharedMemPerMultiprocessor = shared_sm;
    device.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared_block;
    cudaOccDeviceState state;
    state.carveoutConfig = 100;
    cudaOccResult result;
    const auto error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state,
                                                               threads, shared);
    std::printf("%d\\n", error ? -1 : result.activeBlocksPerMultiprocessor);
  }
}
"""


def test_occupancy_agrees_with_the_toolkit_s_own_calculator(tmp_path):
    try:
        toolkit = find_toolkit()
    except GateError as problem:
        pytest.skip(f"needs cuda_occupancy.h: {problem}")
    source, program = tmp_path / "occupancy.cpp", tmp_path / "occupancy"
    source.write_text(OCCUPANCY)
    subprocess.run([toolkit.nvcc, "-cudart", "none", source, "-o", program], check=True)
    cases, here = [], []
    for name, limits in ARCHITECTURES.items():
        major, minor = divmod(int(name.rstrip("a")), 10)
        device = (major, minor, limits.warps, limits.shared, limits.shared_per_block)
        for threads in (32, 64, 96, 128, 256, 384, 512, 1024):
            for registers in (16, 40, 64, 72, 128, 168, 255):
                for shared in (0, 1000, 8192, 33000, 49152, 65536, 100000, 101376, 166912, 232448):
                    cases.append((*device, limits.reserved_per_block, threads, registers, shared))
                    here.append(blocks_per_sm(limits, threads, registers, shared))
    text = "\n".join(" ".join(map(str, case)) for case in cases)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    toolkits = [max(0, int(line)) for line in done.stdout.split()]
    different = [(*c, x, y) for c, x, y in zip(cases, here, toolkits) if x != y]
    assert different == [], f"{len(different)}: {different[:8]}"
