"""The processes of a gate run, a file each, so that an interruption loses none that ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, Node, dumps, read_json, write_text
from tilegate_ci.core.model import RATIO, Device
from tilegate_ci.core.reader import parse_device
from tilegate_ci.core.schemas import check_schema
from tilegate_ci.measure.collect import Process, Reading
from tilegate_ci.measure.launcher import Measured

SCHEMA = 1


@dataclass(frozen=True)
class Stored:
    report: Process
    wall_s: float
    started: str
    conditions: Mapping[str, Any]

    @property
    def device(self) -> Device:
        return parse_device(Node(dict(self.report.device), self.report.path, "device"))

    def log_ratio(self, name: str) -> float:
        return math.log(self.report.readings[name].values[RATIO])


class Journal:
    def __init__(self, folder: Path, protocol: Mapping[str, Any]) -> None:
        """GateError where the folder holds processes of another run."""
        self.folder = folder
        path = folder / "protocol.json"
        if path.exists():
            old = read_json(str(path)).object()
            for key in sorted({*old, *protocol}):
                if old.get(key) != protocol.get(key):
                    raise GateError(
                        f"{path}: {key} is {old.get(key)!r} there, {protocol.get(key)!r} now; "
                        "give another --out"
                    )
        else:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                raise GateError(f"{folder}: cannot be made: {problem.strerror}") from problem
            write_text(path, dumps(dict(protocol)) + "\n")

    def _path(self, key: str) -> Path:
        return self.folder / f"process-{key}.json"

    def count(self) -> int:
        return len(list(self.folder.glob("process-*.json")))

    def load(self, key: str) -> Stored | None:
        path = self._path(key)
        if not path.exists():
            return None
        root = read_json(str(path))
        check_schema(root, "process")
        fields = root.object()
        rows = {}
        for name, row in root.require("rows").items():
            numbers = {key: node.positive() for key, node in row.require("values").items()}
            rows[name] = Reading(numbers, row.value["bytes"], True)
        report = Process(
            str(path), fields["device"], fields["seed"], fields["min_time_s"], None,
            fields["started"], rows,
        )  # fmt: skip
        return Stored(report, fields["wall_s"], fields["started"], fields["conditions"])

    def save(self, key: str, measured: Measured) -> Stored:
        report = measured.report
        document = {
            "schema": SCHEMA,
            "device": dict(report.device),
            "seed": report.seed,
            "min_time_s": report.min_time_s,
            "started": measured.started,
            "wall_s": measured.wall_s,
            "conditions": {"before": dict(measured.before), "after": dict(measured.after)},
            "rows": {
                name: {"values": dict(reading.values), "bytes": reading.bytes}
                for name, reading in report.readings.items()
            },
        }
        write_text(self._path(key), dumps(document) + "\n")
        stored = self.load(key)
        assert stored is not None
        return stored
