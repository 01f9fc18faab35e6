"""Long work in parts: the order, the time limit, what goes wrong."""

import threading

import pytest

from tilegate_ci.lab import sweeps
from tilegate_ci.lab.sweeps import work_off


@pytest.fixture
def clock(monkeypatch):
    """Time passes only where a part says so."""
    now = [0.0]
    monkeypatch.setattr(sweeps.time, "monotonic", lambda: now[0])

    def take(seconds: float) -> None:
        now[0] += seconds

    return take


def test_what_would_end_too_late_is_left(clock, capsys):
    done = []

    def do(seconds: float) -> None:
        clock(seconds)
        done.append(seconds)

    def kind(seconds: float) -> bool:
        return seconds > 5

    parts = [10.0, 1.0, 1.0, 10.0, 1.0]
    assert work_off(parts, do, str, limit_s=23, kind=kind) == [10.0, 1.0]
    assert done == [10.0, 1.0, 1.0]
    assert "10.0: 10.0 s; about 0.7 min left" in capsys.readouterr().err
    assert work_off([9.0, 9.0], do, str, limit_s=1e-9) == [9.0]  # one at least


def test_jobs_share_the_parts():
    met = threading.Barrier(2, timeout=20)
    assert work_off(range(4), lambda _: met.wait() and None, str, jobs=2) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_problem_ends_it(jobs):
    done = []

    def do(part: int) -> None:
        done.append(part)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work_off(range(9), do, str, jobs=jobs)
    assert len(done) <= jobs
