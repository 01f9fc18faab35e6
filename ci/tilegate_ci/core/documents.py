"""Strict models of file formats, and one sentence for each validation error."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, ErrorDetails
from pydantic_core.core_schema import json_or_python_schema

from tilegate_ci.core.files import Place, dumps, fault, parse_json, read_text, shown

COMMIT = "[0-9a-f]{40}(-dirty)?"
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Model(BaseModel):
    """A part of a file: no conversions, no fields beside those named, nothing changed later."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @property
    def fields(self) -> dict[str, Any]:
        """As the file has it, fields unknown to us included."""
        return self.model_dump(mode="json", by_alias=True)


class Open(Model):
    """Fields that are not named are kept, so that a later gate may add some."""

    model_config = ConfigDict(extra="allow")


def _known_schema(value: object) -> object:
    if type(value) is not int or value != 1:  # true equals 1
        raise ValueError(f"unknown schema {value!r}; this gate reads schema 1")
    return value


def _printable(text: str) -> str:
    if not text.isprintable():  # it goes into reports, a line each
        raise ValueError("must be one line of printable text")
    return text


def _line(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def commit_digits(text: str) -> str:
    if not re.fullmatch(COMMIT, text):
        raise ValueError(f"must be 40 hex digits, then perhaps -dirty, not {text!r}")
    return text


class _Absent:
    """Makes None mean that the field is not there: in a file, null is as wrong as other values."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        assert schema["type"] == "nullable"
        return json_or_python_schema(json_schema=schema["schema"], python_schema=schema)


Given = Annotated[T | None, _Absent(), Field(exclude_if=lambda value: value is None)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0)]
Natural = Annotated[int, Field(ge=0, lt=2**63)]
Count = Annotated[int, Field(gt=0, lt=2**63)]
Text = Annotated[str, AfterValidator(_printable)]
Line = Annotated[Text, AfterValidator(_line), Field(json_schema_extra={"minLength": 1})]
Schema = Annotated[int, BeforeValidator(_known_schema), WithJsonSchema({"const": 1})]
Commit = Annotated[
    str, AfterValidator(commit_digits), Field(json_schema_extra={"pattern": f"^{COMMIT}$"})
]


class Document(Model):
    """A whole file."""

    schema_version: Schema = Field(alias="schema")


def load(model: type[M], path: str | Path) -> M:
    """Reads a file; GateError says in one sentence what is wrong with it, and where."""
    return parse(model, read_text(path), str(path))


def parse(model: type[M], text: str, source: str) -> M:
    """As load; `source` is where the text came from."""
    parse_json(text, source)
    return validated(model, text, source)


def validated(model: type[T], text: str, source: str, place: Place = ()) -> T:
    """As parse, of JSON that is known to be sound; `place` is where in the file it stands."""
    try:
        return TypeAdapter(model).validate_json(text)
    except ValidationError as problem:
        inner, message = _sentence(problem.errors()[0])
        raise fault(source, (*place, *inner), message) from problem


def to_text(model: object) -> str:
    fields = TypeAdapter(type(model)).dump_python(model, mode="json", by_alias=True)
    return dumps(fields) + "\n"


def _sentence(error: ErrorDetails) -> tuple[Place, str]:
    """Where, and what is wrong, in words."""
    kind, message = error["type"], error["msg"]
    place = tuple(step for step in error["loc"] if step != "[key]")
    if kind == "missing" and isinstance(place[-1], str):
        return place[:-1], f"{json.dumps(place[-1])} is missing"
    if kind == "extra_forbidden":
        return place[:-1], f"{json.dumps(place[-1])} is not known here"
    if kind == "too_short":
        return place, "must not be empty"
    if kind == "value_error":
        return place, str(error["ctx"]["error"])
    if message.startswith("Input should "):
        message = f"{message.replace('Input should ', 'must ')}, not {shown(error['input'])}"
    return place, message
