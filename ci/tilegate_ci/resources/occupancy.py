"""Theoretical occupancy: how many blocks of a kernel fit a multiprocessor at once.

Limits: CUDA C++ programming guide, technical specifications per compute capability. The rounding
is that of the toolkit's cuda_occupancy.h, which a test compares this with."""

from __future__ import annotations

from dataclasses import dataclass

REGISTERS_PER_SM = 65536
REGISTERS_PER_THREAD = 255
REGISTER_UNIT = 256  # registers of a warp are allocated in multiples of it
PARTITIONS = 4  # of a multiprocessor; a warp lives in one of them
MAX_THREADS = 1024  # of a block
KIB = 1024


@dataclass(frozen=True)
class Architecture:
    """Of one multiprocessor; bytes of shared memory, at its largest carveout."""

    warps: int
    blocks: int
    shared: int
    shared_per_block: int  # with opt-in
    shared_unit: int
    reserved_per_block: int  # by the driver
    multiprocessors: tuple[int, ...]  # of a small and a large device


def _architecture(
    warps: int, blocks: int, shared_kib: int, multiprocessors: tuple[int, ...]
) -> Architecture:
    """From compute capability 8.0 on, the driver takes 1 KiB of each block."""
    return Architecture(
        warps, blocks, shared_kib * KIB, (shared_kib - 1) * KIB, 128, KIB, multiprocessors
    )


ARCHITECTURES = {
    "75": Architecture(32, 16, 64 * KIB, 64 * KIB, 256, 0, (14, 72)),
    "80": _architecture(64, 32, 164, (28, 108)),
    "86": _architecture(48, 16, 100, (16, 84)),
    "89": _architecture(48, 24, 100, (20, 142)),
    "90a": _architecture(64, 32, 228, (78, 132)),
    "100": _architecture(64, 32, 228, (74, 148)),
    "120": _architecture(48, 24, 100, (20, 188)),
}


def compute_capability(architecture: str) -> int:
    """10 x major + minor: 90 of "90a"."""
    return int(architecture.rstrip("af"))


def blocks_per_sm(architecture: Architecture, threads: int, registers: int, shared: int) -> int:
    """0 where not even one block fits. `shared` is static and dynamic, in bytes."""
    warps = _divide_up(threads, 32)
    taken = _round_up(shared + architecture.reserved_per_block, architecture.shared_unit)
    # The driver keeps its part of a block's shared memory beside the block's own limit.
    if threads > MAX_THREADS or shared > architecture.shared_per_block:
        return 0
    per_warp = _round_up(registers * 32, REGISTER_UNIT)
    if registers > REGISTERS_PER_THREAD or (
        per_warp * _round_up(warps, PARTITIONS) > REGISTERS_PER_SM
    ):
        return 0
    limits = [architecture.blocks, architecture.warps // warps]
    if per_warp:
        warps_per_partition = REGISTERS_PER_SM // PARTITIONS // per_warp
        limits.append(warps_per_partition * PARTITIONS // warps)
    if taken:
        limits.append(architecture.shared // taken)
    return min(limits)


def occupancy(architecture: Architecture, threads: int, blocks: int) -> float:
    """Resident warps as a share of what the multiprocessor can hold."""
    return blocks * _divide_up(threads, 32) / architecture.warps


def _divide_up(value: int, unit: int) -> int:
    return -(-value // unit)


def _round_up(value: int, unit: int) -> int:
    return _divide_up(value, unit) * unit
