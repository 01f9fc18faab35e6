"""Drift over accepted baselines: a creep is found, scatter is not, and each has its kind."""

import json
import math
import random

import pytest
import report_builder

from gate_builders import NAIVE, WARPTILE, make_row, make_run, parsed
from tilegate_ci.cli import main
from tilegate_ci.formats.run_file import Role
from tilegate_ci.judge.drift import Point, Series, drifts, judged
from tilegate_ci.model import Session

NAMES = [f"Warptile/{size}x{size}x{size}" for size in range(64, 68)]


def history(draw, points=10, creep=0.0, slow=NAMES[:1], **device):
    """Baselines whose ratios scatter between sessions; those of `slow` fall by `creep` in all."""
    runs = []
    for number in range(points):
        rows = {}
        for name in NAMES:
            fall = creep * number / (points - 1) if name in slow else 0.0
            rows[name] = make_row(0.9 * (1 - fall) * (1 + draw.gauss(0, 0.0015)), 1000.0)
        document = make_run(rows, commit=f"{number:040x}")
        if number >= points // 2:
            document["device"].update(device)
        runs.append(parsed(document, Role.BASELINE))
    return runs


def simulated(draw, creep=0.0, sessions=0.0015, benchmarks=20):
    """What is found over ten accepted baselines; the first benchmark falls by `creep` in all."""
    series = []
    for number in range(benchmarks):
        falls = [creep * n / 9 * (number == 0) for n in range(10)]
        points = [Point("0", (), math.log1p(draw.gauss(0, sessions) - fall)) for fall in falls]
        series.append(Series(str(number), points, 0.01))
    return [drift.name for drift in judged(series)]


@pytest.mark.parametrize(("sessions", "least"), [(0.001, 30), (0.0036, 10)])
def test_a_creep_is_found_and_scatter_is_not(sessions, least):
    """Between sittings a benchmark scatters by 0.1 % in the median, and nine of ten by no more than
    0.36 % (ci/proof.md)."""
    draw = random.Random(1)
    assert [simulated(draw, sessions=sessions) for _ in range(150)] == [[]] * 150
    found = [simulated(draw, creep=0.03, sessions=sessions) for _ in range(30)]
    assert found.count(["0"]) >= least
    assert found.count(["0"]) + found.count([]) == 30


def test_a_drift_says_how_much_since_when_and_of_what_kind():
    (drift,) = drifts(history(random.Random(2), creep=0.05))
    assert drift.slower == pytest.approx(0.05, abs=0.005)
    assert (int(drift.first, 16), int(drift.last, 16), drift.points) == (0, 9, 10)
    assert drift.kind == "code"
    (drift,) = drifts(history(random.Random(2), creep=0.05, driver="600.1"))
    assert drift.kind == "measurement"
    found = drifts(history(random.Random(2), creep=0.05, slow=NAMES))
    assert {drift.kind for drift in found} == {"machine"}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda run, name: {"sessions": [board("b" if name > 4 else "a")]}, "machine"),
        (lambda run, name: {"sessions": [board("a")]}, "code"),
        (
            lambda run, name: {"benchmarks": placed(run) if name > 4 else run.benchmarks},
            "measurement",
        ),
    ],
)
def test_another_board_and_another_way_to_measure_are_no_change_of_code(change, kind):
    runs = history(random.Random(2), creep=0.05)
    runs = [run.model_copy(update=change(run, number)) for number, run in enumerate(runs)]
    assert [drift.kind for drift in drifts(runs)] == [kind]


def board(name):
    return Session(conditions={"before": {"board": name}})


def placed(run):
    rows = run.benchmarks.items()
    return {name: row.model_copy(update={"placement_pct": 0.1}) for name, row in rows}


def test_what_is_no_series_is_left_out():
    draw = random.Random(3)
    assert drifts([]) == []
    assert drifts(history(draw, points=4, creep=0.1)) == []
    assert drifts(history(draw, points=8, creep=0.1, cublas="14.0.0")) == []  # 4 and 4
    first, *_, last = history(draw, creep=0.1)
    assert drifts([first] * 5 + [last] * 5) == []  # rows that `accept --merge` kept, recorded twice


def test_the_command_reads_the_git_log_and_bisects(tmp_path, capsys, monkeypatch):
    path = tmp_path / "bench/baselines/nvidia-h200.json"
    path.parent.mkdir(parents=True)
    report_builder.git(tmp_path, "init", "-q")
    for number in range(6):
        rows = {
            WARPTILE: make_row(0.9 * (1 - 0.008 * number), 1000.0),
            NAIVE: make_row(0.0125 * (1 + 1e-4 * number), 600.0),
            "Swizzle/8x8x8": make_row(0.5 * (1 - 1e-4 * number), 600.0),
        }
        path.write_text(json.dumps(make_run(rows, commit=f"{number:040x}")))
        report_builder.git(tmp_path, "add", "-A")
        report_builder.git(tmp_path, "commit", "-q", "-m", "baseline")
    called = []
    monkeypatch.setattr(
        "tilegate_ci.commands.drift.bisect.search", lambda _, *asked: called.append(asked)
    )
    assert main(["drift", "--repository", str(tmp_path), "--bisect"]) == 1
    out = capsys.readouterr().out
    assert "nvidia-h200.json: 6 versions, 1 benchmarks drift\n" in out
    assert f"  {WARPTILE}: +4.17 % over 6 recordings, margin 1.0 %, code, 000000000000 to" in out
    assert f"ci/gate bisect {0:040x} {5:040x} --filter '^{WARPTILE}$'" in out
    (asked,) = called
    assert asked == (f"{0:040x}", f"{5:040x}", f"^{WARPTILE}$")
    assert main(["drift", "--repository", str(tmp_path / "bench")]) == 0  # no baseline in it
    assert main(["drift", "none.json", "--repository", str(tmp_path)]) == 2
    assert "none.json: no committed baseline in" in capsys.readouterr().err
    assert main(["drift", "none.json", "--repository", "/"]) == 2
    assert (
        "none.json: its history cannot be read; git says: fatal: not a" in capsys.readouterr().err
    )
