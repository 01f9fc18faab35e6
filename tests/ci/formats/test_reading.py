"""What other projects' benchmarks write: names of their own, times, yardsticks, what is wrong."""

import pytest
from project_builder import NVBENCH, google, nvbench, text

from tilegate_ci.core.files import GateError
from tilegate_ci.formats.reading import Declared, read_process, yardstick_of, yardsticks_in

TIMES = {"Kernel<float, 4>/64": 2.0, "Kernel<float, 4>/128": 8.0}
BOTH = {**TIMES, "Reference/64": 1.0, "Reference/128": 6.0}


def read(document, path="p.json", **declared):
    return read_process(text(document), path, Declared(**declared))


def seconds(process):
    return {name: pytest.approx(1 / row.per_second) for name, row in process.readings.items()}


def test_google_benchmark():
    process = read(google(TIMES))
    assert seconds(process) == {name: time * 1e-6 for name, time in TIMES.items()}
    assert (process.device.kind, process.device.name) == ("other", "a-machine")
    assert process.started == "2026-01-02T03:04:05Z"
    assert all(row.unchecked and not row.verified for row in process.readings.values())
    assert seconds(read(google(TIMES), time="cpu_time"))["Kernel<float, 4>/64"] == 4e-6


def test_repetitions_are_reduced_to_their_median_and_aggregates_left_out():
    document = google({"A": 1.0})
    (row,) = document["benchmarks"]
    document["benchmarks"] = [{**row, "real_time": time} for time in (5, 3, 9)]
    mean = {**row, "name": "A_mean", "run_type": "aggregate", "aggregate_name": "mean"}
    document["benchmarks"].append({**mean, "real_time": 100})
    assert seconds(read(document)) == {"A": 5e-6}
    document["benchmarks"] = document["benchmarks"][-1:]
    with pytest.raises(GateError, match="no benchmark in it; aggregates alone are not enough"):
        read(document)


@pytest.mark.parametrize(("unit", "size"), [("ns", 1e-9), ("ms", 1e-3), ("s", 1.0)])
def test_units(unit, size):
    document = google({"A": 3.0})
    document["benchmarks"][0]["time_unit"] = unit
    assert seconds(read(document)) == {"A": 3 * size}


def test_nvbench():
    process = read(nvbench({"1024": 0.5, "2048": 0.75}))
    assert seconds(process) == {"copy/Elements=1024": 0.5, "copy/Elements=2048": 0.75}
    assert process.device.name == "NVIDIA H200"
    batch = read(nvbench({"1024": 0.5}), time="nv/batch/time/gpu/mean")
    assert seconds(batch) == {"copy/Elements=1024": 0.25}


def test_a_file_that_nvbench_wrote():
    process = read_process(NVBENCH.read_text(), str(NVBENCH), Declared())
    chain = "fma chain/Elements=1048576/BlockSize={}/Depth={}"
    assert seconds(process) == {
        chain.format(128, "full"): 9.466196065687499e-05,
        "copy/Elements=16777216": 7.266654573719599e-05,
    }
    skipped = "half the depth is measured in blocks of 128 alone"
    assert process.skipped == {chain.format(512, "half"): skipped}
    assert process.device.name == "NVIDIA H200"


def sample(name, **declared):
    path = NVBENCH.with_name(name)
    return read_process(path.read_text(), str(path), Declared(**declared))


def test_a_file_that_pytest_benchmark_wrote():
    process = sample("pytest_benchmark.json", verified="right")
    of = "test_dot.py::test_product[{}]".format
    assert seconds(process) == {
        of("dot-64"): 7.000000096013537e-06,
        of("dot-128"): 3.8768000081290666e-05,
        of("einsum-64"): 4.746100000829756e-05,
        of("einsum-128"): 0.00026608699999997043,
    }
    assert all(row.verified for row in process.readings.values())
    assert process.started.startswith("2026-11-23T12:")
    fastest = sample("pytest_benchmark.json", time="min", filter="dot-64")
    assert seconds(fastest) == {of("dot-64"): 6.660000053670956e-06}


