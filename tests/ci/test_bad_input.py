"""What goes wrong around a gate: disks, planted runs, schemas, waivers. Each has its sentence."""

import json
import resource
from datetime import date
from pathlib import Path

import pytest
from recording_builder import Maker

from gate_builders import NAIVE, REPOSITORY, WARPTILE, make_run, parsed, scaled, write
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.run_file import Role, load
from tilegate_ci.judge import waivers
from tilegate_ci.judge.compare import compare
from tilegate_ci.lab.proof import recording
from tilegate_ci.measure.gate_run import open_journal
from tilegate_ci.model import Verdict


def on_a_full_disk(*arguments: object) -> int:
    """A command that may write so much and no more, which then fails as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        return main([*map(str, arguments)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_leaves_the_old_baseline(tmp_path, capsys):
    run, baseline = write(tmp_path / "run.json", make_run()), tmp_path / "baseline.json"
    assert main(["accept", str(run), "--baseline", str(baseline)]) == 0
    before = baseline.read_bytes()
    write(run, scaled(make_run(), WARPTILE, 1.1))
    assert on_a_full_disk("accept", run, "--baseline", baseline) == 2
    assert "baseline.json: cannot be written: File too large" in capsys.readouterr().err
    assert baseline.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["baseline.json", "run.json"]


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_a_full_disk_leaves_the_old_verdict(tmp_path, capsys, option):
    run, out = write(tmp_path / "run.json", make_run()), tmp_path / "out"
    arguments = ("compare", run, run, option, out)
    assert main([*map(str, arguments)]) == 0
    before = out.read_bytes()
    assert on_a_full_disk(*arguments) == 2
    assert capsys.readouterr().err.count("cannot be written") == 1
    assert out.read_bytes() == before


def test_a_report_that_does_not_fit_is_an_error_not_a_verdict(tmp_path):
    run = write(tmp_path / "run.json", make_run())
    assert main(["compare", str(run), str(run), "--markdown", "/dev/full"]) == 2


def test_a_full_disk_leaves_the_old_recording(tmp_path, monkeypatch):
    maker = Maker("s").suite(2)
    path = Path(maker.save(tmp_path))
    before = path.read_bytes()

    def full(self, data):
        with self.open("wb") as stream:
            stream.write(data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    maker.process(2)
    with pytest.raises(GateError, match="cannot be written: No space left on device"):
        recording.save(path, maker.file())
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["s.json.gz"]


def test_another_protocol_does_not_join_a_journal(tmp_path):
    open_journal(tmp_path, {"pairs": 8})
    with pytest.raises(GateError, match="pairs is 8 there, 12 now; give another --out"):
        open_journal(tmp_path, {"pairs": 12})


def test_a_planted_run_is_never_a_baseline(tmp_path, capsys):
    document = make_run()
    document["protocol"]["plant"] = "Warptile:3"
    run = write(tmp_path / "run.json", document)
    assert main(["accept", str(run), "--baseline", str(tmp_path / "baseline.json")]) == 2
    assert "a slow-down was planted in this run" in capsys.readouterr().err
    assert not (tmp_path / "baseline.json").exists()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda d: d["protocol"].update(seed=-1),
            "protocol.seed: must be greater than or equal to 0, not -1",
        ),
        (lambda d: d["device"].update(driver=7), "device.driver: must be a valid string, not 7"),
        (lambda d: d["sessions"].append({"conditions": []}), "sessions"),
    ],
)
def test_fields_that_decide_nothing_are_checked_too(tmp_path, edit, message):
    document = make_run()
    edit(document)
    with pytest.raises(GateError, match=r"run\.json: ") as caught:
        load(str(write(tmp_path / "run.json", document)))
    assert message in str(caught.value)


def test_the_committed_baselines_satisfy_their_schema():
    for path in sorted((REPOSITORY / "bench" / "baselines").glob("nvidia-*.json")):
        load(str(path), Role.BASELINE)


WAIVER = {
    "id": "T2-1",
    "benchmarks": "^Warptile/",
    "ceiling": 0.06,
    "expires": "2026-06-30",
    "reason": "a faster store comes with the next rung",
}


def waived(tmp_path, **changes):
    document = {"schema": 1, "waivers": [WAIVER | changes]}
    return waivers.load(write(tmp_path / "waivers.json", document), date(2026, 6, 30))


def test_a_waiver_counts_on_its_last_day_and_up_to_its_ceiling(tmp_path):
    slow = compare(
        parsed(make_run(), Role.BASELINE),
        parsed(scaled(scaled(make_run(), WARPTILE, 0.95), NAIVE, 0.95)),
    )
    found = waivers.apply(slow, waived(tmp_path))
    rows = {row.name: row for row in found.rows}
    assert rows[WARPTILE].verdict is Verdict.PASS
    assert rows[WARPTILE].note.startswith("waiver T2-1: up to 6 % until 2026-06-30, a faster")
    assert rows[NAIVE].verdict is Verdict.REGRESSED
    assert found.rows[0].name == NAIVE
    beyond = waivers.apply(slow, waived(tmp_path, ceiling=0.04))
    assert {row.name for row in beyond.rows if row.verdict is Verdict.REGRESSED} == {
        WARPTILE,
        NAIVE,
    }
    assert "above waiver T2-1: up to 4 %" in beyond.rows[0].note + beyond.rows[1].note


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expires": "2026-06-29"}, "waiver T2-1 expired on 2026-06-29: a faster store"),
        (
            {"expires": "soon"},
            "waivers[0].expires: must be a valid date in the format YYYY-MM-DD, ",
        ),
        (
            {"expires": "2026-02-30"},
            'day value is outside expected range, not "2026-02-30"',
        ),
        (
            {"expires": 1782777600},
            "must be a valid date, not 1782777600",
        ),
        ({"ceiling": 0}, "ceiling: must be greater than 0, not 0"),
        ({"ceiling": 1}, "ceiling: must be less than 1, not 1"),
        ({"benchmarks": "("}, 'benchmarks: must be a valid regular expression, not "("'),
        ({"reason": ""}, "reason: must not be empty"),
        ({"until": "2026-07-01"}, 'waivers[0]: "until" is not known here'),
    ],
)
def test_a_waiver_that_cannot_be_trusted_is_an_error(tmp_path, changes, message):
    with pytest.raises(GateError, match=r"waivers\.json: ") as caught:
        waived(tmp_path, **changes)
    assert message in str(caught.value)


def test_two_waivers_do_not_share_an_id(tmp_path):
    path = write(tmp_path / "w.json", {"schema": 1, "waivers": [WAIVER, WAIVER]})
    with pytest.raises(GateError, match="waiver T2-1 is there twice"):
        waivers.load(path, date(2026, 6, 30))


def test_no_waivers_file_is_no_waiver_unless_it_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(waivers, "WAIVERS", tmp_path / "default.json")
    assert waivers.load(tmp_path / "default.json", date(2026, 6, 30)) == []
    run = str(write(tmp_path / "run.json", make_run()))
    assert main(["compare", run, run, "--waivers", str(tmp_path / "typo.json")]) == 2
    assert "typo.json: cannot be read" in capsys.readouterr().err


def test_of_two_waivers_the_higher_one_counts(tmp_path):
    slow = compare(parsed(make_run(), Role.BASELINE), parsed(scaled(make_run(), WARPTILE, 0.95)))
    lower = WAIVER | {"id": "T2-2", "benchmarks": WARPTILE, "ceiling": 0.02}
    for both in ([lower, WAIVER], [WAIVER, lower]):
        path = write(tmp_path / "w.json", {"schema": 1, "waivers": both})
        found = waivers.apply(slow, waivers.load(path, date(2026, 6, 30)))
        assert found.exit_code == 0


def test_compare_takes_waivers_too(tmp_path, capsys):
    base = write(tmp_path / "base.json", make_run())
    run = write(tmp_path / "run.json", scaled(make_run(), WARPTILE, 0.95))
    path = tmp_path / "w.json"
    arguments = ["compare", str(base), str(run), "--waivers", str(path)]
    path.write_text(json.dumps({"schema": 1, "waivers": [WAIVER | {"expires": "2999-01-01"}]}))
    assert main(arguments) == 0
    path.write_text(json.dumps({"schema": 1, "waivers": [WAIVER | {"expires": "2020-01-01"}]}))
    assert main(arguments) == 2
    assert "expired on 2020-01-01" in capsys.readouterr().err
