"""The operator and the override, on the CPU: a library that was built for it registers there."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import tilegate

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def whole_numbers(*shape):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(1)).float()


@pytest.mark.parametrize("math", ["fp32", "fp32_split"])
def test_matmul(math):
    for a, b in (
        (whole_numbers(5, 7), whole_numbers(7, 3)),
        (whole_numbers(7, 5).mT, whole_numbers(3, 7).mT),
        (whole_numbers(2, 5, 7), whole_numbers(2, 7, 3)),
        (whole_numbers(2, 5, 7), whole_numbers(7, 3)),
        (whole_numbers(5, 1).expand(5, 4), whole_numbers(4, 3)),
    ):
        assert torch.equal(tilegate.matmul(a, b, math=math), a @ b)


def test_products_with_a_prepared_operand():
    weight = torch.randn(136, 192, generator=torch.Generator().manual_seed(1))
    prepared = tilegate.prepare(weight.mT)
    for shape in ((70, 192), (2, 3, 192), (192,)):
        a = torch.randn(shape, generator=torch.Generator().manual_seed(2))
        exact = a.double() @ weight.mT.double()
        found = a @ prepared
        assert found.shape == exact.shape
        assert (found - exact).norm() <= 3e-7 * exact.norm()
    compiled = torch.compile(lambda a: torch.relu(a @ prepared), backend="eager")
    assert torch.equal(compiled(a), torch.relu(a @ prepared))


def test_a_wrong_call_with_a_prepared_operand_says_what_is_wrong():
    b = whole_numbers(7, 3)
    prepared = tilegate.prepare(b.requires_grad_())
    with pytest.raises(NotImplementedError, match="no gradient"):
        whole_numbers(5, 7).requires_grad_() @ prepared
    with torch.no_grad():
        assert torch.equal(whole_numbers(5, 7).requires_grad_() @ prepared, whole_numbers(5, 7) @ b)
    with pytest.raises(TypeError, match=r"a is of torch\.float64"):
        whole_numbers(5, 7).double() @ prepared
    with pytest.raises(ValueError, match="do not fit"):
        whole_numbers(5, 6) @ prepared
    with pytest.raises(TypeError, match=r"is of torch\.float16"):
        tilegate.prepare(b.half())
    with pytest.raises(ValueError, match="the operands are on meta"):
        tilegate.prepare(b.to("meta"))
    with pytest.raises(ValueError, match="a is on meta, b on cpu"):
        torch.ones(5, 7, device="meta") @ prepared


def test_operator_is_registered_as_pytorch_wants():
    a, b = torch.randn(5, 7, requires_grad=True), torch.randn(7, 3, requires_grad=True)
    torch.library.opcheck(torch.ops.tilegate.matmul, (a, b, "fp32"))


@pytest.mark.parametrize(("shape_a", "shape_b"), [((5, 7), (7, 3)), ((2, 5, 7), (7, 3))])
def test_gradients(shape_a, shape_b):
    a, b = (whole_numbers(*shape).requires_grad_() for shape in (shape_a, shape_b))
    tilegate.matmul(a, b).square().sum().backward()
    wanted_a, wanted_b = (t.detach().clone().requires_grad_() for t in (a, b))
    (wanted_a @ wanted_b).square().sum().backward()
    assert torch.equal(a.grad, wanted_a.grad)
    assert torch.equal(b.grad, wanted_b.grad)


def test_a_gradient_is_recorded_only_where_one_is_needed():
    a, b = whole_numbers(5, 7), whole_numbers(7, 3).requires_grad_()
    assert tilegate.matmul(a, b).requires_grad
    assert not tilegate.matmul(a, b.detach()).requires_grad
    with torch.no_grad():
        assert not tilegate.matmul(a, b).requires_grad


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_transforms_of_functions():
    a, b = whole_numbers(2, 5, 7), whole_numbers(7, 3)
    assert torch.equal(torch.vmap(tilegate.matmul, (0, None))(a, b), a @ b)

    def loss(b):
        return torch.vmap(tilegate.matmul, (0, None))(a, b).sum()

    with pytest.raises(RuntimeError, match="functorch"):  # rather than a gradient of zeros
        torch.func.grad(loss)(b)


def test_a_derivative_in_forward_mode_is_an_error():
    a, b = whole_numbers(5, 7), whole_numbers(7, 3)
    with pytest.raises(NotImplementedError, match="forward mode"):  # rather than zeros
        torch.func.jvp(lambda b: tilegate.matmul(a, b), (b,), (b,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(a, a)
        with pytest.raises(NotImplementedError, match="forward mode"):
            tilegate.matmul(dual, b)
        assert torch.equal(tilegate.matmul(a, b), a @ b)


def test_a_tensor_of_another_device_than_the_current_one(monkeypatch):
    """On a GPU. Here tensors are on the device -1, and CUDA is a stand-in."""
    from tilegate import _torch

    current, calls = [3], []

    @contextmanager
    def device(index):
        current.append(index)
        yield
        current.pop()

    monkeypatch.setattr(_torch, "_KEY", "CUDA")
    monkeypatch.setattr(_torch, "multiply", lambda *arguments: calls.append(arguments[-3:-1]))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[-1])
    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(
        torch._C, "_cuda_getCurrentRawStream", lambda index: (index, current[-1]), raising=False
    )
    _torch.enqueue(*(torch.empty(2, 2) for _ in range(3)), 1.0, 0.0, 0)
    assert calls == [(-1, (-1, -1))]
    assert current == [3]


def test_shapes_are_known_without_computing():
    with torch._subclasses.FakeTensorMode():
        assert tilegate.matmul(torch.empty(5, 7), torch.empty(7, 3)).shape == (5, 3)


@pytest.mark.parametrize(
    ("a", "b", "error", "message"),
    [
        (whole_numbers(2, 2).double(), whole_numbers(2, 2), TypeError, "torch.float64"),
        (whole_numbers(2, 2), np.ones((2, 2), np.float32), TypeError, "b is ndarray"),
        (whole_numbers(2, 3), whole_numbers(2, 3), ValueError, "do not fit"),
        (torch.empty(2, 2, device="meta"), whole_numbers(2, 2), ValueError, "a is on meta"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(a, b, error, message):
    with pytest.raises(error, match=message):
        tilegate.matmul(a, b)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_errors_have_the_types_that_are_promised(requires_grad):
    misaligned = torch.frombuffer(bytearray(18), dtype=torch.float32, offset=2).reshape(2, 2)
    misaligned.requires_grad_(requires_grad)
    with pytest.raises(tilegate.TilegateError, match="a is not 4-byte aligned"):
        tilegate.matmul(misaligned, whole_numbers(2, 2))
    with pytest.raises(ValueError, match="one of fp32, fp32_split"):
        tilegate.matmul(misaligned, misaligned, math="tf32")
    with pytest.raises(ValueError, match="do not fit"):
        tilegate.matmul(misaligned, whole_numbers(3, 2))
    huge = whole_numbers(1, 1).requires_grad_(requires_grad).expand(2**24, 1)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        tilegate.matmul(huge, huge.mT)


@pytest.mark.parametrize(
    ("a", "b", "math", "error", "message"),
    [
        (
            whole_numbers(2, 2).double(),
            whole_numbers(2, 2),
            "fp32",
            TypeError,
            "tilegate: .*not FP32",
        ),
        (whole_numbers(2, 3), whole_numbers(2, 3), "fp32", ValueError, "do not fit"),
        (whole_numbers(2), whole_numbers(2), "fp32", ValueError, "neither a matrix nor"),
        (whole_numbers(2, 2), whole_numbers(2, 2), "tf32", ValueError, "neither fp32 nor"),
        (whole_numbers(3, 2, 2), whole_numbers(2, 2, 2), "fp32", ValueError, "do not fit"),
    ],
)
def test_the_operator_refuses_what_it_cannot_compute(a, b, math, error, message):
    from tilegate import _torch

    compiled = _torch._compiled is not None  # a kernel of the stable ABI raises RuntimeError alone
    with pytest.raises(RuntimeError if compiled else error, match=message if compiled else ""):
        torch.ops.tilegate.matmul(a, b, math)


def test_a_limited_workspace():
    a, b = torch.randn(192, 192), torch.randn(192, 192)
    tilegate.set_workspace_limit(0)
    try:
        limited, plain = (tilegate.matmul(a, b, math=math) for math in ("fp32_split", "fp32"))
    finally:
        tilegate.set_workspace_limit(None)
    assert torch.equal(limited, plain)
    assert not torch.equal(limited, tilegate.matmul(a, b, math="fp32_split"))


@pytest.mark.parametrize("broken", [False, True])
def test_without_the_compiled_kernel_the_library_is_called_by_ctypes(tmp_path, broken):
    from tilegate._library import path

    (tmp_path / "libtilegate.so").symlink_to(path().absolute())
    if broken:
        (tmp_path / "libtilegate_torch.so").touch()
    program = """if True:
        import tilegate, torch
        a = torch.ones(3, 3)
        assert torch.equal(tilegate.matmul(a, a), a @ a)
        assert tilegate._torch._compiled is None"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, "TILEGATE_LIBRARY": str(tmp_path / "libtilegate.so")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert ("tilegate.matmul takes longer to call" in done.stderr) == broken


