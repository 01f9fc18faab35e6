"""The journal of a campaign, and the committed table: the mutation score of each class and file."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

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


Known = Mapping[tuple[str, str, str], KnownMutant]  # by key


class Survivor(MutatedLine):
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
        records = of_today(repository, journal.read())
        new = campaign_of(preset, records, explained, possible if preset == "cpu" else {})
        old = campaigns.get(preset, new)
        campaigns[preset] = with_others(repository, new, records, old, explained)
    write_text(path, documents.to_text(ResultsFile(schema=1, campaigns=[*campaigns.values()])))
    write_text(repository / PAGE, page(repository))


def of_today(repository: Path, records: Sequence[Record]) -> list[Record]:
    """Without those whose line has changed since."""
    lines = {file: _lines(repository / file) for file in {record.file for record in records}}
    return [record for record in records if record.before in lines[record.file]]


def _lines(path: Path) -> set[str]:
    return {line.strip() for line in read_text(path).splitlines()} if path.exists() else set()


def campaign_of(
    preset: Preset,
    records: Sequence[Record],
    explained: Known,
    possible: dict[str, int],
) -> Campaign:
    counts: dict[tuple[str, str], Counter[str]] = {}
    survivors = []
    for record in records:
        outcome, reason = str(record.outcome), explained.get(record.key)
        if outcome == "same code" or (outcome == "survived" and reason and reason.equivalent):
            outcome = "equivalent"
        elif outcome == "survived":
            survivors.append(_survivor_of(record, record.kind, reason))
        counts.setdefault((record.file, record.kind), Counter())[outcome] += 1
    rows = [
        FileRow(
            file=file,
            kind=kind,
            mutants=found.total() - found["does not compile"],
            killed=found["killed"],
            equivalent=found["equivalent"],
            does_not_compile=found["does not compile"],
        )
        for (file, kind), found in sorted(counts.items())
    ]
    return Campaign(
        preset=preset,
        commits=sorted({record.commit for record in records}),
        possible=possible,
        files=rows,
        survivors=sorted(survivors, key=lambda each: each.key),
    )


def _survivor_of(line: MutatedLine, kind: str, known: KnownMutant | None) -> Survivor:
    file, before, after = line.key
    reason = known.reason if known else ""
    return Survivor(file=file, before=before, after=after, kind=kind, reason=reason)


def with_others(
    repository: Path,
    new: Campaign,
    drawn: Sequence[Record],
    old: Campaign,
    explained: Known,
) -> Campaign:
    """Also the rows of `old` of which none was `drawn` now, as they were then, and all survivors
    that were not drawn again. Of these go those whose line has changed."""
    again, keys = {(row.file, row.kind) for row in new.files}, {record.key for record in drawn}
    rows = {(row.file, row.kind): row for row in (*old.files, *new.files)}
    survivors = []
    for survivor in old.survivors:
        place = survivor.file, survivor.kind
        if survivor.key in keys:
            continue
        row, reason = rows[place], explained.get(survivor.key)
        counts = {"mutants": row.mutants, "equivalent": row.equivalent}
        if survivor.before not in _lines(repository / row.file):
            counts["mutants"] -= place not in again
        else:
            counts["mutants"] += place in again
            if reason and reason.equivalent:
                counts["equivalent"] += 1
            else:
                survivors.append(_survivor_of(survivor, survivor.kind, reason))
        rows[place] = row.model_copy(update=counts)
    return Campaign(
        preset=new.preset,
        commits=sorted({*new.commits, *old.commits}),
        possible={**old.possible, **new.possible},
        files=[rows[place] for place in sorted(rows) if (repository / place[0]).exists()],
        survivors=sorted([*new.survivors, *survivors], key=lambda each: each.key),
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
