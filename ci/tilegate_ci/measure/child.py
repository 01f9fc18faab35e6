"""Programs that use the GPU, which must not go on when whoever started them is gone."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_libc = ctypes.CDLL(None, use_errno=True)


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run. The program is killed when this process ends, even by SIGKILL; left alone
    it would keep the GPU busy under the next measurement."""
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)

    return subprocess.run(command, check=False, text=True, preexec_fn=die_with_parent, **options)
