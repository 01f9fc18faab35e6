"""The generated blocks and pictures of the READMEs, from sources and committed recordings."""

import math
import os
import re
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.checks import tuning
from tilegate_ci.checks.accuracy import above, accuracy_block, read_accuracy
from tilegate_ci.checks.committed import Block, Committed, has_block
from tilegate_ci.checks.pages.distributed import distributed_block
from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.formats.profile import ProfileFile
from tilegate_ci.formats.stages import Stage, find_ladder
from tilegate_ci.measure.launcher import name_of as suite_name
from tilegate_ci.model import GFLOPS, Benchmark, Run, RunFile
from tilegate_ci.report import templates
from tilegate_ci.report.figures import (
    BASELINE,
    PICTURES,
    PROFILE,
    RATIO_NOTE,
    SHARE_SIZE,
    Measured,
    measured,
    percent,
    provenance,
    read_baseline,
    read_profile,
    read_results,
    rung_picture,
    rung_title,
    share,
    short,
    tflops,
)
from tilegate_ci.report.templates import Markdown


def shapes_block(repository: Path) -> str:
    """Empty where the shapes were not recorded."""
    shapes, random = read_results(repository, "sgemm"), read_results(repository, "random")
    if shapes is None or random is None:
        return ""
    forms = read_results(repository, "forms")
    return templates.text(
        "shapes.md",
        sets=_sets(shapes, random, shape_sets(repository / "bench" / "shapes.csv")),
        shapes_made_on=provenance(shapes, shapes.benchmarks.values()),
        random_made_on=provenance(random, random.benchmarks.values()),
        forms=forms and _by_form(forms),
        forms_made_on=forms and provenance(forms, forms.benchmarks.values()),
        tuned=kept_outside(
            tuning.load(repository / tuning.OUTSIDE, tuning.Timing),
            tuning.load(repository / tuning.TABLE, tuning.Cell),
        ),
        percent=percent,
    ).rstrip("\n")


def _by_form(forms: Run) -> list[tuple[str, dict[str, float]]]:
    """TFLOP/s of each square by form."""
    speeds: dict[str, dict[str, float]] = {}
    for name, row in forms.benchmarks.items():
        shape, _, form = name.removeprefix("Sgemm/").partition("/")
        speeds.setdefault(shape.partition("x")[0], {})[form or "NN"] = row.summary[GFLOPS] / 1000
    return [*speeds.items()]


def _sets(shapes: Run, random: Run, sets: Mapping[str, str]) -> Sequence[tuple[object, ...]]:
    """How Sgemm stands to cuBLAS, by set of shapes."""
    by_set: dict[str, dict[str, float]] = {}
    for runs, set_of in ((shapes, sets), (random, {})):
        for name, row in runs.benchmarks.items():
            stage, _, shape = name.partition("/")
            ratio = share(row)
            if ratio is not None and stage == "Sgemm":
                by_set.setdefault(set_of.get(shape, "random"), {})[shape] = ratio
    listed = {s: r for name, of in by_set.items() if name != "random" for s, r in of.items()}
    found = []
    for name, of in [*by_set.items(), ("all but random", listed)]:
        worst = min(of, key=lambda shape: of[shape])
        mean, below = statistics.geometric_mean(of.values()), sum(r < 1 for r in of.values())
        found.append((name, worst, len(of), mean, of[worst], below))
    return found


def kept_outside(
    outside: Sequence[tuning.Timing], cells: Sequence[tuning.Cell]
) -> dict[str, object]:
    """How much of the quickest configuration's speed the choice keeps where nothing was tuned."""
    if not outside:
        return {}
    problems = {row.problem: row.problem_class for row in outside}
    classes = {cell.problem_class for cell in cells}
    return {
        "problems": len(problems),
        "timed": max(row.rank for row in outside),
        "both": tuning.kept(outside, cells),
        "models": tuning.kept(outside, []),
        "cells": len(cells),
        "met": sum(problem_class in classes for problem_class in problems.values()),
        "gpu": outside[0].gpu,
        "commits": list(dict.fromkeys(row.commit[:12] for row in outside)),
    }


def shape_sets(path: Path) -> dict[str, str]:
    """The set of each shape of bench/shapes.csv, by the problem's text."""
    names = [line.split(",", 1) for line in read_text(path).splitlines()[1:] if line]
    return {suite_name(f"Sgemm,{rest}").partition("/")[2]: name for name, rest in names}


