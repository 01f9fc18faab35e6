"""Programs that ask cuBLAS for products, with the preload before it. The library is a fake that
counts what it computes, and the device is the CPU."""

import os
import subprocess
import sys

import pytest

PRELOAD, PROGRAM, CUBLAS = (
    os.environ[name] for name in ("TILEGATE_PRELOAD", "TILEGATE_PROGRAM", "TILEGATE_FAKE_CUBLAS")
)


def run(*case, preload=PRELOAD, **variables):
    """What cuBLAS computed itself, and the log."""
    environment = {**os.environ, "LD_PRELOAD": preload, "TILEGATE_LOG": "1", **variables}
    done = subprocess.run(
        [PROGRAM, *case], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr.splitlines()


def test_without_it_cublas_computes_all():
    assert run("every_function", preload="") == (8, [])


FUNCTIONS = [
    f"cublas{name}{bits}"
    for name in ("Sgemm", "SgemmStridedBatched", "GemmEx", "GemmStridedBatchedEx")
    for bits in ("", "_64")
]


def test_every_function_is_taken_over():
    products, log = run("every_function")
    assert products == 0
    call = "tilegate: cublasSgemm 7x5x11/TN/ld9x6x8/alpha2/beta3 computed by "
    assert log[0].startswith(call)
    assert len(log[0]) > len(call)  # the configuration
    for function in FUNCTIONS:
        assert f"tilegate: 1 x {function} computed" in log


def test_every_function_passes_its_arguments_on():
    products, log = run("tf32")
    assert products == 8
    for function in FUNCTIONS:
        assert f"tilegate: 1 x {function} passed on: math mode 3" in log


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("tf32_of_a_call", "not FP32, or not computed in FP32"),
        ("short_device_scalars", "scalars in device memory, and K is short"),
    ],
)
def test_what_is_passed_on_says_why(case, reason):
    products, log = run(case)
    assert products == 1
    assert any(line.endswith(f"passed on: {reason}") for line in log)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("type", "not matrices of FP32 by columns"),
        ("order", "not matrices of FP32 by columns"),
        ("compute", "not computed in FP32"),
        ("scale", "not computed in FP32"),
        ("vectors", "vectors of scalars"),
        ("c", "C is not D"),
        ("ld_of_c", "C is not D"),
        ("epilogue", "epilogue 2"),
        ("bias_type", "a bias of another kind"),
        ("bias_batch", "a bias of another kind"),
        ("bias_beta", "a bias of another kind"),
        ("bias_pointer", "a bias of another kind"),
        ("bias_between_words", "a misaligned bias"),
    ],
)
def test_of_cublaslt_one_thing_is_passed_on(what, reason):
    products, log = run("matmul_but_for", what)
    assert products == 1
    assert log[0].endswith(f"passed on: {reason}")


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        *((name, "an invalid argument") for name in (
            "handle", "desc", "alpha", "beta", "layout_a", "layout_b", "layout_c", "layout_d",
        )),
        *((name, "matrices that do not fit") for name in (
            "m", "n", "k", "batch_a", "batch_b", "batch_d",
        )),
    ],
)  # fmt: skip
def test_a_wrong_call_of_cublaslt_is_refused(what, reason):
    products, log = run("matmul_but_for", f"bad_{what}")
    assert products == 0
    assert log[0] == f"tilegate: cublasLtMatmul passed on: {reason}"


def test_but_for_these_it_is_computed():
    assert run("matmul_but_for", "bias")[0] == 0


def test_another_version_is_said_once():
    products, log = run("other_version")
    assert products == 2
    assert sum("all is passed on" in line for line in log) == 1


@pytest.mark.parametrize(
    "case",
    [
        "conjugate", "half_precision_flag", "matmul", "no_k", "threads", "fork",
        "device_scalars", "batch_of_device_scalars", "bias_and_device_scalars",
        "bias_device_scalars_and_beta",
    ],
)  # fmt: skip
def test_is_computed(case):
    assert run(case)[0] == 0


def test_split_operands_take_a_workspace():
    products, log = run("large", TILEGATE_MATH="fp32_split")
    assert products == 0
    assert any("/split computed by " in line for line in log)
    assert not log[-1].endswith("up to 0 bytes")


def held(log):
    return int(log[-1].split()[-2])


def test_a_second_product_of_the_same_size_allocates_nothing():
    assert run("same_size", TILEGATE_MATH="fp32_split")[0] == 0


def test_a_stream_keeps_one_workspace_as_large_as_its_largest_product():
    small, large = (held(run(case, TILEGATE_MATH="fp32_split")[1]) for case in ("large", "larger"))
    assert 0 < small < large
    assert held(run("growth", TILEGATE_MATH="fp32_split")[1]) == large


def test_threads_have_workspaces_of_their_own_for_the_stream_of_each_thread():
    assert run("stream_per_thread", TILEGATE_MATH="fp32_split")[0] == 0


def test_no_room_is_passed_on():
    products, log = run("no_room", TILEGATE_MATH="fp32_split")
    assert products == 1
    assert "passed on: no room for a workspace of" in log[0]


@pytest.mark.parametrize(
    ("math", "scalars", "size", "least_k"),
    [
        ("fp32", "host", ("6", "4"), 760),  # a bias
        ("fp32", "device", ("6", "4"), 1519),
        ("fp32_split", "host", ("640", "448"), 496),
        ("fp32_split", "device", ("640", "448"), 602),
    ],
)
def test_a_pass_over_c_pays_from_some_k_on(math, scalars, size, least_k):
    reason = "a bias" if scalars == "host" else "scalars in device memory"
    products, log = run("matmul_of", scalars, *size, str(least_k), TILEGATE_MATH=math)
    assert products == 0
    products, log = run("matmul_of", scalars, *size, str(least_k - 1), TILEGATE_MATH=math)
    assert products == 1
    assert log[0].endswith(f"passed on: {reason}, and K is short")


