"""Products of PyTorch tensors: the operator tilegate::matmul, and PyTorch's own in its place."""

import ctypes
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.library import Library, get_kernel, register_autograd, register_fake

from tilegate._library import (
    Math,
    Operand,
    PreparedB,
    TilegateError,
    check_math,
    device_name,
    layout,
    library,
    matrix_shape,
    multiply,
    path,
    prepared_shape,
    result_shape,
    workspace_limit,
)

# Where the library computes. One that was built for the CPU serves the tests of this file.
_KEY = "CPU" if device_name() == "simt" else "CUDA"
_DEVICE = _KEY.lower()

_library = Library("tilegate", "DEF")
_library.define("matmul(Tensor a, Tensor b, str math) -> Tensor")
_operator = torch.ops.tilegate.matmul.default


def matmul(a: Any, b: Any, math: Math) -> torch.Tensor:
    check_operands(a, b, math)
    return product(a, b, math)


def product(a: torch.Tensor, b: torch.Tensor, math: str) -> torch.Tensor:
    """The operator, of operands that were checked. Without a gradient it is entered below autograd,
    as the operator's own function for autograd does, but in less time."""
    result: torch.Tensor
    if forward_ad._current_level >= 0 and (_has_tangent(a) or _has_tangent(b)):
        raise NotImplementedError("tilegate.matmul has no derivative in forward mode")
    if torch.compiler.is_compiling():
        result = _operator(a, b, math)
        return result
    try:
        if (a.requires_grad or b.requires_grad) and torch.is_grad_enabled():
            result = _operator(a, b, math)
        else:
            with torch._C._AutoDispatchBelowAutograd():
                result = _operator(a, b, math)
    except RuntimeError as error:
        if str(error).startswith("tilegate: "):  # by the compiled kernel, which has no other type
            with torch.no_grad():
                _matmul(a, b, math)  # raises PyTorch's exception or the library's
        raise
    return result


def _has_tangent(tensor: torch.Tensor) -> bool:
    """PyTorch would drop it: operators of torch.library have gradients in reverse mode alone."""
    return forward_ad.unpack_dual(tensor).tangent is not None


def check_operands(a: Any, b: Any, math: str) -> int:
    """The code of `math`."""
    how = check_math(math)
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        name, value = ("b", b) if isinstance(a, torch.Tensor) else ("a", a)
        raise TypeError(f"{name} is {type(value).__name__}, and the other operand a tensor")
    if not a.dtype == b.dtype == torch.float32:
        name, value = ("b", b) if a.dtype == torch.float32 else ("a", a)
        raise TypeError(f"{name} is of {value.dtype}, not torch.float32")
    device = a.device
    if device != b.device:
        raise ValueError(f"a is on {device}, b on {b.device}")
    if device.type != _DEVICE:
        raise ValueError(f"the operands are on {device}; the library computes on {_DEVICE}")
    return how


def _matmul(a: torch.Tensor, b: torch.Tensor, math: str) -> torch.Tensor:
    how = check_operands(a, b, math)
    result = a.new_empty(_result_shape(a.shape, b.shape))
    enqueue(a, b, result, 1.0, 0.0, how)
    return result


_result_shape = lru_cache(result_shape)


def _load_compiled() -> ctypes.CDLL | None:
    """The compiled kernel of the operator, which lies beside the library where it was built."""
    compiled = path().with_name("libtilegate_torch.so")
    if not compiled.exists():
        return None
    library()
    try:
        found = ctypes.CDLL(str(compiled))
    except OSError as error:
        warnings.warn(f"tilegate.matmul takes longer to call: {error}", stacklevel=2)
        return None
    found.tilegate_torch_set_limit(ctypes.byref(workspace_limit))
    return found


_compiled = _load_compiled()
if _compiled is None:
    _library.impl("matmul", _matmul, _KEY)


def _fake(a: torch.Tensor, b: torch.Tensor, math: str) -> torch.Tensor:
    return a.new_empty(result_shape(a.shape, b.shape))


register_fake("tilegate::matmul", _fake, lib=_library)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.math = inputs[2]


