"""The shared library from Python, by ctypes alone, on NumPy arrays: the device is the CPU."""

import ctypes
import os
import subprocess

import numpy as np
import pytest

LIBRARY = os.environ.get("TILEGATE_LIBRARY", "build/cpu/kernels/blas/libtilegate.so")
ROW_MAJOR, COL_MAJOR, NO_TRANS, TRANS = 101, 102, 111, 112
SUCCESS, INVALID_ARGUMENT = 0, 1


@pytest.fixture(scope="module")
def library():
    found = ctypes.CDLL(LIBRARY)
    found.tilegate_message.restype = ctypes.c_char_p
    found.tilegate_status_string.restype = ctypes.c_char_p
    i64, f32, pointer = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
    found.tilegate_sgemm.argtypes = [
        pointer, *3 * [ctypes.c_int], i64, i64, i64, f32, pointer, i64, pointer, i64, f32,
        pointer, i64,
    ]  # fmt: skip
    return found


@pytest.fixture
def handle(library):
    created = ctypes.c_void_p()
    assert library.tilegate_create(ctypes.byref(created)) == SUCCESS
    yield created
    library.tilegate_destroy(created)


def sgemm(library, handle, order, a, b, c, *, lda=None):
    """C <- A·B of matrices that lie in the memory order that `order` names."""
    (m, k), n = a.shape, b.shape[1]
    ld = [array.strides[0 if order == ROW_MAJOR else 1] // 4 for array in (a, b, c)]
    ops = (order, NO_TRANS, NO_TRANS)
    return library.tilegate_sgemm(
        handle, *ops, m, n, k, 1.0, a.ctypes.data, lda or ld[0], b.ctypes.data, ld[1], 0.0,
        c.ctypes.data, ld[2],
    )  # fmt: skip


@pytest.mark.parametrize(("order", "numpy_order"), [(ROW_MAJOR, "C"), (COL_MAJOR, "F")])
def test_product(library, handle, order, numpy_order):
    draw = np.random.default_rng(1)
    a = np.array(draw.integers(-3, 4, (19, 23)), np.float32, order=numpy_order)
    b = np.array(draw.integers(-3, 4, (23, 31)), np.float32, order=numpy_order)
    c = np.full((19, 31), np.nan, np.float32, order=numpy_order)
    assert sgemm(library, handle, order, a, b, c) == SUCCESS, library.tilegate_message(handle)
    np.testing.assert_array_equal(c, a @ b)


def test_a_wrong_call_says_what_is_wrong(library, handle):
    a = b = np.ones((2, 2), np.float32)
    c = np.zeros((2, 2), np.float32)
    assert sgemm(library, handle, ROW_MAJOR, a, b, c, lda=1) == INVALID_ARGUMENT
    assert library.tilegate_message(handle) == b"lda = 1 is shorter than a row of 2 elements"
    assert library.tilegate_status_string(INVALID_ARGUMENT) == b"invalid argument"
    assert not c.any()


def test_version(library):
    major, minor = divmod(library.tilegate_version() // 100, 100)
    assert LIBRARY.endswith(".so") or f".{major}.{minor}." in LIBRARY


def test_only_the_api_is_exported():
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    symbols = {line.split()[2] for line in listed.splitlines()} - {"TILEGATE_1"}
    assert symbols
    assert all(symbol.startswith("tilegate_") and "@@TILEGATE_1" in symbol for symbol in symbols)
