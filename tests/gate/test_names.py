from __future__ import annotations

import re

import pytest

from tilegate_ci.core.names import benchmark_filter, canonical_name, rerun_command

PLAIN = "Warptile/4096x4096x4096"


@pytest.mark.parametrize(
    "suffix",
    [
        "",
        "/manual_time",
        "/real_time",
        "/process_time",
        "/process_time/real_time",
        "/min_time:0.100",
        "/min_time:0.100s",
        "/min_time:0.100/min_warmup_time:1.000/manual_time",
        "/iterations:5/repeats:3/manual_time/threads:1",
        "_median",
        "/repeats:3/manual_time_stddev",
        "/manual_time_cv",
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        PLAIN,
        "SplitK/1x2x65536/ld65536x8x8/off4/cold",
        "Blocktile1D/9x8x7/off12",
        "Warptile.64x64/9x8x7",
    ],
)
def test_google_benchmark_suffixes_are_stripped(name, suffix):
    assert canonical_name(name + suffix) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Warptile",
        "Warptile/4096",
        "Warptile/4096x4096",
        "Warptile/0x1x1",
        "Warptile/01x1x1",
        "Warptile/-1x1x1",
        "/1x1x1",
        "War ptile/1x1x1",
        "Warptile/1x1x1/off0",
        "Warptile/1x1x1/off4/ld1x1x1",
        "Warptile/1x1x1/cold/off4",
        "Warptile/1x1x1/warm",
        "Warptile/1x1x1/",
        "Warptile/1x1x1\n",
        "Warptile/1x1x1_other",
        "Warptile/1x1x1/min_time:1.2.3",
        "Warptile/1x1x1/min_time:.",
    ],
)
def test_malformed_names_are_refused(name):
    with pytest.raises(ValueError, match="malformed benchmark name"):
        canonical_name(name)


def test_a_filter_finds_its_benchmark_with_suffixes_and_no_longer_size():
    pattern = re.compile(benchmark_filter("Warptile/128x128x128"))
    assert pattern.search("Warptile/128x128x128")
    assert pattern.search("Warptile/128x128x128/manual_time")
    assert not pattern.search("Warptile/128x128x1280/manual_time")
    assert not pattern.search("PreWarptile/128x128x128")


def test_the_rerun_command_follows_the_device():
    rest = "bench/bench --shapes=4096x4096x4096 --benchmark_filter='^Warptile/4096x4096x4096(/|$)'"
    assert rerun_command(PLAIN, "cuda") == f"build/gpu/{rest}"
    assert rerun_command(PLAIN, "simt") == f"build/cpu/{rest}"


def test_the_rerun_command_asks_for_everything_in_the_name():
    name = "Warptile.64x64/9x8x7/ld9x9x9/off4/cold"
    assert rerun_command(name, "cuda") == (
        "build/gpu/bench/bench --shapes=9x8x7/ld9x9x9/off4 --cold --variants"
        f" --benchmark_filter='^{name}(/|$)'"
    )