class Counter:
    """Counts the products that reach the library."""

    def __init__(self, monkeypatch):
        from tilegate import _torch

        self.products, multiply = 0, _torch.multiply

        def counted(*arguments):
            self.products += 1
            multiply(*arguments)

        monkeypatch.setattr(_torch, "multiply", counted)


@pytest.fixture
def counter(monkeypatch):
    return Counter(monkeypatch)


def test_override_takes_every_form(counter):
    a, b, c = whole_numbers(6, 7), whole_numbers(7, 5), whole_numbers(5)
    batch_a, batch_b = whole_numbers(2, 6, 7), whole_numbers(2, 7, 5)
    out = torch.empty(6, 5)

    def compute():
        return [
            torch.mm(a, b), torch.mm(a, b, out=out).clone(), torch.bmm(batch_a, batch_b),
            torch.addmm(c, a, b), torch.addmm(c, a, b, beta=2, alpha=-1),
            torch.addmm(torch.full((6, 5), torch.nan), a, b, beta=0),
            torch.baddbmm(whole_numbers(2, 6, 5), batch_a, batch_b, beta=3),
            torch.nn.functional.linear(a, b.mT, c), a @ b,
        ]  # fmt: skip

    wanted = compute()
    assert counter.products == 0
    with tilegate.override(math="fp32", least=0):
        found = compute()
    assert counter.products == len(wanted)
    for one, other in zip(wanted, found):
        assert torch.equal(one, other)
    torch.mm(a, b)
    assert counter.products == len(wanted)


