"""What a command starts ends with it: by an interruption, by a signal, by SIGKILL."""

import os
import select
import signal
import subprocess
import sys

import pytest

from gate_builders import REPOSITORY
from tilegate_ci.core import child

# A command that has a program run, which starts another one.
COMMAND = """
from types import SimpleNamespace
from tilegate_ci import cli
from tilegate_ci.core import child

module = SimpleNamespace(run=lambda _: child.run(["sh", "-c", "sleep 300 & echo up; wait"]))
cli.parse = lambda _, arguments: setattr(arguments, "module", module)
raise SystemExit(cli.main([]))
"""


@pytest.mark.parametrize(
    ("number", "code"), [("SIGINT", 2), ("SIGTERM", 2), ("SIGHUP", 2), ("SIGKILL", -9)]
)
def test_the_programs_of_a_command_end_with_it(number, code):
    command = [sys.executable, "-c", COMMAND]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "ci")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout.readline() == b"up\n"
        parent.send_signal(signal.Signals[number])
        parent.communicate(timeout=100)  # until no process holds stdout
        assert parent.returncode == code


def test_what_a_program_leaves_behind_ends_with_it():
    read, write = os.pipe()
    child.run(["sh", "-c", "sleep 300 &"], stdout=write)
    os.close(write)
    ready, _, _ = select.select([read], [], [], 100)  # at its end no writer is left
    assert ready == [read]


def test_a_command_that_is_not_to_hear_of_a_hangup_goes_on(monkeypatch):
    """As under nohup."""
    from tilegate_ci import cli

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        cli.main(["--help"])
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