def test_a_file_that_asv_wrote():
    process = sample("asv.json")
    assert seconds(process) == {
        "dot.Product.time_product/64/'dot'": 7.360999973116122e-06,
        "dot.Product.time_product/64/'einsum'": 4.9563999994006736e-05,
        "dot.Product.time_product/128/'dot'": 3.8827999958357395e-05,
        "dot.time_sort": 4.385613255020331e-06,
    }
    skipped = "dot.Product.time_product/128/'einsum'"
    assert process.skipped == {skipped: "its setup raised NotImplementedError"}
    assert process.device.name == "a-machine"
    assert seconds(sample("asv.json", time="stats_q_25"))["dot.time_sort"] == 4.3193e-06


def test_plain_lines():
    """Each benchmark was measured twice: the median, of two the middle."""
    csv, lines = sample("times.csv", verified="right"), sample("times.jsonl", verified="right")
    assert list(csv.readings) == ["dot/64", "einsum/64", "dot/128", "einsum/128"]
    assert csv.readings == lines.readings
    assert all(row.verified for row in csv.readings.values())
    assert csv.device.name == "an unnamed machine"
    assert lines.device.name == "a-machine"
    text = 'name, seconds ,p20\n"a,b",2e-6,1e-6\n\n"a,b",4e-6,3e-6\n'
    assert seconds(read_process(text, "t.csv", Declared())) == {"a,b": 3e-6}
    assert seconds(read_process(text, "t.csv", Declared(time="p20"))) == {"a,b": 2e-6}


@pytest.mark.parametrize(
    ("text", "declared", "message"),
    [
        ("kernel,time\na,1\n", {}, "t:1: no JSON, and the first line does not name the columns "),
        ("name,name,seconds\n", {}, "t:1: no JSON, and the first line does not name"),
        ("name,seconds\n", {}, "t: no benchmark in it"),
        (
            "name,seconds\na,1\nb,x\n",
            {},
            't:3: b: a time must be a finite number above zero, not "x"',
        ),
        ("name,seconds\na,0\n", {}, "t:2: a: a time must be a finite number above zero, not 0.0"),
        ("name,seconds\na,nan\n", {}, "t:2: a: a time must be a finite number above zero"),
        ("name,seconds\na,1,2\n", {}, "t:2: 3 values, but 2 columns: name,seconds"),
        ("name,seconds\na,\n", {}, "t:2: a failed: it has no seconds"),
        ("name,seconds\n,1\n", {}, "t:2: name is missing"),
        ('name,seconds\n"a\nb",1\n', {}, "t:3: a name must be one line of printable text"),
        ('name,seconds\na"b,1\n"a,1', {}, "t:3: malformed CSV: unexpected end of data"),
        (
            "name,seconds\na,1\n",
            {"time": "p20"},
            "t:2: a: no column p20; --time takes one of name, sec",
        ),
        ("name,seconds\na,1\n", {"verified": "ok"}, "t:2: a: no counter ok, which --verified"),
        ("name,seconds,device\na,1,x\nb,1,y\n", {}, "t:3: device 'y', but 'x' above"),
        ('{"name": "a", "seconds": 1}\n{"name": "a"}\n', {}, "t:2: a: no column seconds; --time"),
        ('{"name": "a", "seconds": 1}\n{"name\n', {}, "t:2: malformed JSON: "),
        (
            '{"name": "a", "seconds": 1}\n\n[1]\n',
            {},
            "t:3: must be an object with name and seconds",
        ),
        ('{"name": "a", "seconds": "1 ms"}\n', {}, "t:1: a: a time must be a finite number"),
        ('{"name": "a", "seconds": true}\n', {}, "t:1: a: a time must be a finite number"),
        ("", {}, "t: the file is empty"),
    ],
)
def test_what_is_wrong_with_plain_lines_names_the_line(text, declared, message):
    with pytest.raises(GateError) as caught:
        read_process(text, "t", Declared(**declared))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_nvbench_of_before_2021_is_refused():
    old = {"GPU Time": {"values": []}}  # summaries had no tags
    with pytest.raises(GateError, match="summaries: must be a valid array"):
        read(state(summaries=old))


