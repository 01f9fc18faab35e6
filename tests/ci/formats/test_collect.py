import json
import os
from pathlib import Path

import pytest

from gate_builders import COMMIT, write
from tilegate_ci.cli import main
from tilegate_ci.formats.run_file import Role, load

DATA = Path(__file__).parent / "data"
CUDA = [DATA / f"cuda_process_{number}.json" for number in (1, 2, 3)]
SIMT = DATA / "simt_repetitions.json"
WARPTILE = "Warptile/4096x4096x4096"
NAIVE = "Naive/129x65x17/ld24x72x80/off4"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run.json"


def collected(out, *processes, commit=COMMIT, options=()):
    files = [str(process) for process in processes]
    return main(
        ["compare", "--no-baseline", "--out", str(out), "--commit", commit, *options, *files]
    )


def edited(tmp_path, source, change, name="edited.json"):
    document = json.loads(source.read_text())
    change(document)
    return write(tmp_path / name, document)


def complaint(capsys, out, *processes, **options):
    assert collected(out, *processes, **options) == 2
    assert not out.exists()
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_three_processes_of_a_gpu(out, golden, capsys):
    assert collected(out, *CUDA) == 0
    assert capsys.readouterr().out == f"{out}: 2 benchmarks, 3 processes\n"
    golden("collected.json", out.read_text())


def test_the_summary_is_the_median_over_processes(out):
    assert collected(out, *CUDA) == 0
    run = load(str(out), Role.ACCEPTED)
    assert set(run.benchmarks) == {WARPTILE, NAIVE}
    row = run.benchmarks[WARPTILE]
    assert row.per_process["ratio_to_cublas"] == [0.890123, 0.8911, 0.8893]
    assert row.summary["ratio_to_cublas"] == 0.890123
    assert row.summary["gflops"] == 45000.1
    assert row.verified


def test_repetitions_reduce_to_their_median_and_aggregates_are_ignored(out):
    assert collected(out, SIMT) == 0
    run = load(str(out), Role.ACCEPTED)
    row = run.benchmarks["Naive/64x64x64"]
    assert row.per_process == {"gflops": [6.1]}
    assert row.verified
    assert dict(run.device.fields) == {"kind": "simt", "name": "SIMT executor"}


def test_ratios_on_simt_mean_nothing_and_are_dropped(out, tmp_path):
    def add_ratio(document):
        for row in document["benchmarks"]:
            row |= {"ratio_to_cublas": 0.0, "pct_peak": 0.0}
        document["context"] |= {"peak_gflops": "0", "compute_capability": "0", "cublas": ""}

    assert collected(out, edited(tmp_path, SIMT, add_ratio)) == 0
    assert set(load(str(out)).benchmarks["Naive/64x64x64"].summary) == {"gflops"}


def test_what_collect_writes_accept_and_compare_take(out, tmp_path):
    baseline = tmp_path / "baseline.json"
    assert collected(out, *CUDA) == 0
    assert main(["accept", str(out), "--baseline", str(baseline)]) == 0
    assert main(["compare", str(baseline), str(out)]) == 0


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert collected(pipe, *CUDA) == 0
    assert json.loads(os.read(reading, 1 << 16))["protocol"]["processes"] == 3
    os.close(reading)
    assert pipe.is_fifo()


@pytest.mark.parametrize("value", [0.0, None])
def test_one_unverified_repetition_makes_the_benchmark_unverified(out, tmp_path, value):
    def change(document):
        document["benchmarks"][1]["verified"] = value

    assert collected(out, edited(tmp_path, SIMT, change)) == 0
    assert not load(str(out)).benchmarks["Naive/64x64x64"].verified


