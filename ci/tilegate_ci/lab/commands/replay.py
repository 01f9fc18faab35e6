"""ci/gate lab replay: the gate's rule and others' over the committed recordings."""

import argparse
import sys
from pathlib import Path

from tilegate_ci.checks.committed import with_block
from tilegate_ci.core.files import check_outputs, message, read_text, write_text
from tilegate_ci.lab.proof import recording
from tilegate_ci.model import REPOSITORY

RECORDINGS = REPOSITORY / "bench" / "recordings"


def run(arguments: argparse.Namespace) -> int:
    paths = arguments.recordings or sorted(map(str, RECORDINGS.glob("*.json.gz")))
    outputs = {"--markdown": arguments.markdown, "--into": arguments.into}
    check_outputs(paths, outputs)
    from tilegate_ci.lab.proof import (  # with scipy.stats, which takes a second to import
        replay,
        runs,
    )
    from tilegate_ci.lab.proof.replay import markdown

    text = markdown(replay.replay(runs.sittings([recording.load(path) for path in paths])))
    if arguments.markdown:
        write_text(Path(arguments.markdown), text + "\n")
    page = arguments.into or arguments.check
    if page is None:
        sys.stdout.write(text + "\n")
        return 0
    old = read_text(page)
    new = with_block(old, "replay", text, page)
    if new != old and arguments.check:
        message(f"{page}: not what the recordings say; ci/gate lab replay --into {page}")
        return 1
    if new != old:
        write_text(Path(page), new)
    return 0