_BEGIN = re.compile(r" *// idea:begin (\w+)")
_END = "// idea:end"
_SUFFIXES = (".cu", ".cuh", ".hpp")


@dataclass(frozen=True)
class Excerpt:
    path: Path
    lines: list[str]


def excerpts(kernels: Path) -> Mapping[str, Sequence[Excerpt]]:
    """By rung; those of numbered folders come before those of common/."""
    found: dict[str, list[Excerpt]] = defaultdict(list)
    paths = [path for path in kernels.rglob("*") if path.suffix in _SUFFIXES]
    for path in sorted(paths):  # digits sort before letters
        rung = None
        for line in read_text(path).splitlines():
            begins, ends = _BEGIN.fullmatch(line), line.strip() == _END
            if (begins and rung) or (ends and not rung):
                raise GateError(f"{path}: {line.strip()!r} out of turn")
            if begins:
                rung = begins[1]
                found[rung].append(Excerpt(path, []))
            elif ends:
                rung = None
            elif rung:
                found[rung][-1].lines.append(line)
        if rung:
            raise GateError(f"{path}: '// idea:begin {rung}' without '{_END}'")
    return found


def idea_block(name: str, found: Sequence[Excerpt], page: Path) -> str:
    """What stands between the markers of the page."""
    if not found:
        return f"No source has `// idea:begin {name}` yet."
    parts = []
    for excerpt in found:
        link = Path(os.path.relpath(excerpt.path, page.parent)).as_posix()
        code = textwrap.dedent("\n".join(_indented(excerpt.lines)))
        parts.append(f"From [{excerpt.path.name}]({link}):\n\n```cpp\n{code}\n```")
    return "\n\n".join(parts)


def _indented(lines: Sequence[str]) -> list[str]:
    """A directive stands at the margin; on the page it is indented like the line after it."""
    shown = list(lines)
    for index in reversed(range(len(shown) - 1)):
        if shown[index].startswith("#"):
            after = shown[index + 1]
            shown[index] = " " * (len(after) - len(after.lstrip())) + shown[index]
    return shown


def headline_block(
    repository: Path, run: Run, rungs: Sequence[Stage], found: Mapping[str, Measured]
) -> str:
    sustained, accuracy = read_results(repository, "sustained"), read_accuracy(repository)
    shape, rows, commits = "x".join([str(SHARE_SIZE)] * 3), [], set[str]()
    for rung in chosen(rungs, found):
        row, alone = found[rung.name].square(SHARE_SIZE), _alone(sustained, rung.name).get(shape)
        errors = [each for each in accuracy.rows if each.stage == rung.name] if accuracy else []
        rows.append((rung, row, share(row), alone, errors, len(above(errors))))
        commits |= {short(each.commit or accuracy.commit) for each in errors if accuracy}
    others = dict(PICTURES)
    first = next(iter(others))
    picture = others.pop(first)
    if not (repository / PROFILE).exists():
        del others["roofline.svg"]
    return templates.markdown(
        "headline",
        size=SHARE_SIZE,
        rows=rows,
        sustained=sustained,
        made_on=provenance(run, [row for _, row, *_ in rows if row]),
        accuracy=", ".join(sorted(commits)),
        accuracy_on=accuracy.device.name if accuracy else "",
        short=short,
        first=first,
        picture=picture,
        others=others,
    ).rstrip("\n")


def chosen(rungs: Sequence[Stage], found: Mapping[str, Measured]) -> list[Stage]:
    """The last rung in FP32, and the fastest rung that splits operands."""
    measured = [rung for rung in rungs if rung.name in found and not rung.yardstick]
    fp32 = [rung for rung in measured if not rung.splits][-1:]
    split = [rung for rung in measured if rung.splits]
    fastest = sorted(split, key=lambda rung: -found[rung.name].speeds().get(SHARE_SIZE, 0.0))[:1]
    return [*fp32, *fastest]


