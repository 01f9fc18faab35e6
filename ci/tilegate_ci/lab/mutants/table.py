"""The committed table: of each file, how many of its mutants a test saw."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Commit, Document, Line, Model, Natural, Text
from tilegate_ci.core.files import read_text
from tilegate_ci.core.markdown import table, with_block
from tilegate_ci.lab.mutants.campaign import Record, key_of
from tilegate_ci.lab.mutants.reach import GROUPS, group_of

FOLDER = Path("tests/mutants")
PAGE, RESULTS, KNOWN = FOLDER / "README.md", FOLDER / "results.json", FOLDER / "known.json"
BLOCK = "mutants"
Preset = Literal["cpu", "gpu"]
DEVICES: dict[Preset, str] = {"cpu": "On the executor", "gpu": "On a GPU"}


class MutatedLine(Model):
    file: Line
    before: Line
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.before, self.after


class KnownMutant(MutatedLine):
    """Why no test sees it. An equivalent one does what the original does, or what is as right;
    others are held against the tests. Reviewed like code."""

    equivalent: bool
    reason: Line


class KnownFile(Document):
    known: list[KnownMutant]


class Survivor(MutatedLine):
    reason: Text  # empty where nobody has said why


class FileRow(Model):
    """`mutants` are those that compile."""

    file: Line
    mutants: Natural
    killed: Natural
    equivalent: Natural
    does_not_compile: Natural


class Campaign(Model):
    preset: Preset
    commits: list[Commit]
    files: list[FileRow]
    survivors: list[Survivor]


class ResultsFile(Document):
    campaigns: list[Campaign]


def of_today(repository: Path, records: Sequence[Record]) -> list[Record]:
    """Without those whose line has changed since."""
    files = {str(record["file"]) for record in records}
    lines = {
        file: {line.strip() for line in read_text(repository / file).splitlines()}
        for file in files
        if (repository / file).exists()
    }
    return [record for record in records if record["before"] in lines.get(str(record["file"]), ())]


def campaign_of(
    preset: Preset, records: Sequence[Record], listed: Iterable[KnownMutant]
) -> Campaign:
    known = {each.key: each for each in listed}
    by_file: dict[str, Counter[str]] = {}
    survivors = []
    for record in records:
        outcome = str(record["outcome"])
        explained = known.get(key_of(record))
        if outcome == "same code" or (outcome == "survived" and explained and explained.equivalent):
            outcome = "equivalent"
        elif outcome == "survived":
            file, before, after = key_of(record)
            reason = explained.reason if explained else ""
            survivors.append(Survivor(file=file, before=before, after=after, reason=reason))
        by_file.setdefault(str(record["file"]), Counter())[outcome] += 1
    rows = [
        FileRow(
            file=file,
            mutants=found.total() - found["does not compile"],
            killed=found["killed"],
            equivalent=found["equivalent"],
            does_not_compile=found["does not compile"],
        )
        for file, found in sorted(by_file.items())
    ]
    commits = sorted({str(record["commit"]) for record in records})
    survivors.sort(key=lambda each: each.key)
    return Campaign(preset=preset, commits=commits, files=rows, survivors=survivors)


def with_others(
    repository: Path,
    new: Campaign,
    drawn: Sequence[Record],
    old: Campaign,
    listed: Iterable[KnownMutant],
) -> Campaign:
    """Also the files of `old` of which none was `drawn` now, as they were then, and all survivors
    that were not drawn again. Of these go those whose line has changed."""
    again, keys = {row.file for row in new.files}, {key_of(record) for record in drawn}
    known = {each.key: each for each in listed}
    rows = {row.file: row for row in (*old.files, *new.files)}
    survivors = []
    for survivor in old.survivors:
        if survivor.key in keys:
            continue
        row, explained = rows[survivor.file], known.get(survivor.key)
        counts = {"mutants": row.mutants, "equivalent": row.equivalent}
        path = repository / row.file
        lines = read_text(path).splitlines() if path.exists() else []
        if survivor.before not in [line.strip() for line in lines]:
            counts["mutants"] -= row.file not in again
        else:
            counts["mutants"] += row.file in again
            if explained and explained.equivalent:
                counts["equivalent"] += 1
            else:
                reason = explained.reason if explained else ""
                survivors.append(survivor.model_copy(update={"reason": reason}))
        rows[row.file] = row.model_copy(update=counts)
    kept = [row for row in rows.values() if (repository / row.file).exists()]
    return Campaign(
        preset=new.preset,
        commits=sorted({*new.commits, *old.commits}),
        files=sorted(kept, key=lambda row: row.file),
        survivors=sorted([*new.survivors, *survivors], key=lambda each: each.key),
    )


def page(repository: Path) -> str:
    """The page with its tables as results.json has them."""
    path = repository / PAGE
    results = documents.load(ResultsFile, repository / RESULTS)
    parts = [line for campaign in results.campaigns for line in _campaign(campaign)]
    return with_block(read_text(path), BLOCK, "\n".join(parts).rstrip(), path)


def _campaign(campaign: Campaign) -> list[str]:
    heads = ("", "mutants", "seen", "equivalent", "survived", "seen of the others")
    rows = []
    for group in GROUPS[campaign.preset]:
        mine = [row for row in campaign.files if group_of(campaign.preset, row.file) == group]
        if mine:
            rows.append([f"**{group.title}**", *_cells(mine)])
            rows += [[f"`{row.file}`", *_cells([row])] for row in mine]
    rows.append(["**all**", *_cells(campaign.files)])
    commits = ", ".join(commit[:12] + commit[40:] for commit in campaign.commits)
    lines = [f"### {DEVICES[campaign.preset]}", "", *table(heads, rows), "", f"At {commits}.", ""]
    if campaign.survivors:
        lines += ["Survivors:", "", *(_survivor(each) for each in campaign.survivors), ""]
    return lines


def _survivor(survivor: Survivor) -> str:
    reason = survivor.reason or "**A hole.**"
    where = survivor.file.removeprefix("kernels/device/cpu/")
    return f"- `{where}`: `{survivor.before}` as `{survivor.after}`. {reason}"


def _cells(rows: Sequence[FileRow]) -> list[str]:
    mutants, killed = sum(row.mutants for row in rows), sum(row.killed for row in rows)
    equivalent = sum(row.equivalent for row in rows)
    others = mutants - equivalent
    share = f"{100 * killed / others:.1f} %" if others else "-"
    return [str(mutants), str(killed), str(equivalent), str(others - killed), share]
