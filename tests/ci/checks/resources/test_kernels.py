"""`ci/gate lab kernels`: code is compared without names, but for the one that ptxas knows."""

import re

import pytest
from resources_builder import REPOSITORY

from tilegate_ci.checks.resources.compile import find_toolkit, run_nvcc
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.lab.commands.kernels import (
    ORDERING_WORD,
    Body,
    cubin_bodies,
    differences,
    ptx_bodies,
)

PTX = """\
.version 9.0
.target sm_90a

	// .globl	_ZN8tilegate4rung3addEPf
.extern .shared .align 1024 .b8 tiles[];

.visible .entry _ZN8tilegate4rung3addEPf(
	.param .u64 _ZN8tilegate4rung3addEPf_param_0
)
.maxntid 256, 1, 1
{
	ld.param.u64 	%rd1, [_ZN8tilegate4rung3addEPf_param_0];
$L__BB0_1:
	// begin inline asm
	{
add.f32 %f1, %f1, %f1;
}
	bra 	$L__BB0_1;
}
	// .globl	_ZN8tilegate4rung3mulEPf
.visible .entry _ZN8tilegate4rung3mulEPf(
	.param .u64 _ZN8tilegate4rung3mulEPf_param_0
)
{
$L__BB1_1:
	bra 	$L__BB1_1;
}
"""


def compared(base: str, head: str) -> list[str]:
    return differences(ptx_bodies(base), ptx_bodies(head), "rung")


def test_a_renamed_and_moved_kernel_is_the_same():
    head, *kernels = re.split(r"(?=^\t// \.globl)", PTX, flags=re.MULTILINE)
    moved = (head + kernels[1] + kernels[0]).replace("3add", "4plus")
    moved = moved.replace("BB0_", "BB9_").replace("BB1_", "BB0_")
    assert compared(PTX, moved) == []


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("add.f32", "sub.f32"),
        ("param_0];", "param_0+8];"),
        (".maxntid 256", ".maxntid 128"),
        (".align 1024", ".align 16"),
        ("$L__BB0_1:\n", ""),
    ],
)
def test_changed_code_is_shown_on_both_sides(code, change):
    lines = compared(PTX, PTX.replace(code, change))
    assert {"- add", "+ add"} <= set(lines)


def test_a_missing_kernel_is_shown():
    assert compared(PTX, PTX[: PTX.index("\t// .globl\t_ZN8tilegate4rung3mul")]) == ["- mul"]


def test_two_equal_kernels_need_two_equals():
    twice = PTX + PTX[PTX.index("\t// .globl\t_ZN8tilegate4rung3mul") :].replace("3mul", "5times")
    assert compared(twice, PTX) == ["- times"]


def test_the_word_that_orders_instructions_belongs_to_the_code():
    named = PTX.replace("_ZN8tilegate4rung3addEPf", "_ZN8tilegate4rung3addI7cutlassEEvPf")
    assert compared(named, PTX) != []


def test_ptxas_keeps_the_order_of_the_source_by_the_name_cutlass(tmp_path):
    """Why SourceOrder is called so: the same PTX, but for the name, becomes other machine code.
    InstructionOrder reaches 52.9 TFLOP/s at 4096³ with the name, and 48.5 without (its page)."""
    try:
        toolkit = find_toolkit()
    except GateError as problem:
        pytest.skip(f"needs nvcc: {problem}")
    source = REPOSITORY / "kernels" / "11_instruction_order" / "instruction_order.cu"
    ptx = tmp_path / "kernel.ptx"
    run_nvcc(toolkit, REPOSITORY, ["-ptx", "-arch=sm_90a", str(source), "-o", str(ptx)])
    text = ptx.read_text()
    assert ORDERING_WORD in text

    def machine_code(text: str) -> list[Body]:
        ptx.write_text(text)
        cubin = tmp_path / "kernel.cubin"
        run_nvcc(toolkit, REPOSITORY, ["-cubin", "-arch=sm_90a", str(ptx), "-o", str(cubin)])
        return cubin_bodies(cubin.read_bytes())

    def renamed(name: str) -> str:
        return text.replace(f"{len(ORDERING_WORD)}{ORDERING_WORD}", f"{len(name)}{name}")

    codes = [{body.code for body in machine_code(renamed(name))} for name in ("other", "another")]
    assert codes[0] == codes[1]
    assert codes[0].isdisjoint(body.code for body in machine_code(text))


def test_rungs_that_are_not_on_an_architecture_are_not_compiled_for_it(capsys, monkeypatch):
    monkeypatch.setattr("tilegate_ci.lab.commands.kernels.find_toolkit", lambda: None)
    assert main(["kernels", str(REPOSITORY), "--rung", "Fp16x3", "--arch", "100"]) == 2
    assert "not compiled for these architectures" in capsys.readouterr().err
