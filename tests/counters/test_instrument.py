"""The debug locations of a module, as the counted kernels report them."""

import importlib.util
import sys
from pathlib import Path

from tilegate_ci.model import REPOSITORY

MODULE = """
!1 = !DILocation(line: 26, column: 3, scope: !2)
!2 = distinct !DISubprogram(name: "naive", scope: !3, file: !3, line: 20)
!3 = !DIFile(filename: "kernels/x\\C3\\AFy \\22x\\22.cu", directory: "/tmp/a x \\C3\\A9")
"""


def test_a_path_may_have_any_characters() -> None:
    path = REPOSITORY / "kernels" / "device" / "cpu" / "counted" / "instrument.py"
    spec = importlib.util.spec_from_file_location("instrument", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["instrument"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    locations = module.Locations(MODULE.splitlines(), Path("/tmp/a x é"))
    assert locations.chain("!1") == [('kernels/xïy "x".cu', 26, 3, "naive")]
