"""The source files of a rung's kernels, found without the compiler."""

import hashlib
import re
from pathlib import Path

from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import Stage

INCLUDES = ("kernels/include", "kernels/common/include", "kernels/device/include")
_EXECUTOR = "kernels/device/include/tilegate/device/cpu"  # which nvcc does not read
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def source_files(repository: Path, stage: Stage) -> list[Path]:
    """The rung's sources and every header of the repository or of the rung that they include for
    CUDA, directly or not, under whatever condition."""
    folders = [repository / folder for folder in INCLUDES]
    executor = (repository / _EXECUTOR).resolve()
    found: set[Path] = set()
    waiting = [repository / source for source in stage.sources]
    while waiting:
        path = waiting.pop().resolve()
        if path in found or path.is_relative_to(executor):
            continue
        found.add(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise GateError(f"{path}: {problem}") from problem
        for name in _INCLUDE.findall(text):
            places = (folder / name for folder in (path.parent, *folders))
            waiting += [place for place in places if place.is_file()][:1]
    return sorted(found)


def sources_digest(repository: Path, stage: Stage) -> str:
    """Changes with any byte of the files, and with which files they are."""
    names = hashlib.sha256()
    root = repository.resolve()
    for path in source_files(repository, stage):
        place = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
        names.update(
            f"{place.as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return names.hexdigest()