def test_one_unverified_process_makes_the_benchmark_unverified(out, tmp_path):
    process = edited(tmp_path, CUDA[2], lambda document: document["benchmarks"][0].pop("verified"))
    assert collected(out, *CUDA[:2], process) == 0
    run = load(str(out))
    assert not run.benchmarks[WARPTILE].verified
    assert run.benchmarks[NAIVE].verified


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"error_occurred": True, "error_message": "out of memory"}, "error: out of memory"),
        ({"skipped": True, "skip_message": "needs TMA"}, "skipped: needs TMA"),
        ({"error_occurred": True}, "error: without a message"),
    ],
)
def test_a_benchmark_that_did_not_run(out, tmp_path, capsys, flags, message):
    process = edited(tmp_path, CUDA[1], lambda document: document["benchmarks"][1].update(flags))
    error = complaint(capsys, out, CUDA[0], process)
    assert f"{process}: benchmarks[1]: {NAIVE}/manual_time: {message}\n" in error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["benchmarks"].pop(0), f"{WARPTILE} is in {CUDA[0]} only"),
        (
            lambda d: d["benchmarks"].append({**d["benchmarks"][0], "name": "Extra/1x1x1"}),
            "Extra/1x1x1 is in ",
        ),
        (
            lambda d: d["context"].update(device_name="NVIDIA L4"),
            "device name 'NVIDIA L4', not 'NVIDIA H200'",
        ),
        (lambda d: d["context"].update(cublas="12.9.1"), "device cublas '12.9.1', not '13.1.0'"),
        (lambda d: d["context"].pop("driver"), "device driver None, not '580.65.06'"),
        (lambda d: d["context"].update(seed="2"), "seed 2, not 1"),
        (lambda d: d["benchmarks"][0].pop("ratio_to_cublas"), f"{WARPTILE} has other counters"),
        (lambda d: d["benchmarks"][0].update(bytes=1.0), f"{WARPTILE} has other counters"),
    ],
)
def test_processes_that_are_not_alike(out, tmp_path, capsys, change, message):
    process = edited(tmp_path, CUDA[1], change)
    error = complaint(capsys, out, CUDA[0], process)
    assert f"{process}: not like {CUDA[0]}: {message}" in error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(benchmarks=[]), "benchmarks: no benchmark in it"),
        (lambda d: d.pop("benchmarks"), '"benchmarks" is missing'),
        (lambda d: d.pop("context"), "neither Google Benchmark's JSON, "),
        (lambda d: d["context"].update(device_kind="hip"), "context.kind: must be 'cuda', "),
        (lambda d: d["context"].pop("cublas"), 'context: "cublas" is missing'),
        (
            lambda d: d["context"].update(multiprocessors="many"),
            "context.multiprocessors: must be a finite number from 0 on, not 'many'",
        ),
        (
            lambda d: d["context"].update(multiprocessors=10**400),
            "context.multiprocessors: must be a finite number from 0 on, not 1000",
        ),
        (
            lambda d: d["context"].update(peak_gflops="nan"),
            "context.peak_gflops: must be a finite number",
        ),
        (lambda d: d["benchmarks"][0].pop("GFLOPS"), 'benchmarks[0]: "GFLOPS" is missing'),
        (
            lambda d: d["benchmarks"][0].update(GFLOPS=float("nan")),
            "benchmarks[0].GFLOPS: must be a finite number, not NaN",
        ),
        (
            lambda d: d["benchmarks"][0].update(ratio_to_cublas=0.0),
            "benchmarks[0].ratio_to_cublas: must be greater than 0, not 0.0",
        ),
        (
            lambda d: d["benchmarks"][0].update(name="BM_memcpy/8"),
            "benchmarks[0]: malformed benchmark name 'BM_memcpy/8'",
        ),
    ],
)
def test_faults_of_a_process(out, tmp_path, capsys, change, message):
    process = edited(tmp_path, CUDA[0], change)
    assert f"gate: error: {process}: {message}" in complaint(capsys, out, process)


def test_only_aggregates(out, tmp_path, capsys):
    def drop_iterations(document):
        rows = document["benchmarks"]
        document["benchmarks"] = [row for row in rows if row["run_type"] == "aggregate"]

    error = complaint(capsys, out, edited(tmp_path, SIMT, drop_iterations))
    assert "no benchmark in it; aggregates alone are not enough" in error


def test_a_truncated_process(out, tmp_path, capsys):
    process = write(tmp_path / "cut.json", CUDA[0].read_text()[:-100])
    assert f"{process}: line " in complaint(capsys, out, process)
    write(process, "")  # what the bench binary leaves when its filter matches nothing
    assert complaint(capsys, out, process) == f"gate: error: {process}: the file is empty\n"
    process.unlink()
    assert f"{process}: cannot be read" in complaint(capsys, out, process)


def test_one_recording_given_twice_is_not_two_processes(out, tmp_path, capsys):
    copy = write(tmp_path / "copy.json", CUDA[0].read_text())
    error = complaint(capsys, out, CUDA[0], CUDA[1], copy)
    assert f"{copy}: the same recording as {CUDA[0]}" in error
    complaint(capsys, out, CUDA[0], CUDA[0])


@pytest.mark.parametrize("commit", ["main", "0123456", COMMIT.upper(), f"{COMMIT}-modified", ""])
def test_a_commit_is_forty_hex_digits(out, capsys, commit):
    assert "gate: error: --commit: must " in complaint(capsys, out, *CUDA, commit=commit)


def test_a_dirty_commit_is_recorded(out):
    assert collected(out, *CUDA, commit=f"{COMMIT}-dirty") == 0
    assert load(str(out)).dirty


def test_conditions_become_the_sessions(out, tmp_path):
    sessions = [{"started": "2025-11-20T08:00:00Z", "processes": 3, "conditions": {"before": {}}}]
    path = write(tmp_path / "conditions.json", sessions)
    assert collected(out, *CUDA, options=["--conditions", str(path)]) == 0
    assert load(str(out)).fields["sessions"] == sessions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "must be a valid array, not an object"),
        ("[]", "no session in it"),
        ("[1]", "[0]: must be an object"),
        ('[{"power_w": NaN}]', "[0].power_w: must be a finite number"),
    ],
)
def test_faulty_conditions(out, tmp_path, capsys, text, message):
    path = write(tmp_path / "conditions.json", text)
    error = complaint(capsys, out, *CUDA, options=["--conditions", str(path)])
    assert f"{path}: {message}" in error
