"""Rounding reports (passports): found by tests/passport, committed, shown on each rung's page."""

import argparse
from pathlib import Path

from tilegate_ci.checks.committed import Block, Committed, Report, chosen
from tilegate_ci.core import child, documents
from tilegate_ci.core.documents import Commit, Document, Finite, Given, Line, Model, Natural, Text
from tilegate_ci.core.files import write_text
from tilegate_ci.core.git import named_commit
from tilegate_ci.formats.stages import find_ladder
from tilegate_ci.measure.projects import build_preset
from tilegate_ci.model import REPOSITORY
from tilegate_ci.report import templates
from tilegate_ci.report.figures import short

FOLDER = Path("tests/passport")
DEVICES = {"cpu": "simt", "gpu": "nvidia-h200"}  # the file of each preset's device
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
    """The committed files, by preset."""
    paths = {preset: path_of(repository, preset) for preset in DEVICES}
    return {
        preset: documents.load(PassportFile, path)
        for preset, path in paths.items()
        if path.exists()
    }


class Passports(Committed):
    name = "passport"
    options = ("preset", "program", "recorded", "yardstick", "made_with", "commit")

    def numbers(self, asked: argparse.Namespace) -> Report:
        found, preset = self._found(asked), asked.preset or "cpu"
        committed = load_all(asked.repository).get(preset)
        if asked.update:
            path = path_of(asked.repository, preset)
            write_text(path, documents.to_text(_file(found, committed, asked)))
            return Report(0, f"{path}: {len(found.stages)} passports\n")
        known = committed.stages if committed else {}
        different = [name for name, each in found.stages.items() if known.get(name) != each]
        lines = [
            f"{name}: not as committed; --update writes it, review the diff" for name in different
        ]
        lines.append(f"{len(found.stages) - len(different)} passports as committed")
        return Report(int(bool(different)), "\n".join(lines) + "\n")

    def _found(self, asked: argparse.Namespace) -> Found:
        if asked.recorded:
            return documents.load(Found, asked.recorded)
        preset = asked.preset or "cpu"
        program = asked.program
        if program is None:
            program = build_preset(preset, "make_passport") / "tests" / "make_passport"
        rungs = [
            stage.name
            for stage in find_ladder(asked.repository)
            if preset == "gpu" or not (stage.yardstick or stage.not_on_simt)
        ]
        said = child.output([str(program), *chosen(asked.rung, rungs)])
        return documents.parse(Found, said, str(program))

    def blocks(self, repository: Path) -> list[Block]:
        """A rung without a passport is its author's work in progress."""
        files, found = load_all(repository), []
        for stage in find_ladder(repository):
            page = repository / stage.folder / "README.md"
            have = {preset: file for preset, file in files.items() if stage.name in file.stages}
            if have and page.exists():
                found.append(Block(page, "passport", _block(stage.name, have)))
        return found


def _file(found: Found, committed: PassportFile | None, asked: argparse.Namespace) -> PassportFile:
    """What to commit: recorded passports join those that were made with the same software."""
    made_with, stages, kept = asked.made_with or "", found.stages, dict[str, str]()
    if committed and asked.recorded and committed.made_with == made_with:
        stages = {**committed.stages, **found.stages}
        kept = {name: committed.commit_of(name) for name in {*stages} - {*found.stages}}
    yardstick = committed.yardstick if committed else None
    if asked.yardstick:
        yardstick = next(iter(documents.load(FoundYardstick, asked.yardstick).stages.values()))
    return PassportFile(
        schema=1,
        device=found.device,
        made_with=made_with,
        commit=named_commit(asked.commit, REPOSITORY),
        stages=stages,
        commits=kept or None,
        yardstick=yardstick,
    )


def _block(name: str, files: dict[str, PassportFile]) -> str:
    passports = [file.stages[name] for file in files.values()]
    titles = ["executor" if file.device == "simt" else file.device for file in files.values()]
    made_on = [
        ", ".join(filter(None, [title, file.made_with, f"commit {short(file.commit_of(name))}"]))
        for title, file in zip(titles, files.values())
    ]
    worst, graded, special, same = [], [], [], []
    for preset, passport in zip(files, passports):
        classes = passport.error.classes
        most = max(classes, key=lambda each: classes[each].of_bound)
        worst.append(f"{100 * classes[most].of_bound:.1f} %: {most}")
        least = max(each.of_componentwise for key, each in classes.items() if "graded" in key)
        graded.append(f"{100 * least:.1f} %")
        wrong = [f"{key}: {value}" for key, value in passport.special.items() if value != _RIGHT]
        special.append("; ".join(wrong) or _RIGHT)
        executor = None if preset == "cpu" or "cpu" not in files else files["cpu"].stages[name]
        others = executor.error.classes if executor else {}
        agree = sum(each.bits == classes[key].bits for key, each in others.items())
        same.append(f"{agree} of {len(others)} classes of inputs" if executor else "-")
    return templates.text(
        "passport.md",
        passports=passports,
        titles=titles,
        worst=worst,
        graded=graded,
        special=special,
        dependence=[_dependence(passport.invariance) for passport in passports],
        same=same,
        made_on="; ".join(made_on),
        yardsticks=[f.yardstick for f in files.values() if f.yardstick and name == "Cublas"],
    ).rstrip("\n")


def _dependence(row: Invariance) -> str:
    tried = (("M =", row.other_m), ("N =", row.other_n), ("row", row.other_place))
    found = [f"{what} {first}" for what, first in tried if first != "none"]
    found += ["other values in other rows"] * row.other_rows
    return ", ".join(found) or "no M, N, place or other rows that were tried"
