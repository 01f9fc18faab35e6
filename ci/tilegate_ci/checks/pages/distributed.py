"""The tables of kernels/distributed: bench_distributed, and PyTorch's operators beside it."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Model
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.google import GoogleReport
from tilegate_ci.report import templates
from tilegate_ci.report.figures import machine

MODELS = ("nvidia-h200", "nvidia-h100-80gb-hbm3")

_PRODUCT = re.compile(
    r"(?P<schedule>Distributed|InTurn)/(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?P<split>/split)?"
    r"/p(?P<gpus>\d+)(?P<rows>/rows)?(?P<same>/same_bits)?/manual_time"
)
_EXCHANGE = re.compile(r"Exchange/(?P<bytes>\d+)/p(?P<gpus>\d+)/manual_time")
_MICROSECONDS = 1e6


def report_path(model: str, what: str = "") -> Path:
    """Of bench_distributed; `what` names other runs: -weak, -others-first, -mixed, -torch."""
    return Path("bench/results") / f"{model}-distributed{what}.json"


@dataclass(frozen=True)
class Product:
    """A row of bench_distributed. `form`: column or row; of one GPU both are the same."""

    schedule: str
    shape: tuple[int, int, int]
    math: str
    gpus: int
    form: str
    same_bits: bool
    us: float
    efficiency: float | None

    @property
    def options(self) -> str:
        return f"{self.math}, same bits" if self.same_bits else self.math


@dataclass(frozen=True)
class DistributedRun:
    """A file of bench_distributed."""

    context: dict[str, Any]
    products: list[Product] = field(default_factory=list)
    exchanges: dict[int, float] = field(default_factory=dict)  # microseconds by bytes

    def gpus(self) -> int:
        return max(row.gpus for row in self.products)

    def made_on(self) -> str:
        device = {**self.context, "name": self.context["device_name"]}
        nccl = f"NCCL {self.context['nccl']}, commit {self.context['commit'][:12]}, one process"
        return f"{self.gpus()} {machine(device)}, {nccl}"


def read(path: Path) -> DistributedRun | None:
    """None where nothing was recorded."""
    if not path.exists():
        return None
    report = documents.load(GoogleReport, path)
    found = DistributedRun(report.context)
    for _, row in report.rows(str(path)):
        product, exchange = (p.fullmatch(row["name"]) for p in (_PRODUCT, _EXCHANGE))
        if not (product or exchange) or not row.get("verified"):
            raise GateError(f"{path}: {row['name']}: not a verified row of bench_distributed")
        if exchange:
            found.exchanges[int(exchange["bytes"])] = row["real_time"]
            continue
        assert product is not None
        found.products.append(
            Product(
                product["schedule"],
                (int(product["m"]), int(product["n"]), int(product["k"])),
                "split" if product["split"] else "FP32",
                int(product["gpus"]),
                "row" if product["rows"] else "column",
                bool(product["same"]),
                row["real_time"],
                row.get("efficiency"),
            )
        )
    return found


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
    models = []
    for model in MODELS:
        found = read(repository / report_path(model))
        if found is not None:
            models.append(
                {
                    "name": found.context["device_name"],
                    "made_on": found.made_on(),
                    "gpus": found.gpus(),
                    "rows": _rows(found),
                    "exchanges": [
                        (_binary(size), us, 1e-3 * size / us)
                        for size, us in found.exchanges.items()
                    ],
                    "orders": _orders(repository, model),
                    "torch": _torch(repository / report_path(model, "-torch")),
                }
            )
    return templates.markdown("distributed", models=models).rstrip("\n") if models else ""


def scaling(
    repository: Path,
) -> tuple[dict[str, dict[tuple[str, str], dict[int, float]]], DistributedRun] | None:
    """Efficiency by mathematics, form and kind of scaling, then n, of the first model that has
    both files."""
    for model in MODELS:
        strong = read(repository / report_path(model))
        weak = read(repository / report_path(model, "-weak"))
        if strong is not None and weak is not None:
            break
    else:
        return None
    panels: dict[str, dict[tuple[str, str], dict[int, float]]] = {}
    for row in strong.products:
        if row.gpus > 1 and row.schedule == "Distributed" and not row.same_bits:
            assert row.efficiency is not None
            line = panels.setdefault(row.math, {}).setdefault(
                (f"{row.form}-parallel", "strong"), {}
            )
            line[row.shape[0]] = row.efficiency
    alone = {(row.math, row.shape[0]): row.us for row in weak.products if row.gpus == 1}
    for row in weak.products:
        if row.gpus > 1:
            line = panels[row.math].setdefault((f"{row.form}-parallel", "weak"), {})
            line[row.shape[0]] = alone[row.math, row.shape[0]] / row.us
    return panels, strong


def _rows(found: DistributedRun) -> list[tuple[int, str, list[Product | None]]]:
    """n, mathematics, and of one GPU, then of each form overlapped and in turn."""
    cells: dict[tuple[str, int], dict[tuple[str, str], Product]] = {}
    alone = {}
    for row in found.products:
        n = row.shape[0]
        if row.gpus == 1:
            alone[row.math, n] = row
        else:
            cells.setdefault((row.options, n), {})[row.form, row.schedule] = row
    columns = [(form, each) for form in ("column", "row") for each in ("Distributed", "InTurn")]
    return [
        (n, options, [alone.get((options.partition(",")[0], n)), *map(of_form.get, columns)])
        for (options, n), of_form in sorted(cells.items())
    ]


def _orders(repository: Path, model: str) -> list[tuple[int, str, float, float]]:
    """n, mathematics, and the microseconds of row-parallel products with other ranks' rows first,
    and with the blocks of all rows mixed."""
    runs = [read(repository / report_path(model, each)) for each in ("-others-first", "-mixed")]
    found: dict[tuple[int, str], list[float]] = {}
    for run in runs:
        for row in run.products if run else ():
            found.setdefault((row.shape[0], row.options), []).append(row.us)
    return [(*key, *times) for key, times in sorted(found.items())]  # type: ignore[misc]


def _binary(size: int) -> str:
    """Of bytes."""
    for unit in ("bytes", "KiB"):
        if size % 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} MiB"


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
        "sizes": list(by_size),
        "one": [_MICROSECONDS * times[one] for times in by_size.values()],
        "forms": [
            (form, [times[one] / (ranks * times[form]) for times in by_size.values()])
            for form in forms
        ],
        "made_on": f"{ranks} {context['device_name']}, PyTorch {context['torch']}, CUDA "
        f"{context['cuda']}, NCCL {context['nccl']}, by bench/distributed_torch.py at commit "
        f"{context['commit'][:12]}",
    }
