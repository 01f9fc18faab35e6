"""A kernel joins from a folder outside of the repository, as the page says: kernels/plain.md."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tilegate_ci.model import REPOSITORY

FOLDERS = ("92_plain_block_tile", "96_plain_split_k")

pytestmark = pytest.mark.skipif(
    "TILEGATE_THOROUGH" not in os.environ, reason="TILEGATE_THOROUGH=1 builds the ladder for this"
)


def run(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("join")
    stages = [shutil.copytree(REPOSITORY / "tests" / "plain" / f, folder / f) for f in FOLDERS]
    build = folder / "build"
    run(
        "cmake", "-S", REPOSITORY, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DTILEGATE_DEVICE=simt", f"-DTILEGATE_EXTRA_STAGES={';'.join(map(str, stages))}",
    )  # fmt: skip
    run("cmake", "--build", build, "--target",
        "ladder_test", "watched_test", "tilegate_count", "stages_json", "bench")  # fmt: skip
    return build


def test_the_suites_apply(build):
    said = run("ctest", "--test-dir", build, "-R", r"^((ladder|watched)\.Plain|ladder\.Wiring)")
    assert "100% tests passed" in said
    assert "PlainBlockTile takes M in multiples of 64" in said


def test_it_is_counted(build):
    program = build / "bench" / "tilegate_count"
    blocks, edges = "PlainBlockTile/256x256x256/beta0.5", "PlainBlockTile/129x65x17/beta0.5"
    counted, refused, atomic = json.loads(
        run(program, blocks, edges, "PlainSplitK/64x64x64/beta0.5")
    )
    assert counted["fma"] == 256**3 + 256**2
    assert counted["shared_load"]["requests"] > 0
    assert refused["not_applicable"] == "PlainBlockTile takes M in multiples of 64"
    assert atomic["global_atomic"]["requests"] == 3 * 64 * 64 / 32
    said = run("ci/gate", "counters", "--program", program, "--rung", "PlainBlockTile")
    assert "1 not applicable" in said


def test_what_does_not_apply_is_not_timed(build):
    done = subprocess.run(
        [build / "bench" / "bench", "--benchmark_list_tests",
         "--benchmark_filter=PlainBlockTile", "--shapes=128x128x128,129x128x128"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["PlainBlockTile/128x128x128/manual_time"]
    assert "129x128x128: takes M in multiples of 64" in done.stderr


def test_the_catalogue_says_what_it_takes(build):
    stages = json.loads((build / "stages.json").read_text("utf-8"))["stages"]
    assert {stage["name"]: stage["multiple_of"] for stage in stages}["PlainBlockTile"] == [
        64,
        64,
        8,
    ]
