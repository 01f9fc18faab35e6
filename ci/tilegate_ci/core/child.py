"""Programs that must not go on when whoever started them is gone: left alone, they would keep the
GPU busy under the next measurement."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

_WATCHER = "read -r line; kill -KILL 0"  # ends its group once nobody holds its input any more


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run. The program, and what it starts, is killed when this call or this process
    ends, however that ends."""
    with _group() as number:
        return subprocess.run(command, check=False, text=True, process_group=number, **options)


@contextlib.contextmanager
def _group() -> Iterator[int]:
    """A process group that is killed at the end of the block, or of this process."""
    watched, held = os.pipe()
    with subprocess.Popen(
        ["sh", "-c", _WATCHER],
        stdin=watched,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as watcher:
        os.close(watched)
        try:
            yield watcher.pid
        finally:
            os.close(held)
