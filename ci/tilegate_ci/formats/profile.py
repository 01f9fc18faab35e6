"""bench/profile/<device>.json. profile.csv lists the numbers of a kernel: field, Nsight Compute's
metric, and the column of the pages that shows it; bench/README.md says what they mean.

A field without a metric follows from others. A number that this GPU or this ncu does not have is
null."""

import csv
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, create_model

from tilegate_ci.core.documents import Count, Document, Finite, Given, Line, Model

Int64 = Annotated[int, Field(gt=-(2**63), lt=2**63)]
Shape = Annotated[str, Field(pattern="^[1-9][0-9]{0,8}x[1-9][0-9]{0,8}x[1-9][0-9]{0,8}$")]
COUNT, TEXT = "count", "text"


class ProfileField(NamedTuple):
    """A line of profile.csv. `digits`: after the point, where pages show it; COUNT is a whole
    number, TEXT a column in words, of other fields. `units` are Nsight Compute's words for the unit
    that `scale` converts from; none where a count needs none."""

    table: str
    heading: str
    field: str
    digits: str
    metric: str
    units: tuple[str, ...]
    scale: float


with Path(__file__).with_suffix(".csv").open(encoding="utf-8") as _stream:
    FIELDS = [
        ProfileField(table, heading, field, digits, metric, tuple(units.split()), float(scale or 1))
        for table, heading, field, digits, metric, units, scale in list(csv.reader(_stream))[1:]
    ]


def _groups() -> dict[str, Any]:
    """The members of a kernel that FIELDS names: a number, or a model of several."""
    groups: dict[str, dict[str, Any]] = {"": {}}
    for each in FIELDS:
        if each.digits != TEXT:
            group, _, name = each.field.rpartition(".")
            extra: dict[str, Any] = {"metric": each.metric, "scale": each.scale}
            extra["units"] = [*each.units]
            described = Field(json_schema_extra=extra if each.metric else None)
            kind = Int64 if each.digits == COUNT else Finite
            groups.setdefault(group, {})[name] = (kind | None, described)
    members = groups.pop("")
    for group, numbers in groups.items():
        title = group.title().replace("_", "")
        members[group] = (create_model(title, __base__=Model, **numbers), ...)
    return members


class Stall(Model):
    reason: Line
    pct: Finite


class ProfiledKernel(create_model("Measured", __base__=Model, **_groups())):  # type: ignore[misc]
    name: Line
    grid: list[Int64]
    block: list[Int64]
    stalls: list[Stall]


class ProfiledRung(Model):
    name: Line
    kernels: list[ProfiledKernel]
    error: Given[str] = None  # why it could not be profiled
    commit: Given[str] = None  # where it was profiled, if not where the others were


class ProfiledDevice(Model):
    name: Line
    driver: str
    cuda: str
    cublas: str
    compute_capability: Count
    multiprocessors: Count


def parse_device(text: str) -> ProfiledDevice:
    """What profile_target and accuracy print: a name, a tab and a value on each line."""
    said = dict(line.removeprefix("device_").split("\t", 1) for line in text.splitlines())
    return ProfiledDevice.model_validate_strings(
        {key: said[key] for key in ProfiledDevice.model_fields}
    )


class ProfileFile(Document):
    commit: str
    device: ProfiledDevice
    ncu: str
    shape: Shape
    rungs: list[ProfiledRung]  # in ladder order


def joined(earlier: ProfileFile, found: ProfileFile) -> ProfileFile:
    """The earlier file with these rungs in place of its own, which name their commit; `found`
    itself where machine, tool or shape differ."""
    same = [(each.device, each.ncu, each.shape) for each in (earlier, found)]
    if same[0] != same[1]:
        return found
    rungs = {rung.name: rung for rung in earlier.rungs}
    for rung in found.rungs:
        rungs[rung.name] = rung.model_copy(update={"commit": found.commit})
    return earlier.model_copy(update={"rungs": [*rungs.values()]})
