import copy
import fcntl
import json
import os

import pytest

from gate_builders import (
    COMMIT,
    NAIVE,
    OTHER_COMMIT,
    SIMT,
    VECTORIZED,
    WARPTILE,
    make_row,
    make_run,
    make_simt_run,
    parsed,
    scaled,
    write,
)
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.run_file import Role, load
from tilegate_ci.judge.accept import accept, check_acceptable
from tilegate_ci.judge.compare import compare
from tilegate_ci.model import REPOSITORY, baseline_path


@pytest.fixture
def files(tmp_path):
    return tmp_path / "run.json", tmp_path / "baseline.json"


def accepted_file(files, document, *options):
    run, baseline = files
    write(run, document)
    return main(["accept", str(run), "--baseline", str(baseline), *options])


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (0.995, 0), (0.95, 1)])
def test_round_trip(files, factor, code):
    run, baseline = files
    assert accepted_file(files, make_run()) == 0
    write(run, scaled(make_run(), WARPTILE, factor))
    assert main(["compare", str(baseline), str(run)]) == code


def test_the_same_run_makes_the_same_bytes(files):
    run, baseline = files
    document = make_run({WARPTILE: make_row(2 / 3, 45000.123456789, spread=0.0123456789)})
    assert accepted_file(files, document, "--reason", "a busy host") == 0
    first = baseline.read_bytes()
    assert accepted_file(files, document) == 0
    assert baseline.read_bytes() == first
    assert main(["accept", str(baseline), "--baseline", str(run)]) == 0
    assert run.read_bytes() == first


def test_the_file_is_sorted_rounded_and_ends_in_a_newline(files, golden):
    _, baseline = files
    noisy = make_run({WARPTILE: make_row(2 / 3, 45000.123456789, spread=0.01)})
    assert accepted_file(files, noisy) == 0
    golden("baseline.json", baseline.read_text())
    assert baseline.stat().st_mode & 0o044 == 0o044
    assert [path.name for path in baseline.parent.iterdir() if path.name.endswith(".tmp")] == []


def test_delta_is_made_of_the_evidence_not_of_what_the_run_claims(files):
    _, baseline = files
    document = make_run({WARPTILE: make_row(0.5, 100.0, spread=0.01)})
    document["benchmarks"][WARPTILE]["delta"] = 0.9
    assert accepted_file(files, document) == 0
    assert json.loads(baseline.read_text())["benchmarks"][WARPTILE]["delta"] == pytest.approx(
        0.03, rel=1e-3
    )


@pytest.mark.parametrize("spread", [0.008, 0.02])
def test_a_margin_that_grows_is_told_and_a_wide_one_needs_a_reason(files, capsys, spread):
    _, baseline = files
    assert accepted_file(files, make_run()) == 0
    before = baseline.read_bytes()
    noisy = make_run()
    noisy["benchmarks"][NAIVE] = make_row(0.0125, 610.0, spread=spread)
    noisy["benchmarks"]["Swizzle/8x8x8"] = make_row(0.5, 1.0, spread=0.005)
    capsys.readouterr()
    code = accepted_file(files, noisy)
    said = capsys.readouterr()
    if spread == 0.02:
        assert (code, baseline.read_bytes()) == (2, before)
        assert "1 margins grow beyond 3.0 %, so that slow-downs up to them would pass" in said.err
        assert f"first the margin of {NAIVE}: 6.2 %, 1.0 % before; record again" in said.err
        assert accepted_file(files, noisy, "--reason", "a busy host") == 0
        rows = json.loads(baseline.read_text())["benchmarks"]
        assert {n for n, row in rows.items() if row.get("delta_reason") == "a busy host"} == {NAIVE}
        said = capsys.readouterr()
        assert accepted_file(files, make_run(), "--merge") == 0
        assert "delta_reason" not in baseline.read_text()
    assert f"margin of {NAIVE}: {'6.2' if spread == 0.02 else '2.4'} %, 1.0 % before\n" in said.out
    assert "margin of Swizzle/8x8x8: 1.5 %, a new row\n" in said.out


def test_simt_has_no_delta(files):
    _, baseline = files
    document = make_simt_run()
    document["benchmarks"][WARPTILE]["delta"] = 0.5
    assert accepted_file(files, document) == 0
    assert "delta" not in json.loads(baseline.read_text())["benchmarks"][WARPTILE]