def _gradient(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    a, b = ctx.saved_tensors
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = product(grad, b.mT, ctx.math).sum_to_size(a.shape)
    if ctx.needs_input_grad[1]:
        of_b = product(a.mT, grad, ctx.math).sum_to_size(b.shape)
    return of_a, of_b, None


register_autograd("tilegate::matmul", _gradient, setup_context=_keep, lib=_library)


def enqueue(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float, math: int
) -> None:
    """c <- alpha·a·b + beta·c, with c contiguous. The workspace comes from PyTorch's allocator,
    which knows streams and graphs."""
    device = stream = 0
    if _KEY == "CUDA":
        device = c.get_device()
        if device != torch.cuda.current_device():
            with torch.cuda.device(device):
                return enqueue(a, b, c, alpha, beta, math)
        stream = torch._C._cuda_getCurrentRawStream(device)
    (a, of_a), (b, of_b) = _placed(a), _placed(b)
    allocate = _allocator(c)
    return multiply(of_a, of_b, c.data_ptr(), alpha, beta, math, device, stream, allocate)


def _allocator(near: torch.Tensor) -> Callable[[int], tuple[int, torch.Tensor]]:
    def allocate(size: int) -> tuple[int, torch.Tensor]:
        memory = near.new_empty(-(-size // near.element_size()))
        return memory.data_ptr(), memory

    return allocate


def _placed(tensor: torch.Tensor) -> tuple[torch.Tensor, Operand]:
    """The tensor, or a copy."""
    shape = tensor.shape
    found = layout(shape, tensor.stride())
    if found is None:
        tensor = tensor.contiguous()
        found = layout(shape, tensor.stride())
        assert found is not None
    return tensor, (shape, found, tensor.data_ptr())


class Prepared:
    """See tilegate.prepare."""

    def __init__(self, b: torch.Tensor, checked: bool) -> None:
        check_operands(b, b, "fp32_split")
        self.shape = matrix_shape(b.shape)
        self._b, of_b = _placed(b.detach())
        with _device_of(b):
            self._stream = _stream_of(b)
            self._prepared = PreparedB(of_b, checked, self._stream, _allocator(self._b))

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __rmatmul__(self, a: torch.Tensor) -> torch.Tensor:
        check_operands(a, self._b, "fp32_split")
        if torch.is_grad_enabled() and a.requires_grad:
            raise NotImplementedError("a product with a prepared operand has no gradient")
        shape = prepared_shape(a.shape, self.shape)
        a, of_a = _placed(a.reshape(math.prod(shape[:-1]), self.shape[0]))
        result = a.new_empty(shape)
        with _device_of(a):
            stream = _stream_of(a)
            self._prepared.multiply(of_a, result.data_ptr(), stream, _allocator(a))
            if stream != self._stream:  # neither may be freed before this product is computed
                self._b.record_stream(torch.cuda.current_stream())
                if self._prepared.memory is not None:
                    self._prepared.memory.record_stream(torch.cuda.current_stream())
        return result


def _device_of(tensor: torch.Tensor) -> Any:
    return torch.cuda.device(tensor.device) if _KEY == "CUDA" else nullcontext()


def _stream_of(tensor: torch.Tensor) -> int:
    stream: int = torch._C._cuda_getCurrentRawStream(tensor.get_device()) if _KEY == "CUDA" else 0
    return stream


@contextmanager
def override(math: Math, least: int) -> Iterator[None]:
    how, least = check_math(math), max(least, 1)
    aten = Library("aten", "IMPL")  # noqa: TOR901: it is destroyed below
    try:
        for name, compute, rank in (
            ("mm", _mm, 2), ("bmm", _mm, 3), ("addmm", _addmm, 2), ("baddbmm", _addmm, 3),
        ):  # fmt: skip
            for overload in (name, f"{name}.out"):
                kernel = get_kernel(f"aten::{overload}", _KEY)
                function = _override_of(compute, kernel, rank, how, least)
                aten.impl(overload, function, _KEY, with_keyset=True, allow_override=True)
        yield
    finally:
        aten._destroy()


def _override_of(
    compute: Callable[..., torch.Tensor | None], kernel: Any, rank: int, math: int, least: int
) -> Callable[..., torch.Tensor]:
    call_kernel = kernel.call_boxed

    def function(keyset: Any, *arguments: Any, **named: Any) -> torch.Tensor:
        a, b = arguments[-2:]
        found = None
        if (
            a.dim() == b.dim() == rank
            and a.numel() * b.size(-1) >= least
            and a.dtype == b.dtype == torch.float32
            and a.device == b.device
            and a.size(-1) == b.size(-2)
            and a.shape[:-2] == b.shape[:-2]
        ):
            found = compute(math, *arguments, **named)
        return call_kernel(keyset, *arguments, **named) if found is None else found

    return function


def _mm(
    math: int, a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor | None = None
) -> torch.Tensor | None:
    return _computed(a, b, out, 1.0, 0.0, math, None)


def _addmm(
    math: int, addend: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *,
    beta: float = 1, alpha: float = 1, out: torch.Tensor | None = None,
) -> torch.Tensor | None:  # fmt: skip
    if addend.dtype != torch.float32:
        return None
    return _computed(a, b, out, float(alpha), float(beta), math, addend)


def _computed(
    a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None, alpha: float, beta: float,
    math: int, addend: torch.Tensor | None,
) -> torch.Tensor | None:  # fmt: skip
    """None where PyTorch has to do it after all."""
    shape = (*a.shape[:-1], b.shape[-1])
    if out is not None and (out.shape != shape or out.dtype != a.dtype or out.device != a.device):
        return None
    if addend is not None:
        addend = addend.expand(shape)  # raises PyTorch's error where it does not fit
    target = out
    if target is None or not target.is_contiguous() or _overlap(target, a, b):
        target = a.new_empty(shape)
    if addend is not None and beta != 0.0:
        target.copy_(addend)
    try:
        enqueue(a, b, target, alpha, 0.0 if addend is None else beta, math)
    except TilegateError:
        return None
    if out is not None and out is not target:
        out.copy_(target)
    return target if out is None else out


def _overlap(target: torch.Tensor, *others: torch.Tensor) -> bool:
    storage = target.untyped_storage().data_ptr()
    return any(other.untyped_storage().data_ptr() == storage for other in others)
