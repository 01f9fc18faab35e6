"""FP32 matrix products by Tilegate's kernels, for PyTorch tensors and NumPy arrays.

`matmul(a, b, math="fp32_split")` multiplies; `override()` makes PyTorch's own operators do it."""

from typing import Any

from tilegate import _numpy
from tilegate._library import Math, TilegateError, device_name, set_workspace_limit, version

__version__ = version()
__all__ = [
    "Math",
    "TilegateError",
    "device_name",
    "matmul",
    "override",
    "prepare",
    "set_workspace_limit",
    "version",
]


def matmul(a: Any, b: Any, *, math: Math = "fp32") -> Any:
    """a @ b in FP32: (m, k) by (k, n), or batches (batch, m, k) by (batch, k, n), of which one may
    be a single matrix. Any strides; operands that are neither row-major nor transposed are copied.

    PyTorch tensors on a CUDA device give a tensor there, with gradients. NumPy arrays need a
    library that was built for the CPU. `math="fp32_split"` may split operands for tensor cores
    where that is faster; results are then as accurate as in FP32, not the same bits.

    Raises TypeError for another type than float32, ValueError for shapes that do not fit,
    TilegateError for problems that the library does not support."""
    if _is_tensor(a) or _is_tensor(b):
        return (_torch_part or _import_torch_part()).matmul(a, b, math)
    return _numpy.matmul(a, b, math)


def prepare(b: Any, *, checked: bool = False) -> Any:
    """b, (k, n), split once for many products: `a @ tilegate.prepare(b)` is `matmul(a, b,
    math="fp32_split")` in less time where a, (..., k), has few rows, such as 64 to 512. Meant for
    the weights of a layer that is not trained. The digits take about four bytes per element, and b
    is kept, too. Prepare it again after changing it; with `checked` each product finds a change,
    which stops the device. On CUDA other streams have to wait for the one that was current here.

    Raises as `matmul`; products raise NotImplementedError where a needs a gradient."""
    if _is_tensor(b):
        return (_torch_part or _import_torch_part()).Prepared(b, checked)
    return _numpy.Prepared(b, checked)


def override(math: Math = "fp32_split", least: int = 2**28) -> Any:
    """A context in which PyTorch's mm, addmm, bmm and baddbmm, and what calls them, multiply FP32
    tensors on CUDA by `matmul`. Products of fewer than `least` multiply-adds stay PyTorch's, as do
    those that `matmul` refuses."""
    return (_torch_part or _import_torch_part()).override(math, least)


_torch_part: Any = None


def _import_torch_part() -> Any:
    """By the first call that needs PyTorch. Later ones are spared the import statement's time."""
    global _torch_part
    from tilegate import _torch

    _torch_part = _torch
    return _torch


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" or hasattr(
        value, "__torch_function__"
    )
