"""Every rung that this repository ships is complete."""

import json
import re
import subprocess

import pytest
from ladder_builder import REPOSITORY

from tilegate_ci.core.names import canonical_name
from tilegate_ci.formats.stages import find_ladder
from tilegate_ci.measure.launcher import PLACES, Launcher, read_suite

RUNGS = find_ladder(REPOSITORY)
# Rungs that are new since a GPU was last recorded. There their verdict is `new`.
NOT_RECORDED = {"nvidia-h100-80gb-hbm3.json": {"OuterProduct"}}
BASELINES = sorted((REPOSITORY / "bench" / "baselines").glob("nvidia-*.json"))
SQUARES = [128, 256, 512, 1024, 2048, 4096, 8192]
SUITES = [
    "ExactOnIntegers",
    "WithinForwardErrorBound",
    "MemoryContract",
    "BlasSemantics",
    "Repeatable",
    "RandomSweep",
    "ErrorsAreValues",
]


def benchmarks(path):
    return json.loads((REPOSITORY / path).read_text("utf-8"))["benchmarks"].keys()


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_baseline_rows(rung):
    wanted = {f"{rung.name}/{n}x{n}x{n}" for n in SQUARES}
    without = {path.name for path in BASELINES if not wanted <= benchmarks(path)}
    assert without == {name for name, rungs in NOT_RECORDED.items() if rung.name in rungs}


def test_the_baselines_cover_the_gated_suite():
    names = read_suite(RUNGS)
    assert len(names) == len(set(names))
    assert BASELINES
    for path in BASELINES:
        missing = {name.split("/")[0] for name in set(names) - benchmarks(path)}
        assert missing == NOT_RECORDED.get(path.name, set()), path


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_rows_of_the_odd_skinny_and_unaligned_shapes(rung):
    lines = (REPOSITORY / "bench/shapes.csv").read_text("utf-8").splitlines()[1:]
    shapes = [line.split(",") for line in lines if re.match("odd|skinny|unaligned", line)]
    rows = [
        n
        for n in benchmarks("bench/results/nvidia-h200-shapes.json")
        if rung.name == n.split("/")[0]
    ]
    assert len(rows) == len(shapes) > 30


@pytest.mark.parametrize("rung", RUNGS[:-1], ids=lambda rung: rung.name)
def test_page(rung):
    page = (REPOSITORY / rung.folder / "README.md").read_text("utf-8")
    for heading in ["## Arithmetic intensity", "## What limits it", "## Measured"]:
        assert heading in page
    numbers = page.partition("<!-- numbers:begin -->")[2].partition("<!-- numbers:end -->")[0]
    assert "Nsight Compute" in numbers
    assert "TFLOP/s" in numbers


def build_of_this_run():
    """The build folder whose ctest runs this test, else the preset's."""
    for folder in (REPOSITORY / "build").glob("*/CTestTestfile.cmake"):
        if folder.parent.name in ("cpu", "gpu"):
            return folder.parent
    pytest.fail(
        "no build of the preset cpu or gpu: cmake --preset cpu && cmake --build --preset cpu"
    )


def test_bench_takes_what_the_gate_asks_of_it():
    """The options that a process of base or head is started with, whichever of the two is older."""
    names = ["Naive/33x35x37/ld38x36x39/off4", "Warptile/64x64x64"]
    launcher = Launcher(seed=2, placements=PLACES)
    command = launcher.command(build_of_this_run() / "bench" / "bench", names)
    done = subprocess.run(
        [*command, "--benchmark_list_tests"], check=True, capture_output=True, text=True
    )
    assert [canonical_name(name) for name in done.stdout.split()] == names


def test_every_rung_has_every_suite_and_its_benchmarks():
    build = build_of_this_run()
    listed = subprocess.run(
        ["ctest", "--test-dir", build, "-N"], check=True, capture_output=True, text=True
    ).stdout
    names = subprocess.run(
        [build / "bench" / "bench", "--benchmark_list_tests"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    benched = {canonical_name(name).split("/")[0] for name in names}
    for rung in RUNGS:
        for suite in SUITES:
            assert f"ladder.{rung.name}.{suite}\n" in listed
    assert {rung.name for rung in RUNGS if not rung.yardstick} <= benched
