"""What each kernel does to memory, counted by the SIMT executor (the program `tilegate_count`): the
committed table, its changes, and what the counters say of a rung."""

import argparse
import json
import linecache
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, AliasPath, Field, TypeAdapter

from tilegate_ci.checks.committed import Block, Committed, Report, chosen, has_block
from tilegate_ci.core import child, documents
from tilegate_ci.core.documents import Document, Model, Natural
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.names import rung_of
from tilegate_ci.formats.stages import find_ladder, find_stages
from tilegate_ci.measure.projects import build_preset
from tilegate_ci.model import REPOSITORY
from tilegate_ci.report import templates

TIMEOUT_S = 300

KINDS = {  # of access, in words
    "global_load": "global loads",
    "global_store": "global stores",
    "shared_load": "shared loads",
    "shared_store": "shared stores",
    # Counted only where a kernel does it.
    "shared_copy": "stores of asynchronous copies",
    "bulk_load": "loads of the copy engine",
    "bulk_store": "stores of the copy engine",
    "shared_multiply": "shared loads of tensor cores",
    "global_atomic": "global atomics",
    "shared_atomic": "shared atomics",
}
SECTOR_BYTES = 32


@dataclass(frozen=True)
class Frame:
    file: Annotated[str, AfterValidator(lambda file: file.removeprefix(f"{REPOSITORY}/"))]
    line: int
    function: Annotated[str, AfterValidator(lambda name: name.split("<")[0])]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def text(self, sources: Path) -> str:
        """The line itself; `sources` is the repository."""
        return linecache.getline(str(sources / self.file), self.line).strip() or "?"


@dataclass(frozen=True)
class SourceLine:
    """The accesses of one kind that one place in the source makes; `frames` innermost first."""

    kind: str
    requests: int
    units: Annotated[int, Field(validation_alias=AliasChoices("sectors", "wavefronts"))]
    # More than the least for as many bytes; of shared memory: bank conflicts.
    excess: Annotated[int, Field(validation_alias=AliasChoices("excess_sectors", "conflicts"))]
    width: int  # bytes of a lane
    # Byte addresses of the lanes of the costliest access.
    worst: Annotated[
        tuple[int | None, ...], Field(validation_alias=AliasPath("worst", "addresses"))
    ]
    worst_units: Annotated[int, Field(validation_alias=AliasPath("worst", "units"))]
    worst_ideal: Annotated[int, Field(validation_alias=AliasPath("worst", "ideal"))]
    frames: tuple[Frame, ...]

    def key(self, sources: Path) -> str:
        """Names the place in words that stay when lines are added above it."""
        files = [f"{Path(frame.file).name} {frame.function}".rstrip() for frame in self.frames]
        text = self.frames[0].text(sources) if self.frames else "?"
        return f"{self.kind}: {text} < " + " < ".join(files)


_LINES = TypeAdapter(tuple[SourceLine, ...])


@dataclass(frozen=True)
class Counted:
    """One case. `error` is a hazard, `not_applicable` why the rung does not take the problem; then
    nothing is counted."""

    name: str
    counters: Mapping[str, int]
    lines: tuple[SourceLine, ...] = ()
    error: str = ""
    not_applicable: str = ""

    @property
    def rung(self) -> str:
        return rung_of(self.name)


def list_rungs(program: Path) -> list[str]:
    return _run(program, ["--list"]).split()


