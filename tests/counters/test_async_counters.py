"""Counters of the copy engine and of tensor cores, against what follows from the shapes."""

from mutant import read_toolchain

from tilegate_ci.checks.counters import BASELINE, count, load
from tilegate_ci.model import REPOSITORY

WORD = 4


def test_boxes_over_the_borders_of_their_matrices() -> None:
    m, n, k = 132, 68, 36
    tile_m, tile_n, tile_k = 64, 128, 16
    name = f"Tma@{tile_m}x{tile_n}x{tile_k}/{m}x{n}x{k}"
    counters = count(read_toolchain().program, [name])[name].counters
    blocks = -(-m // tile_m) * -(-n // tile_n)
    assert counters["bulk_load.requests"] == 2 * blocks * -(-k // tile_k)
    # Blocks lie below each other: A is copied once, B once for each. Sectors are measured
    # (test_against_ncu.py).
    assert counters["bulk_load.bytes"] == WORD * (m * k + blocks * k * n)


def test_multiplications_of_warpgroups() -> None:
    counters = load(REPOSITORY / BASELINE)["Fp16x3/256x256x256/beta0.5"].counters
    multiplications = 3 * (256 // 64) * (256 // 128) * (256 // 16)
    assert counters["shared_multiply.requests"] == 4 * multiplications
    assert counters["shared_multiply.bytes"] == multiplications * (64 + 128) * 32
    assert counters["shared_multiply.wavefronts"] == multiplications * (64 + 128) * 32 // 128


def test_kinds_that_a_kernel_has_not_are_not_named() -> None:
    counters = load(REPOSITORY / BASELINE)["Naive/256x256x256/beta0.5"].counters
    assert not [key for key in counters if key.startswith(("bulk", "shared_copy"))]
