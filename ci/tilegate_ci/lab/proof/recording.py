"""Recordings: what every process of a sitting measured, kept as the proof of the gate.

The file keeps, of each benchmark, the logarithms of the median seconds of the rung and of cuBLAS
and of the median of their ratio, and a sample of the replays behind them, which only the rules of
other tools need."""

import gzip
import io
import json
import math
import statistics
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from tilegate_ci.core import documents
from tilegate_ci.core.documents import (
    Commit,
    Document,
    Finite,
    Given,
    Line,
    Model,
    Natural,
    Positive,
)
from tilegate_ci.core.files import (
    MOST_BYTES,
    GateError,
    checked_size,
    decode,
    read_bytes,
    write_bytes,
)
from tilegate_ci.core.names import shape_of
from tilegate_ci.model import Conditions, Device, Process, Reading

KEPT_SAMPLES = 24

Log = Annotated[Finite, Field(ge=-60, le=60)]  # of seconds, or of a ratio
Sample = Annotated[int, Field(gt=-1_000_000, lt=2**63)]


class Arm(NamedTuple):
    """What is the same in all processes of a kind. `rung` is the one whose benchmarks alone ran,
    None for the whole suite; `build` names the binary where it is not the commit's own."""

    rung: str | None = None
    plant_percent: float | None = None
    build: str | None = None


class Step(NamedTuple):
    """A process of a sitting: the rounds take each arm once."""

    round: int
    arm: Arm


class RecordedReading(Model):
    log: tuple[Log, Log, Log]  # rung, cuBLAS, cuBLAS over rung
    samples_ppm: Annotated[list[Sample], Field(min_length=1)]  # replays of the rung, off its median
    planted_percent: Given[Finite] = None  # by how much a planted delay slowed it down
    places: Given[Annotated[list[Log], Field(min_length=2)]] = None  # the last log, at each place

    @classmethod
    def of(cls, reading: Reading) -> "RecordedReading":
        places = _by_place(reading)
        best = max(places, key=lambda place: place[2])  # as bench has it
        median, step = math.exp(best[0]), max(1, math.ceil(len(reading.rung_s) / KEPT_SAMPLES))
        planted = reading.planted_percent
        return cls(
            log=best,
            places=[place[2] for place in places] if places[1:] else None,
            samples_ppm=[round(1e6 * (s / median - 1)) for s in reading.rung_s[::step]],
            planted_percent=None if planted is None else round(planted, 4),
        )

    def reading(self, name: str) -> Reading:
        m, n, k = shape_of(name)
        median = math.exp(self.log[0])
        return Reading(
            gflops=2e-9 * m * n * k / median,
            ratio_to_cublas=math.exp(self.log[2]),
            verified=True,
            planted_percent=self.planted_percent,
            rung_s=[median * (1 + 1e-6 * sample) for sample in self.samples_ppm],
        )


def _by_place(reading: Reading) -> list[tuple[float, float, float]]:
    """The logarithms of the medians of rung, cuBLAS, and cuBLAS over rung, at each place."""
    every: dict[int, list[tuple[float, float]]] = {}
    places = reading.place or [0] * len(reading.rung_s)
    for place, rung, cublas in zip(places, reading.rung_s, reading.cublas_s):
        every.setdefault(place, []).append((rung, cublas))

    def log(values: Iterable[float]) -> float:
        return round(math.log(statistics.median(values)), 7)

    return [
        (log(r for r, _ in here), log(c for _, c in here), log(c / r for r, c in here))
        for here in every.values()
    ]


class RecordedProcess(Model):
    round: Natural
    rung: str | None = None
    plant_percent: Positive | None = None
    build: Line | None = None
    binary: Given[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]] = None  # its SHA-256
    started: str
    wall_s: Positive
    conditions: Conditions
    rows: Annotated[dict[str, RecordedReading], Field(min_length=1)]

    @property
    def step(self) -> Step:
        return Step(self.round, Arm(self.rung, self.plant_percent, self.build))


class RecordedProtocol(Model):
    min_time_s: Positive
    seed: int


class RecordingFile(Document):
    sitting: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    commit: Commit
    device: Device
    protocol: RecordedProtocol
    benchmarks: Annotated[list[Line], Field(min_length=1)]  # the gated suite, in its order
    processes: list[RecordedProcess]
    path: SkipJsonSchema[str] = Field(default="", exclude=True)  # that it was read from

    @property
    def by_step(self) -> dict[Step, Process]:
        return {
            each.step: Process(
                device=self.device,
                seed=self.protocol.seed,
                min_time_s=self.protocol.min_time_s,
                started=each.started,
                wall_s=each.wall_s,
                conditions=each.conditions,
                readings={name: row.reading(name) for name, row in each.rows.items()},
                source=self.path,
            )
            for each in self.processes
        }

    @model_validator(mode="after")
    def _alike(self) -> "RecordingFile":
        """Each process once, those of a kind with the same benchmarks."""
        seen = set()
        alike: dict[str | None, RecordedProcess] = {}
        for process in self.processes:
            step = (process.round, *process.step.arm)
            if step in seen:
                raise ValueError(f"processes: {step} is there twice")
            seen.add(step)
            differing = alike.setdefault(process.rung, process).rows.keys() ^ process.rows.keys()
            if differing:
                raise ValueError(f"processes: {step}: {min(differing)} is not in all of its kind")
        return self


def load(path: str) -> RecordingFile:
    """Reads and checks a recording; GateError says what is wrong with it."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(read_bytes(path))) as stream:
            data = checked_size(stream.read(MOST_BYTES + 1), path)
    except (OSError, EOFError, zlib.error) as problem:
        raise GateError(f"{path}: not a whole gzip file: {problem}") from problem
    found = documents.parse(RecordingFile, decode(data, path), path)
    return found.model_copy(update={"path": path})


def save(path: Path, file: RecordingFile) -> None:
    """One line per process, and no time of day in the gzip header, so that equal content is an
    equal file."""
    head = file.model_dump(mode="json", by_alias=True)
    lines = [json.dumps(process, sort_keys=True) for process in head.pop("processes")]
    text = json.dumps(head, sort_keys=True)[:-1] + ', "processes": [\n' + ",\n".join(lines) + "\n]}"
    write_bytes(path, gzip.compress(text.encode(), mtime=0))