def test_what_is_skipped_is_no_benchmark_but_is_kept():
    document = nvbench({"1": 0.5, "2": 0.5})
    document["benchmarks"][0]["states"][1] |= {
        "is_skipped": True, "skip_reason": "too\nlarge", "summaries": None, "axis_values": None,
    }  # fmt: skip
    process = read(document)
    assert (list(process.readings), process.skipped) == (["copy/Elements=1"], {"copy": "too large"})
    document = google(TIMES)
    document["benchmarks"][0] |= {"skipped": True, "skip_message": "no"}
    assert read(document).skipped == {"Kernel<float, 4>/64": "no"}


@pytest.mark.parametrize(
    ("name", "pattern", "yardstick"),
    [
        ("Mine/64/real_time", "Reference/*", "Reference/64/real_time"),
        ("Mine", "Reference/*", "Reference"),
        ("Mine/64", "Reference", "Reference"),
        ("Gemm/Mine/64/1", "*/Cublas/*", "Gemm/Cublas/64/1"),
        ("Gemm/Mine/64", "*/*/1", "Gemm/Mine/1"),
    ],
)
def test_yardsticks_are_named_by_a_pattern(name, pattern, yardstick):
    assert yardstick_of(name, pattern) == yardstick


def test_the_time_relative_to_a_yardstick():
    process = read(google(BOTH), yardstick="Reference/*")
    ratios = {name: row.ratio_to_yardstick for name, row in process.readings.items()}
    assert ratios == {
        "Kernel<float, 4>/64": 0.5, "Kernel<float, 4>/128": 0.75,
        "Reference/64": None, "Reference/128": None,
    }  # fmt: skip
    assert yardsticks_in(process) == ["Reference/64", "Reference/128"]
    assert yardsticks_in(read(google(BOTH))) == []


def test_a_filter_keeps_the_yardsticks_of_what_it_finds():
    process = read(google(BOTH), yardstick="Reference/*", filter="Kernel.*/64")
    assert list(process.readings) == ["Kernel<float, 4>/64", "Reference/64"]


def test_who_declares_a_check_is_held_to_it():
    assert all(row.verified for row in read(google(TIMES, ok=1), verified="ok").readings.values())
    assert not any(r.sound for r in read(google(TIMES, ok=0), verified="ok").readings.values())
    found = read(nvbench({"1": 1.0}, my_check="1"), verified="my/check").readings
    assert all(row.verified and not row.unchecked for row in found.values())


def edited(document, **changes):
    document["benchmarks"][0] |= changes
    return document


def pytest_report(**changes):
    row = {"fullname": "a", "stats": {"median": 1.0}, **changes}
    return {"machine_info": {}, "benchmarks": [row]}


def asv_results(values, **changes):
    rows = {"a.time_b": [values, [["1", "2"]]]}
    return {"params": {}, "result_columns": ["result", "params"], "results": rows, **changes}


def state(**changes):
    document = nvbench({"1": 1.0})
    document["benchmarks"][0]["states"][0] |= changes
    return document


