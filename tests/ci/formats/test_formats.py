"""Every file format has its schema in ci/schema, and the package has the shape that it claims.

`TILEGATE_UPDATE_GOLDEN=1 ci/pytest tests/ci/formats` writes the schemas."""

import os
import re
from collections import Counter

import pytest
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from gate_builders import REPOSITORY
from tilegate_ci.checks.accuracy import AccuracyFile
from tilegate_ci.checks.counters import CountersFile
from tilegate_ci.checks.passport import PassportFile
from tilegate_ci.checks.resources.table import Table
from tilegate_ci.core.documents import Model, parse
from tilegate_ci.core.files import GateError, dumps
from tilegate_ci.formats.profile import ProfileFile
from tilegate_ci.formats.stages import StagesFile
from tilegate_ci.judge.compare import Comparison
from tilegate_ci.judge.verdict_file import ErrorFile, Fleet
from tilegate_ci.judge.waivers import WaiversFile
from tilegate_ci.lab.mutants.table import KnownFile, ResultsFile
from tilegate_ci.lab.proof.recording import RecordingFile
from tilegate_ci.model import Process, RunFile

SCHEMAS = REPOSITORY / "ci" / "schema"
FORMATS = {
    "accuracy": (AccuracyFile, "bench/results/<device>-accuracy.json"),
    "counters": (CountersFile, "bench/baselines/counters.json"),
    "mutants": (ResultsFile, "tests/mutants/results.json"),
    "fleet": (Fleet, "what ci/gate report --merge --json writes"),
    "known_mutants": (KnownFile, "tests/mutants/known.json"),
    "passport": (PassportFile, "tests/passport/<device>.json"),
    "process": (Process, "build/gate-run/run-*/process-*.json, one process of a gate run"),
    "profile": (ProfileFile, "bench/profile/<device>.json"),
    "recording": (RecordingFile, "bench/recordings/*.json.gz, unpacked"),
    "resources": (Table, "bench/baselines/resources.json"),
    "run": (RunFile, "bench/baselines/<device>.json, and the candidates of ci/gate compare"),
    "stages": (StagesFile, "build/<preset>/stages.json, written by the build"),
    "verdict": (Comparison | ErrorFile, "what ci/gate compare --json writes"),
    "waivers": (WaiversFile, "bench/waivers.json"),
}


WRITTEN = {"fleet", "verdict"}  # with fields that follow from others: readers need none of those


class Untitled(GenerateJsonSchema):
    """Without a title for each field, which would only repeat its name."""

    def field_title_should_be_set(self, _: object) -> bool:
        return False


@pytest.mark.parametrize("name", FORMATS)
def test_the_schema_is_that_of_the_reader(name):
    model, title = FORMATS[name]
    mode = "serialization" if name in WRITTEN else "validation"
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(model).json_schema(mode=mode, schema_generator=Untitled),
        "title": title,
    }
    path, text = SCHEMAS / f"{name}.json", dumps(schema) + "\n"
    if os.environ.get("TILEGATE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_no_schema_is_left_over():
    assert {path.stem for path in SCHEMAS.glob("*.json")} == {*FORMATS}


class Part(Model):
    numbers: tuple[int, int]


class Whole(Model):
    parts: dict[str, Part]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"parts": {"a b": {"numbers": [1]}}}',
            'parts["a b"].numbers[1]: Field required',
        ),
        (
            '{"parts": {"a": {"numbers": {}}}}',
            "parts.a.numbers: must be a valid array, not an object",
        ),
        ('{"parts": {"a": {"numbers": [1, 2], "x": 1}}}', 'parts.a: "x" is not known here'),
        ('{"parts": {"\\ud800": {}}}', "Invalid JSON: "),
        ('{"parts": []}', "parts: must be an object, not a list"),
        ("1" * 5000, "malformed JSON: "),
    ],
)
def test_what_is_wrong_is_one_sentence(text, message):
    with pytest.raises(GateError) as caught:
        parse(Whole, text, "x.json")
    assert str(caught.value).startswith(f"x.json: {message}")
    assert "\n" not in str(caught.value)


def test_no_two_classes_share_a_name():
    names = Counter(
        name
        for path in (REPOSITORY / "ci").rglob("*.py")
        for name in re.findall(r"^ *class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert [name for name, count in names.items() if count > 1] == []
