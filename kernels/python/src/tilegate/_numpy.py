"""Products of NumPy arrays, where the device is the CPU."""

import math
from typing import Any

import numpy as np

from tilegate._library import (
    Math,
    Operand,
    PreparedB,
    TilegateError,
    check_math,
    device_name,
    layout,
    matrix_shape,
    multiply,
    prepared_shape,
    result_shape,
)


def matmul(a: Any, b: Any, math: Math) -> Any:
    how = check_math(math)
    a, b = _checked("a", a), _checked("b", b)
    shape = result_shape(a.shape, b.shape)
    _check_device()
    (a, of_a), (b, of_b) = _placed(a), _placed(b)
    result = np.empty(shape, np.float32)
    multiply(of_a, of_b, result.ctypes.data, 1.0, 0.0, how, 0, 0, _allocate)
    return result


class Prepared:
    """See tilegate.prepare."""

    __array_ufunc__ = None  # NumPy leaves `a @ self` to this class

    def __init__(self, b: Any, checked: bool) -> None:
        self.shape = matrix_shape(_checked("b", b).shape)
        _check_device()
        self._b, of_b = _placed(b)
        self._prepared = PreparedB(of_b, checked, 0, _allocate)

    def __rmatmul__(self, a: Any) -> Any:
        shape = prepared_shape(_checked("a", a).shape, self.shape)
        a, of_a = _placed(a.reshape(math.prod(shape[:-1]), self.shape[0]))
        result = np.empty(shape, np.float32)
        self._prepared.multiply(of_a, result.ctypes.data, 0, _allocate)
        return result


def _check_device() -> None:
    if device_name() != "simt":
        raise TilegateError(
            "NumPy arrays need a library that was built for the CPU (TILEGATE_DEVICE=simt)"
        )


def _checked(name: str, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is {type(value).__name__}, neither an array nor a tensor")
    if value.dtype != np.float32:
        raise TypeError(f"{name} is of {value.dtype}, not float32")
    return value


def _placed(array: Any) -> tuple[Any, Operand]:
    """The array, or a copy."""
    if array.flags.aligned and not any(stride % array.itemsize for stride in array.strides):
        strides = tuple(stride // array.itemsize for stride in array.strides)
        found = layout(array.shape, strides)
        if found is not None:
            return array, (array.shape, found, array.ctypes.data)
    return _placed(np.array(array, order="C"))


def _allocate(size: int) -> tuple[int, Any]:
    memory = np.empty(size + 15, np.uint8)
    return -(-memory.ctypes.data // 16) * 16, memory
