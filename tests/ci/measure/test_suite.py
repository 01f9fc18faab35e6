"""Which benchmarks are gated: some of every rung, and what bench/gate.csv adds or takes away."""

import json
from pathlib import Path

import pytest
from stage_builder import stage

from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import Stage
from tilegate_ci.measure.launcher import Launcher, check_complete, keys, parse_suite
from tilegate_ci.model import Process

PAIR = ("Naive/1x2x3", "Naive/4x5x6")
TABLE = "set,m,n,k,lda,ldb,ldc,pointer_offset_bytes\n"


def stages(*rungs: dict) -> list[Stage]:
    return [Stage.model_validate_json(json.dumps(rung)) for rung in rungs]


RUNGS = stages(
    stage("07_six", "Six", tile_sizes=[6, 96]),
    stage("08_any", "Any", tile_sizes=[]),
    stage("cublas", "Cublas"),
)


def test_every_rung_has_squares_and_a_problem_off_its_tiles():
    assert parse_suite("benchmark\n", "gate.csv", RUNGS) == [
        "Six/1024x1024x1024",
        "Six/2048x2048x2048",
        "Six/4096x4096x4096",
        "Six/2111x2113x2115",  # 22 x 96 is 2112
        "Any/1024x1024x1024",
        "Any/2048x2048x2048",
        "Any/4096x4096x4096",
        "Any/2047x2049x2051",
        "Cublas/1024x1024x1024",
        "Cublas/2048x2048x2048",
        "Cublas/4096x4096x4096",
    ]


def test_a_rung_that_takes_whole_tiles_alone_has_the_squares_of_them():
    whole = stages(stage("09_whole", "Whole", multiple_of=[128, 1536, 8]))
    assert parse_suite("benchmark\n", "gate.csv", whole) == []
    whole = stages(stage("09_whole", "Whole", multiple_of=[2048, 128, 8]))
    names = ["Whole/2048x2048x2048", "Whole/4096x4096x4096"]
    assert parse_suite("benchmark\n", "gate.csv", whole) == names


def test_the_file_adds_any_form_of_a_problem_and_takes_away():
    text = "benchmark\n-Any/4096x4096x4096\nAny/64x64x64/TN/batch4\nLate/8x8x8\n-Gone/1x1x1\n"
    names = parse_suite(text, "gate.csv", RUNGS)
    assert "Any/4096x4096x4096" not in names
    assert names[-2:] == ["Any/64x64x64/TN/batch4", "Late/8x8x8"]
    assert parse_suite("benchmark\n-Any/4096x4096x4096\n", "gate.csv", []) == []


def test_a_variant_can_be_gated():
    command = Launcher().command(Path("bench"), ["Any/4x4x4", "Any.ten/4x4x4"])
    assert "--variants" in command
    assert "--benchmark_filter=^(Any/(4x4x4)|Any\\.ten/(4x4x4))(/manual_time)?$" in command
    assert "--variants" not in Launcher().command(
        Path("bench"), ["Any/4x4x4", "Any/4x4x4/alpha0.5"]
    )


def test_an_older_file_is_the_whole_suite():
    assert parse_suite(f"{TABLE}Any,8,8,8,8,9,8,4\n", "gate.csv", RUNGS) == [
        "Any/8x8x8/ld8x9x8/off4"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "gate.csv:1: the first line must be benchmark"),
        ("benchmark\nAny/1x1\n", "gate.csv:2: malformed benchmark name 'Any/1x1'"),
        ("benchmark\nAny/1x1x1\nAny/1x1x1\n", "gate.csv:3: Any/1x1x1 is there twice"),
        ("benchmark\nAny/1024x1024x1024\n", "Any/1024x1024x1024 is there twice, or gated without"),
        ("benchmark\n-Any/1x1x1\n", "gate.csv:2: Any/1x1x1 is not gated, so there is nothing to"),
        (TABLE, "gate.csv: no benchmark in it"),
    ],
)
def test_what_makes_no_sense_is_an_error(text, message):
    with pytest.raises(GateError) as caught:
        parse_suite(text, "gate.csv", RUNGS)
    assert message in str(caught.value)


def test_the_largest_plain_square_of_each_rung_is_key():
    names = ["A/64x64x64", "A/128x128x128", "A/256x256x256/TN", "A/512x512x511", "B/1x2x3"]
    assert keys(names) == {"A/128x128x128"}


def reading(**fields):
    return {"gflops": 1.0, "ratio_to_cublas": 1.0, "verified": True, **fields}


@pytest.mark.parametrize(
    ("readings", "message"),
    [
        ({"Naive/1x2x3": reading()}, "bench: lacks Naive/4x5x6"),
        ({n: reading() for n in (*PAIR, "Naive/7x8x9")}, "bench: ran more than it was asked for"),
        ({PAIR[0]: reading(), PAIR[1]: reading(verified=False)}, f"not verified: {PAIR[1]}"),
        ({n: {"gflops": 1.0, "verified": True} for n in PAIR}, "no time of cuBLAS; this needs a"),
    ],
)
def test_a_process_has_what_was_asked_for(readings, message):
    device = {"kind": "cuda", "name": "NVIDIA H200", "cublas": "13.1.0"}
    check_complete(Process(device=device, readings={n: reading() for n in PAIR}), PAIR)
    with pytest.raises(GateError, match=message):
        check_complete(Process(device=device, readings=readings, source="bench"), PAIR)
