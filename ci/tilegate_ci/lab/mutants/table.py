"""The journal of a campaign, and the committed table: the mutation score of each class and file."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from pydantic import ValidationError

from tilegate_ci.checks.committed import with_block
from tilegate_ci.core import documents
from tilegate_ci.core.documents import Commit, Document, Line, Model, Natural, Text
from tilegate_ci.core.files import read_text, write_text
from tilegate_ci.lab.mutants.build import group_of, groups
from tilegate_ci.report import templates
from tilegate_ci.report.figures import short

FOLDER = Path("tests/mutants")
PAGE, RESULTS, KNOWN = FOLDER / "README.md", FOLDER / "results.json", FOLDER / "known.json"
Preset = Literal["cpu", "gpu"]
DEVICES: dict[Preset, str] = {"cpu": "On the executor", "gpu": "On a GPU"}
COUNTS = ("mutants", "killed", "equivalent", "does_not_compile")  # of a row
AIMED = ("rounding", "phase", "fence", "stride", "limit", "threshold", "boundary", "offset")


class MutatedLine(Model):
    file: Line
    before: Line
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.before, self.after


class Record(MutatedLine):
    """A line of the journal. `by` is the test that killed the mutant, `why` what it said."""

    line: Natural
    kind: Line
    outcome: Literal["killed", "survived", "same code", "does not compile"]
    by: str = ""
    why: str = ""
    preset: Preset
    commit: Commit
    seconds: float = 0


class MutantJournal:
    """A line of JSON per mutant; what a broken run has written is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def read(self) -> list[Record]:
        """The latest record of each mutant."""
        found: dict[tuple[str, str, str], Record] = {}
        for line in self.path.read_text("utf-8").splitlines() if self.path.exists() else ():
            try:
                record = Record.model_validate_json(line)
            except ValidationError:  # the last line of a run that was killed
                continue
            found[record.key] = record
        return list(found.values())

    def add(self, record: Record) -> None:
        with self._lock, self.path.open("a", encoding="utf-8") as stream:
            stream.write(record.model_dump_json() + "\n")


class KnownMutant(MutatedLine):
    """Why no test sees it. An equivalent one does what the original does, or what is as right;
    others are held against the tests. Reviewed like code."""

    equivalent: bool
    reason: Line


class KnownFile(Document):
    known: list[KnownMutant]


L = TypeVar("L", bound=MutatedLine)
Known = Mapping[tuple[str, str, str], KnownMutant]  # by key


class Survivor(MutatedLine):
    outcome: ClassVar[str] = "survived"
    kind: Line
    reason: Text  # empty where no reason is known


class FileRow(Model):
    """Of one class in one file. `mutants` counts the ones that compile."""

    file: Line
    kind: Line
    mutants: Natural
    killed: Natural
    equivalent: Natural
    does_not_compile: Natural


def _place(row: Record | Survivor | FileRow) -> tuple[str, str]:
    return row.file, row.kind


class Campaign(Model):
    """`possible`: how many mutants of each class the rules find."""

    preset: Preset
    commits: list[Commit]
    possible: dict[Line, Natural]
    files: list[FileRow]
    survivors: list[Survivor]


class ResultsFile(Document):
    campaigns: list[Campaign]


def known(repository: Path) -> Known:
    return {each.key: each for each in documents.load(KnownFile, repository / KNOWN).known}


def update(
    repository: Path, journals: dict[Preset, MutantJournal], possible: dict[str, int]
) -> None:
    explained, path = known(repository), repository / RESULTS
    campaigns = {each.preset: each for each in documents.load(ResultsFile, path).campaigns}
    for preset, journal in journals.items():
        nothing = Campaign(preset=preset, commits=[], possible={}, files=[], survivors=[])
        old = campaigns.get(preset, nothing)
        if preset == "cpu":
            old = old.model_copy(update={"possible": {**old.possible, **possible}})
        records = of_today(repository, journal.read())
        campaigns[preset] = with_records(repository, old, records, explained)
    write_text(path, documents.to_text(ResultsFile(schema=1, campaigns=[*campaigns.values()])))
    write_text(repository / PAGE, page(repository))


def of_today(repository: Path, lines: Sequence[L]) -> list[L]:
    """The lines that their files still have."""
    paths = {line.file: repository / line.file for line in lines}
    texts = {file: read_text(path) for file, path in paths.items() if path.exists()}
    there = {file: {line.strip() for line in text.splitlines()} for file, text in texts.items()}
    return [line for line in lines if line.before in there.get(line.file, ())]


def with_records(
    repository: Path, old: Campaign, records: Sequence[Record], explained: Known
) -> Campaign:
    """The rows of the records, and those of `old` for which there are none. Survivors that were not
    drawn again stay, but for those whose line has changed."""
    places, keys = {_place(each) for each in records}, {each.key for each in records}
    counts = {_place(row): Counter(row.model_dump(exclude={"file", "kind"})) for row in old.files}
    counts |= {place: Counter() for place in places}
    kept = [each for each in old.survivors if each.key not in keys]
    for survivor in kept:
        counts[_place(survivor)]["mutants"] -= _place(survivor) not in places
    survivors = []
    tried: list[Record | Survivor] = [*records, *of_today(repository, kept)]
    for each in tried:
        outcome, reason = each.outcome, explained.get(each.key)
        if outcome == "same code" or (outcome == "survived" and reason and reason.equivalent):
            outcome = "equivalent"
        elif outcome == "survived":
            fields = each.model_dump(include={"file", "before", "after", "kind"})
            survivors.append(Survivor(**fields, reason=reason.reason if reason else ""))
        counts[_place(each)][outcome.replace(" ", "_")] += 1
        counts[_place(each)]["mutants"] += outcome != "does not compile"
    return Campaign(
        preset=old.preset,
        commits=sorted({*old.commits, *(record.commit for record in records)}),
        possible=old.possible,
        files=[
            FileRow(file=file, kind=kind, **{name: found[name] for name in COUNTS})
            for (file, kind), found in sorted(counts.items())
            if (repository / file).exists()
        ],
        survivors=sorted(survivors, key=lambda each: each.key),
    )


def page(repository: Path) -> str:
    """The page with its tables as results.json has them."""
    path = repository / PAGE
    results = documents.load(ResultsFile, repository / RESULTS)
    shown = [_shown(campaign) for campaign in results.campaigns]
    content = templates.text("mutants.md", campaigns=shown)
    return with_block(read_text(path), "mutants", content.rstrip(), path)


def _shown(campaign: Campaign) -> dict[str, object]:
    """What the template needs beside the campaign: its classes in order, its files by group."""
    kinds = {row.kind for row in campaign.files}
    rows = {
        group.title: [r for r in campaign.files if group_of(campaign.preset, r.file) == group]
        for group in groups(campaign.preset)
    }
    return {
        **dict(campaign),
        "device": DEVICES[campaign.preset],
        "kinds": [*(kind for kind in AIMED if kind in kinds), *sorted(kinds - {*AIMED})],
        "groups": [(title, mine) for title, mine in rows.items() if mine],
        "commits": [short(commit) for commit in campaign.commits],
    }
