"""ci/gate accuracy: how accurate stages are beside cuBLAS in FP32, and at what speed."""

import argparse
import os
import sys
from pathlib import Path

from tilegate_ci.commands.arguments import add_commit, commit_of, shape
from tilegate_ci.commands.profile import check_gpu, check_names, parse_device
from tilegate_ci.core import child, documents
from tilegate_ci.core.files import GateError, make_folder, write_text
from tilegate_ci.formats.accuracy import AccuracyFile, above, merged, parse_rows
from tilegate_ci.formats.stages import read_stages
from tilegate_ci.measure.builds import build_preset
from tilegate_ci.model import REPOSITORY, Device, baseline_path

RESULTS = REPOSITORY / "bench" / "results"
INNER = (16, 64, 128, 256, 512, 1024, 4096, 16384)
SHAPES = [
    f"{outer}x{k}" for outer in ("256x256", "1024x1024", "1023x1025", "2048x2048") for k in INNER
]
SHAPES += ["777x333x555", "1023x1025x1027", "2047x2049x2051", "4096x4096x4096", "8192x8192x8192"]

EXIT_CODES = {
    0: "on no problem is the relative Frobenius error above cuBLAS's",
    1: "on some it is; the file is written all the same",
    2: "error: no GPU, a stage that is none, a build that fails, ...",
}
EXAMPLES = """examples:
  ci/gate accuracy Int8x3                          # bench/results/<device>-accuracy.json
  ci/gate accuracy Int8x3 Fp16x3                   # one file; it keeps the rows of other stages
  ci/gate accuracy Int8x3 --shape 300x500x700 --out build/accuracy
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("stages", metavar="STAGE", nargs="+", help="whose accuracy is measured")
    command.add_argument(
        "--shape",
        metavar="MxNxK",
        type=shape,
        action="append",
        help=f"instead of the {len(SHAPES)} of the protocol; may be repeated",
    )
    command.add_argument(
        "--out", metavar="DIR", type=Path, default=RESULTS, help="default: bench/results"
    )
    add_commit(command)


def run(arguments: argparse.Namespace) -> int:
    commit = commit_of(arguments)
    check_gpu()
    build = build_preset("gpu", "accuracy", REPOSITORY)
    check_names(arguments.stages, read_stages(build))
    shapes = arguments.shape or SHAPES
    cases = [f"{stage}/{each}" for stage in arguments.stages for each in shapes]
    return write(_output([str(build / "bench" / "accuracy"), *cases]), commit, arguments.out)


def write(output: str, commit: str, folder: Path) -> int:
    """Writes the file of what bench/accuracy printed, and says where cuBLAS is more accurate."""
    device_lines, _, lines = output.partition("\n\n")
    device = parse_device(device_lines)
    rows = parse_rows(lines)
    found = AccuracyFile(
        schema=1,
        commit=commit,
        device=device,
        inputs=len({row.input for row in rows}),
        rows=rows,
    )
    make_folder(folder)
    of = Device(kind="cuda", name=device.name, cublas=device.cublas)
    path = folder / f"{baseline_path(of).stem}-accuracy.json"
    whole = merged(found, documents.load(AccuracyFile, path)) if path.exists() else found
    write_text(path, documents.to_text(whole))
    worse = above(rows)
    for row in worse:
        print(f"{row.case} {row.input}: {row.frobenius.ratio:.3f} times cuBLAS's error")
    print(f"{os.path.relpath(path)}: {len(rows)} rows, {len(worse)} of them above cuBLAS's error")
    return int(bool(worse))


def _output(command: list[str]) -> str:
    done = child.run(command, capture_output=True)
    if done.returncode:
        reason = done.stderr.strip().removeprefix("accuracy: ") or f"exit code {done.returncode}"
        raise GateError(f"bench/accuracy: {reason}")
    sys.stderr.write(done.stderr)
    return done.stdout
