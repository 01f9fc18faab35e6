"""Which machine code a configuration runs: a digest of each kernel's SASS."""

import hashlib
import re
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tilegate_ci.core.files import GateError
from tilegate_ci.measure.identity import find_cuobjdump

_DIGITS = 12


def kernels_in(build: Path) -> dict[str, str]:
    """The digest of each kernel of the rungs in a build, by its symbol."""
    tool = find_cuobjdump()
    if tool is None:
        raise GateError(
            "cuobjdump is missing, without which machine code cannot be told apart: "
            "install the CUDA toolkit and put its bin folder on PATH."
        )
    libraries = sorted((build / "kernels").glob("libtilegate_*.a"))
    libraries = [path for path in libraries if not path.stem.endswith("_variants")]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda path: _disassembled(tool, path), libraries)]
    return {symbol: digest for text in found for symbol, digest in digests(text).items()}


def digests(sass: str) -> dict[str, str]:
    """Of what `cuobjdump -sass` printed."""
    parts = re.split(r"^\s*Function : (\S+)$", sass, flags=re.MULTILINE)
    bodies = zip(parts[1::2], parts[2::2], strict=True)
    return {symbol: hashlib.sha256(body.encode()).hexdigest()[:_DIGITS] for symbol, body in bodies}


def code_of(symbols: Iterable[str], kernels: dict[str, str], name: str) -> str:
    """What a row keeps of the kernels that a configuration launches."""
    unknown = sorted({*symbols} - {*kernels})
    if unknown or not symbols:
        raise GateError(f"{name}: its kernels are not in the build: {' '.join(unknown) or 'none'}")
    return "+".join(sorted({kernels[symbol] for symbol in symbols}))


def is_current(code: str, kernels: dict[str, str]) -> bool:
    """Whether all of it is in the build."""
    return {*code.split("+")} <= {*kernels.values()}


def _disassembled(tool: str, library: Path) -> str:
    done = subprocess.run(
        [tool, "-sass", str(library)], capture_output=True, text=True, check=False
    )
    # A library without device code is no failure of the tool's.
    if done.returncode and "does not contain device code" not in done.stderr:
        raise GateError(f"{tool} -sass {library}: {done.stderr.strip()}")
    return done.stdout
