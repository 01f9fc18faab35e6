"""The verdict file, and what `ci/gate report` makes of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import report_builder
from report_builder import HOSTILE, SLOW, WRONG, baseline, candidate
from test_render import CASES

from gate_builders import make_run, parsed, write
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError, Node, dumps
from tilegate_ci.core.git import repository_url
from tilegate_ci.core.model import Device
from tilegate_ci.judge import verdict_file
from tilegate_ci.report import render
from tilegate_ci.report.data import Source, history, load_profile
from tilegate_ci.report.junit import junit

H200 = Device("cuda", "NVIDIA H200", "13", {})


@pytest.fixture
def verdict(tmp_path):
    base = write(tmp_path / "base.json", baseline())
    run = write(tmp_path / "run.json", candidate())
    assert main(["compare", str(base), str(run), "--json", str(tmp_path / "verdict.json")]) == 2
    return tmp_path / "verdict.json"


@pytest.fixture
def report(tmp_path, capsys):
    """Runs the command, outside of any repository unless it is given one."""

    def run(*arguments):
        code = main(["report", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def page_data(path: Path):
    text = path.read_text()
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))


@pytest.mark.parametrize("case", CASES)
def test_a_verdict_file_tells_all_that_the_reports_need(case):
    comparison = CASES[case]()
    text = dumps(verdict_file.document(comparison))
    read = verdict_file.parse(Node(json.loads(text), "verdict.json"))
    assert render.console(read) == render.console(comparison)
    assert render.markdown(read) == render.markdown(comparison)
    assert read.exit_code == comparison.exit_code


def test_a_verdict_file_of_an_older_gate_is_read(verdict, report):
    document = json.loads(verdict.read_text())
    for key in ("base_commit", "repository"):
        del document[key]
    for key in ("lower", "upper", "p", "pairs"):
        del document["rows"][0][key]
    for side in ("baseline", "candidate"):
        del document[side]["sessions"]
        for row in document[side]["measured"].values():
            del row["per_process"]
    verdict.write_text(json.dumps(document))
    assert report(verdict)[0] == 0


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@example.org:a/b.git", "https://example.org/a/b"),
        ("ssh://git@example.org:22/a/b.git", "https://example.org/a/b"),
        ("https://user:secret@example.org/a/b/", "https://example.org/a/b"),
        ("/srv/b.git", None),
        ("file:///srv/b.git", None),
    ],
)
def test_the_address_of_the_repository(tmp_path, monkeypatch, remote, address):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    report_builder.git(tmp_path, "init", "-q")
    assert repository_url(tmp_path) is None
    report_builder.git(tmp_path, "remote", "add", "origin", remote)
    assert repository_url(tmp_path) == address
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "c/d")
    assert repository_url(tmp_path) == "https://github.example/c/d"


def test_an_error_is_a_verdict_too(tmp_path, report):
    verdict = tmp_path / "verdict.json"
    (tmp_path / "run.json").write_text("{")
    base = write(tmp_path / "base.json", make_run())
    assert main(["compare", str(base), str(tmp_path / "run.json"), "--json", str(verdict)]) == 2
    code, *_ = report(verdict, "--junit", tmp_path / "r.xml", "--html", tmp_path / "r.html")
    assert code == 0
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert root.get("errors") == "1"
    assert "truncated JSON" in root.find(".//error").get("message")
    assert "truncated JSON" in page_data(tmp_path / "r.html")["sources"][0]["error"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema=9), "schema: unknown schema 9; this gate reads schema 1"),
        (lambda d: d.update(schema=True), "schema: unknown schema True"),
        (lambda d: d.update(kind="x"), 'kind: must be "verdict"'),
        (lambda d: d["rows"][0].update(verdict="fine"), "no such verdict"),
        (lambda d: d["rows"][0].update(verdict=[]), "no such verdict: []"),
        (lambda d: d["rows"][0].update(name="a`|b"), "malformed benchmark name 'a`|b'"),
        (lambda d: d["rows"][0].update(slowdown="x"), "must be a number"),
        (lambda d: d["rows"][0].pop("key"), '"key" is missing'),
        (lambda d: d["rows"][0].pop("name"), '"name" is missing'),
        (lambda d: d["rows"][0].pop("note"), '"note" is missing'),
        (lambda d: d["rows"][0].update(note=5), "must be text"),
        (lambda d: d["rows"][0].update(metric="x"), "no such metric"),
        (lambda d: d.pop("candidate"), '"candidate" is missing'),
        (lambda d: d.update(repository="javascript:x"), "must begin with https://"),
        (lambda d: d.update(base_commit="x"), "must be 40 hex digits"),
        (lambda d: d["rows"][0].update(lower="x"), "must be a number"),
        (lambda d: d["rows"][0].update(pairs=1), "must be a list"),
        (lambda d: d["candidate"].update(sessions=[1]), "must be an object"),
        (lambda d: d["candidate"]["measured"][SLOW].update(per_process=1), "must be an object"),
    ],
)
def test_a_malformed_verdict_is_refused_with_its_place(verdict, report, change, message):
    document = json.loads(verdict.read_text())
    change(document)
    verdict.write_text(json.dumps(document))
    code, out, err = report(verdict)
    assert (code, out) == (2, "")
    assert err.startswith(f"gate: error: {verdict}: ")
    assert message in err


def test_junit(verdict, report, tmp_path):
    assert report(verdict, "--junit", tmp_path / "r.xml")[0] == 0
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    suite = root.find("testsuite")
    for element in (root, suite):
        counts = [element.get(key) for key in ("tests", "failures", "errors", "skipped")]
        assert counts == ["13", "1", "1", "0"]
    cases = suite.findall("testcase")
    assert [f"{c.get('classname')}/{c.get('name')}" for c in cases[:2]] == [WRONG, SLOW]
    failure = cases[1].find("failure")
    assert failure.get("message") == "regressed: +5.26 % slower, margin 1.0 %"
    assert f"--benchmark_filter='^{SLOW}(/|$)'" in failure.text
    assert len({(c.get("classname"), c.get("name")) for c in cases}) == len(cases)


def test_junit_of_an_incomparable_run_is_skipped_not_passed():
    comparison = CASES["incomparable"]()
    text = junit([Source("v.json", None, None, comparison, None, {})])
    skipped = ElementTree.fromstring(text.encode()).find(".//skipped")
    assert "NVIDIA GeForce RTX 3090" in skipped.get("message")


def test_junit_of_a_session_that_cannot_be_judged_is_skipped_not_passed():
    comparison = replace(CASES["all_pass"](), differences=("a canary moved",))
    text = junit([Source("v.json", None, None, comparison, None, {})])
    root = ElementTree.fromstring(text.encode())
    case = root.find(".//testcase[skipped]")
    assert (case.get("classname"), case.get("name")) == ("gate", "session")
    assert case.find("skipped").get("message") == "incomparable: a canary moved"
    assert (root.get("tests"), root.get("skipped")) == ("3", "1")


def test_junit_holds_no_character_that_xml_forbids():
    text = junit([Source("v.json", None, None, None, "a\x00b\x1b[31m <&>\"' \ud800", {})])
    error = ElementTree.fromstring(text.encode()).find(".//error")
    assert error.get("message") == "a?b?[31m <&>\"' ?"


def test_markdown_and_console_are_those_of_compare(verdict, report, tmp_path, capsys):
    base, run = tmp_path / "base.json", tmp_path / "run.json"
    assert main(["compare", str(base), str(run), "--markdown", str(tmp_path / "c.md")]) == 2
    console = capsys.readouterr().out
    assert report(verdict, "--markdown", tmp_path / "r.md") == (0, "", "")
    assert (tmp_path / "r.md").read_text() == (tmp_path / "c.md").read_text()
    assert report(verdict) == (0, console, "")


def test_a_run_that_nobody_compared_has_a_report(tmp_path, report):
    run = write(tmp_path / "run.json", candidate())
    code, out, _ = report(run)
    assert code == 0
    assert f"{SLOW}: 45125 GFLOPS, 90.2 % of cuBLAS" in out
    report(run, "--junit", tmp_path / "r.xml", "--markdown", tmp_path / "r.md")
    assert ElementTree.parse(tmp_path / "r.xml").getroot().get("errors") == "1"
    assert f"| `{SLOW}` | 45125 | 90.2 % |" in (tmp_path / "r.md").read_text()


def test_a_file_s_name_stays_text_in_markdown(tmp_path, report):
    run = write(tmp_path / "a_b *c*.json", candidate())
    report(run, "--markdown", tmp_path / "r.md")
    assert r"a\_b \*c\*.json, NVIDIA H200" in (tmp_path / "r.md").read_text()


def test_the_page_asks_nothing_of_a_network(verdict, report, tmp_path):
    report(verdict, "--html", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href)=|url\(|@import""", markup)
    assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
    assert "default-src 'none'" in text
    assert "@STYLE@" not in text
    assert "@DATA@" not in text