@pytest.mark.parametrize(
    ("document", "declared", "message"),
    [
        ([], {}, "neither Google Benchmark's JSON, from --benchmark_out=FILE, nor NVBench's"),
        ({"benchmarks": []}, {}, "neither Google Benchmark's JSON"),
        (google({}), {}, "benchmarks: no benchmark in it"),
        (nvbench({}), {}, "p.json: no benchmark in it"),
        (google({"A": 0.0}), {}, "benchmarks[0]: A: a time must be a finite number above zero"),
        (google({"A": float("nan")}), {}, "A: a time must be a finite number above zero"),
        (edited(google(TIMES), real_time="x"), {}, 'above zero, not "x"'),
        (edited(google(TIMES), real_time=10**400), {}, "above zero, not 1000000"),
        (edited(google(TIMES), real_time=True), {}, "above zero, not true"),
        (edited(google(TIMES), time_unit="h"), {}, 'unknown time_unit "h"'),
        (edited(google(TIMES), time_unit=[]), {}, "unknown time_unit a list"),
        ({**google(TIMES), "context": {"host_name": "a\n::error::b"}}, {}, "p.json: name: must be"),
        (google(TIMES), {"time": "wall"}, "no time wall; --time takes real_time or cpu_time"),
        (
            edited(google(TIMES), error_occurred=True, error_message="wrong result"),
            {},
            "benchmarks[0]: Kernel<float, 4>/64: error: wrong result",
        ),
        (edited(google(TIMES), run_name="a\nb"), {}, "one line of printable text"),
        (google(TIMES), {"verified": "ok"}, "no counter ok, which --verified names"),
        (google(TIMES), {"yardstick": "Ref/*"}, "should have the yardstick Ref/64, which was not"),
        (google(TIMES), {"filter": "none"}, "--filter 'none': matches none of the 2 benchmarks"),
        (nvbench({"1": 1.0}), {"time": "x"}, "no summary x; --time takes one of nv/batch"),
        (
            state(is_skipped=True),
            {},
            "every benchmark was skipped, first copy/Elements=1: without a",
        ),
        (state(summaries=[]), {}, "no summary nv/cold/time/gpu/mean"),
        (state(summaries={}), {}, "benchmarks[0].states[0].summaries: must be a valid array"),
        (
            pytest_report(),
            {"time": "p20"},
            "benchmarks[0]: a: no statistic p20; --time takes median",
        ),
        (pytest_report(stats=3), {}, "benchmarks[0].stats: must be an object, not 3"),
        (pytest_report(stats={"median": 0.0}), {}, "a: a time must be a finite number above zero"),
        (pytest_report(), {"verified": "ok"}, "a: no counter ok, which --verified names"),
        ({"machine_info": {}, "benchmarks": []}, {}, "p.json: no benchmark in it"),
        (asv_results([1.0, None]), {}, "a.time_b/2 failed: it has no result"),
        (asv_results(None), {}, '["a.time_b"]: a.time_b failed: it has no result'),
        (asv_results([1.0]), {}, "1 values for 2 combinations of params"),
        (asv_results([1.0, 0.0]), {}, "a.time_b/2: a time must be a finite number above zero"),
        (asv_results([1.0], results={"a.time_b": [[1.0], ["x"]]}), {}, "must be a list of lists"),
        (asv_results([], results={}), {}, "p.json: no benchmark in it"),
        (asv_results([float("nan")] * 2), {}, "every benchmark was skipped, first a.time_b/1: its"),
        (asv_results([1.0, 1.0]), {"time": "x"}, "no column x; --time takes one of result"),
        (
            asv_results([1.0, 1.0]),
            {"verified": "x"},
            "a.time_b/1: no counter x, which --verified names",
        ),
        (nvbench({"1": float("inf")}), {}, "a time must be a finite number above zero"),
        (nvbench({"1": 1.0}, my_check="yes"), {"verified": "my/check"}, "must be a number"),
    ],
)
def test_what_is_wrong_is_one_sentence(document, declared, message):
    with pytest.raises(GateError) as caught:
        read(document, "p.json", **declared)
    assert str(caught.value).startswith(("p.json: ", "--filter"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_device_at_a_time():
    document = nvbench({"1": 1.0, "2": 1.0})
    document["benchmarks"][0]["states"][1]["device"] = 1
    with pytest.raises(GateError, match="measured on 2 devices; choose one by --devices 0"):
        read(document)
