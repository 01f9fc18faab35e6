"""Asynchronous hardware in the committed profile of 4096^3, which is too large to be counted: the
executor's numbers for it follow from two small cases of the same configuration, because they grow
with the number of tiles and, for each, linearly with K."""

import json

import pytest
from mutant import read_toolchain

from tilegate_ci.checks.counters import count
from tilegate_ci.model import REPOSITORY

PROFILE = REPOSITORY / "bench" / "profile" / "nvidia-h200.json"
EXTENT = 4096
COPIES, SECTORS = "shared_copy.requests", "bulk_load.sectors"
CONFLICTS = "shared_copy.conflicts"
IN_PROFILE = {COPIES: "instructions", CONFLICTS: "bank_conflicts", SECTORS: "tma_sectors"}


# Extents of whole tiles, and a K. Int8x3 pairs blocks only where there are enough of them; it and
# Fp16x3 leave sums of few products to FP32. What a split pass copies grows with the operands, not
# with the tiles: operands of Int8x3 are off by 4 bytes, so that it copies without TMA, and a
# profile's split_boxes is left out.
@pytest.mark.parametrize(
    ("way", "m", "n", "k", "form", "counters"),
    [
        ("AsyncCopy@128x256x16", 128, 256, 64, "", (COPIES, CONFLICTS)),
        ("Packed@128x128x16", 128, 128, 64, "", (COPIES,)),
        ("Int8x3@128x128streamk", 256, 256, 128, "/off4", (SECTORS,)),
        ("Tma@128x256x16", 128, 256, 64, "", (SECTORS,)),
        ("Fp16x3@128x128", 128, 128, 256, "", (SECTORS,)),
    ],
)
def test_counts_grow_to_those_of_the_profile(
    way: str, m: int, n: int, k: int, form: str, counters: tuple[str, ...]
) -> None:
    names = [f"{way}/{m}x{n}x{depth}{form}" for depth in (k, 2 * k)]
    counted = count(read_toolchain().program, names)
    rungs = json.loads(PROFILE.read_text(encoding="utf-8"))["rungs"]
    (kernels,) = (
        [kernel for kernel in rung["kernels"] if not kernel["name"].startswith("split_boxes")]
        for rung in rungs
        if rung["name"] == way.split("@")[0]
    )
    times = (EXTENT // m) * (EXTENT // n)
    for counter in counters:
        shallow, deep = (counted[name].counters[counter] for name in names)
        per_k, rest = divmod(deep - shallow, k)
        assert rest == 0
        expected = times * (shallow + per_k * (EXTENT - k))
        assert sum(kernel["async_copy"][IN_PROFILE[counter]] for kernel in kernels) == expected
