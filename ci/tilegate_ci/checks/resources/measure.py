"""Compiles rungs, as far as the cache does not know them, and makes the table of what they take."""

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tilegate_ci.checks.resources.cache import Cache
from tilegate_ci.checks.resources.compile import Compiled, Toolkit, compile_rung
from tilegate_ci.checks.resources.occupancy import ARCHITECTURES, Architecture, compute_capability
from tilegate_ci.checks.resources.sources import sources_digest
from tilegate_ci.checks.resources.table import RungResources, Table, rung_rows
from tilegate_ci.core.files import GateError
from tilegate_ci.core.progress import message
from tilegate_ci.formats.stages import Stage

_BELOW = "needs compute capability "


def measure(
    toolkit: Toolkit,
    repository: Path,
    stages: Sequence[Stage],
    architectures: Sequence[Architecture],
    committed: Table,
) -> tuple[Table, list[str]]:
    """As many rungs at a time as there are processors. The list names rungs that failed, and
    why."""
    cache = Cache(repository / "build" / "resources-cache", toolkit)
    found: dict[str, RungResources] = {}
    errors = []

    def one(stage: Stage) -> RungResources | GateError:
        known = committed.rungs.get(stage.name, RungResources()).not_on
        try:
            return _measure_rung(toolkit, repository, cache, stage, architectures, known)
        except GateError as problem:
            return problem

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for stage, result in zip(stages, pool.map(one, stages)):
            if isinstance(result, GateError):
                errors.append(f"{stage.name}: {result}")
            else:
                found[stage.name] = result
    return Table(schema=1, nvcc=toolkit.release, rungs=found), errors


def _measure_rung(
    toolkit: Toolkit,
    repository: Path,
    cache: Cache,
    stage: Stage,
    architectures: Sequence[Architecture],
    known_not_on: Mapping[Architecture, str],
) -> RungResources:
    # What the rung's requirements exclude, and what somebody excluded for another reason.
    not_on = {a: why for a, why in known_not_on.items() if not why.startswith(_BELOW)}
    for architecture in ARCHITECTURES:
        if compute_capability(architecture) < stage.compute_capability:
            not_on[architecture] = f"{_BELOW}{stage.compute_capability}"
    wanted = [a for a in architectures if a not in not_on]
    sources = sources_digest(repository, stage)
    cached = {a: cache.load(stage, a, sources) for a in wanted}
    compiled: dict[Architecture, Compiled] = {a: c for a, c in cached.items() if c is not None}
    missing = [a for a in wanted if a not in compiled]
    if missing:
        started = time.monotonic()
        fresh = compile_rung(toolkit, repository, stage, missing)
        for architecture, result in fresh.items():
            cache.store(stage, architecture, sources, result)
        compiled.update(fresh)
        seconds = time.monotonic() - started
        message(f"{stage.name}: compiled for {', '.join(missing)} in {seconds:.0f} s")
    ordered = {a: compiled[a] for a in wanted}
    excluded = {a: not_on[a] for a in sorted(not_on)}
    return RungResources(sources=sources, kernels=rung_rows(ordered), not_on=excluded)


def changed(repository: Path, stages: Sequence[Stage], committed: Table) -> list[Stage]:
    """Those whose files are not the ones that the table was made of."""
    known = {name: rung.sources for name, rung in committed.rungs.items()}
    return [s for s in stages if known.get(s.name) != sources_digest(repository, s)]


def merged(
    old: Table,
    new: Table,
    ladder: Sequence[Stage],
    architectures: Sequence[Architecture],
    partial: bool,
) -> Table:
    """The table to commit: `new`, and of `old` what was not measured now. Waivers stay."""
    if not partial:
        return new.model_copy(update={"waivers": old.waivers})
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
        rungs[name] = RungResources(
            # Rows of other architectures may be of older files.
            sources=kept.sources if {*ARCHITECTURES} - {*architectures} else fresh.sources,
            kernels={kernel: rows for kernel, rows in kernels.items() if rows},
            not_on={**kept.not_on, **fresh.not_on},
        )
    return new.model_copy(update={"rungs": rungs, "waivers": old.waivers})
