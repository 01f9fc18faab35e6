"""The script that tries real programs; what it measures needs PyTorch and a GPU."""

import importlib.util
import json
import subprocess
import sys

import pytest

from tilegate_ci.model import REPOSITORY

SCRIPT = REPOSITORY / "bench" / "programs.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_pytorch_it_says_what_to_install():
    done = run()
    assert done.returncode == 2
    assert done.stderr.endswith("error: PyTorch is not installed: pip install torch\n")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_it_runs_on_the_cpu(tmp_path):
    done = run(
        "--device", "cpu", "--tiny", "--task", "gemv", "--task", "overhead", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    tasks = json.loads((tmp_path / "results.json").read_text("utf-8"))["tasks"]
    assert tasks["gemv"].keys() == {"torch"}
    assert tasks["overhead"].keys() == {"torch", "override"}
    assert "| overhead | override |" in (tmp_path / "programs.md").read_text("utf-8")


@pytest.fixture
def programs():
    spec = importlib.util.spec_from_file_location("programs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_longest_operators_of_a_step_have_rows(programs, monkeypatch):
    monkeypatch.setattr(programs, "SHOWN_OPERATORS", 2)
    monkeypatch.setattr(programs, "GPTS", {programs.LOSSES: ()})
    operators = {
        "torch": {"mm 2x2": 4.0, "add": 1.0, "copy": 0.5},
        "override": {"mm 2x2": 1.0, "add": 2.0, "split": 0.25},
        "torch :0:0": {"mm 2x2": 9.0},
    }
    gpt = {mode: {programs.LOSSES: {"operators": times}} for mode, times in operators.items()}
    assert programs.operators_of_a_step({"tasks": {"gpt": gpt}}).splitlines()[2:] == [
        "| operator | torch | override |",
        "|---|---|---|",
        "| mm 2x2 | 4.00 | 1.00 |",
        "| add | 1.00 | 2.00 |",
        "| others | 0.50 | 0.25 |",
        "| all | 5.50 | 3.25 |",
    ]
    for each in gpt.values():
        each[programs.LOSSES]["operators"] = {}
    assert programs.operators_of_a_step({"tasks": {"gpt": gpt}}) == ""


def test_the_tables_say_where_a_mode_is_slower_or_wrong(programs):
    def result(*samples):
        names = ("a", "b")
        return {"samples": [{"name": name, "error": error, "seconds": seconds}
                            for name, (error, seconds) in zip(names, samples)]}  # fmt: skip

    modes = {
        "torch": result((1e-7, 1e-3), (1e-7, 1e-5)),
        "override": result((1e-3, 2e-3), (1e-7, 2e-5)),
        "tf32": {"failed": ["out of memory"]},
    }
    lines = programs.accuracy({"tasks": {"operators": modes}}).splitlines()
    assert lines[2:] == [
        "| torch | 2 | 1.0e-07 | 0 | 0 | 0 | 1.00 (a) |",
        "| override | 2 | 1.0e-03 | 1 | 2 | 1 | 2.00 (a) |",
    ]
    losses = {"torch": [3.0, 2.0], "override": [3.0, 2.5]}
    gpt = {mode: {programs.LOSSES: {"losses": values}} for mode, values in losses.items()}
    assert programs.losses({"tasks": {"gpt": gpt}}).splitlines()[3] == (
        "| override | 2.5000000 | 5.0e-01 |"
    )


def test_products_that_are_less_accurate_are_counted(programs):
    def result(*errors):
        return {"errors": dict(zip(("8x8x8/NN normal", "8x8x8/NT normal"), errors))}

    modes = {
        "torch": result([1e-6, 1e-7], [1e-9, 1e-9]),
        "preload-fp32": result([1e-6, 1e-7], [2**-24, 2**-24]),
        "preload-fp32_split": result([5e-7, 3e-7], [2**-23, 0.0]),
    }
    assert programs.less_accurate({"tasks": {"products": modes}}).splitlines()[2:] == [
        "| normal | 2 | 0 | 1.00 | 1.00 | 2 | 2.00 | 3.00 |",
    ]
    del modes["torch"]
    assert programs.less_accurate({"tasks": {"products": modes}}) == ""


@pytest.mark.parametrize(
    ("name", "page"),
    [("programs", "kernels/blas/README.md"), ("products", "kernels/18_int8x3/EXPERIMENTS.md")],
)
def test_the_page_has_the_committed_results(name, page):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--page", name], capture_output=True, text=True, check=True
    )
    text = (REPOSITORY / page).read_text("utf-8")
    section = text.split(f"<!-- {name}:begin -->\n")[1].split(f"<!-- {name}:end -->")[0]
    assert section == done.stdout
