"""tilegate.matmul on NumPy arrays; the device is the CPU."""

import numpy as np
import pytest
import tilegate


def whole_numbers(*shape, seed=1):
    """Whose products are exact in every order of summation."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def misaligned(array):
    """The same, two bytes past where a float may be."""
    memory = np.zeros(array.nbytes + 2, np.uint8)
    found = np.ndarray(array.shape, np.float32, memory, offset=2)
    found[:] = array
    return found


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (whole_numbers(5, 7), whole_numbers(7, 3)),
        (misaligned(whole_numbers(5, 7)), misaligned(whole_numbers(7, 3))),
        (whole_numbers(7, 5).T, whole_numbers(3, 7).T),
        (whole_numbers(20, 40)[3:9, 5:30], whole_numbers(25, 33)[:, 1:]),  # rows with padding
        (whole_numbers(12, 14)[::2, ::2], whole_numbers(7, 3)),  # has to be copied
        (whole_numbers(6, 8)[::-1], whole_numbers(8, 4)),
        (whole_numbers(1, 7), whole_numbers(7, 1)),
        (whole_numbers(4, 0), whole_numbers(0, 3)),
        (whole_numbers(0, 4), whole_numbers(4, 3)),
        (whole_numbers(0, 3, 4), whole_numbers(0, 4, 5)),  # an empty batch
        (whole_numbers(2, 3, 0), whole_numbers(0, 5)),
        (whole_numbers(3, 5, 7), whole_numbers(3, 7, 2)),
        (whole_numbers(3, 5, 7), whole_numbers(7, 2)),  # one B for all
        (whole_numbers(5, 7), whole_numbers(3, 7, 2)),
        (whole_numbers(7, 3, 5).transpose(1, 2, 0), whole_numbers(3, 7, 2)),
    ],
)
def test_matmul(a, b):
    for math in ("fp32", "fp32_split"):
        np.testing.assert_array_equal(tilegate.matmul(a, b, math=math), np.matmul(a, b))


def test_split_operands_are_as_accurate_as_fp32():
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal((192, 192)).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = tilegate.matmul(a, b, math="fp32_split")
    assert np.linalg.norm(found - exact) <= 3e-7 * np.linalg.norm(exact)


def test_a_limited_workspace():
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal((192, 192)).astype(np.float32) for _ in range(2))
    split = tilegate.matmul(a, b, math="fp32_split")
    tilegate.set_workspace_limit(0)
    try:
        limited, plain = (tilegate.matmul(a, b, math=math) for math in ("fp32_split", "fp32"))
    finally:
        tilegate.set_workspace_limit(None)
    np.testing.assert_array_equal(limited, plain)
    assert (limited != split).any()
    np.testing.assert_array_equal(tilegate.matmul(a, b, math="fp32_split"), split)
    for limit in (-1, 2**64):
        with pytest.raises(ValueError, match="a number of bytes"):
            tilegate.set_workspace_limit(limit)


def test_each_call_is_computed_as_it_asks():
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal((192, 192)).astype(np.float32) for _ in range(2))
    plain, split, again = (tilegate.matmul(a, b, math=m) for m in ("fp32", "fp32_split", "fp32"))
    np.testing.assert_array_equal(plain, again)
    assert (plain != split).any()


@pytest.mark.parametrize(
    ("a", "b", "error", "message"),
    [
        (whole_numbers(2, 3), whole_numbers(4, 2), ValueError, r"\(2, 3\) and \(4, 2\) do not fit"),
        (whole_numbers(3), whole_numbers(3), ValueError, "do not fit"),
        (whole_numbers(2, 2, 2), whole_numbers(3, 2, 2), ValueError, "do not fit"),
        (np.ones((2, 2)), whole_numbers(2, 2), TypeError, "a is of float64, not float32"),
        (whole_numbers(2, 2), [[1.0]], TypeError, "b is list, neither"),
        (None, whole_numbers(2, 2), TypeError, "a is NoneType, neither"),
        (np.float32(2), whole_numbers(2, 2), TypeError, "a is float32, neither"),
        (np.ones((2, 2), "complex64"), whole_numbers(2, 2), TypeError, "a is of complex64"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(a, b, error, message):
    with pytest.raises(error, match=message):
        tilegate.matmul(a, b)


def test_an_unknown_math_is_refused():
    with pytest.raises(ValueError, match="one of fp32, fp32_split"):
        tilegate.matmul(whole_numbers(2, 2), whole_numbers(2, 2), math="tf32")


def test_version_and_device():
    assert tilegate.__version__.count(".") == 2
    assert tilegate.device_name() == "simt"