def test_key_flags_and_unknown_fields_of_the_old_baseline_are_kept(files):
    _, baseline = files
    old = make_run(policy={"owner": "kernels"})
    old["benchmarks"][WARPTILE].update(key=True, note="the flagship")
    write(baseline, old)
    assert accepted_file(files, scaled(make_run(), WARPTILE, 1.1)) == 0
    written = json.loads(baseline.read_text())
    row = written["benchmarks"][WARPTILE]
    assert (row["key"], row["note"]) == (True, "the flagship")
    assert row["ratio_to_cublas"] == pytest.approx(0.979)
    assert written["benchmarks"][NAIVE]["key"] is False
    assert written["policy"] == {"owner": "kernels"}


def test_a_key_flag_of_the_run_is_kept(files):
    _, baseline = files
    document = make_run()
    document["benchmarks"][WARPTILE]["key"] = True
    for _ in range(2):  # without an old baseline, and with one
        assert accepted_file(files, document) == 0
        assert load(str(baseline), Role.BASELINE).benchmarks[WARPTILE].key


def test_what_changed_is_told(files, capsys):
    _, baseline = files
    old = make_run()
    assert accepted_file(files, old) == 0
    assert capsys.readouterr().out == f"{baseline}: 3 new, 0 removed, 0 changed, 0 unchanged\n"
    new = scaled(make_run(), WARPTILE, 1.1)
    del new["benchmarks"][NAIVE]
    new["benchmarks"]["Extra/1x1x1"] = make_row(0.5, 10.0)
    assert accepted_file(files, new) == 0
    assert capsys.readouterr().out == (
        f"{baseline}: 1 new, 1 removed, 1 changed, 1 unchanged\n{baseline}: removed {NAIVE}\n"
    )


@pytest.mark.parametrize("present", [True, False])
def test_merge_keeps_rows_and_says_which_commit_they_are_of(files, present):
    _, baseline = files
    if present:
        assert accepted_file(files, make_run()) == 0
    part = make_run({WARPTILE: make_row(0.95, 48000.0)}, commit=OTHER_COMMIT)
    assert accepted_file(files, part, "--merge") == 0
    run = load(str(baseline), Role.BASELINE)
    assert run.commit == OTHER_COMMIT
    assert run.benchmarks[WARPTILE].summary["ratio_to_cublas"] == 0.95
    assert "commit" not in run.benchmarks[WARPTILE].fields
    assert set(run.benchmarks) == ({WARPTILE, NAIVE, VECTORIZED} if present else {WARPTILE})
    if present:
        assert run.benchmarks[NAIVE].fields["commit"] == COMMIT
        assert len(run.fields["sessions"]) == 2
    again = make_run({NAIVE: make_row(0.02, 700.0)})
    assert accepted_file(files, again, "--merge") == 0
    rows = load(str(baseline), Role.BASELINE).benchmarks
    assert "commit" not in rows[NAIVE].fields
    assert rows[WARPTILE].fields["commit"] == OTHER_COMMIT


def test_without_merge_the_baseline_is_replaced(files):
    _, baseline = files
    assert accepted_file(files, make_run()) == 0
    assert accepted_file(files, make_run({WARPTILE: make_row(0.9, 45500.0)})) == 0
    assert set(load(str(baseline), Role.BASELINE).benchmarks) == {WARPTILE}


@pytest.mark.parametrize(("field", "value"), [("name", "NVIDIA L4"), ("cublas", "12.9.1")])
def test_merge_refuses_another_device(files, capsys, field, value):
    _, baseline = files
    assert accepted_file(files, make_run()) == 0
    before = baseline.read_bytes()
    other = make_run()
    other["device"][field] = value
    assert accepted_file(files, other, "--merge") == 2
    assert f"--merge: not the same device; {field} " in capsys.readouterr().err
    assert baseline.read_bytes() == before


@pytest.mark.parametrize(
    ("field", "value", "code"), [("name", "NVIDIA L4", 2), ("cublas", "12.9.1", 0)]
)
def test_the_baseline_of_another_device_is_not_replaced(files, capsys, field, value, code):
    _, baseline = files
    assert accepted_file(files, make_run()) == 0
    before = baseline.read_bytes()
    other = make_run()
    other["device"][field] = value
    assert accepted_file(files, other) == code
    assert (baseline.read_bytes() == before) == (code == 2)
    message = f"{baseline}: the baseline of NVIDIA H200, and {files[0]} is of NVIDIA L4"
    assert (message in capsys.readouterr().err) == (code == 2)