def _alone(run: RunFile | None, rung: str) -> dict[str, tuple[Benchmark, float]]:
    """By shape, the rung's row and its speed as a multiple of that of cuBLAS, which ran alone for
    as long."""
    rows = {} if run is None else run.benchmarks
    found: dict[str, tuple[Benchmark, float]] = {}
    for name, row in rows.items():
        stage, _, shape = name.partition("/")
        yardstick = rows.get(f"{YARDSTICK}/{shape}")
        if stage == rung and yardstick is not None:
            found[shape] = row, row.summary[GFLOPS] / yardstick.summary[GFLOPS]
    return found


SIZES = (1024, 2048, 4096)
# Squares whose operands allow no vectors: shape, what differs, title.
UNALIGNED = (
    ("1024x1024x1024", "ld1025x1027x1029", "1024³, rows of 1025, 1027, 1029 words"),
    ("2048x2048x2048", "off4", "2048³, pointers 4 bytes off"),
    (
        "4096x4096x4096",
        "ld4099x4097x4101/off8",
        "4096³, rows of 4099, 4097, 4101 words, 8 bytes off",
    ),
)
NO_BASELINE = f"No baseline committed yet (`{BASELINE.as_posix()}`)."


class Tables(Committed):
    name = "tables"

    def blocks(self, repository: Path) -> list[Block]:
        rungs, run = find_ladder(repository), read_baseline(repository)
        found = {} if run is None else {rung.name: rung for rung in measured(run, rungs)}
        top, kernels = repository / "README.md", repository / "kernels" / "README.md"
        headline = NO_BASELINE if run is None else headline_block(repository, run, rungs, found)
        blocks = [
            Block(top, "headline", headline),
            Block(kernels, "ladder", ladder_block(run, rungs, found)),
        ]
        profile, variants = read_profile(repository), read_results(repository, "variants")
        sustained, accuracy = read_results(repository, "sustained"), read_accuracy(repository)
        prepared = read_results(repository, "prepared")
        marked = excerpts(repository / "kernels")
        for rung in rungs:
            page = repository / rung.folder / "README.md"
            draft = not rung.yardstick and rung.name not in found
            if run is not None and rung.name in found and not rung.yardstick:
                numbers = numbers_block(run, rung, found[rung.name], variants, profile, sustained)
                blocks.append(Block(page, "numbers", numbers))
            elif draft and has_block(page, "numbers"):
                missing = NO_BASELINE if run is None else f"{rung.name} is not in the baseline yet."
                blocks.append(Block(page, "numbers", missing, draft))
            if accuracy and any(row.stage == rung.name for row in accuracy.rows):
                blocks.append(Block(page, "accuracy", accuracy_block(accuracy, rung.name)))
            if prepared is not None and has_block(page, "prepared"):
                blocks.append(Block(page, "prepared", prepared_block(prepared)))
            if has_block(page, "idea"):
                idea = idea_block(rung.name, marked.get(rung.name, ()), page)
                blocks.append(Block(page, "idea", idea, draft))
        if run is not None:
            unaligned, shapes = read_results(repository, "shapes"), shapes_block(repository)
            if unaligned is not None:
                content = unaligned_block(run, unaligned, rungs)
                blocks.append(Block(kernels, "unaligned", content))
            if shapes:
                blocks.append(Block(repository / "kernels/sgemm/README.md", "shapes", shapes))
        distributed = distributed_block(repository)
        if distributed:
            page = repository / "kernels" / "distributed" / "README.md"
            blocks.append(Block(page, "numbers", distributed))
        return blocks


class Plots(Committed):
    name = "plot"
    pattern = "bench/plots/*.svg"
    empty = f"no baseline committed yet ({BASELINE.as_posix()}): nothing to draw"

    def files(self, repository: Path) -> dict[Path, str]:
        # Only here: it imports Altair, which takes long.
        from tilegate_ci.checks.pages.plot import pictures

        folder = repository / "bench" / "plots"
        return {folder / name: text for name, text in pictures(repository).items()}


def ladder_block(run: Run | None, rungs: Sequence[Stage], found: Mapping[str, Measured]) -> str:
    if run is None:
        return NO_BASELINE
    rows = [(rung, found[rung.name]) for rung in rungs if rung.name in found]
    made_on = provenance(run, [row for rung in found.values() for row in rung.rows.values()])
    return _block("ladder", rows=rows, made_on=made_on)


