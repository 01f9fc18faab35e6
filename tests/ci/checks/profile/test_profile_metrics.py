"""From the CSV of Nsight Compute to the record of a kernel."""

import pytest

from tilegate_ci.checks.profile import (
    function_name,
    kernel_name,
    metric_names,
    parse_csv,
    read_kernel,
)
from tilegate_ci.core.files import GateError

FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
FMUL = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"
DRAM = "dram__bytes.sum"
TIME = "gpu__time_duration.sum"
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
LOADS_NEEDED = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
LOAD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"


def table(units=None, **values):
    """A small table of one kernel; keywords spell metric names with __dot__ for a dot."""
    cells = {"ID": "0", "Kernel Name": "void f<1>(int)", "Block Size": "(128, 1, 1)"}
    cells["Grid Size"] = "(8, 16, 1)"
    cells.update(values)
    units = units or {}
    rows = (cells, {key: units.get(key, "") for key in cells}, cells.values())
    return "\n".join(
        ",".join(f'"{cell}"' for cell in line) for line in (rows[0], rows[1].values(), rows[2])
    )


def record(units=None, **values):
    (row,) = parse_csv(table(units, **values))
    return kernel_record(row)


def kernel_record(row):
    return read_kernel(row).model_dump()


def test_a_real_capture_has_every_metric(captured):
    for rung in ("SplitK", "Cublas"):
        for row in parse_csv(captured(rung)):
            assert [name for name in metric_names() if name not in row.values] == []


def test_a_rung_of_two_kernels(captured):
    sgemm, reduce = map(kernel_record, parse_csv(captured("SplitK")))
    assert (sgemm["name"], reduce["name"]) == ("sgemm<1>", "reduce<1>")
    assert sgemm["flop"] == 2 * 1024**3
    assert sgemm["instructions"]["ffma"] == 1024**3 // 32
    assert sgemm["grid"] == [512, 1, 1]
    assert sgemm["shared_load"]["bank_conflicts"] == sgemm["shared_store"]["bank_conflicts"] == 0
    assert reduce["shared_memory"] == {"dynamic_bytes": 0, "static_bytes": 0}


def test_async_copies_of_the_yardstick(captured):
    (kernel,) = map(kernel_record, parse_csv(captured("Cublas")))
    assert kernel["async_copy"]["instructions"] > 0
    assert kernel["async_copy"]["bank_conflicts"] > 0


def test_a_metric_that_this_gpu_does_not_have_is_null():
    kernel = record()
    assert kernel["duration_us"] is None
    assert kernel["sm"]["fma_pipe_pct"] is None
    assert kernel["global_load"] == {
        "requests": None, "sectors": None, "sectors_per_request": None,
    }  # fmt: skip
    assert kernel["flop"] is None
    assert kernel["stalls"] == []
    assert kernel["instructions"] == {"executed": None, "ffma": None, "ffma_pct": None}


@pytest.mark.parametrize("text", ["n/a", "", "(!) nan"])
def test_a_metric_without_a_value_is_null(text):
    assert record(**{TIME: text})["duration_us"] is None


def test_separators_between_thousands():
    assert record(**{FFMA: "1,234,567,808"})["flop"] == 2 * 1234567808


def test_units_are_checked():
    assert record({TIME: "ns"}, **{TIME: "57088"})["duration_us"] == 57.088
    with pytest.raises(GateError, match=r"sum is in 'us', not 'ns'"):
        record({TIME: "us"}, **{TIME: "57.088"})


def test_intensity_counts_an_ffma_twice():
    kernel = record({DRAM: "byte"}, **{FFMA: "1000", FMUL: "48", DRAM: "1024"})
    assert kernel["flop"] == 2048
    assert kernel["dram"]["flop_per_byte"] == 2.0


def test_no_traffic_has_no_intensity():
    assert record({DRAM: "byte"}, **{FFMA: "10", DRAM: "0"})["dram"]["flop_per_byte"] is None


def test_wavefronts_that_waited_are_no_bank_conflicts():
    swizzled = {LOADS_NEEDED: "268500992", LOADS: "268544637", LOAD_CONFLICTS: "43645"}
    assert record(**swizzled)["shared_load"] == {
        "instructions": None, "wavefronts": 268500992, "bank_conflicts": 0, "contention": 43645,
        "wavefronts_per_instruction": None,
    }  # fmt: skip
    conflicting = {LOADS_NEEDED: "400", LOADS: "410", LOAD_CONFLICTS: "210"}
    assert record(**conflicting)["shared_load"]["bank_conflicts"] == 200


def test_without_exact_wavefronts_the_hardware_s_conflicts_are_told():
    assert record(**{LOADS: "410", LOAD_CONFLICTS: "210"})["shared_load"] == {
        "instructions": None, "wavefronts": None, "bank_conflicts": 210, "contention": None,
        "wavefronts_per_instruction": None,
    }  # fmt: skip


def test_stalls_leave_out_warps_that_issued():
    shares = {"selected": "40.00", "wait": "9.50", "barrier": "30.00", "drain": "0", "misc": "9.50",
              "long_scoreboard": "11.00"}  # fmt: skip
    columns = {f"smsp__warp_issue_stalled_{key}_per_warp_active.pct": value
               for key, value in shares.items()}  # fmt: skip
    kernel = record(dict.fromkeys(columns, "%"), **columns)
    assert [(stall["reason"], stall["pct"]) for stall in kernel["stalls"]] == [
        ("barrier", 30.0), ("long scoreboard", 11.0), ("misc", 9.5),
    ]  # fmt: skip


def test_the_table_is_found_among_other_output():
    text = f"==PROF== Connected to process 1\nhello\n{table(**{FFMA: '1'})}\n==PROF== Done\n"
    assert len(parse_csv(text)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no table"),
        ("==ERROR== nothing\n", "no table"),
        ('"ID","Kernel Name"\n', "truncated"),
        ('"ID","Kernel Name"\n"",""\n"0"\n', "truncated"),
    ],
)
def test_what_is_no_table(text, message):
    with pytest.raises(GateError, match=message):
        parse_csv(text)


def test_a_table_without_the_kernel_s_name():
    (row,) = parse_csv('"ID","Grid Size"\n"",""\n"0","(1, 1, 1)"\n')
    with pytest.raises(GateError, match='no column "Kernel Name"'):
        read_kernel(row)


@pytest.mark.parametrize(
    ("demangled", "name", "function"),
    [
        ("sgemm(SgemmArgs)", "sgemm", "sgemm"),
        ("void sgemm<Config<TilesK8>, 1>(SgemmArgs)", "sgemm<Config<TilesK8>, 1>", "sgemm"),
        (
            "void tilegate::split_k::reduce<(bool)1>(tilegate::SgemmArgs, int)",
            "tilegate::split_k::reduce<(bool)1>",
            "reduce",
        ),
        ("void (anonymous namespace)::f(int)", "f", "f"),
        ("sm80_xmma_gemm_f32f32__5x_cublas", "sm80_xmma_gemm_f32f32__5x_cublas",
         "sm80_xmma_gemm_f32f32__5x_cublas"),
    ],
)  # fmt: skip
def test_kernel_names(demangled, name, function):
    assert kernel_name(demangled) == name
    assert function_name(name) == function