def test_where_operands_are_split_a_bias_pays_sooner():
    call = "matmul_of", "host", "512", "512", "533"
    assert run(*call, TILEGATE_MATH="fp32")[0] == 1
    assert run(*call, TILEGATE_MATH="fp32_split")[0] == 0


@pytest.mark.parametrize(
    "call",
    [
        ("host", "256", "13", "760"),
        ("host", "257", "3", "760"),
        ("host", "4", "4101", "760"),
        ("device", "256", "13", "1519"),
        ("device", "257", "3", "1519"),
        ("device", "4", "1030", "1519"),
    ],
)
def test_a_pass_over_whole_and_partial_blocks(call):
    assert run("matmul_of", *call)[0] == 0


def test_products_without_an_element_are_passed_on():
    products, log = run("empty")
    assert products == 3
    assert all(line.endswith("passed on: nothing to multiply") for line in log[:3])


def test_a_graph_has_a_workspace_of_its_own():
    products, log = run("capture", TILEGATE_MATH="fp32_split")
    assert products == 0
    assert held(log) == 3 * held(run("large", TILEGATE_MATH="fp32_split")[1])
    assert run("capture_without_room", TILEGATE_MATH="fp32_split")[0] == 1
    assert run("capture_of_growth", TILEGATE_MATH="fp32_split")[0] == 0
    assert run("invalid_capture", TILEGATE_MATH="fp32_split")[0] == 1


def test_a_matrix_times_a_vector_is_taken_over_where_that_is_asked_for():
    products, log = run("gemv")
    assert products == 8
    assert log[0].endswith("passed on: a matrix times a vector, and TILEGATE_GEMV is not 1")
    assert run("gemv", TILEGATE_GEMV="1")[0] == 0


def test_what_cublas_refuses_is_its_own_affair():
    products, log = run("bad_calls")
    assert products == 0
    assert sum("passed on" in line for line in log if " x " not in line) == 6
    assert "computed by" in log[6]


def test_the_workspace_of_the_handle_is_taken():
    assert run("own_workspace", TILEGATE_MATH="fp32_split")[0] == 1
    assert run("small_workspace", TILEGATE_MATH="fp32_split")[0] == 0
    assert run("refused_workspace", TILEGATE_MATH="fp32_split")[0] == 1
    assert run("workspace_of_a_destroyed_handle", TILEGATE_MATH="fp32_split")[0] == 1


def test_a_word_that_is_no_math_is_said():
    products, log = run("every_function", TILEGATE_MATH="tf32")
    assert products == 8
    assert "TILEGATE_MATH=tf32 is neither fp32 nor fp32_split" in log[0]


def test_a_limited_workspace():
    products, log = run("large", TILEGATE_MATH="fp32_split", TILEGATE_WORKSPACE_LIMIT="0")
    assert products == 0
    assert log[-1].endswith("up to 0 bytes")
    products, log = run("short_device_scalars", TILEGATE_WORKSPACE_LIMIT="0")
    assert products == 1
    assert log[0].endswith("scalars in device memory, and A*B exceeds TILEGATE_WORKSPACE_LIMIT")
    products, log = run("large", TILEGATE_WORKSPACE_LIMIT="1G")
    assert products == 1
    assert "TILEGATE_WORKSPACE_LIMIT=1G is no number of bytes" in log[0]


def test_the_limit_is_for_the_product_and_its_plan_together():
    variables = {"TILEGATE_MATH": "fp32_split"}
    most = held(run("large_device_scalars", **variables)[1])
    products, log = run("large_device_scalars", **variables, TILEGATE_WORKSPACE_LIMIT=str(most - 1))
    assert products == 0
    assert held(log) < most


def test_the_summary_alone():
    log = run("every_function", TILEGATE_LOG="summary")[1]
    assert log == run("every_function")[1][-len(log) :]
    assert len(log) == len(FUNCTIONS) + 1  # and the workspaces


def test_without_a_log_it_is_silent():
    assert run("every_function", TILEGATE_LOG="0") == (0, [])


def test_a_library_that_the_program_opens_is_taken_over():
    assert run("dlopen", CUBLAS)[0] == 0


def test_a_library_that_an_extension_of_python_opens_is_taken_over():
    """It is not in the search order of the process."""
    program = """if True:
        import ctypes, sys
        cublas = ctypes.CDLL(sys.argv[1])
        handle, pointer = ctypes.c_void_p(), ctypes.c_void_p
        cublas.cublasCreate_v2(ctypes.byref(handle))
        a, c = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        for op in 0, 7:  # as it is, and no operation
            cublas.cublasSgemm_v2(
                handle, op, 0, 2, 2, 2, ctypes.byref(one), a, 2, a, 2, ctypes.byref(zero), c, 2)
            print(*c, cublas.fake_products())"""
    environment = {**os.environ, "LD_PRELOAD": PRELOAD}
    done = subprocess.run(
        [sys.executable, "-c", program, CUBLAS], env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[0] == "7.0 10.0 15.0 22.0 0"
    assert done.stdout.splitlines()[1].endswith(" 1")  # passed on


def test_only_functions_of_cublas_and_dlsym_are_exported():
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", PRELOAD], capture_output=True, text=True, check=True
    ).stdout
    symbols = {line.split()[2] for line in listed.splitlines()}
    assert "dlsym" in symbols
    assert all(symbol.startswith("cublas") for symbol in symbols - {"dlsym"})