def test_override_leaves_the_rest_to_pytorch(counter):
    with tilegate.override(least=1000):
        assert torch.equal(
            whole_numbers(2, 3) @ whole_numbers(3, 2),
            torch.mm(whole_numbers(2, 3), whole_numbers(3, 2)),
        )
        doubles = whole_numbers(20, 20).double()
        assert torch.mm(doubles, doubles).dtype == torch.float64
        with pytest.raises(RuntimeError, match="mat1 and mat2"):
            torch.mm(whole_numbers(20, 20), whole_numbers(21, 20))
        with pytest.raises(RuntimeError, match="must be a matrix"):
            torch.mm(whole_numbers(2, 20, 20), whole_numbers(2, 20, 20))
        with pytest.raises(RuntimeError, match="must be a matrix"):
            torch.mm(whole_numbers(20, 20), torch.tensor(1.0))
        with pytest.raises(RuntimeError, match="expanded size"):
            torch.addmm(whole_numbers(7), whole_numbers(20, 20), whole_numbers(20, 20), beta=0)
    assert counter.products == 0


def test_override_has_gradients(counter):
    layer = torch.nn.Linear(7, 5)
    inputs = torch.randn(6, 7)
    layer(inputs).sum().backward()
    wanted = layer.weight.grad.clone()
    layer.zero_grad()
    with tilegate.override(math="fp32", least=0):
        layer(inputs).sum().backward()
    assert counter.products >= 2
    torch.testing.assert_close(layer.weight.grad, wanted)


def test_a_result_may_be_an_operand(counter):
    a = whole_numbers(5, 5)
    wanted = a @ a
    with tilegate.override(math="fp32", least=0):
        torch.mm(a, a, out=a)
    assert counter.products == 1
    assert torch.equal(a, wanted)


def test_threads():
    a, b = whole_numbers(30, 40), whole_numbers(40, 20)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(tilegate.matmul(a, b))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(torch.equal(result, a @ b) for result in results)


def test_compiles_without_a_break_in_the_graph():
    a, b = whole_numbers(6, 7).requires_grad_(), whole_numbers(7, 5)
    compiled = torch.compile(
        lambda x, y: tilegate.matmul(x, y).relu(), backend="aot_eager", fullgraph=True
    )
    found = compiled(a, b)
    assert torch.equal(found, (a @ b).relu())
    found.sum().backward()
    assert a.grad is not None