def test_names_and_notes_cannot_leave_the_data(verdict, report, tmp_path):
    document = json.loads(verdict.read_text())
    document["rows"][0]["note"] = HOSTILE
    verdict.write_text(json.dumps(document))
    report(verdict, "--html", tmp_path / "r.html")
    assert HOSTILE not in (tmp_path / "r.html").read_text()
    assert page_data(tmp_path / "r.html")["sources"][0]["rows"][0]["note"] == HOSTILE


def test_the_page_s_history_and_profile(verdict, report, tmp_path):
    repository = report_builder.repository(tmp_path / "repository")
    code, *_ = report(verdict, "--html", tmp_path / "r.html", "--repository", repository)
    assert code == 0
    data = page_data(tmp_path / "r.html")
    assert [rung["name"] for rung in data["rungs"]] == ["Naive", "Warptile", "Cublas"]
    source = data["sources"][0]
    shares = [revision["values"][SLOW][1] for revision in source["history"]]
    assert shares == pytest.approx([0.855, 0.95])
    assert source["profile"]["intensity"]["Warptile"] == 25
    assert source["profile"]["memory_gb_per_s"] == 4800


def test_history_skips_what_it_cannot_read(tmp_path):
    repository = report_builder.repository(tmp_path)
    (tmp_path / "bench/baselines/nvidia-h200.json").write_text("{")
    report_builder.git(tmp_path, "commit", "-q", "-a", "-m", "broken")
    assert len(history(H200, repository)) == 2


def test_without_git_or_profile_the_page_has_neither(tmp_path):
    assert history(H200, tmp_path) == []
    assert load_profile(H200, tmp_path) is None


def test_a_profile_of_another_form_is_refused(tmp_path):
    (tmp_path / "bench/profile").mkdir(parents=True)
    (tmp_path / "bench/profile/nvidia-h200.json").write_text('{"rungs": [{}]}')
    with pytest.raises(GateError, match="not a profile as ci/profile writes it"):
        load_profile(H200, tmp_path)


def test_a_report_that_cannot_be_written_is_exit_2(verdict, report, tmp_path):
    code, _, err = report(verdict, "--html", tmp_path / "none" / "r.html")
    assert code == 2
    assert "cannot be written" in err


def test_the_verdict_of_a_passing_run(tmp_path):
    run = parsed(make_run())
    document = verdict_file.document(CASES["all_pass"]())
    assert document["exit_code"] == 0
    assert set(document["candidate"]["measured"]) == set(run.benchmarks)
