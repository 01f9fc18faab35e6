"""The tests use what is to run on a machine with a GPU too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "device"))
