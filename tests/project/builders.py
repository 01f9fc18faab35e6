"""What Google Benchmark and NVBench write, as small as it goes. The times are made up."""

import json
from typing import Any


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
    """Of one benchmark with an axis, by its value; seconds as text, as JSON version 1 has them.
    `more` are summaries beside the time, _ for / in their tags."""
    states = []
    for size, time in times.items():
        tags = {"nv/cold/time/gpu/mean": str(time), "nv/batch/time/gpu/mean": str(time / 2)}
        tags |= {tag.replace("_", "/"): value for tag, value in more.items()}
        states.append(
            {
                "name": f"Device=0 Elements={size}",
                "device": 0,
                "axis_values": [{"name": "Elements", "type": "int64", "value": size}],
                "summaries": [
                    {
                        "tag": tag,
                        "name": tag,
                        "data": [
                            {"name": "unit", "type": "string", "value": "x"},
                            {"name": "value", "type": "float64", "value": value},
                        ],
                    }
                    for tag, value in tags.items()
                ],
                "is_skipped": False,
            }
        )
    return {
        "meta": {"argv": ["bench"], "version": {"json": {"major": 1, "minor": 0, "patch": 0}}},
        "devices": [{"id": 0, "name": "NVIDIA H200", "sm_version": 900}],
        "benchmarks": [{"name": "copy", "index": 0, "devices": [0], "axes": [], "states": states}],
    }


def text(document: object) -> str:
    return json.dumps(document)
