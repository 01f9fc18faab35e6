"""What NVML tells, from a stand-in that answers like it."""

import sys
from types import SimpleNamespace

import pytest

from tilegate_ci.measure import conditions


class FakeError(Exception):
    pass


class FakeNvml:
    """A GPU that knows no thermal violation counter."""

    NVMLError = FakeError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_PERF_POLICY_POWER, NVML_PERF_POLICY_THERMAL = 0, 1

    def __init__(self):
        self.asked_for = None

    def nvmlInit(self):  # noqa: N802
        pass

    nvmlShutdown = nvmlInit  # noqa: N815

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        self.asked_for = index

    nvmlDeviceGetHandleByUUID = nvmlDeviceGetHandleByIndex  # noqa: N815

    def nvmlDeviceGetUUID(self, gpu):  # noqa: N802
        return "GPU-1"

    def nvmlDeviceGetClockInfo(self, gpu, which):  # noqa: N802
        return {1: 1980, 2: 3201}[which]

    def nvmlDeviceGetCudaComputeCapability(self, gpu):  # noqa: N802
        return 9, 0

    def nvmlDeviceGetPowerUsage(self, gpu):  # noqa: N802
        return 121500

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu):  # noqa: N802
        return 700000

    def nvmlDeviceGetTemperature(self, gpu, sensor):  # noqa: N802
        return 41

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, gpu):  # noqa: N802
        return 0x4 | 0x40 | 0x400

    def nvmlDeviceGetViolationStatus(self, gpu, policy):  # noqa: N802
        if policy == self.NVML_PERF_POLICY_THERMAL:
            raise FakeError
        return SimpleNamespace(violationTime=2_500_000)


@pytest.fixture
def nvml(monkeypatch):
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_the_compute_capability(nvml):
    assert conditions.compute_capability() == 90


def test_all_that_the_gpu_knows(nvml):
    assert conditions.read() == {
        "board": conditions.board("GPU-1"),
        "clock_sm_mhz": 1980,
        "clock_mem_mhz": 3201,
        "power_w": 121.5,
        "power_limit_w": 700.0,
        "temperature_c": 41,
        "throttle_reasons": ["software power cap", "hardware thermal slowdown", "0x400"],
        "power_violation_ms": 2.5,
    }


def test_without_nvml_there_are_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert (conditions.read(), conditions.compute_capability()) == ({}, None)


def test_without_a_driver_there_are_none(nvml):
    def fail():
        raise FakeError

    nvml.nvmlInit = fail
    assert (conditions.read(), conditions.compute_capability()) == ({}, None)


@pytest.mark.parametrize(
    ("visible", "asked_for"), [(None, 0), ("", 0), ("3,1", 3), ("GPU-8f2c,1", "GPU-8f2c")]
)
def test_the_gpu_is_the_one_that_cuda_sees_first(monkeypatch, nvml, visible, asked_for):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    conditions.read()
    assert nvml.asked_for == asked_for
