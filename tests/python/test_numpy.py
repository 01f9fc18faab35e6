"""tilegate.matmul on NumPy arrays; the device is the CPU."""

import threading

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
    a, b = (draw.standard_normal((512, 512)).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = tilegate.matmul(a, b, math="fp32_split")
    assert np.linalg.norm(found - exact) <= 3e-7 * np.linalg.norm(exact)


def test_a_limited_workspace():
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal((512, 512)).astype(np.float32) for _ in range(2))
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
    a, b = (draw.standard_normal((512, 512)).astype(np.float32) for _ in range(2))
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


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("b", [normal(192, 136), normal(136, 192).T, normal(192, 272)[:, ::2]])
def test_products_with_a_prepared_operand(b):
    prepared = tilegate.prepare(b)
    for a in (normal(70, 192), normal(192, 3).T, normal(1, 192)[:, :], normal(192)):
        exact = a.astype(np.float64) @ b.astype(np.float64)
        for _ in range(2):
            found = a @ prepared
            assert found.shape == exact.shape
            assert np.linalg.norm(found - exact) <= 3e-7 * np.linalg.norm(exact)
    batch = normal(2, 3, 192)
    np.testing.assert_array_equal(
        batch @ prepared, (batch.reshape(6, 192) @ prepared).reshape(2, 3, -1)
    )
    assert prepared.shape == (192, 136)


@pytest.mark.parametrize(("m", "k", "n"), [(5, 7, 3), (0, 7, 3), (5, 0, 3), (5, 7, 0), (5, 200, 1)])
def test_prepared_operands_of_any_size(m, k, n):
    a, b = whole_numbers(m, k), whole_numbers(k, n)
    np.testing.assert_array_equal(a @ tilegate.prepare(b), a @ b)


def test_a_prepared_operand_keeps_what_it_needs():
    prepared, b = tilegate.prepare(normal(192, 64)), normal(192, 64)
    fill = [normal(192, 64, seed=2) for _ in range(8)]  # of the memory that a freed array had
    np.testing.assert_array_equal(normal(64, 192) @ prepared, normal(64, 192) @ tilegate.prepare(b))
    assert len(fill) == 8


def test_a_prepared_operand_obeys_the_limit_of_workspaces():
    a, prepared = normal(192, 192), tilegate.prepare(normal(192, 192))
    split = a @ prepared
    tilegate.set_workspace_limit(0)
    try:
        limited = a @ prepared
    finally:
        tilegate.set_workspace_limit(None)
    assert (limited != split).any()
    np.testing.assert_array_equal(a @ prepared, split)


def test_a_checked_operand_may_not_change():
    a, b = whole_numbers(5, 200), whole_numbers(200, 64)
    prepared = tilegate.prepare(b, checked=True)
    np.testing.assert_array_equal(a @ prepared, a @ b)
    b[3, 4] += 1
    with pytest.raises(tilegate.TilegateError, match="has changed"):
        a @ prepared


def test_a_wrong_call_with_a_prepared_operand_says_what_is_wrong():
    for b in (whole_numbers(3), whole_numbers(2, 3, 4)):
        with pytest.raises(ValueError, match=r"only a matrix \(k, n\) can be prepared"):
            tilegate.prepare(b)
    with pytest.raises(TypeError, match="b is of float64, not float32"):
        tilegate.prepare(np.ones((2, 2)))
    with pytest.raises(TypeError, match="b is list, neither"):
        tilegate.prepare([[1.0]])
    prepared = tilegate.prepare(whole_numbers(7, 3))
    for a in (whole_numbers(5, 6), np.zeros((), np.float32)):
        with pytest.raises(ValueError, match="do not fit"):
            a @ prepared
    with pytest.raises(TypeError, match="a is of float64, not float32"):
        np.ones((5, 7)) @ prepared
    with pytest.raises(TypeError):
        prepared @ whole_numbers(3, 5)


def test_threads_share_a_prepared_operand():
    b = whole_numbers(200, 24)
    prepared, wrong = tilegate.prepare(b), []

    def multiply(seed):
        for rows in range(1, 9):
            a = whole_numbers(rows, 200, seed=seed)
            if not np.array_equal(a @ prepared, a @ b):
                wrong.append((seed, rows))

    threads = [threading.Thread(target=multiply, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
