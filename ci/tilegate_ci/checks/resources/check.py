"""The table of resources: rungs are compiled, unless the cache has them, and compared."""

import argparse
import datetime
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tilegate_ci.checks.committed import Committed, Report, chosen
from tilegate_ci.checks.resources.compile import (
    Cache,
    KernelRows,
    Toolkit,
    compile_rung,
    find_toolkit,
    sources_digest,
)
from tilegate_ci.checks.resources.judge import Kernels, RungResources, Table, judge, load
from tilegate_ci.checks.resources.rows import ARCHITECTURES, Architecture, compute_capability
from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, message, write_text
from tilegate_ci.formats.stages import Stage, find_stages
from tilegate_ci.judge import waivers

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
        every = [stage for stage in find_stages(repository) if not stage.yardstick]
        if asked.update:
            every = [stage for stage in every if not stage.external]
        names = chosen(asked.rung, [stage.name for stage in every])
        stages = [stage for stage in every if stage.name in names]
        architectures = asked.arch or [*ARCHITECTURES]
        committed = Table(schema=1, nvcc=toolkit.release)
        if path.exists() or not asked.update:
            committed = load(path)
            waivers.check(committed.waivers, datetime.date.today(), str(path))
        if asked.changed and committed.nvcc == toolkit.release:
            stages = changed(repository, stages, committed)
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
    cache: Cache[KernelRows],
    stage: Stage,
    architectures: Sequence[Architecture],
    known_not_on: Mapping[Architecture, str],
) -> RungResources:
    # Architectures that the rung's requirements exclude, and those excluded by hand.
    not_on = {a: why for a, why in known_not_on.items() if not why.startswith(_BELOW)}
    for architecture in ARCHITECTURES:
        if compute_capability(architecture) < stage.compute_capability:
            not_on[architecture] = f"{_BELOW}{stage.compute_capability}"
    wanted = [a for a in architectures if a not in not_on]
    sources = sources_digest(repository, stage)
    compiled = {a: cache.load(stage, a, sources) for a in wanted}
    if missing := [a for a, known in compiled.items() if known is None]:
        started = time.monotonic()
        for architecture, result in compile_rung(toolkit, repository, stage, missing).items():
            cache.store(stage, architecture, sources, result)
            compiled[architecture] = result
        seconds = time.monotonic() - started
        message(f"{stage.name}: compiled for {', '.join(missing)} in {seconds:.0f} s")
    kernels: Kernels = {}
    for architecture, each in compiled.items():
        for kernel, row in each.rows.items() if each else ():
            kernels.setdefault(kernel, {})[architecture] = row
    excluded = {a: not_on[a] for a in sorted(not_on)}
    return RungResources(sources=sources, kernels=kernels, not_on=excluded)


def changed(repository: Path, stages: Sequence[Stage], committed: Table) -> list[Stage]:
    """Those whose files are not the ones that the table was made of."""
    known = {name: rung.sources for name, rung in committed.rungs.items()}
    return [s for s in stages if known.get(s.name) != sources_digest(repository, s)]


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
