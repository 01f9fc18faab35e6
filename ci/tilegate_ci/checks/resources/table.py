"""bench/baselines/resources.json: what each kernel takes of a multiprocessor, compared exactly."""

import argparse
import datetime
import os
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from tilegate_ci.checks.committed import Committed, Report, chosen
from tilegate_ci.checks.resources.compile import (
    ARCHITECTURES,
    VARIANT,
    Architecture,
    Cache,
    KernelRow,
    KernelRows,
    Toolkit,
    compile_rung,
    compute_capability,
    find_toolkit,
    sources_digest,
)
from tilegate_ci.core import documents
from tilegate_ci.core.documents import Count, Document, Line, Model
from tilegate_ci.core.files import GateError, message, write_text
from tilegate_ci.formats.stages import Stage, find_ladder, find_stages
from tilegate_ci.judge import waivers
from tilegate_ci.judge.waivers import Debt
from tilegate_ci.model import worst
from tilegate_ci.report import templates

UPDATE = "ci/gate check resources --update"


class Place(NamedTuple):
    """Where a row stands in the table, and in reports."""

    rung: str
    kernel: str
    architecture: str


Kernels = dict[str, dict[Architecture, KernelRow]]
# The architectures of each: by rung, kernel, column, old and new value.
Changes = dict[tuple[str, ...], list[str]]


class RungResources(Model):
    """`sources`: the digest of the files that the rows were compiled from. `not_on`: architectures
    without rows, and why. Reasons that people wrote are kept."""

    sources: str = ""
    kernels: Kernels = {}
    not_on: Annotated[dict[Architecture, Line], Field(exclude_if=lambda reasons: not reasons)] = {}


class SpillWaiver(Debt):
    """Lets a kernel spill up to `ceiling` bytes, loads and stores together."""

    rung: Line
    kernel: Line
    architectures: list[Architecture]
    ceiling: Count

    def covers(self, place: Place) -> bool:
        here = (place.rung, place.kernel) == (self.rung, self.kernel)
        return here and place.architecture in self.architectures


def _columns(columns: list[str]) -> list[str]:
    if columns != list(KernelRow._fields):
        raise ValueError(f"not the columns of this gate; `{UPDATE}` renews them")
    return columns


class Table(Document):
    nvcc: Line
    columns: Annotated[list[str], AfterValidator(_columns)] = list(KernelRow._fields)
    rungs: dict[str, RungResources] = {}
    waivers: list[SpillWaiver] = []

    def rows(self) -> Iterator[tuple[Place, KernelRow]]:
        for rung, entry in self.rungs.items():
            for kernel, by_architecture in entry.kernels.items():
                for architecture, row in by_architecture.items():
                    yield Place(rung, kernel, architecture), row


def changes(
    old: Table, new: Table, rungs: Collection[str], architectures: Collection[str]
) -> Changes:
    """What differs, exactly, of these rungs and architectures."""
    before, after = (
        {p: r for p, r in table.rows() if p.rung in rungs and p.architecture in architectures}
        for table in (old, new)
    )
    found: Changes = {}
    for place in sorted({*before, *after}):
        cells: list[tuple[str, ...]]
        if place not in after:
            cells = [("kernel", "there", "gone")]
        elif place not in before:
            row = after[place]
            brief = f"new: {row.registers} registers, {row.spilled} bytes spilled"
            cells = [("kernel", "-", brief)]
        else:
            cells = [
                (column, *("none" if v is None else str(v) for v in (left, right)))
                for column, left, right in zip(KernelRow._fields, before[place], after[place])
                if left != right
            ]
        for cell in cells:
            found.setdefault((place.rung, place.kernel, *cell), []).append(place.architecture)
    return found


def load(path: Path) -> Table:
    if not path.exists():
        raise GateError(f"{path}: there is no table yet; `{UPDATE}` writes one")
    return documents.load(Table, path)


MEANINGS = {
    0: "as committed",
    1: "changed: the committed table says otherwise",
    2: "error: a spill without a waiver, or a rung that could not be judged",
    4: "incomparable: the committed table is of another nvcc release",
}
CHANGED = ("rung", "kernel", "what", "committed", "now", "architectures")
OUTSIDE = "from outside the repository, whose table leaves it out; only its spills are judged"


class Spill(NamedTuple):
    """In the order of its columns; `verdict` is error, waived or noted."""

    verdict: str
    rung: str
    kernel: str
    architecture: str
    stores: int
    loads: int
    reason: str


