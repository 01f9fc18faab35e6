"""Each fault in a file is one clear line that names the file and the place."""

import json

import pytest

from gate_builders import NAIVE, WARPTILE, make_row, make_run, make_simt_run, parsed, write
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.run_file import Role, load

ROW = f'benchmarks["{WARPTILE}"]'


def complaint(path, document, role=Role.CANDIDATE) -> str:
    write(path, document)
    with pytest.raises(GateError) as caught:
        load(str(path), role)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message[len(f"{path}: ") :]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.json"


def test_a_sound_file_loads_without_a_warning(path):
    run = load(str(write(path, make_run())))
    assert run.device.name == "NVIDIA H200"
    assert run.processes == 3
    assert run.warnings == ()
    assert set(run.benchmarks[WARPTILE].per_process) == {"gflops", "ratio_to_cublas"}


def test_a_missing_file(path):
    with pytest.raises(GateError, match=r"run\.json: cannot be read: No such file"):
        load(str(path))


def test_a_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(GateError, match="cannot be read: Is a directory"):
        load(str(tmp_path))


def test_bytes_that_are_not_text(path):
    path.write_bytes(b'{"schema": "\xff"}')
    with pytest.raises(GateError, match="byte 12: not UTF-8 text"):
        load(str(path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        ('{"schema": 1,\n "commit": ', "line 2 column 12: truncated JSON"),
        ('{"schema": 1,\n "comm', "line 2 column 2: truncated JSON"),
        ('{"schema": 1,,}', "line 1 column 14: malformed JSON"),
        ('{"schema": 1} x', "line 1 column 15: malformed JSON"),
        ("[" * 100000, "malformed JSON: nested too deeply"),
        ("[1]", "must be an object, not a list"),
        ("3", "must be an object, not 3"),
        ("{}", '"schema" is missing'),
        ('{"schema": 2}', "schema: unknown schema 2; this gate reads schema 1"),
        ('{"schema": "1"}', "schema: unknown schema '1'"),
        ('{"schema": true}', "schema: unknown schema True"),
        ('{"schema": 1.0}', "schema: unknown schema 1.0"),
        ('{"schema": 1, "schema": 1}', 'duplicate key "schema"'),
        (
            '{"context": {}, "benchmarks": []}',
            "written by a benchmark; `compare --no-baseline`",
        ),
    ],
)
def test_faults_of_the_text(path, text, expected):
    assert complaint(path, text).startswith(expected)


def test_every_truncation_is_refused(path):
    text = json.dumps(make_run({WARPTILE: make_row(0.89, 45000.0)}))
    for length in range(0, len(text), 7):
        complaint(path, text[:length])


def test_a_duplicate_benchmark_names_its_place(path):
    text = json.dumps(make_run())
    twice = text.replace(f'"{NAIVE}"', f'"{WARPTILE}"')
    assert complaint(path, twice) == f'benchmarks: duplicate key "{WARPTILE}"'


def test_a_duplicate_key_in_a_row_names_its_place(path):
    text = json.dumps(make_run({WARPTILE: make_row(0.89, 45000.0)}))
    twice = text.replace('"gflops": 45000.0', '"gflops": 1.0, "gflops": 45000.0')
    assert complaint(path, twice) == f'{ROW}: duplicate key "gflops"'


def test_a_duplicate_after_canonicalising(path):
    document = make_run()
    document["benchmarks"][f"{WARPTILE}/manual_time"] = make_row(0.89, 45000.0)
    message = complaint(path, document)
    assert message.endswith(f"duplicate benchmark: {WARPTILE} is there twice")


def test_no_benchmarks(path):
    assert complaint(path, make_run({})) == "benchmarks: no benchmark in it"


def test_a_malformed_name(path):
    document = make_run({"Warptile/4096": make_row(0.89, 45000.0)})
    assert "malformed benchmark name 'Warptile/4096'" in complaint(path, document)


