"""The generated blocks of the READMEs, from the committed recordings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.checks.accuracy import accuracy_block
from tilegate_ci.checks.pages import sgemm_page
from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.core.markdown import begin, table, with_block
from tilegate_ci.formats.profile import ProfiledKernel, ProfileFile, SharedMemory
from tilegate_ci.formats.stages import Stage, find_ladder
from tilegate_ci.model import GFLOPS, Benchmark, Run, RunFile
from tilegate_ci.report import templates
from tilegate_ci.report.figures import (
    BASELINE,
    RATIO_NOTE,
    SHARE_SIZE,
    Measured,
    measured,
    percent,
    provenance,
    read_accuracy,
    read_baseline,
    read_profile,
    read_results,
    read_variants,
    rung_picture,
    rung_title,
    share,
    tflops,
)
from tilegate_ci.report.headline import headline_block
from tilegate_ci.report.ideas import excerpts, idea_block
from tilegate_ci.report.templates import Markdown, escaped

SIZES = (1024, 2048, 4096)
# Squares whose operands allow no vectors: shape, what differs, title.
UNALIGNED = (
    (
        "1024x1024x1024",
        "ld1025x1027x1029",
        "1024³, rows of 1025, 1027, 1029 words",
    ),
    ("2048x2048x2048", "off4", "2048³, pointers 4 bytes off"),
    (
        "4096x4096x4096",
        "ld4099x4097x4101/off8",
        "4096³, rows of 4099, 4097, 4101 words, 8 bytes off",
    ),
)
NO_BASELINE = f"No baseline committed yet (`{BASELINE.as_posix()}`)."


@dataclass(frozen=True)
class Page:
    """What a file with a generated block should hold. A rung that is not measured yet is its
    author's work in progress, so its page is written but not insisted on."""

    text: str
    measured: bool


def documents(repository: Path) -> dict[Path, Page]:
    rungs = find_ladder(repository)
    run = read_baseline(repository)
    found = {} if run is None else {rung.name: rung for rung in measured(run, rungs)}
    top, kernels = repository / "README.md", repository / "kernels" / "README.md"
    profile, variants = read_profile(repository), read_variants(repository)
    sustained = read_results(repository, "sustained")
    headline = NO_BASELINE if run is None else headline_block(repository, run, rungs, found)
    pages = {
        top: Page(filled(top, "headline", headline), measured=True),
        kernels: Page(filled(kernels, "ladder", ladder_block(run, rungs, found)), measured=True),
    }
    for rung in rungs:
        path = repository / rung.folder / "README.md"
        if rung.yardstick:
            continue
        if run is not None and rung.name in found:
            numbers = numbers_block(run, rung, found[rung.name], variants, profile, sustained)
            pages[path] = Page(filled(path, "numbers", numbers), measured=True)
        elif path.exists() and begin("numbers") in read_text(path):
            missing = NO_BASELINE if run is None else f"{rung.name} is not in the baseline yet."
            pages[path] = Page(filled(path, "numbers", missing), measured=False)
    if run is not None:
        pages |= shape_pages(repository, run, rungs, pages)
    pages |= accuracy_pages(repository, rungs, pages)
    return pages | idea_pages(repository, rungs, pages)


def idea_pages(
    repository: Path, rungs: Sequence[Stage], pages: Mapping[Path, Page]
) -> dict[Path, Page]:
    """The pages that show the lines which are the rung's idea."""
    found, filled_in = excerpts(repository / "kernels"), {}
    for rung in rungs:
        path = repository / rung.folder / "README.md"
        if path in pages or path.exists():
            page = pages.get(path) or Page(read_text(path), measured=True)
            if begin("idea") in page.text:
                block = idea_block(rung.name, found.get(rung.name, ()), path)
                text = with_block(page.text, "idea", block, path)
                filled_in[path] = Page(text, page.measured)
    return filled_in


def accuracy_pages(
    repository: Path, rungs: Sequence[Stage], pages: Mapping[Path, Page]
) -> dict[Path, Page]:
    """The pages of the rungs whose errors were recorded."""
    found, filled_in = read_accuracy(repository), {}
    if found is None:
        return {}
    for rung in rungs:
        if any(row.stage == rung.name for row in found.rows):
            path = repository / rung.folder / "README.md"
            text = pages[path].text if path in pages else read_text(path)
            block = accuracy_block(found, rung.name)
            filled_in[path] = Page(with_block(text, "accuracy", block, path), measured=True)
    return filled_in


def shape_pages(
    repository: Path, run: Run, rungs: Sequence[Stage], pages: Mapping[Path, Page]
) -> dict[Path, Page]:
    """The pages that show other shapes than squares, where those were recorded."""
    found = {}
    ladder, sgemm = repository / "kernels" / "README.md", repository / "kernels/sgemm/README.md"
    unaligned = read_results(repository, "shapes")
    if unaligned is not None:
        text = with_block(
            pages[ladder].text, "unaligned", unaligned_block(run, unaligned, rungs), ladder
        )
        found[ladder] = Page(text, measured=True)
    block = sgemm_page.block(repository)
    if block:
        found[sgemm] = Page(with_block(pages[sgemm].text, "shapes", block, sgemm), measured=True)
    return found


def filled(path: Path, block: str, content: str) -> str:
    """The file's text with `content` between the block's markers."""
    if not path.exists():
        raise GateError(f"{path}: missing; it should hold {begin(block)}")
    return with_block(read_text(path), block, content, path)


