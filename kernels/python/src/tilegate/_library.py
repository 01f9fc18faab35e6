"""libtilegate.so by ctypes: its API is stable, so that one wheel serves every PyTorch."""

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

Math = Literal["fp32", "fp32_split"]
_MATH = {"fp32": 0, "fp32_split": 1}

_ROW_MAJOR, _NO_TRANS, _TRANS, _OPERAND_B = 101, 111, 112, 152
_SUCCESS = 0
_ALIGNMENT = 16  # bytes; what a plan depends on
_PLANS = 4096  # the most that a cache holds

# Of a matrix, or a batch of them: operation, leading dimension, stride from one to the next (0: one
# for all).
Layout: TypeAlias = tuple[int, int, int]
Operand: TypeAlias = tuple[tuple[int, ...], Layout, int]  # shape, layout, address


class TilegateError(RuntimeError):
    """The library rejected a call, or the device failed."""


def check_math(math: str) -> int:
    if math not in _MATH:
        raise ValueError(f"math={math!r}: it is one of {', '.join(_MATH)}")
    return _MATH[math]


def path() -> Path:
    return Path(os.environ.get("TILEGATE_LIBRARY") or Path(__file__).with_name("libtilegate.so"))


@cache
def library() -> ctypes.CDLL:
    try:
        found = ctypes.CDLL(str(path()))
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
    to_prepare: list[Any] = [pointer, i32, i32, i32, i64, i64, pointer, i64, i32]
    found.tilegate_prepare_bytes.argtypes = [*to_prepare, pointer]
    found.tilegate_prepare.argtypes = [*to_prepare, pointer, ctypes.c_size_t, pointer]
    found.tilegate_destroy_prepared.argtypes = [pointer]
    prepared: list[Any] = [
        pointer, pointer, i32, i32, i32, i64, i64, i64, f32, pointer, i64, pointer, i64, f32,
        pointer, i64,
    ]  # fmt: skip
    found.tilegate_sgemm_prepared.argtypes = prepared
    found.tilegate_sgemm_prepared_workspace_bytes.argtypes = [*prepared, pointer]
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


class _Product(NamedTuple):
    """What a call passes to the library before A, and after A, B and C; bytes of its workspace."""

    head: tuple[Any, ...]
    a: tuple[Any, ...]
    b: tuple[Any, ...]
    c: tuple[Any, ...]
    workspace: int


class _Thread(threading.local):
    """A thread's handle, its current settings, and the products that it has computed."""

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()
        self.told: tuple[int, int, int] | None = None  # math, stream, workspace limit
        self.products: dict[tuple[Any, ...], _Product] = {}
        self.sgemm = library().tilegate_sgemm_strided_batched
        if library().tilegate_create(ctypes.byref(self.handle)) != _SUCCESS:
            raise TilegateError("no handle could be made")

    def __del__(self) -> None:
        library().tilegate_destroy(self.handle)

    def check(self, status: int) -> None:
        if status != _SUCCESS:
            said: bytes = library().tilegate_message(self.handle)
            text = said or library().tilegate_status_string(status)
            raise TilegateError(text.decode())

    def tell(self, math: int, stream: int, limit: int) -> None:
        self.told = None
        self.check(library().tilegate_set_math(self.handle, math))
        self.check(library().tilegate_set_stream(self.handle, stream))
        self.check(library().tilegate_set_workspace_limit(self.handle, limit))
        self.told = math, stream, limit

    def take_workspace(self, size: int, allocate: Callable[[int], tuple[int, Any]]) -> Any:
        """For the next call. The owner, which may be freed after it: only then may other work of
        the stream take it."""
        if not size:
            return None
        pointer, owner = allocate(size)
        self.check(library().tilegate_set_workspace(self.handle, pointer, size))
        return owner

    def plan(self, a: Operand, b: Operand, c: int, alpha: float, beta: float) -> _Product:
        (shape_a, of_a, at_a), (shape_b, of_b, at_b) = a, b
        *batches, m, n = result_shape(shape_a, shape_b)
        i64 = ctypes.c_int64
        head = (
            self.handle, *map(ctypes.c_int, (_ROW_MAJOR, of_a[0], of_b[0])),
            *map(i64, (m, n, shape_a[-1])), ctypes.c_float(alpha),
        )  # fmt: skip
        after_a = (i64(of_a[1]), i64(of_a[2]))
        after_b = (i64(of_b[1]), i64(of_b[2]), ctypes.c_float(beta))
        after_c = (i64(n), i64(m * n), i64(*batches or (1,)))
        size = ctypes.c_size_t()
        bytes_of = library().tilegate_sgemm_strided_batched_workspace_bytes
        self.check(bytes_of(*head, at_a, *after_a, at_b, *after_b, c, *after_c, ctypes.byref(size)))
        return _Product(head, after_a, after_b, after_c, size.value)


_NO_LIMIT = ctypes.c_size_t(-1).value
workspace_limit = ctypes.c_size_t(_NO_LIMIT)  # in bytes


def set_workspace_limit(limit: int | None) -> None:
    """From now on no product of any thread needs more bytes of workspace than `limit`, and may be
    slower for it; None: no limit."""
    if limit is not None and not 0 <= limit <= _NO_LIMIT:
        raise ValueError(f"limit={limit}: it is a number of bytes, or None")
    workspace_limit.value = _NO_LIMIT if limit is None else limit


_thread: _Thread | None = None
_lock = threading.Lock()


def _of_thread() -> _Thread:
    global _thread
    if _thread is None:
        with _lock:
            _thread = _thread or _Thread()
    return _thread