@pytest.mark.parametrize("field", ["gflops", "ratio_to_cublas", "pct_peak", "delta"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NaN", "must be a finite number, not NaN"),
        ("Infinity", "must be a finite number, not Infinity"),
        ("-Infinity", "must be a finite number, not -Infinity"),
        ("1e999", "must be a finite number, not Infinity"),
        ("1" + "0" * 400, f"must be a finite number, not 1{'0' * 36}..."),
        ("0", "must be greater than 0, not 0"),
        ("0.0", "must be greater than 0, not 0.0"),
        ("-1.5", "must be greater than 0, not -1.5"),
        ('"45000"', 'must be a valid number, not "45000"'),
        ("true", "must be a valid number, not true"),
        ("null", "must be a valid number, not null"),
        ("[1]", "must be a valid number, not a list"),
    ],
)
def test_values_that_are_no_measurement(path, field, text, expected):
    document = make_run()
    document["benchmarks"][WARPTILE][field] = "PLANTED"
    planted = json.dumps(document).replace('"PLANTED"', text)
    assert complaint(path, planted) == f"{ROW}.{field}: {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NaN", "must be a finite number, not NaN"),
        ("1e999", "must be a finite number, not Infinity"),
        ("1" + "0" * 400, "must be a finite number, not 1000"),
        ("1" + "0" * 40, "must be less than 9223372036854775808, not 1000"),
        ("0", "must be greater than 0, not 0"),
        ("-1", "must be greater than 0, not -1"),
        ("1.5", "must be a valid integer, not 1.5"),
        ('"45000"', 'must be a valid integer, not "45000"'),
        ("true", "must be a valid integer, not true"),
        ("null", "must be a valid integer, not null"),
    ],
)
def test_values_that_are_no_count(path, text, expected):
    document = make_run()
    document["benchmarks"][WARPTILE]["bytes"] = "PLANTED"
    planted = json.dumps(document).replace('"PLANTED"', text)
    assert complaint(path, planted).startswith(f"{ROW}.bytes: {expected}")


@pytest.mark.parametrize("text", ["NaN", "1e999", "0", "-1", "true", '"1"'])
def test_per_process_values_that_are_no_measurement(path, text):
    document = make_run()
    document["benchmarks"][WARPTILE]["per_process"]["gflops"][1] = "PLANTED"
    planted = json.dumps(document).replace('"PLANTED"', text)
    assert complaint(path, planted).startswith(f"{ROW}.per_process.gflops[1]: must be ")


def test_a_nan_in_a_field_that_the_gate_does_not_know(path):
    document = make_run()
    document["sessions"][0]["conditions"] = {"before": {"power_w": float("nan")}}
    message = complaint(path, document)
    assert message.startswith("sessions[0].conditions.before.power_w: must be a finite number")


