"""`ci/gate check resources` with the real nvcc, the committed table, and ci/nvcc."""

import os
import re
import shutil
import subprocess

import pytest
from resources_builder import REPOSITORY, copy_of_rung

from tilegate_ci.checks.resources.compile import find_toolkit
from tilegate_ci.checks.resources.table import TABLE, load
from tilegate_ci.cli import main
from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.formats.stages import find_ladder


def test_the_committed_table_can_be_read():
    table = load(REPOSITORY / TABLE)
    assert set(table.rungs) <= {stage.name for stage in find_ladder()}


def test_ci_nvcc_fetches_the_release_of_the_committed_table():
    pinned = re.search(r"nvidia-cuda-nvcc==(\S+)", (REPOSITORY / "ci" / "nvcc").read_text())
    assert pinned.group(1) == load(REPOSITORY / TABLE).nvcc


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--help",), 0, "usage: ci/nvcc"),
        (("--nope",), 2, "usage: ci/nvcc"),
        ((), 2, "it may not be made (TILEGATE_NO_INSTALL)"),
    ],
)
def test_ci_nvcc_says_what_it_cannot_do(tmp_path, arguments, code, said):
    (tmp_path / "ci").mkdir()
    for name in ("nvcc", "setup.sh"):
        shutil.copy(REPOSITORY / "ci" / name, tmp_path / "ci")
    done = subprocess.run(
        [tmp_path / "ci" / "nvcc", *arguments],
        env={**os.environ, "TILEGATE_NO_INSTALL": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert said in done.stdout + done.stderr


thorough = pytest.mark.skipif(
    "TILEGATE_THOROUGH" not in os.environ, reason="TILEGATE_THOROUGH=1 compiles a rung for this"
)


def copy_of_blocktile_1d(folder):
    try:
        find_toolkit()
    except GateError as problem:
        pytest.skip(f"needs nvcc: {problem}")
    rung = copy_of_rung(folder, "04_blocktile_1d", "Blocktile1D")
    table = load(REPOSITORY / TABLE)
    table = table.model_copy(update={"rungs": {"Blocktile1D": table.rungs["Blocktile1D"]}})
    write_text(folder / TABLE, documents.to_text(table))
    return rung


@thorough
def test_nvcc_catches_a_forced_spill(tmp_path, capsys):
    rung = copy_of_blocktile_1d(tmp_path)
    text, edits = re.subn(
        r"__launch_bounds__\([^)]*\)", "__launch_bounds__(256, 4)", rung.read_text()
    )
    assert edits > 0
    rung.write_text(text)
    assert main(["check", "resources", "--repository", str(tmp_path), "--arch", "90a"]) == 2
    out = capsys.readouterr().out
    assert re.search(r"error: Blocktile1D: sgemm: \d{2,} bytes of spill stores.*not waived", out)
    assert "registers: " in out


# nvcc would only warn, and drop the instructions around the call.
@thorough
def test_nvcc_catches_a_call_of_a_host_function(tmp_path, capsys):
    rung = copy_of_blocktile_1d(tmp_path)
    text = """#include <bit>
__host__ __device__ inline float of_bits(unsigned bits) { return std::bit_cast<float>(bits); }
__device__ float one() { return of_bits(0x3F800000U); }
"""
    rung.write_text(text + rung.read_text())
    assert main(["check", "resources", "--repository", str(tmp_path), "--arch", "90a"]) == 2
    assert 'constexpr __host__ function("bit_cast")' in "".join(capsys.readouterr())
