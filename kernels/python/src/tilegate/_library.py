"""libtilegate.so by ctypes: its API is stable, so that one wheel serves every PyTorch."""

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

Math = Literal["fp32", "fp32_split"]

_ROW_MAJOR, _NO_TRANS, _TRANS = 101, 111, 112
_SUCCESS = 0
_ALIGNMENT = 16  # bytes; what a plan depends on


class TilegateError(RuntimeError):
    """The library rejected a call, or the device failed."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Layout of a matrix, or a batch of them, in memory: row-major, or transposed."""

    pointer: int
    transposed: bool
    ld: int
    stride: int  # elements from one of a batch to the next; 0: one for all


def check_math(math: str) -> int:
    known = get_args(Math)
    if math not in known:
        raise ValueError(f"math={math!r}: it is one of {', '.join(known)}")
    return known.index(math)


@cache
def library() -> ctypes.CDLL:
    path = os.environ.get("TILEGATE_LIBRARY") or str(Path(__file__).with_name("libtilegate.so"))
    try:
        found = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"tilegate: {error}") from error
    for name in ("tilegate_message", "tilegate_status_string", "tilegate_device_name"):
        getattr(found, name).restype = ctypes.c_char_p
    found.tilegate_message.argtypes = [ctypes.c_void_p]
    i32, i64, f32, pointer = ctypes.c_int, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
    problem: list[Any] = [
        pointer, i32, i32, i32, i64, i64, i64, f32, pointer, i64, i64, pointer, i64, i64, f32,
        pointer, i64, i64, i64,
    ]  # fmt: skip
    found.tilegate_sgemm_strided_batched.argtypes = problem
    found.tilegate_sgemm_strided_batched_workspace_bytes.argtypes = [*problem, pointer]
    found.tilegate_set_stream.argtypes = [pointer, pointer]
    found.tilegate_set_math.argtypes = [pointer, i32]
    found.tilegate_set_workspace.argtypes = [pointer, pointer, ctypes.c_size_t]
    found.tilegate_set_workspace_limit.argtypes = [pointer, ctypes.c_size_t]
    return found


def version() -> str:
    number = library().tilegate_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def device_name() -> str:
    """ "simt" where the library was built for the CPU, else the current GPU, "none" without one."""
    name: bytes = library().tilegate_device_name()
    return name.decode()


class _Thread(threading.local):
    """A thread's handle, its current settings, and the workspace sizes of problems."""

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()
        self.told: tuple[int, int, int] | None = None  # math, stream, workspace limit
        self.bytes: dict[tuple[Any, ...], int] = {}
        if library().tilegate_create(ctypes.byref(self.handle)) != _SUCCESS:
            raise TilegateError("no handle could be made")

    def __del__(self) -> None:
        library().tilegate_destroy(self.handle)


_NO_LIMIT = ctypes.c_size_t(-1).value
_limit = _NO_LIMIT  # of workspaces, in bytes


def set_workspace_limit(limit: int | None) -> None:
    """From now on no product of any thread needs more bytes of workspace than `limit`, and may be
    slower for it; None: no limit."""
    global _limit
    if limit is not None and not 0 <= limit <= _NO_LIMIT:
        raise ValueError(f"limit={limit}: it is a number of bytes, or None")
    _limit = _NO_LIMIT if limit is None else limit


_thread: _Thread | None = None
_lock = threading.Lock()


def _of_thread() -> _Thread:
    global _thread
    if _thread is None:
        with _lock:
            _thread = _thread or _Thread()
    return _thread


def multiply(
    shape: tuple[int, int, int, int],
    a: Matrix,
    b: Matrix,
    c: Matrix,
    alpha: float,
    beta: float,
    math: int,
    device: int,
    stream: int,
    allocate: Callable[[int], tuple[int, Any]],
) -> None:
    """C <- alpha·A·B + beta·C of a batch of (batch, m, n, k). `allocate` gives a pointer to so many
    bytes, 16-byte aligned, and what owns them."""
    found, mine, limit = library(), _of_thread(), _limit
    batch, m, n, k = shape
    problem = (
        mine.handle, _ROW_MAJOR, _TRANS if a.transposed else _NO_TRANS,
        _TRANS if b.transposed else _NO_TRANS, m, n, k, alpha, a.pointer, a.ld, a.stride,
        b.pointer, b.ld, b.stride, beta, c.pointer, c.ld, c.stride, batch,
    )  # fmt: skip
    alignments = (a.pointer % _ALIGNMENT, b.pointer % _ALIGNMENT, c.pointer % _ALIGNMENT)
    key = (shape, a.transposed, a.ld, a.stride, b.transposed, b.ld, b.stride, c.ld, alpha, beta,
           alignments, math, device, limit)  # fmt: skip
    if mine.told != (math, stream, limit):
        _check(mine, found.tilegate_set_math(mine.handle, math))
        _check(mine, found.tilegate_set_stream(mine.handle, stream))
        _check(mine, found.tilegate_set_workspace_limit(mine.handle, limit))
        mine.told = math, stream, limit
    needed = mine.bytes.get(key)
    if needed is None:
        size = ctypes.c_size_t()
        asked = found.tilegate_sgemm_strided_batched_workspace_bytes(*problem, ctypes.byref(size))
        _check(mine, asked)
        if len(mine.bytes) > 4096:
            mine.bytes.clear()
        needed = mine.bytes[key] = size.value
    owner = None
    if needed:
        pointer, owner = allocate(needed)
        _check(mine, found.tilegate_set_workspace(mine.handle, pointer, needed))
    _check(mine, found.tilegate_sgemm_strided_batched(*problem))
    del owner  # only now may it be taken for other work of the stream


def _check(mine: _Thread, status: int) -> None:
    if status != _SUCCESS:
        said: bytes = library().tilegate_message(mine.handle)
        text = said or library().tilegate_status_string(status)
        raise TilegateError(text.decode())


def result_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Of a product; ValueError where the shapes do not fit."""
    batches = {shape[0] for shape in (a, b) if len(shape) == 3}
    fits = len(a) in (2, 3) and len(b) in (2, 3) and a[-1] == b[-2] and len(batches) <= 1
    if not fits:
        raise ValueError(
            f"shapes {tuple(a)} and {tuple(b)} do not fit: (m, k) by (k, n), or batches of these"
        )
    return (*batches, a[-2], b[-1])


def layout(shape: Sequence[int], strides: Sequence[int], pointer: int) -> Matrix | None:
    """How such an array lies in memory, with strides in elements; None if it has to be copied."""
    rows, cols = shape[-2], shape[-1]
    batch_stride = strides[0] if len(shape) == 3 else 0
    if batch_stride < 0:
        return None
    for transposed, (step, ld, width, lines) in (
        (False, (strides[-1], strides[-2], cols, rows)),
        (True, (strides[-2], strides[-1], rows, cols)),
    ):
        if (step == 1 or width <= 1) and (ld >= width or lines <= 1):
            return Matrix(pointer, transposed, max(ld, width) if lines > 1 else width, batch_stride)
    return None
