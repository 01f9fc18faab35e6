"""The executor beside Nsight Compute: lane patterns, and the ladder's cases, measured on an H200 by
device/measure.py and committed. A difference is an error unless EXPLAINED says why it is there."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mutant import read_toolchain
from patterns import patterns
from table import ASYNC, EXACT, NOISY, page, table

from tilegate_ci.core.markdown import with_block
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.counters.count import list_rungs
from tilegate_ci.counters.table import BASELINE, cases_of
from tilegate_ci.counters.table import load as load_table

HERE = Path(__file__).resolve().parent
MEASURED = HERE / "measured"
# Wavefronts of the pipe hold arbitration with other traffic, up to this much beyond the
# instruction's own. What the hardware counts at the instruction has none, and is exact.
ARBITRATION = 0.35


def load(name: str) -> Any:
    return json.loads((MEASURED / name).read_text(encoding="utf-8"))


def test_every_pattern_costs_what_it_costs_on_the_gpu() -> None:
    rows = load("patterns.json")["patterns"]
    assert [row["pattern"] for row in rows] == [pattern.line() for pattern in patterns()]
    given = "".join(row["pattern"] + "\n" for row in rows)
    program = read_toolchain().program
    done = subprocess.run(
        [program, "--patterns"], input=given, capture_output=True, text=True, check=True
    )
    differences = []
    for row, line in zip(rows, done.stdout.splitlines()):
        units, excess = map(int, line.split())
        measured = row.get("wavefronts", row.get("sectors"))
        if units != measured or excess != row.get("conflicts", excess):
            differences.append(f"{row['name']}: ncu {measured}, here {units}: {row['pattern']}")
    assert not differences, "\n".join(differences)


@pytest.fixture(scope="module")
def cases() -> Any:
    return load("cases.json")["cases"]


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, int]]:
    """As committed; that the executor counts just this is what `ci/gate counters` sees to."""
    return {name: case.counters for name, case in load_table(REPOSITORY / BASELINE).items()}


def test_every_rung_is_measured_or_says_that_it_is_not(cases: dict[str, Any]) -> None:
    unmeasured = load("cases.json").get("unmeasured", [])
    every = cases_of(list_rungs(read_toolchain().program), load_table(REPOSITORY / BASELINE))
    assert sorted([*cases, *unmeasured]) == sorted(every)


def test_counters_are_those_of_the_gpu(
    cases: dict[str, Any], counted: dict[str, dict[str, int]]
) -> None:
    explained = load("explained.json")
    differences, unused = [], dict(explained)
    for name, runs in cases.items():
        for key, counter in EXACT.items():
            values = {run[key] for run in runs}
            if values == {counted[name][counter]}:
                continue
            reason = unused.pop(f"{name} {counter}", None)
            found = {"ncu": sorted(values), "here": counted[name][counter]}
            if reason is None or {k: reason[k] for k in found} != found:
                differences.append(f"{name} {counter}: {found}")
    hint = "a kernel changed? see kernels/device/README.md, Against hardware\n"
    assert not differences, hint + "\n".join(differences)
    assert not unused, f"explained, but equal: {sorted(unused)}"


def test_asynchronous_hardware_is_counted_as_by_the_gpu(
    cases: dict[str, Any], counted: dict[str, dict[str, int]]
) -> None:
    """Or the counter is one that cases.json says was not measured with all cases yet."""
    differences, unmeasured = [], set()
    for name, runs in cases.items():
        for counter in ASYNC.keys() & counted[name].keys():
            values = {run.get(counter) for run in runs}
            if values == {None}:
                unmeasured.add(counter)
            elif values != {counted[name][counter]}:
                differences.append(f"{name} {counter}: {values}, here {counted[name][counter]}")
    assert not differences, "\n".join(differences)
    assert sorted(unmeasured) == load("cases.json").get("unmeasured_counters", [])


def test_wavefronts_of_the_pipe_are_within_arbitration(
    cases: dict[str, Any], counted: dict[str, dict[str, int]]
) -> None:
    explained = load("explained.json")
    for name, runs in cases.items():
        for key in NOISY:
            if f"{name} {key}" in explained:  # where the instructions differ, the pipe does
                continue
            for run in runs:
                here = counted[name][key]
                assert here <= run[key] <= here * (1 + ARBITRATION), f"{name} {key}"


def test_the_page_shows_the_table(
    cases: dict[str, Any], counted: dict[str, dict[str, int]]
) -> None:
    text = page(REPOSITORY).read_text(encoding="utf-8")
    wanted = with_block(text, "ncu", table(cases, counted), page(REPOSITORY))
    assert text == wanted, "tests/counters/device/table.py writes it"
