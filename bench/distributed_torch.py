"""PyTorch's products over GPUs, beside bench_distributed: one GPU; gather, then multiply; multiply,
then reduce-scatter; and its fused operators. FP32, without TF32. Where the package tilegate is
installed also tilegate.distributed, in FP32 and as fp32_split.

    torchrun --nproc-per-node 2 bench/distributed_torch.py OUT.json
"""

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

SIZES = (2048, 4096, 8192, 16384)


def seconds(launch: Callable[[], object]) -> float:
    """Per launch, until the last rank is done."""
    for _ in range(3):
        launch()
    best = float("inf")
    for _ in range(5):
        dist.barrier()
        torch.cuda.synchronize()
        launches, start = 10, time.perf_counter()
        for _ in range(launches):
            launch()
        torch.cuda.synchronize()
        dist.barrier()
        best = min(best, (time.perf_counter() - start) / launches)
    return best


def gather_and_multiply(gathered: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    dist.all_gather_into_tensor(gathered, a)
    torch.mm(gathered, b)


def multiply_and_scatter(scattered: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    dist.reduce_scatter_tensor(scattered, torch.mm(a, b))


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.backends.cuda.matmul.allow_tf32 = False
    group = dist.group.WORLD.group_name
    symmetric.enable_symm_mem_for_group(group)
    rows = []
    for n in SIZES:
        whole_a = torch.rand(n, n, device="cuda") * 2 - 1
        a, b = whole_a[: n // ranks].contiguous(), torch.rand(n, n // ranks, device="cuda") * 2 - 1
        whole_b = torch.rand(n, n, device="cuda") * 2 - 1
        gathered, scattered = torch.empty_like(whole_a), torch.empty(n // ranks, n, device="cuda")
        part_a, part_b = whole_a[:, : n // ranks].contiguous(), whole_b[: n // ranks].contiguous()

        fused = torch.ops.symm_mem
        forms: dict[str, Callable[[], object]] = {
            "one GPU": partial(torch.mm, whole_a, whole_b),
            "gather, then multiply": partial(gather_and_multiply, gathered, a, b),
            "fused all-gather matmul": partial(fused.fused_all_gather_matmul, a, [b], 0, group),
            "multiply, then reduce-scatter": partial(
                multiply_and_scatter, scattered, part_a, part_b
            ),
            "fused matmul reduce-scatter": partial(
                fused.fused_matmul_reduce_scatter, part_a, part_b, "sum", 0, group
            ),
        }
        if importlib.util.find_spec("tilegate") is not None:
            from tilegate.distributed import all_gather_matmul, matmul_reduce_scatter

            for math, name in (("fp32", ""), ("fp32_split", ", split")):
                forms |= {
                    f"tilegate all_gather_matmul{name}": partial(
                        all_gather_matmul, a, b, math=math
                    ),
                    f"tilegate matmul_reduce_scatter{name}": partial(
                        matmul_reduce_scatter, part_a, part_b, math=math
                    ),
                }
        rows += [{"n": n, "form": form, "seconds": seconds(run)} for form, run in forms.items()]
    if rank == 0:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            context = {
                "device_name": torch.cuda.get_device_name(),
                "torch": torch.__version__,
                "cuda": torch.version.cuda,
                "nccl": ".".join(map(str, torch.cuda.nccl.version())),
                "gpus": ranks,
                "commit": os.environ.get("TILEGATE_COMMIT", ""),
            }
            json.dump({"context": context, "rows": rows}, file, indent=1)
            file.write("\n")
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