def edit_row(change):
    document = make_run()
    change(document["benchmarks"][WARPTILE])
    return document


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda row: row.pop("gflops"), f'{ROW}: "gflops" is missing'),
        (lambda row: row.pop("per_process"), f'{ROW}: "per_process" is missing'),
        (
            lambda row: row["per_process"].pop("ratio_to_cublas"),
            f'{ROW}: per_process: "ratio_to_cublas" is missing, evidence for the summary',
        ),
        (
            lambda row: row.pop("ratio_to_cublas"),
            f'{ROW}: per_process: "ratio_to_cublas" has no summary beside it',
        ),
        (
            lambda row: row["per_process"].update(gflops=[]),
            f"{ROW}.per_process.gflops: must not be empty",
        ),
        (
            lambda row: row["per_process"]["ratio_to_cublas"].pop(),
            f"{ROW}.per_process: differing numbers of processes: gflops has 3, "
            "ratio_to_cublas has 2",
        ),
        (lambda row: row.update(delta=1), f"{ROW}.delta: must be less than 1, not 1"),
        (lambda row: row.update(key=1), f"{ROW}.key: must be a valid boolean, not 1"),
    ],
)
def test_faults_of_a_row(path, change, expected):
    assert complaint(path, edit_row(change)) == expected


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("commit", "0123", "commit: must be 40 hex digits, then perhaps -dirty, not '0123'"),
        ("commit", None, "commit: must be a valid string, not null"),
        ("device", {"kind": "hip", "name": "x"}, "device.kind: must be 'cuda', 'simt'"),
        ("device", {"kind": "cuda", "name": "x"}, 'device: "cublas" is missing'),
        ("device", {"kind": "simt"}, 'device: "name" is missing'),
        ("device", {"kind": "simt", "name": " "}, "device.name: must not be empty"),
        (
            "device",
            {"kind": "simt", "name": "a\n# b"},
            "device.name: must be one line of printable",
        ),
        ("protocol", {}, 'protocol: "processes" is missing'),
        ("protocol", {"processes": 0}, "protocol.processes: must be greater than 0, not 0"),
        ("sessions", {}, "sessions: must be a valid array, not an object"),
        ("sessions", [3], "sessions[0]: must be an object, not 3"),
        ("benchmarks", [], "benchmarks: must be an object, not a list"),
        ("benchmarks", {WARPTILE: 3}, f"{ROW}: must be an object, not 3"),
    ],
)
def test_faults_of_the_top_level(path, field, value, expected):
    assert complaint(path, make_run(**{field: value})).startswith(expected)


@pytest.mark.parametrize("field", ["commit", "device", "protocol", "sessions", "benchmarks"])
def test_missing_top_level_fields(path, field):
    document = make_run()
    del document[field]
    assert complaint(path, document) == f'"{field}" is missing'


@pytest.mark.parametrize("metric", ["gflops", "ratio_to_cublas"])
@pytest.mark.parametrize(
    ("role", "factor", "word"),
    [
        (Role.CANDIDATE, 1.05, "faster"),
        (Role.CANDIDATE, 1.002, "faster"),
        (Role.BASELINE, 0.95, "slower"),
        (Role.ACCEPTED, 0.95, "slower"),
        (Role.ACCEPTED, 1.05, "faster"),
    ],
)
def test_a_summary_that_would_hide_a_regression(path, metric, role, factor, word):
    document = edit_row(lambda row: row.update({metric: row[metric] * factor}))
    message = complaint(path, document, role)
    assert message.startswith(f"{ROW}.{metric}: ")
    assert f"is {word} than the median of its per_process values" in message


@pytest.mark.parametrize(("role", "factor"), [(Role.CANDIDATE, 0.95), (Role.BASELINE, 1.05)])
def test_a_summary_that_makes_the_gate_stricter_is_judged_as_written(role, factor):
    run = parsed(edit_row(lambda row: row.update(ratio_to_cublas=0.89 * factor)), role)
    assert run.benchmarks[WARPTILE].summary["ratio_to_cublas"] == 0.89 * factor
    assert len(run.warnings) == 1
    assert run.warnings[0].startswith(f"run.json: {ROW}.ratio_to_cublas: ")
    assert run.warnings[0].endswith("judged as written")


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("factor", [0.9995, 1.0005])
def test_rounding_is_no_disagreement(role, factor):
    run = parsed(edit_row(lambda row: row.update(ratio_to_cublas=0.89 * factor)), role)
    assert run.warnings == ()


@pytest.mark.parametrize("value", [False, None, 1, 1.0, "true"])
def test_only_true_is_verified(value):
    run = parsed(edit_row(lambda row: row.update(verified=value)))
    assert not run.benchmarks[WARPTILE].verified


def test_simt_needs_no_cublas_and_no_ratio():
    run = parsed(make_simt_run())
    assert run.device.cublas is None
    assert run.benchmarks[WARPTILE].decisive == "gflops"


def test_unknown_fields_are_kept():
    run = parsed(make_run(note="hello"))
    assert run.fields["note"] == "hello"
