"""ci/gate accept: makes a recorded run the baseline of its device."""

import argparse
import os
import sys
from pathlib import Path

from tilegate_ci.core.files import check_outputs, locked, write_text
from tilegate_ci.formats.run_file import Role, load
from tilegate_ci.judge.accept import accept, check_acceptable, check_same_device
from tilegate_ci.model import baseline_path


def run(arguments: argparse.Namespace) -> int:
    candidate = load(arguments.candidate, Role.ACCEPTED)
    check_acceptable(candidate, arguments.allow_dirty, arguments.allow_few)
    path = Path(arguments.baseline or os.path.relpath(baseline_path(candidate.device)))
    check_outputs([arguments.candidate], {"--baseline": path})
    with locked(path.parent):  # or what another `accept` writes meanwhile would be lost
        old = load(path, Role.BASELINE) if path.exists() else None
        text, lines = accept(candidate, old, arguments.merge, arguments.reason)
        check_same_device(candidate, old)
        write_text(path, text)
    sys.stdout.write("".join(f"{path}: {line}\n" for line in lines))
    return 0
