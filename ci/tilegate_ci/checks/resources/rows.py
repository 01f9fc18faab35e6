"""What a kernel takes of a multiprocessor: a row of the table of resources."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from tilegate_ci.core.documents import Natural

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


@dataclass
class Usage:
    """ptxas's report on one kernel, in registers and bytes."""

    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    static_shared: int = 0


@dataclass(frozen=True)
class Launch:
    """`default`: the rung's own path launches it, not only a variant for comparison."""

    threads: int
    dynamic_shared: int
    default: bool


DEFAULT, VARIANT, UNUSED = "default", "variant", "unused"


class KernelRow(NamedTuple):
    """One kernel on one architecture. Sizes in bytes; threads, dynamic shared memory and what
    follows from them are None for a kernel that nothing launches there."""

    registers: Natural
    spill_stores: Natural
    spill_loads: Natural
    stack: Natural
    static_shared: Natural
    dynamic_shared: Natural | None
    threads: Natural | None
    blocks_per_sm: Natural | None
    occupancy: Annotated[float, Field(ge=0, le=1)] | None  # resident warps as a share of the most
    path: str  # who launches it: the rung itself, a variant for comparison, or nothing

    @property
    def spilled(self) -> int:
        return self.spill_stores + self.spill_loads


def kernel_row(architecture: Architecture, usage: Usage, launch: Launch | None) -> KernelRow:
    taken = (usage.registers, usage.spill_stores, usage.spill_loads, usage.stack)
    row = KernelRow(*taken, usage.static_shared, None, None, None, None, UNUSED)
    if launch is None:
        return row
    limits = ARCHITECTURES[architecture]
    shared = usage.static_shared + launch.dynamic_shared
    blocks = blocks_per_sm(limits, launch.threads, usage.registers, shared)
    return row._replace(
        dynamic_shared=launch.dynamic_shared,
        threads=launch.threads,
        blocks_per_sm=blocks,
        occupancy=round(occupancy(limits, launch.threads, blocks), 4),
        path=DEFAULT if launch.default else VARIANT,
    )