def judge(
    committed: Table,
    found: Table,
    rungs: Collection[str],
    architectures: Collection[str],
    errors: Sequence[str],
    external: Collection[str] = (),
) -> Report:
    """`rungs`: the rungs that `found` should hold; what `committed` says of others is ignored.
    `external` ones are from outside the repository, `errors` say which do not compile."""
    rows = [*found.rows()]
    waivers = {
        place: next((each for each in committed.waivers if each.covers(place)), None)
        for place, row in rows
        if row.spilled
    }
    spills = [_spill(place, row, waivers[place]) for place, row in rows if row.spilled]
    spills.sort(key=lambda spill: (spill.verdict != "error", -spill.stores - spill.loads))
    warnings = [
        f"waiver {waiver.id}: nothing spills there; remove it"
        for waiver in committed.waivers
        if waiver not in waivers.values()
        and waiver.rung in rungs
        and architectures
        and set(waiver.architectures) <= set(architectures)
    ]
    for warning in warnings:
        message(f"warning: {warning}")
    notes, changed = [f"error: {error}" for error in errors], Changes()
    new = [name for name in found.rungs if name not in committed.rungs]
    if committed.nvcc == found.nvcc:
        changed = changes(committed, found, {*rungs} - {*new}, architectures)
        joined = [name for name in new if name not in external]
        notes += [f"new: {name}: not in the committed table yet; {UPDATE}" for name in joined]
    else:
        notes.append(
            f"incomparable: the committed table is of nvcc {committed.nvcc}, this is nvcc "
            f"{found.nvcc}; `ci/nvcc` fetches the one of this commit, `{UPDATE}` makes a new table"
        )
    notes += [f"outside: {name}: {OUTSIDE}" for name in new if name in external]
    count = Counter(spill.verdict for spill in spills)
    codes = [2 * bool(errors or count["error"]), int(bool(changed))]
    code = worst([*codes, 4 * (committed.nvcc != found.nvcc)])
    parts = [
        f"{len(found.rungs)} rungs, {len({place[:2] for place, _ in rows})} kernels, "
        f"{len(rows)} rows",
        f"nvcc {found.nvcc}",
        f"{sum(map(len, changed.values()))} changes",
        f"{count['error']} spills at fault, {count['waived']} waived, {count['noted']} noted",
    ]
    summary = f"{', '.join(parts)}. Exit {code}, {MEANINGS[code]}"
    grouped = [(*change, ", ".join(architectures)) for change, architectures in changed.items()]
    lines = [
        *notes,
        *(
            f"error: {rung}: {kernel}: {stores} bytes of spill stores, {loads} of loads on "
            f"{architecture}: {reason}"
            for _, rung, kernel, architecture, stores, loads, reason in spills[: count["error"]]
        ),
        *(
            f"changed: {rung}: {kernel}: {column}: {old} -> {new} ({architectures})"
            for rung, kernel, column, old, new, architectures in grouped
        ),
        *[f"If that is intended: {UPDATE}, and commit the table"] * bool(changed),
    ]
    cells = [(*place, *("-" if v is None else v for v in row)) for place, row in rows]
    page = templates.markdown(
        "resources",
        title=MEANINGS[code].split(":")[0],
        summary=summary,
        notes=[*notes, *(f"warning: {each}" for each in warnings)],
        tables=[
            *[("Spills, in bytes per thread:", Spill._fields, spills)] * bool(spills),
            *[("Changes against the committed table:", CHANGED, grouped)] * bool(changed),
            ("", (*Place._fields, *KernelRow._fields), cells),
        ],
        update=UPDATE,
    )
    return Report(code, "\n".join([*lines, summary, ""]), page)


def _spill(place: Place, row: KernelRow, waiver: SpillWaiver | None) -> Spill:
    if waiver is None:
        variant = row.path == VARIANT
        verdict = ("noted", "a variant for comparison") if variant else ("error", "not waived")
    elif row.spilled > waiver.ceiling:
        verdict = "error", f"above the {waiver.ceiling} bytes of waiver {waiver.id}"
    else:
        verdict = "waived", f"{waiver.id}: {waiver.reason}"
    return Spill(verdict[0], *place, row.spill_stores, row.spill_loads, verdict[1])


TABLE = Path("bench") / "baselines" / "resources.json"
_BELOW = "needs compute capability "


