"""`ci/gate report --merge`: verdicts on two GPU models, made of committed recordings.

All recordings are of an H200. The second model is one of them under another name, with the
slow-down of 5 % that was planted in Warptile while it was recorded."""

import json
import re
import textwrap
from dataclasses import replace
from xml.etree import ElementTree

import pytest
import report_builder

from gate_builders import COMMIT, REPOSITORY, write
from tilegate_ci.cli import main
from tilegate_ci.formats.run_file import collect
from tilegate_ci.judge import verdict_file
from tilegate_ci.judge.compare import compare
from tilegate_ci.judge.confirm import judge_pairs, with_verdicts
from tilegate_ci.lab.proof import recording
from tilegate_ci.lab.proof.recording import Arm
from tilegate_ci.model import Session

pytestmark = pytest.mark.usefixtures("without_vega")
SECOND = "NVIDIA H100, planted"
SLOW = "Warptile/4096x4096x4096"


def judged(pairs, model):
    """The verdict on pairs of processes, as those of this model."""
    base, head = (collect([pair[at] for pair in pairs], COMMIT, [Session()]) for at in (0, 1))
    deltas = {name: row.margin(row.decisive) for name, row in base.benchmarks.items()}
    found = judge_pairs(pairs, base.benchmarks, (), deltas, len(pairs))
    comparison = with_verdicts(compare(base, head), found)
    device = head.device.model_copy(update={"name": model})
    candidate = comparison.candidate.model_copy(update={"device": device})
    return replace(comparison, candidate=candidate)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    path = REPOSITORY / "bench" / "recordings" / "h200-1.json.gz"
    arms = {}
    for step, process in recording.load(str(path)).by_step.items():
        arms.setdefault(step.arm, {})[step.round] = process
    suite = list(arms[Arm()].values())[:16]
    plain, planted = (arms[Arm("Warptile", percent)] for percent in (None, 5.0))
    same = judged(list(zip(suite[::2], suite[1::2])), "NVIDIA H200")
    slow = judged([(plain[n], planted[n]) for n in sorted(planted)], SECOND)
    verdict_file.write(folder / "h200.json", same)
    verdict_file.write(folder / "h100.json", slow)
    report_builder.repository(folder / "repository", profile=False)
    return folder


@pytest.fixture
def merged(folder, monkeypatch, capsys):
    """Runs the command; without charts, which other tests look at."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tilegate_ci.report.html._charts", lambda *_: {})

    def run(*arguments):
        code = main(["report", "--merge", *arguments])
        return code, *capsys.readouterr()

    return run


def test_one_verdict_on_two_models_and_a_third_that_is_missing(merged, folder):
    outputs = ("--json", "f.json", "--markdown", "f.md", "--junit", "f.xml", "--html", "f.html")
    outputs += ("--repository", "repository")
    code, out, _ = merged("h200.json", "h100.json", "b200.json", *outputs)
    assert code == 1
    assert out.startswith(f"REGRESSED: 2 of 3 models do not pass ({SECOND}: regressed; b200.json: ")
    assert re.search(r"\nnot judged +b200.json +4 +4\n +not judged: the file is not there\n", out)
    fleet = json.loads((folder / "f.json").read_text())
    assert [model["exit_code"] for model in fleet["models"]] == [0, 1, 4]
    text = (folder / "f.md").read_text()
    assert "| not judged | b200.json | 4 | 4 | not judged: the file is not there |" in text
    assert "### Gate: nothing regressed" in text
    suites = ElementTree.parse(folder / "f.xml").getroot()
    assert [int(suite.get("errors")) for suite in suites] == [0, 0, 1]
    page = (folder / "f.html").read_text().partition("<script")[0]
    assert page.count('<p class="verdict not">not judged</p>') == 1
    assert "<h2>The models</h2>" in page
    # The merged verdict is reported on like any other.
    assert main(["report", "f.json", "--markdown", "again.md"]) == 0
    assert (folder / "again.md").read_text() == text


def test_the_committed_example_is_what_its_parts_merge_to(tmp_path, monkeypatch, capsys):
    committed = json.loads((REPOSITORY / "bench/verdicts/slower-warptile.json").read_text())
    monkeypatch.chdir(tmp_path)
    paths = [model["path"] for model in committed["models"]]
    for model in committed["models"]:
        write(tmp_path / model["path"], model["verdict"])
    assert main(["report", "--merge", *paths, "--json", "merged.json"]) == 1
    assert json.loads((tmp_path / "merged.json").read_text()) == committed
    shown = textwrap.indent(capsys.readouterr().out, "    ")
    assert shown in (REPOSITORY / "ci/REFERENCE.md").read_text()
    for model in committed["models"]:
        slower = {r["name"] for r in model["verdict"]["rows"] if r["verdict"] == "regressed"}
        assert len(slower) == 9
        assert {name.partition("/")[0] for name in slower} == {"Warptile"}


def test_models_that_pass_pass_together(merged, folder):
    assert merged("h200.json")[0] == 0
    document = json.loads((folder / "h200.json").read_text())
    document["candidate"]["device"]["name"] = "NVIDIA H100"
    write(folder / "other.json", document)
    code, out, _ = merged("h200.json", "other.json")
    assert (code, "PASS: All 2 models pass." in out) == (0, True)
    assert "by Holm's method" in out


def test_the_shared_budget_may_change_a_model_s_own_verdict_and_says_so(merged, folder):
    document = json.loads((folder / "h100.json").read_text())
    tests = len([row for row in document["rows"] if row["share"] is not None])
    for row in document["rows"]:
        if row["verdict"] == "regressed" and row["name"] != SLOW:
            row["verdict"] = "pass"
        if row["share"] is not None:
            row["p"] = 0.01 / (tests + 1) if row["name"] == SLOW else 0.5
    write(folder / "close.json", document)
    assert merged("close.json")[0] == 1
    code, out, _ = merged("h200.json", "close.json", "--markdown", "f.md")
    assert code == 3
    changed = (
        f"The shared budget changed the verdict on {SECOND}: inconclusive, by itself regressed"
    )
    assert f"{changed}: {SLOW}." in out
    assert re.search(rf"\ninconclusive +{SECOND} +3 +1\n", out)
    assert changed in (folder / "f.md").read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "bad.json: line 1 column 2: truncated JSON"),
        ('{"schema": 1, "kind": "verdict", "error": "no nvcc"}', "\n    no nvcc\n"),
        ('{"schema": 1, "kind": "verdict"}', '\n    bad.json: "baseline" is missing'),
        ('{"schema": 1, "kind": "x"}', "\n    bad.json: "),
    ],
)
def test_a_model_s_error_is_that_of_all(merged, folder, content, message):
    write(folder / "bad.json", content)
    code, out, _ = merged("h200.json", "bad.json")
    assert (code, message in out) == (2, True), out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--merge", "h200.json", "h200.json"), "h200.json is given twice"),
        (("h200.json", "--json", "f.json"), "--json writes a merged verdict: give --merge too"),
        (("fleet.json",), "models[0]: must have a verdict, or an error in its place"),
    ],
)
def test_what_makes_no_sense_is_exit_2(folder, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(folder)
    part = {"path": "a", "exit_code": 0, "alone": 0}
    fleet = {"schema": 1, "kind": "fleet", "exit_code": 0, "tests": 0, "models": [part]}
    write(folder / "fleet.json", fleet)
    assert main(["report", *arguments]) == 2
    assert message in capsys.readouterr().err
