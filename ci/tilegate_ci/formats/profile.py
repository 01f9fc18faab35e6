"""bench/profile/<device>.json: its fields, and which of Nsight Compute's metrics each comes from.

A field without a metric follows from others. A number that this GPU or this ncu does not have is
null."""

from typing import Annotated, Any

from pydantic import Field

from tilegate_ci.core.documents import Count, Document, Finite, Given, Line, Model

_BYTES_PER_SECTOR = 32


def _metric(name: str, scale: float = 1.0, units: tuple[str, ...] = ()) -> Any:
    """`units` are Nsight Compute's words for the unit that `scale` converts from; none where a
    count needs none."""
    return Field(json_schema_extra={"metric": name, "scale": scale, "units": list(units)})


def _percent(name: str) -> Any:
    return _metric(name, units=("%",))


Number = Finite | None
Int64 = Annotated[int, Field(gt=-(2**63), lt=2**63)]
Whole = Int64 | None
Shape = Annotated[str, Field(pattern="^[1-9][0-9]{0,8}x[1-9][0-9]{0,8}x[1-9][0-9]{0,8}$")]


class Stall(Model):
    reason: Line
    pct: Finite


class SharedMemory(Model):
    static_bytes: Whole = _metric("launch__shared_mem_per_block_static", units=("byte/block",))
    dynamic_bytes: Whole = _metric("launch__shared_mem_per_block_dynamic", units=("byte/block",))


class BlocksPerSm(Model):
    """What limits them."""

    registers: Whole = _metric("launch__occupancy_limit_registers")
    shared_memory: Whole = _metric("launch__occupancy_limit_shared_mem")
    warps: Whole = _metric("launch__occupancy_limit_warps")
    blocks: Whole = _metric("launch__occupancy_limit_blocks")


class WarpOccupancy(Model):
    theoretical_pct: Number = _percent("sm__maximum_warps_per_active_cycle_pct")
    achieved_pct: Number = _percent("sm__warps_active.avg.pct_of_peak_sustained_active")


class Utilisation(Model):
    busy_pct: Number = _percent("sm__instruction_throughput.avg.pct_of_peak_sustained_active")
    throughput_pct: Number = _percent("sm__throughput.avg.pct_of_peak_sustained_elapsed")
    issue_slots_pct: Number = _percent("smsp__issue_active.avg.pct_of_peak_sustained_active")
    fma_pipe_pct: Number = _percent("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active")
    tensor_pipe_pct: Number = _percent(
        "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active"
        ".avg.pct_of_peak_sustained_active"  # not HFMA2.MMA, which loads constants
    )


class Dram(Model):
    bytes: Whole = _metric("dram__bytes.sum", units=("byte",))
    gb_per_s: Number = _metric("dram__bytes.sum.per_second", 1e-9, ("byte/s", "byte/second"))
    peak_pct: Number = _percent("dram__throughput.avg.pct_of_peak_sustained_elapsed")
    flop_per_byte: Number


class L2(Model):
    """Between the L1 caches and L2; what L2 moves to and from memory is DRAM's."""

    bytes: Whole = _metric("lts__t_sectors_srcunit_tex.sum", _BYTES_PER_SECTOR)
    gb_per_s: Number = _metric(
        "lts__t_sectors_srcunit_tex.sum.per_second",
        _BYTES_PER_SECTOR * 1e-9,
        ("sector/s", "sector/second"),
    )
    hit_pct: Number
    flop_per_byte: Number


class L1(Model):
    hit_pct: Number = _percent("l1tex__t_sector_hit_rate.pct")


class GlobalLoad(Model):
    """cp.async included, TMA not."""

    requests: Whole = _metric("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")
    sectors: Whole = _metric("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")
    sectors_per_request: Number


class GlobalStore(Model):
    requests: Whole = _metric("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")
    sectors: Whole = _metric("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum")
    sectors_per_request: Number


class SharedAccess(Model):
    instructions: Whole
    wavefronts: Whole  # what the addresses need: the same in every run
    bank_conflicts: Whole
    contention: Whole  # wavefronts that waited for other traffic
    wavefronts_per_instruction: Number


class SharedLoad(SharedAccess):
    instructions: Whole = _metric("smsp__inst_executed_op_shared_ld.sum")
    wavefronts: Whole = _metric("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum")


class SharedStore(SharedAccess):
    instructions: Whole = _metric("smsp__inst_executed_op_shared_st.sum")
    wavefronts: Whole = _metric("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum")


class AsyncCopy(Model):
    instructions: Whole = _metric("smsp__inst_executed_op_ldgsts.sum")
    bank_conflicts: Whole = _metric(
        "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
    )
    tma_sectors: Whole = _metric("l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum")


class Instructions(Model):
    executed: Whole = _metric("smsp__inst_executed.sum")
    ffma: Whole
    ffma_pct: Number


class ProfiledKernel(Model):
    name: Line
    grid: list[Int64]
    block: list[Int64]
    stalls: list[Stall]
    duration_us: Number = _metric("gpu__time_duration.sum", 1e-3, ("ns", "nsecond"))
    sm_clock_mhz: Number = _metric(
        "sm__cycles_elapsed.avg.per_second", 1e-6, ("hz", "cycle/second")
    )
    registers: Whole = _metric("launch__registers_per_thread")
    shared_memory: SharedMemory
    blocks_per_sm: BlocksPerSm
    waves: Number = _metric("launch__waves_per_multiprocessor")
    occupancy: WarpOccupancy
    sm: Utilisation
    dram: Dram
    l2: L2
    l1: L1
    global_load: GlobalLoad
    global_store: GlobalStore
    shared_load: SharedLoad
    shared_store: SharedStore
    async_copy: AsyncCopy
    instructions: Instructions
    flop: Whole


class ProfiledRung(Model):
    name: Line
    kernels: list[ProfiledKernel]
    error: Given[str] = None  # why it could not be profiled
    commit: Given[str] = None  # where it was profiled, if not where the others were


class ProfiledDevice(Model):
    name: Line
    driver: str
    cuda: str
    cublas: str
    compute_capability: Count
    multiprocessors: Count


def parse_device(text: str) -> ProfiledDevice:
    """What profile_target and accuracy print: a name, a tab and a value on each line."""
    said = dict(line.split("\t", 1) for line in text.splitlines())
    return ProfiledDevice(
        name=said["device_name"],
        driver=said["driver"],
        cuda=said["cuda"],
        cublas=said["cublas"],
        compute_capability=int(said["compute_capability"]),
        multiprocessors=int(said["multiprocessors"]),
    )


class ProfileFile(Document):
    commit: str
    device: ProfiledDevice
    ncu: str
    shape: Shape
    rungs: list[ProfiledRung]  # in ladder order


def joined(earlier: ProfileFile, found: ProfileFile) -> ProfileFile:
    """The earlier file with these rungs in place of its own, which name their commit; `found`
    itself where machine, tool or shape differ."""
    same = [(each.device, each.ncu, each.shape) for each in (earlier, found)]
    if same[0] != same[1]:
        return found
    rungs = {rung.name: rung for rung in earlier.rungs}
    for rung in found.rungs:
        rungs[rung.name] = rung.model_copy(update={"commit": found.commit})
    return earlier.model_copy(update={"rungs": [*rungs.values()]})
