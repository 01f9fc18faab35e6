"""The lane patterns whose cost is measured: `patterns() -> list of Pattern`, always the same."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

LANES = range(32)
ALL = 0xFFFFFFFF


@dataclass(frozen=True)
class Pattern:
    """Byte offsets of the lanes of one warp instruction; `mask` says which take part."""

    name: str
    kind: str
    width: int
    mask: int
    offsets: tuple[int, ...]

    def line(self) -> str:
        return f"{self.kind} {self.width} {self.mask:x} " + " ".join(map(str, self.offsets))


def patterns() -> list[Pattern]:
    return [
        Pattern(name, kind, width, mask, tuple(width * slot for slot in slots))
        for kind in ("shared_load", "shared_store", "global_load", "global_store")
        for width in (4, 8, 16)
        for name, mask, slots in _slots(kind.startswith("shared"), width)
    ]


def _slots(shared: bool, width: int) -> Iterator[tuple[str, int, list[int]]]:
    """Lanes' places in units of the access width: at most 1024, so that 16 bytes stay in 16 KiB."""
    for stride in (0, 1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 33) if shared else (0, 1, 2, 3, 4, 8, 32):
        yield f"stride{stride}", ALL, [stride * lane % 1024 for lane in LANES]
    # Groups of lanes that share an address, named by the lane bits that still matter.
    for kept in (0b11110, 0b11101, 0b11011, 0b10111, 0b01111, 0b11100, 0b11010, 0b10110, 0b11001):
        yield f"keep{kept:05b}", ALL, [_pack(lane, kept) for lane in LANES]
        if shared:
            spread = [32 * _pack(lane, kept) % 1024 for lane in LANES]
            yield f"keep{kept:05b}_onebank", ALL, spread
    for rows, cols in ((2, 16), (4, 8), (8, 4), (16, 2)):
        # The fragments of a warp of rows by cols threads: of A, of B.
        yield f"rows{rows}x{cols}", ALL, [lane // cols for lane in LANES]
        yield f"cols{rows}x{cols}", ALL, [lane % cols for lane in LANES]
    yield "reversed", ALL, [31 - lane for lane in LANES]
    yield "half", 0x0000FFFF, list(LANES)
    yield "odd", 0xAAAAAAAA, list(LANES)
    yield "one", 0x00000100, list(LANES)
    yield "quarter_strided", 0x000000FF, [32 * lane for lane in LANES]
    yield "pairs_of_half", 0x0000FFFF, [lane // 2 for lane in LANES]
    yield "pairs_with_gaps", 0x7FFFFFFE, [lane // 2 for lane in LANES]
    generator = random.Random(f"{shared} {width}")
    for number in range(14 if shared else 5):
        order = list(LANES)
        generator.shuffle(order)
        yield f"permuted{number}", ALL, order
        yield f"random{number}", ALL, [generator.randrange(64) for _ in LANES]
        yield f"few{number}", ALL, [generator.randrange(8) for _ in LANES]
        groups = [generator.randrange(128) for _ in range(16)]
        distance = generator.choice((1, 2, 4))
        yield (
            f"shared_by{distance}_{number}",
            ALL,
            [groups[_pack(lane, 31 ^ distance)] for lane in LANES],
        )
        mask = generator.getrandbits(32) or 1
        yield f"masked{number}", mask, [generator.randrange(96) for _ in LANES]


def _pack(lane: int, kept: int) -> int:
    """The bits of `lane` that `kept` names, next to each other."""
    value, shift = 0, 0
    for bit in range(5):
        if kept >> bit & 1:
            value |= (lane >> bit & 1) << shift
            shift += 1
    return value
