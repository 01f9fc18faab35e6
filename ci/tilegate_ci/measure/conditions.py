"""Clocks, power, temperature and throttle reasons of the GPU, from NVML."""

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Callable
from typing import Any

from tilegate_ci.core.files import GateError

# Bits of NVML's clock event reasons (nvml.h, nvmlClocksEventReason*), in words.
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clocks",
}

Query = Callable[[Any, Any], Any]

_QUERIES: dict[str, Query] = {
    "board": lambda nvml, gpu: board(nvml.nvmlDeviceGetUUID(gpu)),
    "clock_sm_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    "clock_mem_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM),
    "power_w": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
    "power_limit_w": lambda nvml, gpu: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000,
    "temperature_c": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(
        gpu, nvml.NVML_TEMPERATURE_GPU
    ),
    "throttle_reasons": lambda nvml, gpu: in_words(
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
    ),
    # Counters since the driver was loaded.
    "power_violation_ms": lambda nvml, gpu: _violation(nvml, gpu, nvml.NVML_PERF_POLICY_POWER),
    "thermal_violation_ms": lambda nvml, gpu: _violation(nvml, gpu, nvml.NVML_PERF_POLICY_THERMAL),
}


def board(uuid: str) -> str:
    """An anonymous identifier of the board."""
    return hashlib.sha256(uuid.encode()).hexdigest()[:12]


def in_words(mask: int) -> list[str]:
    """The reasons of a bit mask; bits that no release of NVML had a name for stay hexadecimal."""
    words = [word for bit, word in REASONS.items() if mask & bit]
    unknown = mask & ~sum(REASONS)
    return [*words, hex(unknown)] if unknown else words


def gpu_answers() -> bool:
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return "GPU " in listed.stdout


def check_gpu() -> None:
    """GateError where no GPU answers."""
    if not gpu_answers():
        raise GateError(
            "no GPU answers `nvidia-smi -L`: "
            "run this on a machine with an NVIDIA GPU and its driver."
        )


def read() -> dict[str, Any]:
    """The conditions now of the GPU that CUDA calls device 0; {} where NVML does not answer."""
    return _asked(_conditions) or {}


def compute_capability() -> int | None:
    """90 for an H200; None where NVML does not answer."""
    found = _asked(lambda nvml, gpu: nvml.nvmlDeviceGetCudaComputeCapability(gpu))
    return 10 * found[0] + found[1] if found else None


def _asked(query: Query) -> Any:
    try:
        import pynvml as nvml
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        try:
            return query(nvml, _visible_gpu(nvml))
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError:
        return None


def _conditions(nvml: Any, gpu: Any) -> dict[str, Any]:
    found = {}
    for name, query in _QUERIES.items():
        with contextlib.suppress(nvml.NVMLError):  # not on this GPU
            found[name] = query(nvml, gpu)
    return found


def _visible_gpu(nvml: Any) -> Any:
    """NVML numbers every GPU of the machine, whatever CUDA_VISIBLE_DEVICES says."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    if first.startswith(("GPU-", "MIG-")):
        return nvml.nvmlDeviceGetHandleByUUID(first)
    return nvml.nvmlDeviceGetHandleByIndex(int(first) if first.isdigit() else 0)


def _violation(nvml: Any, gpu: Any, policy: int) -> float:
    return float(nvml.nvmlDeviceGetViolationStatus(gpu, policy).violationTime) / 1e6
