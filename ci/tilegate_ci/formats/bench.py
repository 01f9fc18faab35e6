"""One process of our own bench: Google Benchmark's JSON with the counters of bench."""

import csv
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tilegate_ci.core.documents import Finite, Given, Open, Positive, validated
from tilegate_ci.core.files import GateError, fault, parse_json
from tilegate_ci.core.names import canonical_name
from tilegate_ci.formats.google import GoogleReport, utc
from tilegate_ci.model import METRICS, Device, Process, Reading

_REPLAYS = ["benchmark", "place", "rung_s", "cublas_s"]


class Repetition(Open):
    """One row: the counters of bench, by their names there."""

    gflops: Positive = Field(alias="GFLOPS")
    ratio_to_cublas: Given[Positive] = None
    pct_peak: Given[Positive] = None
    bytes: Given[Positive] = None
    planted_pct: Given[Finite] = None
    placement_pct: Given[Annotated[Finite, Field(ge=0)]] = None
    verified: Any = None
    label: str = ""


def read_process(text: str, path: str) -> Process:
    """GateError when a benchmark in it failed; `path` is where the text came from."""
    parse_json(text, path)
    report = validated(GoogleReport, text, path)
    context = report.context
    device = _device(context, path)
    repetitions: dict[str, list[Repetition]] = {}
    min_time = _number(context, "min_time_s", path)
    for place, row in report.rows(path):
        written = str(row.get("name", "a benchmark"))
        if row.get("skipped"):
            reason = row.get("skip_message") or "without a message"
            raise fault(path, place, f"{written}: skipped: {reason}")
        try:
            name = canonical_name(written)
        except ValueError as problem:
            raise fault(path, place, str(problem)) from problem
        if device.kind == "simt":  # where only GFLOPS mean anything
            row = {key: value for key, value in row.items() if key not in METRICS}
        found = validated(Repetition, json.dumps(row), path, place)
        repetitions.setdefault(name, []).append(found)
    return Process(
        device=device,
        seed=int(_number(context, "seed", path)) if "seed" in context else None,
        min_time_s=min_time or None,
        plant=context.get("plant"),
        peak_gflops=_number(context, "peak_gflops", path) or None,
        started=utc(context.get("date")),
        readings={name: _reading(name, rows, path) for name, rows in repetitions.items()},
        source=path,
    )


def _device(context: Mapping[str, Any], path: str) -> Device:
    if "device_kind" not in context:
        message = '"device_kind" is missing; was this written by the bench binary?'
        raise fault(path, ("context",), message)
    found = {"kind": context["device_kind"], "name": context.get("device_name")}
    if found["kind"] == "cuda":
        found |= {key: context[key] for key in ("driver", "cuda", "cublas") if key in context}
        for key in ("compute_capability", "multiprocessors"):
            if key in context:
                found[key] = int(_number(context, key, path))
    return validated(Device, json.dumps(found), path, ("context",))


def _number(context: Mapping[str, Any], key: str, path: str) -> float:
    """A number that the context holds as text; 0 where it is absent or empty, as on a device that
    has no such figure."""
    text = context.get(key) or "0"
    try:
        number = float(text)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise fault(path, ("context", key), f"must be a finite number from 0 on, not {text!r}")
    return number


def _reading(name: str, rows: Sequence[Repetition], path: str) -> Reading:
    def median(counter: str) -> float | None:
        values = [value for row in rows if (value := getattr(row, counter)) is not None]
        if counter in METRICS and len(values) not in (0, len(rows)):
            raise GateError(f"{path}: {name}: {counter} is missing in some of its repetitions")
        return statistics.median(values) if values else None

    return Reading(
        **{metric: median(metric) for metric in METRICS},  # type: ignore[arg-type]
        bytes=int(max(row.bytes or 0 for row in rows)) or None,
        verified=all(row.verified == 1 for row in rows),
        placement_pct=median("placement_pct"),
        planted_percent=median("planted_pct"),
        kernels=rows[0].label,
    )


def with_replays(process: Process, path: Path) -> Process:
    """The process, with the place and the seconds of each replay, as bench --samples wrote them."""
    replays: dict[str, list[tuple[int, float, float]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        if not rows or rows[0] != _REPLAYS:
            raise GateError(f"{path}: not written by bench --samples")
        for number, (name, place, *seconds) in enumerate(rows[1:], start=2):
            rung, cublas = map(float, seconds)
            if not (0 < rung < math.inf and 0 <= cublas < math.inf):
                raise ValueError(f"line {number}: no times: {', '.join(seconds)}")
            replays.setdefault(canonical_name(name), []).append((int(place), rung, cublas))
    except (OSError, ValueError) as problem:
        raise GateError(f"{path}: truncated or malformed: {problem}") from problem
    lacking = sorted(process.readings.keys() - replays.keys())
    if lacking:
        raise GateError(f"{path}: lacks {', '.join(lacking)}")
    readings = {}
    for name, reading in process.readings.items():
        series = map(list, zip(*replays[name]))
        update = dict(zip(("place", "rung_s", "cublas_s"), series))
        readings[name] = reading.model_copy(update=update)
    return process.model_copy(update={"readings": readings})
