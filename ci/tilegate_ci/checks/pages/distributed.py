"""The table of kernels/distributed: bench_distributed, and PyTorch's operators beside it."""

import re
from pathlib import Path
from typing import Any

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Model
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.google import GoogleReport
from tilegate_ci.report import templates
from tilegate_ci.report.figures import machine

REPORT = Path("bench/results/nvidia-h100-80gb-hbm3-distributed.json")
TORCH = REPORT.with_name("nvidia-h100-80gb-hbm3-distributed-torch.json")

_NAME = re.compile(
    r"(?P<schedule>Distributed|InTurn)/(?P<n>\d+)x\d+x\d+(?P<split>/split)?"
    r"/p(?P<gpus>\d+)(?P<rows>/rows)?(?P<same>/same_bits)?/manual_time"
)
_MICROSECONDS = 1e6


class TorchRow(Model):
    n: int
    form: str
    seconds: float


class TorchReport(Model):
    """As bench/distributed_torch.py writes it."""

    context: dict[str, Any]
    rows: list[TorchRow]


def distributed_block(repository: Path) -> str:
    """Empty where nothing was recorded."""
    path = repository / REPORT
    if not path.exists():
        return ""
    report = documents.load(GoogleReport, path)
    cells: dict[tuple[str, int], dict[tuple[str, ...], tuple[float, float]]] = {}
    alone: dict[tuple[str, int], tuple[float, float]] = {}
    gpus = 1
    for _, row in report.rows(str(path)):
        name = _NAME.fullmatch(row["name"])
        if name is None or not row.get("verified"):
            raise GateError(f"{path}: {row['name']}: not a verified row of bench_distributed")
        math, n = "split" if name["split"] else "FP32", int(name["n"])
        cell = row["real_time"], row["efficiency"]
        if name["gpus"] == "1":
            alone[math, n] = cell
            continue
        gpus = int(name["gpus"])
        options = f"{math}, same bits" if name["same"] else math
        form = "row" if name["rows"] else "column"
        cells.setdefault((options, n), {})[form, name["schedule"]] = cell
    columns = [(form, each) for form in ("column", "row") for each in ("Distributed", "InTurn")]
    rows = [
        (n, options, [alone.get((options.partition(",")[0], n)), *map(found.get, columns)])
        for (options, n), found in sorted(cells.items(), key=lambda item: item[0])
    ]
    return templates.markdown(
        "distributed",
        rows=rows,
        gpus=gpus,
        made_on=_made_on(report.context, gpus),
        torch=_torch(repository / TORCH),
    ).rstrip("\n")


def _made_on(context: dict[str, Any], gpus: int) -> str:
    device = {**context, "name": context["device_name"]}
    nccl = f"NCCL {context['nccl']}, commit {context['commit'][:12]}, one process"
    return f"{gpus} {machine(device)}, {nccl}"


def _torch(path: Path) -> dict[str, object] | None:
    if not path.exists():
        return None
    report = documents.load(TorchReport, path)
    context, ranks = report.context, report.context["gpus"]
    by_size: dict[int, dict[str, float]] = {}
    for row in report.rows:
        by_size.setdefault(row.n, {})[row.form] = row.seconds
    one, *forms = next(iter(by_size.values()))
    return {
        "forms": forms,
        "rows": [
            (n, _MICROSECONDS * times[one], [times[one] / (ranks * times[form]) for form in forms])
            for n, times in by_size.items()
        ],
        "made_on": f"{ranks} {context['device_name']}, PyTorch {context['torch']}, CUDA "
        f"{context['cuda']}, NCCL {context['nccl']}, by bench/distributed_torch.py at commit "
        f"{context['commit'][:12]}",
    }
