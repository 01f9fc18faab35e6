"""What Google Benchmark and NVBench write, as small as it goes. The times are made up."""

import copy
import json
from pathlib import Path
from typing import Any

NVBENCH = Path(__file__).parent / "formats" / "data" / "nvbench.json"


def google(times: dict[str, float], **counters: float) -> dict[str, Any]:
    """Times in microseconds, as release 1.7 writes them."""
    rows = [
        {
            "name": name,
            "run_name": name,
            "run_type": "iteration",
            "iterations": 10,
            "real_time": time,
            "cpu_time": 2 * time,
            "time_unit": "us",
            **counters,
        }
        for name, time in times.items()
    ]
    context = {"date": "2026-01-02T03:04:05+00:00", "host_name": "a-machine", "num_cpus": 2}
    return {"context": context, "benchmarks": rows}


def nvbench(times: dict[str, float], **more: str) -> dict[str, Any]:
    """Of one benchmark with an axis, by its value: a file that NVBench wrote, with these seconds.
    `more` are summaries beside the time, _ for / in their tags."""
    document: dict[str, Any] = json.loads(NVBENCH.read_text())
    document["benchmarks"] = document["benchmarks"][1:]
    (sweep,) = document["benchmarks"]
    (written,) = sweep["states"]
    sweep["states"] = []
    for size, time in times.items():
        state = copy.deepcopy(written)
        (axis,) = state["axis_values"]
        cold, batch = state["summaries"]
        axis["value"] = size
        for summary, seconds in ((cold, time), (batch, time / 2)):
            summary["data"][0]["value"] = str(seconds)
        for tag, value in more.items():
            data = [{**cold["data"][0], "value": value}]
            state["summaries"].append({**cold, "tag": tag.replace("_", "/"), "data": data})
        sweep["states"].append(state)
    return document


def text(document: object) -> str:
    return document if isinstance(document, str) else json.dumps(document)
