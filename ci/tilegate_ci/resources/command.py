"""`ci/gate resources`: registers, spills, shared memory and occupancy of every rung's kernels,
compared with the committed table. Needs nvcc and no GPU."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tilegate_ci.core import ladder
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.judge import waivers
from tilegate_ci.resources import render
from tilegate_ci.resources.cache import Cache
from tilegate_ci.resources.compile import Compiled, Toolkit, compile_rung, find_toolkit
from tilegate_ci.resources.judge import judge
from tilegate_ci.resources.occupancy import ARCHITECTURES, compute_capability
from tilegate_ci.resources.table import Rung, Table, load, rung_rows, to_text

TABLE = Path("bench") / "baselines" / "resources.json"

EXAMPLES = """examples:
  ci/gate resources                           # every rung, every architecture
  ci/gate resources --rung Warptile --arch 90a
  ci/gate resources --update && git diff bench/baselines/resources.json

"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.set_defaults(command=run)
    command.add_argument("--update", action="store_true", help=f"write {TABLE.as_posix()}")
    command.add_argument(
        "--rung", metavar="NAME", action="append", help="only this rung; repeatable"
    )
    command.add_argument(
        "--arch",
        metavar="ARCH",
        action="append",
        choices=[*ARCHITECTURES],
        help=f"only this architecture of {', '.join(ARCHITECTURES)}; repeatable",
    )
    command.add_argument("--markdown", metavar="FILE", help="write the report there too")
    command.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    repository = arguments.repository.resolve()
    path = repository / TABLE
    toolkit = find_toolkit()
    every = _rungs(repository)
    chosen = _chosen(every, arguments.rung)
    architectures = arguments.arch or [*ARCHITECTURES]
    committed = load(path) if path.exists() or not arguments.update else Table(toolkit.release, {})
    waivers.check(committed.waivers, datetime.date.today(), str(path))
    partial = len(chosen) < len(every) or len(architectures) < len(ARCHITECTURES)
    if arguments.update and partial and committed.nvcc != toolkit.release:
        raise GateError(
            f"{path}: of nvcc {committed.nvcc}, and this is {toolkit.release}: "
            "--update then needs every rung and architecture"
        )
    found, errors = measure(toolkit, repository, chosen, architectures, committed)
    if arguments.update and not errors:
        committed = merged(committed, found, every, architectures, partial)
        write_text(path, to_text(committed))
        sys.stdout.write(f"{os.path.relpath(path)}: written\n")
    # What has left the ladder is compared only where the whole ladder was asked for.
    names = {rung.name for rung in chosen} | ({*committed.rungs} if not arguments.rung else set())
    judgement = judge(committed, found, names, architectures, errors)
    if arguments.markdown:
        write_text(Path(arguments.markdown), render.markdown(judgement))
    for warning in judgement.warnings:
        sys.stderr.write(f"gate: warning: {warning}\n")
    sys.stdout.write(render.console(judgement))
    return judgement.exit_code


def measure(
    toolkit: Toolkit,
    repository: Path,
    rungs: Sequence[ladder.Rung],
    architectures: Sequence[str],
    committed: Table,
) -> tuple[Table, list[str]]:
    """Compiles what is not in the cache, as many rungs at a time as there are processors. The list
    names rungs that failed, and why."""
    cache = Cache(repository / "build" / "resources-cache", repository, toolkit)
    found, errors = Table(toolkit.release, {}), []

    def one(rung: ladder.Rung) -> Rung | GateError:
        known = committed.rungs.get(rung.name, Rung()).not_on
        try:
            return _measure_rung(toolkit, repository, cache, rung, architectures, known)
        except GateError as problem:
            return problem

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for rung, result in zip(rungs, pool.map(one, rungs)):
            if isinstance(result, GateError):
                errors.append(f"{rung.name}: {result}")
            else:
                found.rungs[rung.name] = result
    return found, errors


def merged(
    old: Table,
    new: Table,
    ladder_rungs: Sequence[ladder.Rung],
    architectures: Sequence[str],
    partial: bool,
) -> Table:
    """The table to commit: `new`, and of `old` what was not measured now. Waivers stay."""
    if not partial:
        return replace(new, waivers=old.waivers)
    rungs = {rung.name: old.rungs[rung.name] for rung in ladder_rungs if rung.name in old.rungs}
    for name, fresh in new.rungs.items():
        kept = rungs.get(name, Rung())
        kernels = {
            kernel: {a: row for a, row in rows.items() if a not in architectures}
            for kernel, rows in kept.kernels.items()
        }
        for kernel, rows in fresh.kernels.items():
            kernels.setdefault(kernel, {}).update(rows)
        rungs[name] = Rung(
            {kernel: rows for kernel, rows in kernels.items() if rows},
            {**kept.not_on, **fresh.not_on},
        )
    return Table(new.nvcc, rungs, old.waivers)


def _measure_rung(
    toolkit: Toolkit,
    repository: Path,
    cache: Cache,
    rung: ladder.Rung,
    architectures: Sequence[str],
    known_not_on: Mapping[str, str],
) -> Rung:
    word = re.sub(r"^\d+_", "", rung.folder)
    source = repository / "kernels" / rung.folder / f"{word}.cu"
    not_on = _not_on(source, known_not_on)
    wanted = [a for a in architectures if a not in not_on]
    compiled: dict[str, Compiled] = {}
    for architecture in wanted:
        cached = cache.load(word, architecture)
        if cached is not None:
            compiled[architecture] = cached
    missing = [a for a in wanted if a not in compiled]
    if missing:
        started = time.monotonic()
        fresh = compile_rung(toolkit, repository, source, missing)
        for architecture, result in fresh.items():
            cache.store(word, architecture, result)
        compiled.update(fresh)
        took = time.monotonic() - started
        told = f"{rung.name}: compiled for {', '.join(missing)} in {took:.0f} s"
        sys.stderr.write(f"gate: {told}\n")
    for architecture in wanted:
        needs = compiled[architecture].requires
        if compute_capability(architecture) < needs:  # said by other means than a number
            not_on[architecture] = f"needs compute capability {needs}"
            del compiled[architecture]
    return Rung(rung_rows(compiled), {a: not_on[a] for a in sorted(not_on)})


def _not_on(source: Path, known: Mapping[str, str]) -> dict[str, str]:
    """Architectures that the rung's descriptor excludes, and those that the table excludes."""
    text = source.read_text(encoding="utf-8")
    asked = re.search(r"\.compute_capability\s*=\s*(\d+)", text)
    needs = int(asked.group(1)) if asked else 0
    generated = "needs compute capability "
    kept = {a: why for a, why in known.items() if not why.startswith(generated)}
    below = {a: f"{generated}{needs}" for a in ARCHITECTURES if compute_capability(a) < needs}
    return {**kept, **below}


def _rungs(repository: Path) -> list[ladder.Rung]:
    """Every rung that has kernels of its own, which the yardstick has not."""
    try:
        rungs = ladder.read_rungs(repository)
    except (ladder.LadderError, OSError) as problem:
        raise GateError(str(problem)) from problem
    return [rung for rung in rungs if rung.numbered]


def _chosen(rungs: Sequence[ladder.Rung], names: Sequence[str] | None) -> list[ladder.Rung]:
    if not names:
        return [*rungs]
    known = {rung.name for rung in rungs}
    for name in names:
        if name not in known:
            raise GateError(f"--rung {name!r}: the rungs are {', '.join(sorted(known))}")
    return [rung for rung in rungs if rung.name in names]
