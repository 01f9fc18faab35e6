"""A repository of one rung, and a stand-in for nvcc that says what a real one said."""

import shutil
from pathlib import Path
from typing import Any

from stage_builder import stage, write_stages

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parent / "checks" / "resources" / "data"
GOOD, SPILLED = "ptxas_swizzle.txt", "ptxas_swizzle_spilled.txt"
KERNEL = "_ZN8tilegate7swizzle5sgemmILb{}EEEvNS_10KernelArgsE"

NVCC = """#!/bin/sh
here=$(dirname "$0") arguments=" $* "
case $arguments in *" --version "*)
  echo "Cuda compilation tools, release 13.0, V$(cat "$here/release")"
  exit ;;
esac
echo "$*" >>"$here/calls"
if [ -e "$here/fails" ]; then
  echo 'swizzle.cu(3): error: identifier "x" is undefined' >&2
  exit 1
fi
while [ "$1" != -o ]; do shift; done
case $arguments in
*" -c "*) cat "$here/ptxas" >&2 && : >"$2" ;;
*) printf '#!/bin/sh\\ncat "%s"\\n' "$here/launches" >"$2" && chmod +x "$2" ;;
esac
"""


def launches(launched_by: str = "Swizzle") -> str:
    """Both kernels, launched by that stage."""
    lines = ["requires\t70\tSwizzle"]
    lines += [f"kernel\t{KERNEL.format(i)}\t256\t32768\t{launched_by}" for i in (0, 1)]
    return "\n".join(lines) + "\n"


class Repository:
    """`root` is its folder; the attributes change what the stand-in says from then on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bench/baselines").mkdir(parents=True)
        rung = root / "kernels/09_swizzle/swizzle.cu"
        rung.parent.mkdir(parents=True)
        rung.write_text("#include <tilegate/tile.hpp>\n")
        self.write_stages(stage("09_swizzle", "Swizzle"))
        self.header = root / "kernels/include/tilegate/tile.hpp"
        self.header.parent.mkdir(parents=True)
        self.header.write_text("// version 1\n")
        self.rung = rung
        self.bin = root / "bin"
        self.bin.mkdir()
        nvcc = self.bin / "nvcc"
        nvcc.write_text(NVCC)
        nvcc.chmod(0o755)
        self.table = root / "bench/baselines/resources.json"
        self.say(GOOD)

    def say(self, ptxas: str, launched: str = "", release: str = "13.0.88") -> None:
        shutil.copy(DATA / ptxas, self.bin / "ptxas")
        (self.bin / "launches").write_text(launched or launches())
        (self.bin / "release").write_text(release)

    def write_stages(self, *stages: dict[str, Any]) -> None:
        write_stages(self.root / "build" / "cpu", *stages, stage("cublas", "Cublas"))

    def edit(self) -> None:
        """A change of the rung's source, so that it is compiled again."""
        self.rung.write_text(self.rung.read_text() + "// edited\n")

    def calls(self) -> int:
        calls = self.bin / "calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0


def copy_of_rung(root: Path, folder: str, name: str) -> Path:
    """The real kernels, with one rung in the ladder; returns that rung's file."""
    kernels = root / "kernels"
    for part in ("include", "device/include", "common/include", "core", folder):
        shutil.copytree(REPOSITORY / "kernels" / part, kernels / part)
    write_stages(root / "build" / "cpu", stage(folder, name))
    (root / "bench/baselines").mkdir(parents=True)
    return next((kernels / folder).glob("*.cu"))
