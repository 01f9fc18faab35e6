"""The executor beside Nsight Compute: lane patterns, and the ladder's cases, measured on an H200 by
device/measure.py and committed. A difference is an error unless EXPLAINED says why it is there."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from measure import BORDERS
from mutant import read_toolchain
from patterns import patterns
from table import ASYNC, EXACT, NOISY, page, with_tables

from tilegate_ci.checks.counters import BASELINE, cases_of, count, list_rungs
from tilegate_ci.checks.counters import load as load_table
from tilegate_ci.formats.stages import find_ladder
from tilegate_ci.model import REPOSITORY

HERE = Path(__file__).resolve().parent
MEASURED = HERE / "measured"
# Wavefronts of the pipe hold arbitration with other traffic, up to this much beyond the
# instruction's own. What the hardware counts at the instruction has none, and is exact.
ARBITRATION = 0.35
END_OF_MEMORY = "1048576"  # in device/copies.cu, where lanes point that store zeros


def load(name: str) -> Any:
    return json.loads((MEASURED / name).read_text(encoding="utf-8"))


def expect_costs(rows: list[dict[str, Any]]) -> None:
    program = read_toolchain().program
    given = "".join(row["pattern"] + "\n" for row in rows)
    done = subprocess.run(
        [program, "--patterns"], input=given, capture_output=True, text=True, check=True
    )
    differences = []
    for row, line in zip(rows, done.stdout.splitlines(), strict=True):
        units, excess = map(int, line.split())
        measured = row.get("wavefronts", row.get("sectors"))
        if units != measured or excess != row.get("conflicts", excess):
            differences.append(f"ncu {measured}, here {units}: {row['pattern']}")
    assert not differences, "\n".join(differences)


def test_every_pattern_costs_what_it_costs_on_the_gpu() -> None:
    rows = load("patterns.json")["patterns"]
    assert [row["pattern"] for row in rows] == [pattern.line() for pattern in patterns()]
    expect_costs(rows)


def test_every_copy_costs_what_it_costs_on_the_gpu() -> None:
    rows = load("copies.json")["copies"]
    expect_costs([row for row in rows if not row["pattern"].startswith("shared_copy 16")])


def test_copies_of_16_bytes_cost_what_they_cost_on_the_gpu() -> None:
    """Wavefronts of shared memory and sectors of global memory. Nsight Compute counted wavefronts
    of zeros as those of copies from where copies.cu lets the lanes point."""
    rows = [
        row for row in load("copies.json")["copies"] if row["pattern"].startswith("shared_copy 16")
    ]
    assert len(rows) > 150
    expect_costs([row | {"pattern": row["pattern"].replace("-1", END_OF_MEMORY)} for row in rows])
    expect_costs(
        [
            {
                "pattern": row["pattern"].replace("shared_copy", "copy_load"),
                "sectors": row["sectors"],
            }
            for row in rows
        ]
    )


@pytest.mark.parametrize(("stride", "wavefronts"), [(16, 4), (64, 16)])
def test_zeros_alone_are_stored_eight_lanes_at_a_time(stride: int, wavefronts: int) -> None:
    """Measured with copies.cu as it was at 0601d44, where Nsight Compute counts zeros alone."""
    offsets = " ".join(str(stride * lane) for lane in range(32))
    pattern = f"shared_copy 16 ffffffff {offsets}" + " -1" * 32
    expect_costs([{"pattern": pattern, "wavefronts": wavefronts}])


@pytest.mark.parametrize(("stride", "wavefronts"), [(0, 1), (1, 1), (4, 1), (128, 32)])
@pytest.mark.parametrize("kind", ["shared_load", "shared_store"])
def test_a_byte_costs_what_its_word_costs(kind: str, stride: int, wavefronts: int) -> None:
    offsets = " ".join(str(stride * lane) for lane in range(32))
    conflicts = wavefronts - 1
    expect_costs(
        [
            {
                "pattern": f"{kind} 1 ffffffff {offsets}",
                "wavefronts": wavefronts,
                "conflicts": conflicts,
            }
        ]
    )


@pytest.fixture(scope="module")
def cases() -> Any:
    return load("cases.json")["cases"]


def committed() -> dict[str, Mapping[str, int]]:
    return {name: case.counters for name, case in load_table(REPOSITORY / BASELINE).items()}


@pytest.fixture(scope="module")
def counted() -> dict[str, Mapping[str, int]]:
    """As committed; that the executor counts just this, `ci/gate check counters` shows.
    Cases that are not in its table are counted here."""
    table = committed()
    borders = count(read_toolchain().program, BORDERS)
    return table | {name: outcome.counters for name, outcome in borders.items()}


def differences(
    cases: dict[str, Any], counted: Mapping[str, Mapping[str, int]], keys: dict[str, str]
) -> tuple[list[str], set[str]]:
    """What differs, with no reason or another one than EXPLAINED has; and what reasons are used."""
    explained, found, used = load("explained.json"), [], set()
    for name, runs in cases.items():
        for key, counter in keys.items():
            if counter not in counted[name]:
                continue
            values, here = sorted({run[key] for run in runs}), counted[name][counter]
            if values == [here]:
                continue
            case = f"{name} {counter}"
            reason = explained.get(case)
            used.add(case)
            if reason is None or (reason["ncu"], reason["here"]) != (values, here):
                found.append(f"{case}: ncu {values}, here {here}")
    return found, used


def test_every_rung_is_measured_or_says_that_it_is_not(cases: dict[str, Any]) -> None:
    unmeasured = load("cases.json").get("unmeasured", [])
    ladder = {stage.name for stage in find_ladder()}
    own = [rung for rung in list_rungs(read_toolchain().program) if rung.split(".")[0] in ladder]
    every = cases_of(own, load_table(REPOSITORY / BASELINE))
    assert sorted([*cases, *unmeasured]) == sorted([*every, *BORDERS])


def test_counters_are_those_of_the_gpu(
    cases: dict[str, Any], counted: Mapping[str, Mapping[str, int]]
) -> None:
    """Of asynchronous hardware, too, but for counters that cases.json says no run has."""
    unmeasured = load("cases.json").get("unmeasured_counters", [])
    of_async = {key: counter for key, counter in ASYNC.items() if key not in unmeasured}
    found, used = differences(cases, counted, EXACT | of_async)
    hint = "a kernel changed? see kernels/device/README.md, Against hardware\n"
    assert not found, hint + "\n".join(found)
    unused = load("explained.json").keys() - used
    assert not unused, f"explained, but equal: {sorted(unused)}"


def test_wavefronts_of_the_pipe_are_within_arbitration(
    cases: dict[str, Any], counted: Mapping[str, Mapping[str, int]]
) -> None:
    explained = load("explained.json")
    for name, runs in cases.items():
        for key in NOISY:
            if f"{name} {key}" in explained:  # where the instructions differ, the pipe does
                continue
            for run in runs:
                here = counted[name][key]
                assert here <= run[key] <= here * (1 + ARBITRATION), f"{name} {key}"


def test_the_page_shows_the_tables(cases: dict[str, Any]) -> None:
    text = page(REPOSITORY).read_text(encoding="utf-8")
    assert text == with_tables(text, cases, committed()), (
        "tests/counters/device/table.py writes them"
    )
