"""A kernel that prints does not spoil what the counting program prints."""

import json
import subprocess
from pathlib import Path

from mutant import Mutant, read_toolchain


def test_what_a_kernel_prints_goes_to_stderr(tmp_path: Path) -> None:
    mutant = Mutant(read_toolchain(), tmp_path)
    mutant.replace("01_naive/naive.cu", r"#pragma once|#include", r"#include <cstdio>\n\g<0>")
    mutant.replace(
        "01_naive/naive.cu",
        r"(__global__[^{]*\{)",
        r'\1 if (threadIdx.x + threadIdx.y + blockIdx.x == 0) printf("hello\\n");',
    )
    program = mutant.build("01_naive/naive.cu")
    done = subprocess.run([program, "Naive/4x4x4"], capture_output=True, text=True, check=True)
    assert [case["case"] for case in json.loads(done.stdout)] == ["Naive/4x4x4"]
    assert done.stderr == "hello\n"