def count(program: Path, names: Sequence[str]) -> dict[str, Counted]:
    """One process per case, as many at a time as this machine has cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(lambda name: _run(program, [name]), names))
    return {name: _parsed(program, output) for name, output in zip(names, outputs)}


def columns_of(kind: str) -> tuple[str, str, str]:
    """What is counted of a kind of access: requests, units, and units beyond the least."""
    if kind.startswith("shared"):
        return "requests", "wavefronts", "conflicts"
    return "requests", "sectors", "excess_sectors"


def rows_of(counters: Mapping[str, int]) -> list[tuple[str, list[int]]]:
    """The columns of each kind that was counted."""
    kinds = [kind for kind in KINDS if f"{kind}.requests" in counters]
    return [(kind, [counters[f"{kind}.{each}"] for each in columns_of(kind)]) for kind in kinds]


def total(counters: Mapping[str, int], unit: str) -> int:
    """All "sectors" or "wavefronts" of a case."""
    return sum(row[1] for kind, row in rows_of(counters) if unit in columns_of(kind))


def by_key(counted: Counted, sources: Path) -> dict[str, tuple[int, int, int]]:
    """Requests, units and excess of each line; lines that look the same are one."""
    result: dict[str, tuple[int, int, int]] = {}
    for line in counted.lines:
        key = line.key(sources)
        requests, units, excess = result.get(key, (0, 0, 0))
        result[key] = (requests + line.requests, units + line.units, excess + line.excess)
    return result


def _run(program: Path, arguments: Sequence[str]) -> str:
    if not program.exists():
        raise GateError(
            f"{program}: not built; cmake --preset cpu && "
            "cmake --build --preset cpu --target tilegate_count"
        )
    return child.output([str(program), *arguments], TIMEOUT_S)


def _parsed(program: Path, output: str) -> Counted:
    try:
        entry = json.loads(output)[0]
        error, refused = entry.get("error", ""), entry.get("not_applicable", "")
        if error or refused:
            return Counted(entry["case"], {}, (), error, refused)
        counters = {"barriers": entry["barriers"], "fma": entry["fma"]}
        for kind in KINDS:
            counters |= {f"{kind}.{key}": value for key, value in entry.get(kind, {}).items()}
        return Counted(entry["case"], counters, _LINES.validate_python(entry["lines"]))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise GateError(f"{program}: prints no counters, but: {output[:80]!r}") from problem


BASELINE = Path("bench") / "baselines" / "counters.json"

# Every rung is counted on whole tiles and on ragged edges, a new rung also on enough tiles for all
# multiprocessors, since it may choose its configuration by their number.
SHAPES = ("256x256x256/beta0.5", "129x65x17/beta0.5")
LARGE_SHAPES = ("1024x1024x32", "2048x2048x32")


class CountedCase(Model):
    counters: dict[str, Natural]
    lines: dict[str, tuple[Natural, Natural, Natural]]  # requests, units, excess


class CountersFile(Document):
    cases: dict[str, CountedCase]


def load(path: Path) -> dict[str, CountedCase]:
    return documents.load(CountersFile, path).cases


def cases_of(rungs: Sequence[str], table: Mapping[str, CountedCase]) -> list[str]:
    """The names of the cases that are to be counted of these rungs."""
    names: list[str] = []
    for rung in rungs:
        committed = [name for name in table if rung_of(name) == rung]
        shapes = (*SHAPES, *(() if committed else LARGE_SHAPES))
        names += dict.fromkeys([*(f"{rung}/{shape}" for shape in shapes), *committed])
    return names


def to_text(cases: Mapping[str, Counted], sources: Path) -> str:
    return documents.to_text(
        CountersFile(
            schema=1, cases={name: table_row(case, sources) for name, case in cases.items()}
        )
    )


def table_row(case: Counted, sources: Path) -> CountedCase:
    return CountedCase(counters=dict(case.counters), lines=by_key(case, sources))


_CHANGED_LINES = 4


def judge(
    baseline: Mapping[str, CountedCase], cases: Mapping[str, Counted], sources: Path
) -> Report:
    """`baseline` holds what the run was asked for, no more."""
    refused = [case for case in cases.values() if case.not_applicable]
    sections = [f"NOT APPLICABLE {case.name}: {case.not_applicable}" for case in refused]
    cases = {name: case for name, case in cases.items() if not case.not_applicable}
    missing = sorted({*baseline} - {*cases})
    same = changed = hazards = 0
    for name, case in cases.items():
        if case.error:
            hazards += 1
            sections.append(f"HAZARD {name}\n  {case.error}")
        elif name in baseline and baseline[name].counters != case.counters:
            changed += 1
            sections.append("\n".join(_changes(baseline[name], case, sources)))
        else:
            same += name in baseline
    sections += [f"MISSING {name}: in the baseline, not in this build" for name in missing]
    counts = {"changed": changed, "with a hazard": hazards, "new": len({*cases} - {*baseline})}
    counts |= {"missing": len(missing), "not applicable": len(refused)}
    parts = [f"{number} {word}" for word, number in counts.items() if number]
    summary = ", ".join([f"{same} cases as the baseline says", *parts])
    if changed:
        summary += (
            "\nIf that is intended: ci/gate check counters --update, and commit the table with it"
        )
    code = 2 if missing else 1 if changed or hazards else 0
    return Report(code, "\n\n".join([*sections, summary]) + "\n")


def _changes(old: CountedCase, counted: Counted, sources: Path) -> Iterator[str]:
    yield f"CHANGED {counted.name}"
    kinds = set()
    for key in sorted({*old.counters, *counted.counters}):
        before, after = old.counters.get(key, 0), counted.counters.get(key, 0)
        if before != after:
            kinds.add(key.split(".")[0])
            share = f" ({100 * (after - before) / before:+.1f} %)" if before else ""
            yield f"  {key}: {before} -> {after}{share}"
    yield from _changed_lines(old.lines, counted, sources, kinds)


def _changed_lines(
    before: Mapping[str, Sequence[int]], counted: Counted, sources: Path, kinds: set[str]
) -> Iterator[str]:
    after, nothing = by_key(counted, sources), (0, 0, 0)

    def growth(key: str) -> int:
        """In requests and units."""
        return sum(after.get(key, nothing)[:2]) - sum(before.get(key, nothing)[:2])

    moved = [
        key
        for key in {*before, *after}
        if key.split(":")[0] in kinds and before.get(key, nothing) != after.get(key, nothing)
    ]
    moved.sort(key=lambda key: (-abs(growth(key)), key))
    drawn = False
    for key in moved[:_CHANGED_LINES]:
        kind = key.split(":")[0]
        columns = zip(columns_of(kind), before.get(key, nothing), after.get(key, nothing))
        parts = [f"{name} {a} -> {b}" if a != b else f"{name} {b}" for name, a, b in columns]
        state = " (new)" if key not in before else " (gone)" if key not in after else ""
        yield f"  {kind.replace('_', ' ')}{state}: {', '.join(parts)}"
        found = [line for line in counted.lines if line.key(sources) == key]
        if not found:
            yield f"    was: {key}"
            continue
        line = max(found, key=lambda candidate: candidate.excess)
        yield from places(line, sources)
        if not drawn:
            yield from picture(line)
            drawn = True
    if len(moved) > _CHANGED_LINES:
        yield f"  and {len(moved) - _CHANGED_LINES} lines more"


def places(line: SourceLine, sources: Path) -> Iterator[str]:
    """The line itself, then who called it."""
    for index, frame in enumerate(line.frames):
        calls = "called from " if index else ""
        yield f"    {calls}{frame.place}: {frame.text(sources)}"


def picture(line: SourceLine) -> Iterator[str]:
    if all(address is None for address in line.worst):  # not of lanes
        return
    cost = f"{line.worst_units} {columns_of(line.kind)[1]}, {line.worst_ideal} would do"
    if line.kind == "shared_copy":  # its words may share banks where they come from, too
        cost += "; drawn: where it writes"
    yield f"    its worst access: {cost}; {LEGEND}"
    yield from (f"      {row}" for row in draw(line.kind, line.width, line.worst))


_LANES = "0123456789abcdefghijklmnopqrstuv"
_WORD = 4
_WORDS_PER_ROW = 32  # banks, or words of a line of global memory
_MOST_ROWS = 8

LEGEND = "lanes are 0-9, a-v; * is a word of several lanes"


def draw(kind: str, width: int, addresses: Sequence[int | None]) -> list[str]:
    """A row of text per 128 bytes that the access touches; `addresses` in bytes, None: idle."""
    words = {
        lane: range(address // _WORD, address // _WORD + width // _WORD)
        for lane, address in enumerate(addresses)
        if address is not None
    }
    if not kind.startswith("shared"):
        return ["by sector of 32 bytes, a line of memory per row:", *_rows(words, "|")]
    served = _WORDS_PER_ROW * _WORD // width  # lanes at a time
    phases = {
        first: {lane: of for lane, of in words.items() if lane // served == first // served}
        for first in range(0, 32, served)
    }
    first = max(phases, key=lambda first: max(_counts(phases[first])))
    counts = _counts(phases[first])
    shown = "".join("." if n == 0 else str(n) if n < 10 else "+" for n in counts)
    which = "the warp" if served == 32 else f"lanes {first} to {first + served - 1}"
    return [
        f"{which}, by bank:",
        "       0       8       16      24      ",
        *_rows(phases[first], ""),
        f" words {shown}  most {max(counts)}",
    ]


def _rows(words: Mapping[int, Sequence[int]], separator: str) -> list[str]:
    """`words` that each lane accesses."""
    grid: dict[int, list[str]] = {}
    for lane, each in words.items():
        for word in each:
            row = grid.setdefault(word // _WORDS_PER_ROW, ["."] * _WORDS_PER_ROW)
            cell = word % _WORDS_PER_ROW
            row[cell] = _LANES[lane] if row[cell] == "." else "*"
    drawn = []
    for number in sorted(grid)[:_MOST_ROWS]:
        text = "".join(grid[number])
        sectors = (text[start : start + 8] for start in range(0, _WORDS_PER_ROW, 8))
        drawn.append(f"{128 * number:6d} {separator.join(sectors)}")
    if len(grid) > _MOST_ROWS:
        drawn.append(f"       and {len(grid) - _MOST_ROWS} rows more")
    return drawn


def _counts(words: Mapping[int, Sequence[int]]) -> list[int]:
    """Different words in each bank: passes that the access takes of it."""
    banks = Counter(word % _WORDS_PER_ROW for word in set().union(*words.values()))
    return [banks[bank] for bank in range(_WORDS_PER_ROW)]


WAVEFRONT_BYTES = 128
# Per multiprocessor and clock: the FMA of four warps, and one wavefront.
WAVEFRONTS_PER_WARP_FMA = 0.25


def describe(
    case: Counted, idea: str, sources: Path, after: Counted | None = None, after_idea: str = ""
) -> str:
    """`after`: the next rung. The text says what it changes."""
    costly = sorted((line for line in case.lines if line.excess), key=lambda line: -line.excess)
    titles = {"Bank conflicts": "wavefronts", "Sectors fetched for nothing": "sectors"}
    return templates.text(
        "explain.txt",
        case=case,
        idea=idea,
        kinds=[(kind.replace("_", " "), *row) for kind, row in rows_of(case.counters)],
        intensities={} if case.error else _intensities(case),
        worst={
            title: [line for line in costly if unit in columns_of(line.kind)]
            for title, unit in titles.items()
        },
        drawn=lambda line: [*places(line, sources), *picture(line)],
        after=after,
        after_idea=after_idea,
        changes=_differences(case, after) if after else (),
    )


def _intensities(case: Counted) -> dict[str, str]:
    counters, flops = case.counters, 2 * case.counters["fma"]
    sectors, wavefronts = total(counters, "sectors"), total(counters, "wavefronts")
    register_bytes = counters["shared_load.bytes"] or counters["global_load.bytes"]

    def per(amount: float, of: float, unit: str) -> str:
        return f"{amount / of:10.2f} {unit}" if of else "         -"

    warp_fma = counters["fma"] / 32
    bound = "" if not wavefronts else f" (below {WAVEFRONTS_PER_WARP_FMA} FMA can be the limit)"
    return {
        "counted intensity": per(flops, SECTOR_BYTES * sectors, "FLOP per byte of global sectors"),
        "shared memory": per(flops, WAVEFRONT_BYTES * wavefronts, "FLOP per byte of wavefronts"),
        "thread intensity": per(flops, register_bytes, "FLOP per byte that threads load"),
        "limit: shared wavefronts per warp FMA": per(wavefronts, warp_fma, "") + bound,
        "limit: bytes of global memory per FLOP": per(SECTOR_BYTES * sectors, flops, ""),
    }


def compare(a: Counted, b: Counted) -> str:
    first, second = ({} if a.error or b.error else _intensities(case) for case in (a, b))
    numbers = {name: (first[name].split()[0], second[name].split()[0]) for name in first}
    changes = _differences(a, b)
    return templates.text("explain_diff.txt", a=a, b=b, changes=changes, intensities=numbers)


def _differences(a: Counted, b: Counted) -> list[tuple[str, int, int, str]]:
    """Each counter on both sides, and by what factor it grows."""
    keys = [key for key in sorted({*a.counters, *b.counters}) if not key.endswith(".bytes")]
    both = [(key, a.counters.get(key, 0), b.counters.get(key, 0)) for key in keys]
    return [(key, before, now, _factor(before, now)) for key, before, now in both]


def _factor(before: int, now: int) -> str:
    if before == now:
        return ""
    return f"x{now / before:.2f}" if before else "new" if now else ""


def program_of(given: Path | None) -> Path:
    """Built first, so that the sources as they are now are counted."""
    return given or build_preset("cpu", "tilegate_count") / "bench" / "tilegate_count"


class Counters(Committed):
    name = "counters"
    options = ("quick", "program")
    partial = ("rung", "quick")

    def numbers(self, asked: argparse.Namespace) -> Report:
        program, path = program_of(asked.program), asked.repository / BASELINE
        names, sources = chosen(asked.rung, list_rungs(program)), asked.repository
        table = load(path) if path.exists() or not asked.update else {}
        if asked.quick:
            table = {name: row for name, row in table.items() if not name.endswith(LARGE_SHAPES)}
        found = count(program, cases_of(names, table))
        if not asked.update:
            if asked.rung:
                table = {name: row for name, row in table.items() if rung_of(name) in asked.rung}
            return judge(table, found, sources)
        hazards = [f"{name}: {case.error}" for name, case in found.items() if case.error]
        if hazards:
            raise GateError("not written, because of hazards:\n  " + "\n  ".join(hazards))
        outside = {stage.name for stage in find_stages(asked.repository) if stage.external}
        kept = {
            name: case
            for name, case in found.items()
            if rung_of(name) not in outside and not case.not_applicable
        }
        write_text(path, to_text(kept, sources))
        return Report(0, f"{path}: {len(kept)} cases\n")

    def blocks(self, repository: Path) -> list[Block]:
        table = load(repository / BASELINE)
        found = []
        for stage in find_ladder(repository):
            page = repository / stage.folder / "README.md"
            case = table.get(f"{stage.name}/{SHAPES[0]}")
            if case is not None and has_block(page, "counters"):
                found.append(Block(page, "counters", _block(stage.name, case.counters)))
        return found


def _block(rung: str, counters: Mapping[str, int]) -> str:
    return templates.text(
        "counters.md",
        rung=rung,
        shape=SHAPES[0],
        counters=counters,
        rows=[(KINDS[kind], *row) for kind, row in rows_of(counters) if row[0]],
        intensity=2 * counters["fma"] / (SECTOR_BYTES * total(counters, "sectors")),
        wavefronts=32 * total(counters, "wavefronts") / counters["fma"],
    ).rstrip("\n")