def test_two_devices_whose_names_make_one_file_name_do_not_share_a_baseline(
    files, monkeypatch, capsys
):
    run, _ = files
    monkeypatch.setattr("tilegate_ci.model.REPOSITORY", run.parent)
    (run.parent / "bench" / "baselines").mkdir(parents=True)
    for name, code in (("NVIDIA RTX 6000", 0), ("NVIDIA RTX-6000", 2)):
        other = make_run()
        other["device"]["name"] = name
        assert main(["accept", str(write(run, other))]) == code
    assert "the baseline of NVIDIA RTX 6000, and" in capsys.readouterr().err
    simt = make_simt_run()
    for name in ("SIMT executor", "another machine"):
        simt["device"]["name"] = name
        assert accepted_file(files, simt) == 0


def test_one_accept_at_a_time(files, monkeypatch):
    """Or two that merge at once would each keep the rows of the other's past."""
    held = []

    def look(path, role):
        with pytest.raises(BlockingIOError):
            take(path.parent)
        held.append(path)
        return load(path, role)

    def take(folder):
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(handle)

    assert accepted_file(files, make_run()) == 0
    monkeypatch.setattr(
        "tilegate_ci.commands.accept.load",
        lambda path, role: look(path, role) if role is Role.BASELINE else load(path, role),
    )
    assert accepted_file(files, make_run(), "--merge") == 0
    assert held == [files[1]]
    take(files[1].parent)


def unverified(document):
    document["benchmarks"][WARPTILE]["verified"] = False


def dirty(document):
    document["commit"] += "-dirty"


def two_processes(document):
    for row in document["benchmarks"].values():
        for metric, values in row["per_process"].items():
            row["per_process"][metric] = [values[1], values[1]]


def inconsistent(document):
    document["benchmarks"][WARPTILE]["ratio_to_cublas"] *= 0.9


REFUSED = [
    (unverified, None, f"not verified: {WARPTILE}"),
    (dirty, "--allow-dirty", "uncommitted changes cannot be rebuilt"),
    (two_processes, "--allow-few", "processes: 2 recorded, at least 3 needed"),
    (inconsistent, None, "is slower than the median of its per_process values"),
]


@pytest.mark.parametrize(("fault", "option", "message"), REFUSED)
def test_refusals(files, capsys, fault, option, message):
    run, baseline = files
    document = make_run()
    fault(document)
    wrong = [word for word in ("--allow-dirty", "--allow-few") if word != option]
    assert accepted_file(files, document, *wrong) == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(run) in error
    assert not baseline.exists()
    if option is not None:
        assert accepted_file(files, document, option) == 0


def test_one_process_is_enough_on_simt(files):
    document = make_simt_run()
    two_processes(document)
    assert accepted_file(files, document) == 0


def test_the_evidence_counts_not_the_protocol():
    document = make_run(protocol={"processes": 9})
    document["benchmarks"][NAIVE]["per_process"] = {
        metric: values[1:2]
        for metric, values in document["benchmarks"][NAIVE]["per_process"].items()
    }
    with pytest.raises(GateError, match="1 recorded"):
        check_acceptable(parsed(document))


def test_an_unreadable_old_baseline_is_not_overwritten(files, capsys):
    _, baseline = files
    baseline.write_text('{"schema"')
    assert accepted_file(files, make_run()) == 2
    assert "truncated JSON" in capsys.readouterr().err
    assert baseline.read_text() == '{"schema"'


def test_a_folder_that_does_not_exist(tmp_path, capsys):
    files = tmp_path / "run.json", tmp_path / "none" / "baseline.json"
    assert accepted_file(files, make_run()) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def test_accept_does_not_change_what_it_is_given():
    candidate, old = parsed(make_run()), parsed(make_run(), Role.BASELINE)
    before = copy.deepcopy((candidate, old))
    accept(candidate, old, merge=True)
    assert (candidate, old) == before
    assert compare(old, candidate).exit_code == 0


@pytest.mark.parametrize(
    ("device", "stem"),
    [
        ({"name": "NVIDIA H200"}, "nvidia-h200"),
        ({"name": "NVIDIA A100-SXM4-80GB"}, "nvidia-a100-sxm4-80gb"),
        ({"name": "NVIDIA  RTX (TM) 6000 "}, "nvidia-rtx-tm-6000"),
        (SIMT, "simt"),
    ],
)
def test_the_default_path_follows_the_device(device, stem):
    run = make_run() if device is not SIMT else make_simt_run()
    run["device"].update(device)
    expected = REPOSITORY / "bench" / "baselines" / f"{stem}.json"
    assert baseline_path(parsed(run).device) == expected
