"""Numerical passports: what tests/passport found of each rung, committed, and shown on its page."""

from collections.abc import Iterator
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Commit, Document, Finite, Given, Line, Model, Natural, Text
from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.core.markdown import begin, table, with_block
from tilegate_ci.formats.stages import find_ladder

FOLDER = Path("tests/passport")
DEVICES = {"cpu": "simt", "gpu": "nvidia-h200"}  # the file of each preset's device
BLOCK = "passport"
_RIGHT = "as it must be"


class ErrorClass(Model):
    """The greatest error in shares of the declared bound, and of the bound without what the rung
    says of rounded operands; a checksum of C."""

    of_bound: Finite
    of_componentwise: Finite
    bits: Line


class Errors(Model):
    problem: Line
    configuration: Text
    classes: dict[str, ErrorClass]
    keeps_zeros: bool


class Invariance(Model):
    """Of a row's bits: the first extent, or place, at which they are others, or "none"."""

    problem: Line
    other_m: Line
    other_n: Line
    other_place: Line
    other_rows: bool
    repeats: bool


class Sum(Model):
    problem: Line
    configuration: Text
    declared: Natural
    additions: Natural
    tree: Line


class Passport(Model):
    error: Errors
    invariance: Invariance
    special: dict[str, Line]
    sum: Sum


class Yardstick(Model):
    shapes: Natural
    seed: Natural
    wrong: list[Line]


class Found(Model):
    """What make_passport prints."""

    device: Line
    stages: dict[str, Passport]


class FoundYardstick(Model):
    device: Line
    stages: dict[str, Yardstick]


class PassportFile(Document):
    device: Line
    made_with: Text  # driver and CUDA; empty on the executor
    commit: Commit
    stages: dict[str, Passport]
    commits: Given[dict[str, Commit]] = None  # of the passports kept from earlier files
    yardstick: Given[Yardstick] = None

    def commit_of(self, stage: str) -> str:
        return (self.commits or {}).get(stage, self.commit)


def path_of(repository: Path, preset: str) -> Path:
    return repository / FOLDER / f"{DEVICES[preset]}.json"


def load_all(repository: Path) -> dict[str, PassportFile]:
    """Those that are committed, by the preset."""
    paths = {preset: path_of(repository, preset) for preset in DEVICES}
    return {
        preset: documents.load(PassportFile, path)
        for preset, path in paths.items()
        if path.exists()
    }


def pages(repository: Path) -> dict[Path, str]:
    """The text that each page with such a block should have. A rung without a passport is its
    author's work in progress."""
    files = load_all(repository)
    found = {}
    for stage in find_ladder(repository):
        path = repository / stage.folder / "README.md"
        have = {preset: file for preset, file in files.items() if stage.name in file.stages}
        if have and path.exists():
            text = read_text(path)
            if begin(BLOCK) not in text:
                raise GateError(f"{path}: should hold {begin(BLOCK)}, for the rung's passport")
            found[path] = with_block(text, BLOCK, _block(stage.name, have), path)
    return found


def _block(name: str, files: dict[str, PassportFile]) -> str:
    heads = ["", *(_title(file) for file in files.values())]
    columns = [list(_column(name, preset, files)) for preset in files]
    rows = [[row[0][0], *(cell for _, cell in row)] for row in zip(*columns)]
    lines = [*table(heads, rows, left=len(heads)), ""]
    lines.append("; ".join(_made_on(name, file) for file in files.values()) + ".")
    yardsticks = [file.yardstick for file in files.values() if file.yardstick]
    if name == "Cublas":
        lines += [line for each in yardsticks for line in ("", _exact(each))]
    return "\n".join(lines)


def _title(file: PassportFile) -> str:
    return "executor" if file.device == "simt" else file.device


def _made_on(stage: str, file: PassportFile) -> str:
    made_with = f", {file.made_with}" if file.made_with else ""
    commit = file.commit_of(stage)
    return f"{_title(file)}{made_with}, commit {commit[:12]}{commit[40:]}"


def _column(name: str, preset: str, files: dict[str, PassportFile]) -> Iterator[tuple[str, str]]:
    """Title and cell of each row."""
    passport = files[preset].stages[name]
    sums, error, row = passport.sum, passport.error, passport.invariance
    yield f"sum of {sums.problem}", sums.tree
    yield "additions on the longest way; roundings declared", f"{sums.additions}; {sums.declared}"
    worst = max(error.classes, key=lambda each: error.classes[each].of_bound)
    share = 100 * error.classes[worst].of_bound
    yield f"greatest error at {error.problem}, of the bound", f"{share:.1f} %: {worst}"
    graded = [each.of_componentwise for key, each in error.classes.items() if "graded" in key]
    yield "graded operands, of the componentwise bound", f"{100 * max(graded):.1f} %"
    yield "zero rows and columns stay zero", _yes(error.keeps_zeros)
    wrong = [f"{key}: {value}" for key, value in passport.special.items() if value != _RIGHT]
    yield f"{len(passport.special)} cases of NaN, Inf, overflow", "; ".join(wrong) or _RIGHT
    yield f"a row of {row.problem} has other bits at", _dependence(row)
    yield "calls repeat bit for bit", _yes(row.repeats)
    executor = files.get("cpu")
    if executor is None or preset == "cpu" or name not in executor.stages:
        yield "same bits as the executor's", "-"
        return
    others = executor.stages[name].error.classes
    same = sum(each.bits == others[key].bits for key, each in error.classes.items())
    yield "same bits as the executor's", f"{same} of {len(others)} classes of inputs"


def _dependence(row: Invariance) -> str:
    found = [
        f"{what} {first}"
        for what, first in (("M =", row.other_m), ("N =", row.other_n), ("row", row.other_place))
        if first != "none"
    ]
    if row.other_rows:
        found.append("other values in other rows")
    return ", ".join(found) or "no M, N, place or other rows that were tried"


def _yes(value: bool) -> str:
    return "yes" if value else "**no**"


def _exact(yardstick: Yardstick) -> str:
    which = "; ".join(f"`{each}`" for each in yardstick.wrong) or "none is wrong"
    return (
        f"{yardstick.shapes:,} random shapes with extents to 1500, each of ones and of whole "
        f"numbers, whose results are exact: {which}."
    )
