"""What a build writes about its rungs, for the repositories that tests make."""

import json
from pathlib import Path
from typing import Any


def stage(place: str, name: str, idea: str = "an idea", **changes: Any) -> dict[str, Any]:
    """`place` is below kernels/: "09_swizzle", or "cublas" for the yardstick."""
    number, _, rest = place.partition("_")
    word = rest if number.isdigit() else place
    return {
        "name": name,
        "title": f"{number} {name}" if number.isdigit() else name,
        "idea": idea,
        "folder": f"kernels/{place}",
        "library": f"tilegate_{word}",
        "chooses_from": [],
        "sources": [f"kernels/{place}/{word}.cu"],
        "tile_sizes": [4, 8],
        "compute_capability": 70,
        "multiple_of": [1, 1, 1],
        "not_on_simt": "",
        "splits": False,
        "yardstick": not number.isdigit(),
        "external": False,
        "variants": [],
        **changes,
    }


def write_stages(build: Path, *stages: dict[str, Any]) -> Path:
    """`build` is a build folder, such as build/cpu."""
    build.mkdir(parents=True, exist_ok=True)
    path = build / "stages.json"
    path.write_text(json.dumps({"device": "simt", "stages": list(stages)}), encoding="utf-8")
    return path
