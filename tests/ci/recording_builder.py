"""Made-up recordings, in which every spread and every slow-down is known."""

import json
import random
from pathlib import Path
from typing import Any

from gate_builders import COMMIT, H200
from tilegate_ci.lab.proof import recording
from tilegate_ci.lab.proof.recording import RecordedReading, RecordingFile
from tilegate_ci.measure.launcher import CANARIES
from tilegate_ci.model import Reading

SUITE = (
    *(f"Warptile/{size}x{size}x{size}" for size in (512, 1024, 2048, 4096)),
    *(f"Naive/{size}x{size}x{size}" for size in (1024, 2048)),
    "Vectorized/512x512x512",
    *CANARIES,
)
SIZES = (0.5, 1, 2, 3, 5, 10)
REPLAYS = 24


class Maker:
    """Times of sittings whose spreads, as log standard deviations, are the given ones."""

    def __init__(
        self,
        name: str,
        between: float = 0.001,
        drift: float = 0.001,
        within: float = 0.002,
        session: float = 0.003,
    ) -> None:
        self.draw = random.Random(name)
        self.between, self.within, self.session = between, within, session
        self.drift = {bench: self.draw.gauss(0, drift) for bench in SUITE}
        self.document: dict[str, Any] = {
            "schema": 1,
            "sitting": name,
            "commit": COMMIT,
            "device": dict(H200),
            "protocol": {"min_time_s": 0.05, "seed": 1},
            "benchmarks": list(SUITE),
            "processes": [],
        }

    def process(
        self, number: int, rung: str | None = None, percent: float | None = None,
        build: str | None = None, slower: float | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        names = [n for n in SUITE if rung is None or n.startswith(f"{rung}/") or n in CANARIES]
        # What the whole process runs slower by is what the ratio to cuBLAS takes out.
        common = self.draw.gauss(0, self.session)
        rows = {}
        for name in names:
            own = 0.0 if name in CANARIES else self.drift[name] + self.draw.gauss(0, self.between)
            slow = slower if slower is not None else percent or 0.0
            if name.startswith(f"{rung}/"):
                own += slow / 100
            base = 1e-3 * (1 + common)
            rung_s = [base * (1 + own + self.draw.gauss(0, self.within)) for _ in range(REPLAYS)]
            cublas_s = [base * (1 + self.draw.gauss(0, self.within / 2)) for _ in range(REPLAYS)]
            planted = percent if name.startswith(f"{rung}/") else None
            reading = Reading(gflops=1, rung_s=rung_s, cublas_s=cublas_s, planted_percent=planted)
            rows[name] = RecordedReading.of(reading).model_dump()
        process: dict[str, Any] = {
            "round": number,
            "rung": rung,
            "plant_percent": percent,
            "build": build,
            "started": "2025-11-20T08:00:00Z",
            "wall_s": 10.0,
            "conditions": {"before": {}, "after": {}},
            "rows": rows,
        }
        self.document["processes"].append(process)
        return process

    def suite(self, count: int) -> "Maker":
        for number in range(count):
            self.process(number)
        return self

    def arms(self, rung: str, rounds: int = 8, sizes: tuple[float, ...] = SIZES) -> "Maker":
        for number in range(rounds):
            self.process(number, rung)
            for percent in sizes:
                self.process(number, rung, float(percent))
        return self

    def file(self) -> RecordingFile:
        return RecordingFile.model_validate_json(json.dumps(self.document))

    def save(self, folder: Path) -> str:
        path = folder / f"{self.document['sitting']}.json.gz"
        recording.save(path, self.file())
        return str(path)
