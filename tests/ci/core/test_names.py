import csv
import re

import pytest

from gate_builders import REPOSITORY
from tilegate_ci.core.names import benchmark_filter, canonical_name, rerun_command, shape_of

PLAIN = "Warptile/4096x4096x4096"
with (REPOSITORY / "tests" / "problem" / "names.csv").open(encoding="utf-8") as stream:
    TABLE = [(row["text"], row["canonical"]) for row in csv.DictReader(stream)]

ONLY_TOO_LARGE = ("Warptile/9223372036854775808x1x1", "Warptile/1x1x1/alpha1e39")  # bench says so


@pytest.mark.parametrize(("text", "canonical"), TABLE)
def test_the_table_that_the_c_plus_plus_parser_reads_too(text, canonical):
    if canonical:
        assert canonical_name(text) == text
        assert canonical_name(canonical) == canonical
    elif text not in ONLY_TOO_LARGE:
        with pytest.raises(ValueError, match="malformed"):
            canonical_name(text)


@pytest.mark.parametrize(
    "text",
    [
        *("1Naive/1x1x1", "War ptile/1x1x1", "Warptile./1x1x1", "Warptile.a.b/1x1x1"),
        *(
            "Warptile/01x1x1",
            "Warptile/0x1x1",
            "Warptile/1x1x1/ld01x1x1",
            "Warptile/1x1x1/batch0",
        ),
        *(f"Warptile/1x1x1/alpha{value}" for value in (".5", "1.", "Inf", "-nan")),
    ],
)
def test_the_gate_refuses_some_that_the_library_reads(text):
    with pytest.raises(ValueError, match="malformed"):
        canonical_name(text)


def test_the_shape_is_read():
    name = "Warptile.wide/64x32x16/TN/ld70x36x40/batch2s5000x600x0/off4x8x12/alpha-0.5/beta2/split"
    assert shape_of(canonical_name(name)) == (64, 32, 16)


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
        "Blocktile1D/9x8x7/off12/beta0.5",
        "Warptile.64x64/9x8x7",
    ],
)
def test_google_benchmark_suffixes_are_stripped(name, suffix):
    assert canonical_name(name + suffix) == name


@pytest.mark.parametrize("suffix", ["\n", "_other", "/min_time:1.2.3", "/min_time:."])
def test_other_suffixes_are_refused(suffix):
    with pytest.raises(ValueError, match="malformed benchmark name"):
        canonical_name(PLAIN + suffix)


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
