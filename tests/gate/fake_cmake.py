#!/usr/bin/env python3
"""Stands in for cmake: configuring takes the bench of the folder that it is run in."""

import shutil
import sys
from pathlib import Path


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[0] == "--build":
        return 0
    build = Path(arguments[arguments.index("-B") + 1], "bench")
    build.mkdir(parents=True, exist_ok=True)
    if Path("bench/broken").exists():
        sys.stdout.write("error: expected ';'\n")
        return 1
    if Path("stages.json").exists():
        shutil.copy("stages.json", build.parent)
    for path in (Path("bench/bench"), Path("bench.json")):
        if path.exists():
            shutil.copy(path, build / path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
