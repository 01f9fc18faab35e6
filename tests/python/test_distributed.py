"""tilegate.distributed with a process per rank: over gloo, or over NCCL if the library computes on
GPUs."""

import pytest
import tilegate

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
from tilegate.distributed import all_gather_matmul, matmul_reduce_scatter  # noqa: E402

M, N, K = 12, 10, 18
ON_GPUS = tilegate.device_name() != "simt"
DEVICE = "cuda" if ON_GPUS else "cpu"


def whole_numbers(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-3, 4, shape, generator=generator).float().to(DEVICE)


def operands():
    """The whole product's operands, and a gradient of its result."""
    return whole_numbers(M, K, seed=1), whole_numbers(K, N, seed=2), whole_numbers(M, N, seed=3)


def wanted():
    a, b, grad = operands()
    a.requires_grad_()
    b.requires_grad_()
    c = a @ b
    c.backward(grad)
    return c.detach(), a.grad, b.grad


def part(tensor, dim, rank, ranks):
    return tensor.tensor_split(ranks, dim)[rank].clone()


def check_column_parallel(rank, ranks, group, math):
    """Rows of A, and columns of B and C, which may be uneven."""
    a, b, grad = operands()
    own_a = part(a, 0, rank, ranks).requires_grad_()
    own_b = part(b, 1, rank, ranks).requires_grad_()
    c = all_gather_matmul(own_a, own_b, group=group, math=math)
    c.backward(part(grad, 1, rank, ranks))
    of_c, of_a, of_b = wanted()
    assert torch.equal(c, part(of_c, 1, rank, ranks))
    assert torch.equal(own_a.grad, part(of_a, 0, rank, ranks))
    assert torch.equal(own_b.grad, part(of_b, 1, rank, ranks))


def check_row_parallel(rank, ranks, group, math):
    """Columns of A and rows of B, which may be uneven; rows of C."""
    a, b, grad = operands()
    own_a = part(a, 1, rank, ranks).requires_grad_()
    own_b = part(b, 0, rank, ranks).requires_grad_()
    c = matmul_reduce_scatter(own_a, own_b, group=group, math=math)
    c.backward(part(grad, 0, rank, ranks))
    of_c, of_a, of_b = wanted()
    assert torch.equal(c, part(of_c, 0, rank, ranks))
    assert torch.equal(own_a.grad, part(of_a, 1, rank, ranks))
    assert torch.equal(own_b.grad, part(of_b, 0, rank, ranks))


def check_errors(group):
    a = whole_numbers(2, 3, seed=1)
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 3\) are not \(m, k\) by \(k, n\)"):
        all_gather_matmul(a, a, group=group)
    with pytest.raises(ValueError, match="3 rows for 2 ranks"):
        matmul_reduce_scatter(a.mT, a, group=group)
    with pytest.raises(TypeError, match="float64"):
        all_gather_matmul(a.double(), a, group=group)
    rows = whole_numbers(2, 3, seed=2).requires_grad_()
    product = all_gather_matmul(rows, a.mT, group=group)
    (of_rows,) = torch.autograd.grad((product * product).sum(), rows, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        of_rows.sum().backward()


def run_rank(rank, ranks, store):
    if ON_GPUS:
        torch.cuda.set_device(rank)
    backend, at = "nccl" if ON_GPUS else "gloo", f"file://{store}"
    dist.init_process_group(backend, init_method=at, rank=rank, world_size=ranks)
    for math in ("fp32", "fp32_split"):
        check_column_parallel(rank, ranks, None, math)
        check_row_parallel(rank, ranks, None, math)
    if ranks == 3:  # a group whose ranks have other numbers
        group = dist.new_group([2, 0])
        if rank != 1:
            check_column_parallel(dist.get_rank(group), 2, group, "fp32")
            check_row_parallel(dist.get_rank(group), 2, group, "fp32")
            check_errors(group)
    dist.destroy_process_group()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_have_their_parts_of_the_product(ranks, tmp_path):
    if ON_GPUS and torch.cuda.device_count() < ranks:
        pytest.skip(f"needs {ranks} GPUs")
    torch.multiprocessing.spawn(run_rank, (ranks, str(tmp_path / "store")), nprocs=ranks)
