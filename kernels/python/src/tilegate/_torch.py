"""Products of PyTorch tensors: the operator tilegate::matmul, and PyTorch's own in its place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.library import Library, get_kernel, register_autograd, register_fake

from tilegate._library import (
    Math,
    Matrix,
    TilegateError,
    check_math,
    device_name,
    layout,
    multiply,
    result_shape,
)

# Where the library computes. One that was built for the CPU serves the tests of this file.
_KEY = "CPU" if device_name() == "simt" else "CUDA"

_library = Library("tilegate", "DEF")
_library.define("matmul(Tensor a, Tensor b, str math) -> Tensor")


def matmul(a: Any, b: Any, math: Math) -> torch.Tensor:
    check_operands(a, b, math)
    result: torch.Tensor = torch.ops.tilegate.matmul(a, b, math)
    return result


def check_operands(a: Any, b: Any, math: Math) -> None:
    check_math(math)
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} is {type(value).__name__}, and the other operand a tensor")
        if value.dtype != torch.float32:
            raise TypeError(f"{name} is of {value.dtype}, not torch.float32")
    if a.device != b.device:
        raise ValueError(f"a is on {a.device}, b on {b.device}")
    if a.device.type != _KEY.lower():
        raise ValueError(f"the operands are on {a.device}; the library computes on {_KEY.lower()}")


def _matmul(a: torch.Tensor, b: torch.Tensor, math: str) -> torch.Tensor:
    result = a.new_empty(result_shape(a.shape, b.shape))
    enqueue(a, b, result, 1.0, 0.0, check_math(math))
    return result


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
        of_a = torch.ops.tilegate.matmul(grad, b.mT, ctx.math).sum_to_size(a.shape)
    if ctx.needs_input_grad[1]:
        of_b = torch.ops.tilegate.matmul(a.mT, grad, ctx.math).sum_to_size(b.shape)
    return of_a, of_b, None


register_autograd("tilegate::matmul", _gradient, setup_context=_keep, lib=_library)


def enqueue(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float, math: int
) -> None:
    """c <- alpha·a·b + beta·c."""
    (a, of_a), (b, of_b) = _placed(a), _placed(b)
    of_c = layout(c.shape, c.stride(), c.data_ptr())
    if of_c is None or of_c.transposed:
        raise TilegateError("the result is not row-major")
    batch = c.shape[0] if c.dim() == 3 else 1
    shape = (batch, c.shape[-2], c.shape[-1], a.shape[-1])
    arguments = (shape, of_a, of_b, of_c, alpha, beta, math)
    if c.device.type == "cpu":
        multiply(*arguments, 0, 0, _allocate_on(c.device))
        return
    with torch.cuda.device(c.device):
        stream = torch.cuda.current_stream().cuda_stream
        multiply(*arguments, c.device.index, stream, _allocate_on(c.device))


def _placed(tensor: torch.Tensor) -> tuple[torch.Tensor, Matrix]:
    found = layout(tensor.shape, tensor.stride(), tensor.data_ptr())
    if found is None:
        tensor = tensor.contiguous()
        found = layout(tensor.shape, tensor.stride(), tensor.data_ptr())
        assert found is not None
    return tensor, found


def _allocate_on(device: torch.device) -> Callable[[int], tuple[int, Any]]:
    """From PyTorch's own allocator, which knows streams and graphs."""

    def allocate(size: int) -> tuple[int, Any]:
        memory = torch.empty(size, dtype=torch.uint8, device=device)
        return memory.data_ptr(), memory

    return allocate


@contextmanager
def override(math: Math, least: int) -> Iterator[None]:
    how = check_math(math)
    library = Library("aten", "IMPL")  # noqa: TOR901: it is destroyed below
    try:
        for name, compute in (
            ("mm", _mm), ("mm.out", _mm), ("bmm", _mm), ("bmm.out", _mm),
            ("addmm", _addmm), ("addmm.out", _addmm),
            ("baddbmm", _addmm), ("baddbmm.out", _addmm),
        ):  # fmt: skip
            kernel = get_kernel(f"aten::{name}", _KEY)
            function = _override_of(compute, kernel, how, least)
            library.impl(name, function, _KEY, with_keyset=True, allow_override=True)
        yield
    finally:
        library._destroy()


def _override_of(
    compute: Callable[..., torch.Tensor | None], kernel: Any, math: int, least: int
) -> Callable[..., torch.Tensor]:
    def function(keyset: Any, *arguments: Any, **named: Any) -> torch.Tensor:
        found = compute(math, least, *arguments, **named)
        if found is None:
            found = kernel.call_boxed(keyset, *arguments, **named)
        return found

    return function


def _is_ours(a: torch.Tensor, b: torch.Tensor, least: int) -> bool:
    return bool(
        a.dtype == b.dtype == torch.float32
        and a.device == b.device
        and a.shape[-1] == b.shape[-2]
        and a.shape[:-2] == b.shape[:-2]
        and a.numel() * b.shape[-1] >= max(least, 1)
    )


def _mm(
    math: int, least: int, a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor | None = None
) -> torch.Tensor | None:
    if not _is_ours(a, b, least):
        return None
    return _computed(a, b, out, 1.0, 0.0, math, None)


def _addmm(
    math: int, least: int, addend: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *,
    beta: float = 1, alpha: float = 1, out: torch.Tensor | None = None,
) -> torch.Tensor | None:  # fmt: skip
    if not _is_ours(a, b, least) or addend.dtype != torch.float32:
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
    target = out
    if target is None or not target.is_contiguous() or _overlap(target, a, b):
        target = a.new_empty(shape)
    if addend is not None and beta != 0.0:
        target.copy_(addend.expand(shape))
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
