"""Products over the ranks of a torch process group, for tensor parallelism. Communication overlaps
with the local products, as in Tilegate's DistributedSgemm."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable

from tilegate._library import Math, check_math
from tilegate._torch import check_operands, enqueue, product

__all__ = ["all_gather_matmul", "matmul_reduce_scatter"]

Group: TypeAlias = dist.ProcessGroup | None


def all_gather_matmul(
    a: torch.Tensor, b: torch.Tensor, *, group: Group = None, math: Math = "fp32"
) -> torch.Tensor:
    """The rows of all ranks' `a`, in their order, times this rank's `b`: (m, k) by (k, n) gives
    (ranks · m, n). `a` has the same shape on all ranks; `b` may have other columns on each."""
    _check(a, b, math)
    result: torch.Tensor = _AllGatherMatmul.apply(a, b, group, math)
    return result


def matmul_reduce_scatter(
    a: torch.Tensor, b: torch.Tensor, *, group: Group = None, math: Math = "fp32"
) -> torch.Tensor:
    """This rank's rows of the sum over ranks of `a` @ `b`: (m, k) by (k, n) gives (m / ranks, n).
    The ranks' products are added in their order. `k` may differ between ranks."""
    _check(a, b, math)
    if a.shape[0] % dist.get_world_size(group):
        raise ValueError(f"{a.shape[0]} rows for {dist.get_world_size(group)} ranks")
    result: torch.Tensor = _MatmulReduceScatter.apply(a, b, group, math)
    return result


def _check(a: torch.Tensor, b: torch.Tensor, math: Math) -> None:
    check_operands(a, b, math)
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"shapes {tuple(a.shape)} and {tuple(b.shape)} are not (m, k) by (k, n)")


class _AllGatherMatmul(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, group: Group, math: Math) -> Any:
        result, gathered = _gather_and_multiply(a, b, group, math)
        ctx.save_for_backward(gathered, b)
        ctx.group, ctx.math = group, math
        return result

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        gathered, b = ctx.saved_tensors
        of_a = _multiply_and_scatter(grads[0], b.mT, ctx.group, ctx.math)
        return of_a, product(gathered.mT, grads[0], ctx.math), None, None


class _MatmulReduceScatter(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, group: Group, math: Math) -> Any:
        ctx.save_for_backward(a, b)
        ctx.group, ctx.math = group, math
        return _multiply_and_scatter(a, b, group, math)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        a, b = ctx.saved_tensors
        of_a, gathered = _gather_and_multiply(grads[0], b.mT, ctx.group, ctx.math)
        return of_a, product(a.mT, gathered, ctx.math), None, None


def _gather_and_multiply(
    a: torch.Tensor, b: torch.Tensor, group: Group, math: Math
) -> tuple[torch.Tensor, torch.Tensor]:
    """Own rows first, while the others arrive."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    a = a.contiguous()
    gathered = a.new_empty((ranks, *a.shape))
    result = a.new_empty((ranks, a.shape[0], b.shape[1]))
    arrivals = [
        _exchange(a, (rank - step) % ranks, gathered[of], of, group)
        for step in range(1, ranks)
        for of in [(rank + step) % ranks]
    ]
    gathered[rank] = a
    enqueue(a, b, result[rank], 1.0, 0.0, check_math(math))
    for step, wait in enumerate(arrivals, start=1):
        wait()
        of = (rank + step) % ranks
        enqueue(gathered[of], b, result[of], 1.0, 0.0, check_math(math))
    return result.flatten(0, 1), gathered.flatten(0, 1)


def _multiply_and_scatter(
    a: torch.Tensor, b: torch.Tensor, group: Group, math: Math
) -> torch.Tensor:
    """Own rows last, while the last sums arrive."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    rows = a.unflatten(0, (ranks, -1))
    sums = a.new_empty((ranks, rows.shape[1], b.shape[1]))  # of this rank's rows, by each rank
    arrivals = []
    for step in range(1, ranks):
        to, of = (rank + step) % ranks, (rank - step) % ranks
        arrivals.append(_exchange(product(rows[to], b, math), to, sums[of], of, group))
    enqueue(rows[rank], b, sums[rank], 1.0, 0.0, check_math(math))
    for wait in arrivals:
        wait()
    total = sums[0]
    for other in sums[1:]:
        total = total + other
    return total


def _exchange(
    out: torch.Tensor, to: int, into: torch.Tensor, of: int, group: Group
) -> Callable[[], None]:
    """Sends to one rank and receives from another. What it returns waits for both, and keeps `out`
    until then; on a GPU the current stream waits."""
    own = group or dist.group.WORLD
    assert own is not None
    work = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, out, dist.get_global_rank(own, to), group),
            dist.P2POp(dist.irecv, into, dist.get_global_rank(own, of), group),
        ]
    )

    def wait(_kept: torch.Tensor = out) -> None:
        for each in work:
            each.wait()

    return wait