def ladder_block(run: Run | None, rungs: Sequence[Stage], found: Mapping[str, Measured]) -> str:
    """The table of all rungs."""
    if run is None:
        return NO_BASELINE
    shown = [(rung, found[rung.name]) for rung in rungs if rung.name in found]
    rows = [
        (
            Markdown(f"[{escaped(rung.title)}]({rung.folder.name}/README.md)"),
            rung.idea,
            [tflops(each.square(size)) for size in SIZES],
            percent(share(each.square(SHARE_SIZE))),
        )
        for rung, each in shown
    ]
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
    rows = [(shape, tflops(row), percent(share(row))) for shape, row in sorted(rung.rows.items())]
    profiled = [each for each in profile.rungs if each.name == rung.name] if profile else []
    kernels = [kernel for each in profiled for kernel in each.kernels]
    return _block(
        "numbers",
        name=rung.name,
        picture=rung_title(stage),
        picture_file=Markdown(rung_picture(stage)),
        rows=rows,
        made_on=provenance(run, rung.rows.values()),
        sustained=_sustained(sustained, rung.name),
        **_variants(variants, rung),
        profile=profile,
        profiled_at=next((each.commit for each in profiled if each.commit), None),
        kernels=[kernel.name.partition("<")[0] for kernel in kernels],
        counters=[(title, [cell(kernel) for kernel in kernels]) for title, cell in _COUNTERS],
    )


def unaligned_block(run: Run, others: Run, rungs: Sequence[Stage]) -> str:
    """What operands without whole vectors cost each rung: TFLOP/s with, without, slow-down."""

    def cell(rung: str, shape: str, form: str) -> str:
        with_vectors = run.benchmarks.get(f"{rung}/{shape}")
        without = others.benchmarks.get(f"{rung}/{shape}/{form}")
        if with_vectors is None or without is None:
            return "-"
        slower = with_vectors.summary[GFLOPS] / without.summary[GFLOPS] - 1
        return f"{tflops(with_vectors)} → {tflops(without)}, {100 * slower:.1f} %"

    heads = ["", *(title for _, _, title in UNALIGNED)]
    rows = [
        [rung.name, *(cell(rung.name, shape, form) for shape, form, _ in UNALIGNED)]
        for rung in rungs
        if any(name.startswith(f"{rung.name}/") for name in others.benchmarks)
    ]
    made_on = [provenance(each, each.benchmarks.values()) for each in (run, others)]
    return "\n".join(
        [*table(heads, rows), "", f"With vectors: {made_on[0]}. Without: {made_on[1]}."]
    )


def _block(template: str, **values: object) -> str:
    sizes = {"sizes": SIZES, "share_size": SHARE_SIZE, "ratio_note": RATIO_NOTE}
    return templates.markdown(template, **sizes, **values).rstrip("\n")


def _sustained(run: RunFile | None, rung: str) -> str:
    """Speeds of the rung alone, as multiples of those of cuBLAS alone."""
    rows = {} if run is None else run.benchmarks
    shown = []
    for name, row in rows.items():
        stage, _, shape = name.partition("/")
        yardstick = rows.get(f"Cublas/{shape}")
        if stage == rung and yardstick is not None:
            times = row.summary[GFLOPS] / yardstick.summary[GFLOPS]
            shown.append(f"{tflops(row)} TFLOP/s at {shape}, {times:.2f} times cuBLAS")
    if run is None or not shown:
        return ""
    return (
        f"Alone, for {run.protocol.min_time_s or 0:g} s without a pause, where power is the limit: "
        f"{'; '.join(shown)}, which was alone for as long. {provenance(run, rows.values())}."
    )


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
    speeds = {
        stage: [tflops(row.get(size)) for size in sizes] for stage, row in sorted(rows.items())
    }
    measured_on = provenance(run, [row for each in rows.values() for row in each.values()])
    return {
        "variants": [(stage, stage == name, cells) for stage, cells in speeds.items()],
        "variant_sizes": sizes,
        "variants_made_on": measured_on,
        "default_apart": apart,
    }


def _access(kind: str, key: str) -> Callable[[ProfiledKernel], str]:
    def cell(kernel: ProfiledKernel) -> str:
        values = [getattr(getattr(kernel, f"{kind}_{way}"), key) for way in ("load", "store")]
        return " / ".join("-" if value is None else f"{value:,.4g}" for value in values)

    return cell


def _shares(*values: float | None) -> str:
    return ", ".join(percent(None if value is None else value / 100) for value in values)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} GB/s"


def _shared_memory(memory: SharedMemory) -> str:
    return f"{(memory.static_bytes or 0) + (memory.dynamic_bytes or 0)} bytes"


_COUNTERS: Sequence[tuple[str, Callable[[ProfiledKernel], str]]] = (
    (
        "FMA pipe busy, issue slots busy",
        lambda k: _shares(k.sm.fma_pipe_pct, k.sm.issue_slots_pct),
    ),
    ("FFMA, share of instructions", lambda k: _shares(k.instructions.ffma_pct)),
    ("registers per thread", lambda k: str(k.registers)),
    ("shared memory per block", lambda k: _shared_memory(k.shared_memory)),
    (
        "occupancy, theoretical and achieved",
        lambda k: _shares(k.occupancy.theoretical_pct, k.occupancy.achieved_pct),
    ),
    ("device memory traffic", lambda k: _rate(k.dram.gb_per_s)),
    ("L2 traffic, L2 hits", lambda k: f"{_rate(k.l2.gb_per_s)}, {_shares(k.l2.hit_pct)}"),
    ("global sectors per request, load / store", _access("global", "sectors_per_request")),
    (
        "shared wavefronts per request, load / store",
        _access("shared", "wavefronts_per_instruction"),
    ),
    ("shared bank conflicts per launch, load / store", _access("shared", "bank_conflicts")),
    (
        "most frequent stalls, share of warp cycles",
        lambda k: ", ".join(f"{s.reason} {s.pct:.1f} %" for s in k.stalls),
    ),
)