class Resources(Committed):
    name = "resources"
    options = ("arch", "changed")
    partial = ()

    def ready(self) -> None:
        find_toolkit()

    def numbers(self, asked: argparse.Namespace) -> Report:
        """A table is written unless a rung does not compile; spills are errors all the same."""
        toolkit, repository, path = find_toolkit(), asked.repository, asked.repository / TABLE
        # The yardstick has no kernels of its own; the table has this repository's rungs.
        ladder = find_ladder(repository) if asked.update else find_stages(repository)
        every = [stage for stage in ladder if not stage.yardstick]
        names = chosen(asked.rung, [stage.name for stage in every])
        stages = [stage for stage in every if stage.name in names]
        architectures = asked.arch or [*ARCHITECTURES]
        committed = Table(schema=1, nvcc=toolkit.release)
        if path.exists() or not asked.update:
            committed = load(path)
            waivers.check(committed.waivers, datetime.date.today(), str(path))
        if asked.changed and committed.nvcc == toolkit.release:
            known = {name: rung.sources for name, rung in committed.rungs.items()}
            stages = [s for s in stages if known.get(s.name) != sources_digest(repository, s)]
        whole = len(stages) == len(every) and len(architectures) == len(ARCHITECTURES)
        if asked.update and not whole and committed.nvcc != toolkit.release:
            raise GateError(
                f"{path}: of nvcc {committed.nvcc}, and this is {toolkit.release}: "
                "--update then needs every rung and architecture"
            )
        found, errors = measure(toolkit, repository, stages, architectures, committed)
        written = ""
        if asked.update and not errors:
            committed = merged(committed, found, every, architectures)
            write_text(path, documents.to_text(committed))
            written = f"{os.path.relpath(path)}: written\n"
        # What has left the ladder is compared only where the whole ladder was asked for.
        gone = {*committed.rungs} - {stage.name for stage in every}
        judged = {stage.name for stage in stages} | (set() if asked.rung else gone)
        external = {stage.name for stage in stages if stage.external}
        report = judge(committed, found, judged, architectures, errors, external)
        return replace(report, text=written + report.text)


def measure(
    toolkit: Toolkit,
    repository: Path,
    stages: Sequence[Stage],
    architectures: Sequence[Architecture],
    committed: Table,
) -> tuple[Table, list[str]]:
    """As many rungs at a time as there are processors. The list names rungs that failed, and
    why."""
    cache = Cache(repository / "build" / "resources-cache", KernelRows, toolkit)

    def compiled_rung(stage: Stage) -> RungResources:
        known = committed.rungs.get(stage.name, RungResources()).not_on
        # Architectures that the rung's requirements exclude, and those excluded by hand.
        not_on = {a: why for a, why in known.items() if not why.startswith(_BELOW)}
        for architecture in ARCHITECTURES:
            if compute_capability(architecture) < stage.compute_capability:
                not_on[architecture] = f"{_BELOW}{stage.compute_capability}"
        sources = sources_digest(repository, stage)
        compiled = {a: cache.load(stage, a, sources) for a in architectures if a not in not_on}
        if missing := [a for a, rows in compiled.items() if rows is None]:
            started = time.monotonic()
            for architecture, made in compile_rung(toolkit, repository, stage, missing).items():
                cache.store(stage, architecture, sources, made)
                compiled[architecture] = made
            seconds = time.monotonic() - started
            message(f"{stage.name}: compiled for {', '.join(missing)} in {seconds:.0f} s")
        kernels: Kernels = {}
        for architecture, each in compiled.items():
            for kernel, row in each.rows.items() if each else ():
                kernels.setdefault(kernel, {})[architecture] = row
        excluded = {a: not_on[a] for a in sorted(not_on)}
        return RungResources(sources=sources, kernels=kernels, not_on=excluded)

    found: dict[str, RungResources] = {}
    errors = []
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        running = [pool.submit(compiled_rung, stage) for stage in stages]
    for stage, done in zip(stages, running):
        try:
            found[stage.name] = done.result()
        except GateError as problem:
            errors.append(f"{stage.name}: {problem}")
    return Table(schema=1, nvcc=toolkit.release, rungs=found), errors


def merged(
    old: Table, new: Table, ladder: Sequence[Stage], architectures: Sequence[Architecture]
) -> Table:
    """The table to commit: `new`, and of `old` what was not measured now of the ladder's rungs.
    Waivers stay."""
    names = {stage.name for stage in ladder}
    rungs = {name: rung for name, rung in old.rungs.items() if name in names}
    for name, fresh in new.rungs.items():
        kept = rungs.get(name, RungResources())
        kernels = {
            kernel: {a: row for a, row in rows.items() if a not in architectures}
            for kernel, rows in kept.kernels.items()
        }
        for kernel, rows in fresh.kernels.items():
            kernels.setdefault(kernel, {}).update(rows)
        # Rows of other architectures may be of older files.
        sources = kept.sources if {*ARCHITECTURES} - {*architectures} else fresh.sources
        kernels = {kernel: rows for kernel, rows in kernels.items() if rows}
        rungs[name] = fresh.model_copy(update={"sources": sources, "kernels": kernels})
    return new.model_copy(update={"rungs": rungs, "waivers": old.waivers})
