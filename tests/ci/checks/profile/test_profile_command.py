"""ci/gate profile, against stand-ins for the GPU's tools."""

import json
import shutil
import stat
from pathlib import Path

import pytest
from stage_builder import stage, write_stages

from tilegate_ci.cli import main
from tilegate_ci.commands import profile
from tilegate_ci.core.files import GateError

DATA = Path(__file__).resolve().parent / "data"
COMMIT = "79" * 20
DEVICE = """device_name\tNVIDIA H200
driver\t580.159.04
cuda\t13.0
cublas\t13.1.0
compute_capability\t90
multiprocessors\t132
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Puts a script on a PATH that has nothing else but the basics."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for basic in ("cat", "git", "sh"):
        (folder / basic).symlink_to(shutil.which(basic))
    monkeypatch.setenv("PATH", str(folder))

    def add(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return add


@pytest.fixture
def machine(tool, tmp_path, monkeypatch):
    """A machine with all that the command needs. ncu replays captures and logs its arguments."""
    tool("nvidia-smi", "echo 'GPU 0: NVIDIA H200'")
    tool("nvcc", ":")
    tool("cmake", f'echo "$@" >> {tmp_path}/cmake.log')
    tool(
        "ncu",
        f"""
if [ "$1" = --version ]; then echo "Version 2025.3.1.0 (build 1) (public-release)"; exit; fi
echo "$@" >> {tmp_path}/ncu.log
for last; do rung=${{last%%/*}}; done
if [ "$rung" = Naive ]; then
  echo "profile_target: NaN in the works" >&2
  echo "==ERROR== The application returned an error code (1)."
  exit 1
fi
cat {DATA}/$rung.csv
""",
    )
    (tmp_path / "device.txt").write_text(DEVICE, encoding="utf-8")
    target = tmp_path / "build" / "gpu" / "bench" / "profile_target"
    target.parent.mkdir(parents=True)
    shutil.move(tool("profile_target", f"cat {tmp_path}/device.txt"), target)
    ladder = (stage("12_split_k", "SplitK"), stage("cublas", "Cublas"))
    write_stages(tmp_path / "build" / "gpu", *ladder)
    monkeypatch.setattr(profile, "REPOSITORY", tmp_path)
    monkeypatch.setattr(profile, "RECORD", tmp_path / "record")
    monkeypatch.setattr(profile, "SCRATCH", tmp_path / "scratch")
    return tmp_path


def written(folder: Path):
    return json.loads((folder / "nvidia-h200.json").read_text(encoding="utf-8"))


def run(*arguments: str) -> int:
    return main(["profile", *arguments, "--commit", COMMIT])


def test_every_rung_becomes_the_record(machine, capsys):
    assert run() == 0
    profiled = written(machine / "record")
    assert [rung["name"] for rung in profiled["rungs"]] == ["SplitK", "Cublas"]
    assert [len(rung["kernels"]) for rung in profiled["rungs"]] == [2, 1]
    assert profiled["commit"] == COMMIT
    assert profiled["ncu"] == "2025.3.1.0"
    assert profiled["device"]["multiprocessors"] == 132
    page = (machine / "record" / "nvidia-h200.md").read_text(encoding="utf-8")
    assert page.startswith("# Profile: NVIDIA H200, 4096x4096x4096\n")
    err = capsys.readouterr().err
    assert "gate: profiling SplitK (1 of 2)\ngate: profiling Cublas (2 of 2)\n" in err


def test_a_choice_leaves_the_record_alone(machine):
    assert run("Cublas", "--shape", "1024x1024x1024") == 0
    assert [rung["name"] for rung in written(machine / "scratch")["rungs"]] == ["Cublas"]
    assert not (machine / "record").exists()


def test_out_names_the_folder(machine):
    assert run("--out", str(machine / "new" / "folder")) == 0
    assert (machine / "new" / "folder" / "nvidia-h200.md").exists()


def test_a_choice_joins_the_profile_of_a_named_folder(machine):
    folder = machine / "folder"
    assert run("--out", str(folder)) == 0
    assert main(["profile", "Cublas", "--out", str(folder), "--commit", "f" * 40]) == 0
    profiled = written(folder)
    assert profiled["commit"] == COMMIT
    assert [rung.get("commit") for rung in profiled["rungs"]] == [None, "f" * 40]
    assert f"Commit {COMMIT} (Cublas {'f' * 40})," in (folder / "nvidia-h200.md").read_text()
    assert main(["profile", "Cublas", "--shape", "64x64x64", "--out", str(folder)]) == 0
    assert [rung["name"] for rung in written(folder)["rungs"]] == ["Cublas"]


def test_it_never_touches_the_clocks(machine):
    assert run("Cublas") == 0
    arguments = (machine / "ncu.log").read_text(encoding="utf-8").split()
    assert "--clock-control=none" in arguments
    assert "--profile-from-start=off" in arguments
    assert arguments[-1] == "Cublas/4096x4096x4096"


def test_what_ncu_printed_is_kept(machine):
    assert run("Cublas") == 0
    kept = (machine / "scratch" / "Cublas.csv").read_text(encoding="utf-8")
    assert kept == (DATA / "Cublas.csv").read_text(encoding="utf-8")


def test_it_builds_only_its_target(machine):
    assert run("Cublas") == 0
    log = (machine / "cmake.log").read_text(encoding="utf-8")
    assert log == "--preset gpu\n--build --preset gpu --target profile_target stages_json\n"


def test_a_rung_that_fails_does_not_stop_the_others(machine, capsys):
    ladder = (stage("01_naive", "Naive"), stage("cublas", "Cublas"))
    write_stages(machine / "build" / "gpu", *ladder)
    assert run("Naive", "Cublas") == 1
    rungs = written(machine / "scratch")["rungs"]
    assert rungs[0] == {"name": "Naive", "kernels": [], "error": "NaN in the works"}
    assert len(rungs[1]["kernels"]) == 1
    assert "gate: Naive: NaN in the works\n" in capsys.readouterr().err


def test_render_writes_the_page_anew(machine):
    assert run() == 0
    page = machine / "record" / "nvidia-h200.md"
    text = page.read_text(encoding="utf-8")
    page.unlink()
    assert main(["profile", "--render", str(page.with_suffix(".json"))]) == 0
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("content", [None, "{", '{"schema": 7}'])
def test_render_of_what_is_no_profile(tmp_path, capsys, content):
    path = tmp_path / "odd.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert main(["profile", "--render", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"gate: error: {path}: ")


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ((), "no GPU answers"),
        (("nvidia-smi",), "nvcc is missing: install"),
        (("nvidia-smi", "nvcc"), "ncu is missing: install"),
    ],
)
def test_one_sentence_says_what_is_missing(tool, capsys, tools, message):
    for name in tools:
        tool(name, "echo 'GPU 0: NVIDIA H200'")
    assert run("Warptile") == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert error.endswith(".\n")


def test_counters_that_this_user_may_not_read(machine, tool, capsys):
    refused = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters"
    tool("ncu", f"echo '{refused}'; exit 1")
    assert run("Cublas") == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("gate: error: this user may not read the GPU's counters")
    assert "run ci/gate profile as root" in error
    assert not (machine / "scratch" / "nvidia-h200.json").exists()


def test_an_unknown_rung(machine, capsys):
    assert run("Wraptile", "Cublas") == 2
    error = capsys.readouterr().err
    assert "no rung Wraptile; there are SplitK, Cublas" in error
    assert not (machine / "ncu.log").exists()


def test_variants_and_rungs_from_outside_are_stages_too(machine):
    outside = {"folder": "/elsewhere/20_mine", "external": True}
    stages = [stage("20_mine", "Cublas", **outside)]
    write_stages(machine / "build" / "gpu", *stages)
    assert run("Cublas") == 0
    assert run("Cublas.other") == 1  # it is no rung that is unknown


@pytest.mark.parametrize("shape", ["", "1024", "1x2", "1x2x3x4", "0x1x1", "1x-2x3", "ax1x1"])
def test_a_malformed_shape(capsys, shape):
    assert run("--shape", shape) == 2
    assert f"--shape: {shape!r} is not MxNxK" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("returncode", "output", "errors", "message"),
    [
        (1, "==ERROR== Failed to initialize the profiler: X\n", "", "Failed to initialize"),
        (9, "", "", "ncu ended with exit code 9"),
        (0, "==PROF== nothing\n", "", "no table"),
        (0, '"ID","Kernel Name"\n"",""\n', "", "ncu saw no kernel"),
    ],
)
def test_what_ncu_may_say_instead(returncode, output, errors, message):
    with pytest.raises(GateError, match=message):
        profile.read_output(returncode, output, errors)
