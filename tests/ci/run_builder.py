"""Stand-ins of a gate run: two folders to compare, cmake and the bench binary."""

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_bench
from stage_builder import write_stages

from gate_builders import COMMIT
from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, dumps
from tilegate_ci.formats.run_file import collect
from tilegate_ci.model import Process, Session

SUITE = """set,m,n,k,lda,ldb,ldc,pointer_offset_bytes
Naive,32,32,32,32,32,32,0
Warptile,64,64,64,64,64,64,0
Warptile,33,35,37,37,35,35,0
Cublas,1024,1024,1024,1024,1024,1024,0
Cublas,2048,2048,2048,2048,2048,2048,0
"""
HERE = Path(__file__).parent


@dataclass
class Done:
    code: int
    out: str
    err: str


class World:
    """A base and a head folder, and a folder to build and measure in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for side in ("base", "head"):
            (folder / side / "bench" / "baselines").mkdir(parents=True)
            (folder / side / "kernels").mkdir()
            shutil.copy(HERE / "fake_bench.py", folder / side / "bench" / "bench")
            (folder / side / "bench" / "gate.csv").write_text(SUITE)
            (folder / side / "kernels" / "rung.cu").write_text(f"// {side}\n")
            self.set(side)

    def gate(self, side: str, suite: str, *stages: dict[str, Any]) -> None:
        """The side's bench/gate.csv, and the rungs that its build lists."""
        (self.folder / side / "bench" / "gate.csv").write_text(suite)
        write_stages(self.folder / side, *stages)
        names = "".join(f"// {stage['name']}\n" for stage in stages)
        (self.folder / side / "kernels" / "rung.cu").write_text(f"// {side}\n{names}")

    def set(self, side: str, **settings: object) -> None:
        """What the bench of this side does; its noise differs from the other side's."""
        path = self.folder / side / "bench.json"  # no source: the digest does not change
        path.write_text(json.dumps({"seed": f"{side}", **settings}))
        for built in self.folder.glob("work/build-*/.built"):
            built.unlink()  # or the bench that was built before would go on as it was

    def processes(self) -> list[Path]:
        return sorted(self.folder.glob("work/run-*/process-*.json"))

    def accept_baseline(self) -> None:
        """Five processes of the base make its baseline."""
        (run,) = self.folder.glob("work/run-*")
        paths = [run / f"process-pair-{n}-base.json" for n in range(1, 6)]
        processes = [documents.load(Process, path) for path in paths]
        path = self.folder / "base" / "bench" / "baselines" / "nvidia-h200.json"
        path.write_text(dumps(collect(processes, COMMIT, [Session()]).fields))
        shutil.rmtree(self.folder / "work")

    def edit_baseline(self, change: Callable[[dict[str, Any]], object]) -> None:
        """`change` is given the rows of the base's baseline."""
        path = self.folder / "base" / "bench" / "baselines" / "nvidia-h200.json"
        document = json.loads(path.read_text())
        change(document["benchmarks"])
        path.write_text(json.dumps(document))


def in_this_process(command: Sequence[str], timeout_s: float | None) -> None:
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        code = fake_bench.main([*command])
    if code:
        raise GateError(f"{command[0]} ended with exit code {code}: {errors.getvalue()}")