def multiply(
    a: Operand,
    b: Operand,
    c: int,
    alpha: float,
    beta: float,
    math: int,
    device: int,
    stream: int,
    allocate: Callable[[int], tuple[int, Any]],
) -> None:
    """C <- alpha·A·B + beta·C, with C at the address `c`, row-major with no padding. `allocate`
    gives the address of so many bytes, 16-byte aligned, and what owns them."""
    mine, limit = _thread or _of_thread(), workspace_limit.value
    (shape_a, of_a, at_a), (shape_b, of_b, at_b) = a, b
    if mine.told != (math, stream, limit):
        mine.tell(math, stream, limit)
    key = (
        shape_a, of_a, at_a % _ALIGNMENT, shape_b, of_b, at_b % _ALIGNMENT, c % _ALIGNMENT,
        alpha, beta, math, device, limit,
    )  # fmt: skip
    product = mine.products.get(key)
    if product is None:
        if len(mine.products) >= _PLANS:
            mine.products.clear()
        product = mine.products[key] = mine.plan(a, b, c, alpha, beta)
    head, after_a, after_b, after_c, workspace = product
    owner = mine.take_workspace(workspace, allocate)
    status = mine.sgemm(*head, at_a, *after_a, at_b, *after_b, c, *after_c)
    if status != _SUCCESS:
        mine.check(status)
    del owner


class PreparedB:
    """The digits of a B, (k, n), at an address. Neither its memory nor that of B may be freed, and
    B may not change, as long as products are enqueued."""

    def __init__(
        self,
        b: Operand,
        is_checked: bool,
        stream: int,
        allocate: Callable[[int], tuple[int, Any]],
    ) -> None:
        self._prepared = ctypes.c_void_p()
        self._b, self._workspaces = b, dict[tuple[Any, ...], int]()
        self._lock = threading.Lock()
        (k, n), (op, ld, _), at = b
        operand = _ROW_MAJOR, _OPERAND_B, op, n, k, at, ld, int(is_checked)
        mine = self._told(stream)
        size = ctypes.c_size_t()
        mine.check(library().tilegate_prepare_bytes(mine.handle, *operand, ctypes.byref(size)))
        self.memory: Any
        pointer, self.memory = allocate(size.value) if size.value else (0, None)
        mine.check(
            library().tilegate_prepare(
                mine.handle, *operand, pointer, size, ctypes.byref(self._prepared)
            )
        )

    def __del__(self) -> None:
        library().tilegate_destroy_prepared(self._prepared)

    @staticmethod
    def _told(stream: int) -> _Thread:
        mine, settings = _thread or _of_thread(), (stream, workspace_limit.value)
        if mine.told is None or mine.told[1:] != settings:
            mine.tell(0, *settings)
        return mine

    def multiply(
        self, a: Operand, c: int, stream: int, allocate: Callable[[int], tuple[int, Any]]
    ) -> None:
        """C <- A·B. C, a, stream and `allocate` as for the function `multiply`."""
        (shape_a, of_a, at_a), ((k, n), of_b, at_b) = a, self._b
        m = shape_a[0]
        arguments = (
            self._prepared, _ROW_MAJOR, of_a[0], of_b[0], m, n, k, 1.0, at_a, of_a[1], at_b,
            of_b[1], 0.0, c, n,
        )  # fmt: skip
        with self._lock:  # plans are made and kept by one thread at a time
            mine = self._told(stream)
            key = shape_a, of_a, at_a % _ALIGNMENT, c % _ALIGNMENT, workspace_limit.value
            if key not in self._workspaces:
                size = ctypes.c_size_t()
                bytes_of = library().tilegate_sgemm_prepared_workspace_bytes
                mine.check(bytes_of(mine.handle, *arguments, ctypes.byref(size)))
                if len(self._workspaces) >= _PLANS:
                    self._workspaces.clear()
                self._workspaces[key] = size.value
            owner = mine.take_workspace(self._workspaces[key], allocate)
            mine.check(library().tilegate_sgemm_prepared(mine.handle, *arguments))
            del owner


def result_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Of a product; ValueError where the shapes do not fit."""
    batches = {shape[0] for shape in (a, b) if len(shape) == 3}
    fits = len(a) in (2, 3) and len(b) in (2, 3) and a[-1] == b[-2] and len(batches) <= 1
    if not fits:
        raise ValueError(
            f"shapes {tuple(a)} and {tuple(b)} do not fit: (m, k) by (k, n), or batches of these"
        )
    return (*batches, a[-2], b[-1])


def matrix_shape(b: tuple[int, ...]) -> tuple[int, int]:
    """Of an operand that is prepared."""
    if len(b) != 2:
        raise ValueError(f"b has the shape {tuple(b)}: only a matrix (k, n) can be prepared")
    return b[0], b[1]


def prepared_shape(a: tuple[int, ...], b: tuple[int, int]) -> tuple[int, ...]:
    """Of a product with a prepared B."""
    if not a or a[-1] != b[0]:
        raise ValueError(f"shapes {tuple(a)} and {b} do not fit: (..., k) by a prepared (k, n)")
    return (*a[:-1], b[1])


@lru_cache(_PLANS)
def layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout | None:
    """How such an array lies in memory, with strides in elements; None if it has to be copied."""
    rows, cols = shape[-2], shape[-1]
    if 0 in shape:  # NumPy's strides are 0 then; no element is read
        return _NO_TRANS, cols, 0
    batch_stride = strides[0] if len(shape) == 3 else 0
    if batch_stride < 0:
        return None
    for op, (step, ld, width, lines) in (
        (_NO_TRANS, (strides[-1], strides[-2], cols, rows)),
        (_TRANS, (strides[-2], strides[-1], rows, cols)),
    ):
        if (step == 1 or width <= 1) and (ld >= width or lines <= 1):
            return op, max(ld, width) if lines > 1 else width, batch_stride
    return None
