"""ci/test over several GPUs: ctest allocates one to each test, by a spec of the host's GPUs."""

import json
import os
import re
import subprocess
from collections import Counter

import pytest
from ladder_builder import REPOSITORY

GPUS = "".join(f"GPU {i}: NVIDIA H200 (UUID: GPU-{i})\n  MIG 1g.18gb: 0\n" for i in range(3))


@pytest.fixture
def spec(tmp_path):
    """The spec that ci/setup.sh writes on a host of three GPUs and six cores."""

    def write(**environment):
        for name, output in (("nvidia-smi", GPUS), ("nproc", "6")):
            (tmp_path / name).write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
            (tmp_path / name).chmod(0o755)
        path = f"{tmp_path}:{os.environ['PATH']}"
        script = f'set -euo pipefail; source "{REPOSITORY}/ci/setup.sh"; gpu_spec'
        inherited = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
        done = subprocess.run(
            ["bash", "-c", script],
            env={**inherited, "PATH": path, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        (tmp_path / "gpus.json").write_text(done.stdout)
        return {gpu["id"]: gpu["slots"] for gpu in json.loads(done.stdout)["local"][0]["gpus"]}

    return write


def test_the_spec_has_the_gpus_of_the_host(spec):
    assert spec() == {"0": 2, "1": 2, "2": 2}


def test_the_spec_has_the_visible_gpus_alone(spec):
    assert spec(CUDA_VISIBLE_DEVICES="1,7") == {"1": 3, "7": 3}


def test_ctest_spreads_tests_over_the_gpus(spec, tmp_path):
    slots = spec()
    log = tmp_path / "log"
    body = f'gpu=$CTEST_RESOURCE_GROUP_0_GPUS; echo "+$gpu" >> {log}; sleep 0.2; '
    body += f'echo "-$gpu" >> {log}'
    tests = [f"add_test(t{i} bash -c [=[{body}]=])" for i in range(12)]
    groups = [f"set_tests_properties(t{i} PROPERTIES RESOURCE_GROUPS gpus:1)" for i in range(12)]
    (tmp_path / "CTestTestfile.cmake").write_text("\n".join([*tests, *groups]))
    subprocess.run(
        ["ctest", "-j", "12", "--resource-spec-file", tmp_path / "gpus.json"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    running, most, ran = Counter[str](), Counter[str](), Counter[str]()
    for sign, gpu in re.findall(r"^([+-])id:(\d),slots:1$", log.read_text(), re.M):
        running[gpu] += 1 if sign == "+" else -1
        most[gpu] = max(most[gpu], running[gpu])
        ran[gpu] += sign == "+"
    assert ran.total() == 12
    assert dict(most) == slots  # each is full at times, and none has more
