"""Theoretical occupancy: how many blocks of a kernel fit a multiprocessor at once.

Limits: CUDA C++ programming guide, technical specifications per compute capability. The rounding
is that of the toolkit's cuda_occupancy.h, which a test compares this with."""

from dataclasses import dataclass
from typing import Literal

REGISTERS_PER_SM = 65536
REGISTERS_PER_THREAD = 255
REGISTER_UNIT = 256  # registers of a warp are allocated in multiples of it
PARTITIONS = 4  # of a multiprocessor; a warp lives in one of them
MAX_THREADS = 1024  # of a block
KIB = 1024


@dataclass(frozen=True)
class Multiprocessor:
    """Its limits; bytes of shared memory, at its largest carveout."""

    warps: int
    blocks: int
    shared: int
    shared_per_block: int  # with opt-in
    shared_unit: int
    reserved_per_block: int  # by the driver
    count: tuple[int, ...]  # in a small and in a large device


def _since_80(warps: int, blocks: int, shared_kib: int, count: tuple[int, ...]) -> Multiprocessor:
    """From compute capability 8.0 on, the driver takes 1 KiB of each block."""
    largest = (shared_kib - 1) * KIB
    return Multiprocessor(warps, blocks, shared_kib * KIB, largest, 128, KIB, count)


Architecture = Literal["75", "80", "86", "89", "90a", "100", "120"]
ARCHITECTURES: dict[Architecture, Multiprocessor] = {
    "75": Multiprocessor(32, 16, 64 * KIB, 64 * KIB, 256, 0, (14, 72)),
    "80": _since_80(64, 32, 164, (28, 108)),
    "86": _since_80(48, 16, 100, (16, 84)),
    "89": _since_80(48, 24, 100, (20, 142)),
    "90a": _since_80(64, 32, 228, (78, 132)),
    "100": _since_80(64, 32, 228, (74, 148)),
    "120": _since_80(48, 24, 100, (20, 188)),
}


def compute_capability(architecture: str) -> int:
    """10 x major + minor: 90 of "90a"."""
    return int(architecture.rstrip("af"))


def blocks_per_sm(sm: Multiprocessor, threads: int, registers: int, shared: int) -> int:
    """0 where not even one block fits. `shared` is static and dynamic, in bytes."""
    warps = _divide_up(threads, 32)
    taken = _round_up(shared + sm.reserved_per_block, sm.shared_unit)
    # The driver keeps its part of a block's shared memory beside the block's own limit.
    if threads > MAX_THREADS or shared > sm.shared_per_block:
        return 0
    per_warp = _round_up(registers * 32, REGISTER_UNIT)
    if registers > REGISTERS_PER_THREAD or (
        per_warp * _round_up(warps, PARTITIONS) > REGISTERS_PER_SM
    ):
        return 0
    limits = [sm.blocks, sm.warps // warps]
    if per_warp:
        warps_per_partition = REGISTERS_PER_SM // PARTITIONS // per_warp
        limits.append(warps_per_partition * PARTITIONS // warps)
    if taken:
        limits.append(sm.shared // taken)
    return min(limits)


def occupancy(sm: Multiprocessor, threads: int, blocks: int) -> float:
    """Resident warps as a share of what the multiprocessor can hold."""
    return blocks * _divide_up(threads, 32) / sm.warps


def _divide_up(value: int, unit: int) -> int:
    return -(-value // unit)


def _round_up(value: int, unit: int) -> int:
    return _divide_up(value, unit) * unit
