"""bench/baselines/counters.json: the committed counters."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilegate_ci.checks.counters.count import Counted, Sources, by_key
from tilegate_ci.core import documents
from tilegate_ci.core.documents import Document, Model, Natural
from tilegate_ci.core.names import rung_of

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


def to_text(cases: Mapping[str, Counted], sources: Sources) -> str:
    return documents.to_text(
        CountersFile(
            schema=1, cases={name: table_row(case, sources) for name, case in cases.items()}
        )
    )


def table_row(case: Counted, sources: Sources) -> CountedCase:
    return CountedCase(counters=dict(case.counters), lines=by_key(case, sources))
