"""The report as one HTML page that needs no network: page/ holds its parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from tilegate_ci.core.stages import Stage as Rung
from tilegate_ci.report import render
from tilegate_ci.report.data import Profile, Revision, Source

_PAGE = Path(__file__).with_name("page")


def html(
    sources: Sequence[Source],
    rungs: Sequence[Rung],
    histories: Mapping[str, Sequence[Revision]],
    profiles: Mapping[str, Profile | None],
) -> str:
    """`histories` and `profiles` are by the name of the device."""
    data = {
        "rungs": [{"name": rung.name, "idea": rung.idea} for rung in rungs],
        "sources": [_source(source, histories, profiles) for source in sources],
    }
    # Data must not end its script element, whatever names and notes hold.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    page = _part("page.html").replace("@STYLE@", _part("page.css"))
    page = page.replace("@SCRIPT@", _part("chart.js") + _part("page.js"))
    return page.replace("@DATA@", text)


def _source(
    source: Source,
    histories: Mapping[str, Sequence[Revision]],
    profiles: Mapping[str, Profile | None],
) -> dict[str, Any]:
    comparison, device = source.comparison, source.device.name if source.device else ""
    profile = profiles.get(device)
    remarks: list[str] = []
    if comparison is not None:
        remarks += [f"incomparable: {line}" for line in comparison.differences]
        remarks += [f"warning: {line}" for line in comparison.warnings]
    return {
        "path": source.path,
        "title": source.title,
        "error": f"error: {source.error}" if source.error is not None else None,
        "summary": render.summary_line(comparison) if comparison else "a run, not compared",
        "remarks": remarks,
        "rows": [_fields(row) for row in comparison.rows] if comparison else [],
        "measured": dict(source.measured),
        "history": [_fields(revision) for revision in histories.get(device, ())],
        "profile": _fields(profile) if profile else None,
    }


def _fields(record: Any) -> dict[str, Any]:
    values = {column.name: getattr(record, column.name) for column in fields(record)}
    return {key: getattr(value, "value", value) for key, value in values.items()}


def _part(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")