def numbers_block(
    run: Run,
    stage: Stage,
    rung: Measured,
    variants: Run | None,
    profile: ProfileFile | None,
    sustained: RunFile | None = None,
) -> str:
    """The tables of a rung's own README: its shapes, how fast it stays when nothing comes between
    its launches, its configurations if it has several, and what Nsight Compute counted."""
    profiled = [each for each in profile.rungs if each.name == rung.name] if profile else []
    return _block(
        "numbers",
        name=rung.name,
        picture=rung_title(stage),
        picture_file=Markdown(rung_picture(stage)),
        rows=sorted(rung.rows.items()),
        made_on=provenance(run, rung.rows.values()),
        alone=_alone(sustained, rung.name),
        alone_s=(sustained and sustained.protocol.min_time_s) or 0,
        alone_made_on=sustained and provenance(sustained, sustained.benchmarks.values()),
        **_variants(variants, rung),
        profile=profile,
        profiled_at=next((each.commit for each in profiled if each.commit), None),
        kernels=[kernel for each in profiled for kernel in each.kernels],
    )


def prepared_block(run: Run) -> str:
    """Products with a prepared B beside Sgemm, in FP32 and with split operands."""

    def extents(shape: str) -> list[int]:
        return [int(extent) for extent in shape.partition("/")[0].split("x")]

    def cell(stage: str, shape: str, mode: str) -> tuple[float, float | None] | None:
        row = run.benchmarks.get(f"{stage}/{shape}{mode}")
        if row is None:
            return None
        return 2e-3 * math.prod(extents(shape)) / row.summary[GFLOPS], share(row)

    shapes = [name.partition("/")[2] for name in run.benchmarks if name.startswith("Prepared/")]
    shapes.sort(key=lambda shape: (extents(shape)[1:], shape.count("/"), extents(shape)))
    columns = ("Sgemm", ""), ("Sgemm", "/split"), ("Prepared", "")
    rows = [(shape, [cell(stage, shape, mode) for stage, mode in columns]) for shape in shapes]
    return _block("prepared", rows=rows, made_on=provenance(run, run.benchmarks.values()))


def unaligned_block(run: Run, others: Run, rungs: Sequence[Stage]) -> str:
    """What operands without whole vectors cost each rung: TFLOP/s with, without, slow-down."""

    def cell(rung: str, shape: str, form: str) -> str:
        with_vectors = run.benchmarks.get(f"{rung}/{shape}")
        without = others.benchmarks.get(f"{rung}/{shape}/{form}")
        if with_vectors is None or without is None:
            return "-"
        slower = with_vectors.summary[GFLOPS] / without.summary[GFLOPS] - 1
        return f"{tflops(with_vectors)} → {tflops(without)}, {100 * slower:.1f} %"

    names = {name.partition("/")[0] for name in others.benchmarks}
    rows = [
        (rung.name, [cell(rung.name, shape, form) for shape, form, _ in UNALIGNED])
        for rung in rungs
        if rung.name in names
    ]
    made_on = [provenance(each, each.benchmarks.values()) for each in (run, others)]
    heads = [title for _, _, title in UNALIGNED]
    return _block("unaligned", heads=heads, rows=rows, made_on=made_on)


def _block(template: str, **values: object) -> str:
    common = {"sizes": SIZES, "share_size": SHARE_SIZE, "ratio_note": RATIO_NOTE}
    cells = {"tflops": tflops, "share": share, "percent": percent}
    return templates.markdown(template, **common, **cells, **values).rstrip("\n")


def _variants(run: Run | None, rung: Measured) -> dict[str, object]:
    """The rung's configurations side by side, where it has more than one; its own as in the
    baseline where the variants were recorded without it."""
    name = rung.name
    rows: dict[str, dict[int, Benchmark]] = {}
    for benchmark, row in run.benchmarks.items() if run is not None else ():
        stage, _, shape = benchmark.partition("/")
        if stage == name or stage.startswith(f"{name}."):
            rows.setdefault(stage, {})[int(shape.partition("x")[0])] = row
    if run is None or not rows.keys() - {name}:
        return {"variants": []}
    sizes = sorted({size for row in rows.values() for size in row})
    apart = name not in rows
    if apart:
        rows[name] = {size: row for size, row in rung.squares().items() if size in sizes}
    measured_on = provenance(run, [row for each in rows.values() for row in each.values()])
    return {
        "variants": sorted(rows.items()),
        "variant_sizes": sizes,
        "variants_made_on": measured_on,
        "default_apart": apart,
    }
