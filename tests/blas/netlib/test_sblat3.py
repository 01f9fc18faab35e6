"""Netlib's test program of level 3, of which the lines of SGEMM run over the C API.

Debian has it as package libblas-test. Elsewhere: gfortran sblat3.f -lblas -o xblat3s, and
TILEGATE_XBLAT3S names it. By day C is up to 5 x 5; TILEGATE_THOROUGH=1 runs all of Netlib's
cases."""

import os
import re
import subprocess
from pathlib import Path

import pytest

SGEMM = os.environ["TILEGATE_NETLIB_SGEMM"]
PROGRAMS = [
    Path(os.environ.get("TILEGATE_XBLAT3S", "")),
    *sorted(Path("/usr/lib").glob("*/blas/xblat3s")),
]
PROGRAM = next((path for path in PROGRAMS if path.is_file()), None)
THOROUGH = "TILEGATE_THOROUGH" in os.environ

pytestmark = pytest.mark.skipif(
    PROGRAM is None,
    reason="no xblat3s: install libblas-test, or name the program by TILEGATE_XBLAT3S",
)

EXTENTS = "0 1 2 3 5 9" if THOROUGH else "0 1 5"
SETTINGS = """\
'sblat3.out'
6
'SBLAT3.SNAP'
-1
F
F
T
16.0
{count}
{extents}
3
0.0 1.0 0.7
3
0.0 1.0 1.3
SGEMM  T
SSYMM  F
STRMM  F
STRSM  F
SSYRK  F
SSYR2K F
"""


def run(folder, **variables):
    """What the program reports, and how often it called SGEMM."""
    text = SETTINGS.format(count=len(EXTENTS.split()), extents=EXTENTS)
    done = subprocess.run(
        [PROGRAM], input=text, cwd=folder, text=True, capture_output=True, check=False,
        env={**os.environ, "LD_PRELOAD": SGEMM, **variables},
    )  # fmt: skip
    calls = re.search(r"sgemm: (\d+) calls", done.stderr)
    assert calls, done.stderr
    return (folder / "sblat3.out").read_text("utf-8"), int(calls[1])


def test_sgemm_passes(tmp_path):
    report, calls = run(tmp_path)
    assert "SGEMM  PASSED THE TESTS OF ERROR-EXITS" in report
    passed = re.search(r"SGEMM  PASSED THE COMPUTATIONAL TESTS \( *(\d+) CALLS\)", report)
    assert passed, report
    assert int(passed[1]) == len(EXTENTS.split()) ** 3 * 9 * 9  # forms; alpha and beta
    assert calls > int(passed[1]) / 2  # without calls that the program knows to be empty


def test_a_wrong_result_is_found(tmp_path):
    report, _ = run(tmp_path, SGEMM_FAULT="1")
    assert "SGEMM  FAILED ON CALL NUMBER" in report
