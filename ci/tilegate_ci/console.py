"""The command `gate`, where pip installed the package: python -m tilegate_ci."""

import runpy
import sys
from pathlib import Path


def run() -> None:
    runpy.run_module("tilegate_ci", run_name="__main__")


def program() -> str:
    """What the command is called here, which in a checkout is ci/gate."""
    return "gate" if Path(sys.argv[0]).name == "gate" else "ci/gate"
