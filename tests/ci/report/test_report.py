"""The verdict file, and what `ci/gate report` makes of it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import altair as alt
import pytest
import report_builder
from jsonschema import ValidationError
from report_builder import HOSTILE, SLOW, WRONG, baseline, candidate
from test_render import CASES

from gate_builders import make_row, make_run, parsed, scaled, write
from tilegate_ci.cli import main
from tilegate_ci.core.documents import to_text
from tilegate_ci.core.files import GateError
from tilegate_ci.core.git import repository_url
from tilegate_ci.judge import verdict_file
from tilegate_ci.judge.compare import Row
from tilegate_ci.model import Device, Verdict
from tilegate_ci.report import render
from tilegate_ci.report.figures import Source, conditions, history, load_profile, pooled, started
from tilegate_ci.report.junit import junit

pytestmark = pytest.mark.usefixtures("without_vega")
H200 = Device(kind="cuda", name="NVIDIA H200", cublas="13")


@pytest.fixture
def verdict(tmp_path):
    return verdict_in(tmp_path)


def verdict_in(folder: Path) -> Path:
    base = write(folder / "base.json", baseline())
    run = write(folder / "run.json", candidate())
    assert main(["compare", str(base), str(run), "--json", str(folder / "verdict.json")]) == 2
    return folder / "verdict.json"


@pytest.fixture(scope="module")
def page(tmp_path_factory, without_vega):
    """Of a verdict in a repository, for who only looks at it."""
    folder = tmp_path_factory.mktemp("page")
    repository, file = report_builder.repository(folder / "repository"), folder / "r.html"
    report = ["report", verdict_in(folder), "--html", file, "--repository", repository]
    assert main([*map(str, report)]) == 0
    return file


@pytest.fixture
def report(tmp_path, capsys):
    """Runs the command, outside of any repository unless it is given one."""

    def run(*arguments):
        code = main(["report", "--repository", str(tmp_path), *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def specs(path: Path):
    """The charts of a page, each as for a screen."""
    text = re.search(r'id="specs">(.*?)</script>', path.read_text(), re.DOTALL)
    return {name: wide for name, (wide, _) in json.loads(text.group(1)).items()}


def points(spec):
    """What the layers of a chart show."""
    return [row for rows in spec["datasets"].values() for row in rows]


@pytest.mark.parametrize("case", CASES)
def test_a_verdict_file_tells_all_that_the_reports_need(case):
    comparison = CASES[case]()
    read = verdict_file.parse(to_text(comparison), "verdict.json")
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
    monkeypatch.setattr("tilegate_ci.core.git.GIT", ("no-such-git",))
    assert repository_url(tmp_path) is None
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
    assert "truncated JSON" in (tmp_path / "r.html").read_text()
    assert specs(tmp_path / "r.html") == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema=9), "schema: unknown schema 9; this gate reads schema 1"),
        (lambda d: d.update(schema=True), "schema: unknown schema True"),
        (lambda d: d.update(kind="x"), "must be 'verdict', not \"x\""),
        (lambda d: d["rows"][0].update(verdict="fine"), "rows[0].verdict: must be 'error', "),
        (lambda d: d["rows"][0].update(verdict=[]), "rows[0].verdict: must be 'error', "),
        (lambda d: d["rows"][0].update(name="a`|b"), "malformed benchmark name 'a`|b'"),
        (lambda d: d["rows"][0].update(slowdown="x"), "must be a valid number"),
        (lambda d: d["rows"][0].pop("key"), '"key" is missing'),
        (lambda d: d["rows"][0].pop("name"), '"name" is missing'),
        (lambda d: d["rows"][0].pop("note"), '"note" is missing'),
        (lambda d: d["rows"][0].update(note=5), "must be a valid string"),
        (lambda d: d["rows"][0].update(metric="x"), "metric: must be 'gflops', "),
        (lambda d: d.pop("candidate"), '"candidate" is missing'),
        (lambda d: d.update(repository="javascript:x"), "must begin with https://"),
        (lambda d: d.update(base_commit="x"), "must be 40 hex digits"),
        (lambda d: d["rows"][0].update(lower="x"), "must be a valid number"),
        (lambda d: d["rows"][0].update(pairs=1), "must be a valid array"),
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
    assert failure.get("message") == "regressed: slow-down +5.26 %, margin 1.0 %"
    assert f"--benchmark_filter='^{SLOW}(/|$)'" in failure.text
    assert len({(c.get("classname"), c.get("name")) for c in cases}) == len(cases)
    assert suite.get("name") == "gate on NVIDIA H200"
    assert suite.get("timestamp") == "2025-11-20T10:00:00"
    assert float(cases[1].get("time")) == pytest.approx(2 * 4096**3 / 45125e9, rel=1e-4)
    assert float(suite.get("time")) == pytest.approx(sum(float(c.get("time")) for c in cases))


def test_junit_s_suites_of_one_device_have_names_of_their_own(verdict, report, tmp_path):
    run = write(tmp_path / "other.json", candidate())
    report(verdict, run, "--junit", tmp_path / "r.xml")
    names = [s.get("name") for s in ElementTree.parse(tmp_path / "r.xml").iter("testsuite")]
    assert names == ["gate on NVIDIA H200", f"gate on NVIDIA H200, {run}"]


def test_junit_of_an_incomparable_run_is_skipped_not_passed():
    comparison = CASES["incomparable"]()
    text = junit([Source("v.json", comparison)])
    skipped = ElementTree.fromstring(text.encode()).find(".//skipped")
    assert "NVIDIA GeForce RTX 3090" in skipped.get("message")


def test_junit_of_a_session_that_cannot_be_judged_is_skipped_not_passed():
    comparison = replace(CASES["all_pass"](), differences=("a canary moved",))
    text = junit([Source("v.json", comparison)])
    root = ElementTree.fromstring(text.encode())
    case = root.find(".//testcase[skipped]")
    assert (case.get("classname"), case.get("name")) == ("gate", "session")
    assert case.find("skipped").get("message") == "incomparable: a canary moved"
    assert (root.get("tests"), root.get("skipped")) == ("3", "1")


def test_junit_holds_no_character_that_xml_forbids():
    text = junit([Source("v.json", "a\x00b\x1b[31m <&>\"' \ud800")])
    error = ElementTree.fromstring(text.encode()).find(".//error")
    assert error.get("message") == "a?b?[31m <&>\"' ?"


def test_markdown_and_console_are_those_of_compare(verdict, report, tmp_path, capsys):
    base, run = tmp_path / "base.json", tmp_path / "run.json"
    assert main(["compare", str(base), str(run), "--markdown", str(tmp_path / "c.md")]) == 2
    console = capsys.readouterr().out
    assert report(verdict, "--markdown", tmp_path / "r.md") == (0, "", "")
    assert (tmp_path / "r.md").read_text() == (tmp_path / "c.md").read_text()
    assert report(verdict) == (0, console, "")


def test_a_run_without_a_comparison_has_a_report(tmp_path, report):
    run = write(tmp_path / "run.json", candidate())
    code, out, _ = report(run)
    assert code == 0
    assert re.search(
        rf"\nverdict +benchmark +GFLOPS +of cuBLAS\n(.*\n)*verified +{SLOW} +45125 +90.2 %", out
    )
    report(run, "--junit", tmp_path / "r.xml", "--markdown", tmp_path / "r.md")
    assert ElementTree.parse(tmp_path / "r.xml").getroot().get("errors") == "1"
    assert f"| verified | `{SLOW}` | 45125 | 90.2 % |" in (tmp_path / "r.md").read_text()


def test_a_file_s_name_stays_text_in_markdown(tmp_path, report):
    run = write(tmp_path / "a_b *c*.json", candidate())
    report(run, "--markdown", tmp_path / "r.md")
    assert r"a\_b \*c\*.json, NVIDIA H200" in (tmp_path / "r.md").read_text()


def test_the_page_asks_nothing_of_a_network(page):
    """tests/ci/report/browser sees that it does not; here is why it cannot."""
    text = page.read_text()
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"""src=|url\(|@import|<link|<base""", markup)
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'" in markup
    assert text.count("</script>") == 3


def test_names_and_notes_stay_text_in_the_page_and_its_charts(verdict, report, tmp_path):
    document = json.loads(verdict.read_text())
    document["rows"][0]["note"] = HOSTILE
    document["repository"] = 'https://example.org/"><script>'
    document["candidate"]["path"] = document["candidate"]["device"]["name"] = HOSTILE
    verdict.write_text(json.dumps(document))
    report(verdict, "--html", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert HOSTILE not in text
    assert text.count("&lt;/script&gt;&lt;img") >= 2
    assert 'href="https://example.org/&#34;&gt;&lt;script&gt;/commit/' in text
    assert HOSTILE.partition(" ")[0] in json.dumps(specs(tmp_path / "r.html"))


def test_the_page_s_history_and_profile(page):
    drawn = specs(page)
    assert set(drawn) == {
        f"0-{name}"
        for name in ("forest", "detail", "ladder", "sizes", "shares", "roofline", "history")
    }
    line = [
        point["y"] for point in points(drawn["0-history"])
        if (point["rung"], point["size"]) == ("Warptile", 4096) and "label" not in point
    ]  # fmt: skip
    assert line == pytest.approx([0.855, 0.95, 0.9025])
    place = next(p for p in points(drawn["0-roofline"]) if p.get("rung") == "Warptile")
    assert (place["x"], place["y"]) == (2 * 4096**3 / 2**32, 45.125)
    assert "Device memory: 4.80 TB/s" in " ".join(drawn["0-roofline"]["title"]["subtitle"])


def test_the_charts_are_valid(page):
    kinds = {"layer": alt.LayerChart, "hconcat": alt.HConcatChart, "vconcat": alt.VConcatChart}
    for spec in specs(page).values():
        (key,) = kinds.keys() & spec.keys()
        kinds[key].validate(spec)
        with pytest.raises(ValidationError):
            kinds[key].validate({**spec, key: [{"mark": "none"}]})


def test_the_page_leads_with_what_became_slower(page):
    lines = [point for point in points(specs(page)["0-forest"]) if "label" in point]
    assert lines[0]["label"] == SLOW
    assert lines[0]["verdict"] == "regressed"
    assert lines[0]["speeds"] == "95.0 % → 90.2 %"
    assert [line["label"] for line in lines[-3:]] == [
        "all rungs, mean of 7", "Warptile, mean of 4", "Naive, mean of 3",
    ]  # fmt: skip
    assert "metric" not in re.search(r"<thead>.*?</thead>", page.read_text())[0]


def test_a_forest_of_many_shows_the_worst(tmp_path, report):
    rows = {f"Naive/{size}x8x8": make_row(0.5, 100.0) for size in range(8, 108)}
    base = write(tmp_path / "base.json", make_run(rows))
    document = make_run(rows)
    for size in range(8, 68):
        document = scaled(document, f"Naive/{size}x8x8", 0.9)
    run = write(tmp_path / "run.json", document)
    main(["compare", str(base), str(run), "--json", str(tmp_path / "v.json")])
    report(tmp_path / "v.json", "--html", tmp_path / "r.html")
    forest = specs(tmp_path / "r.html")["0-forest"]
    labels = [point["label"] for point in points(forest) if "label" in point]
    assert len(labels) == 2 + 40
    assert "60 more benchmarks are in the table." in forest["title"]["subtitle"]


def test_a_slow_down_of_several_times_still_shows_the_margin(tmp_path, report):
    base = write(tmp_path / "base.json", baseline())
    run = write(tmp_path / "run.json", scaled(baseline(), SLOW, 0.1))
    main(["compare", str(base), str(run), "--json", str(tmp_path / "v.json")])
    report(tmp_path / "v.json", "--html", tmp_path / "r.html")
    assert '"type": "symlog"' in json.dumps(specs(tmp_path / "r.html")["0-forest"])


def row_of(name, slowdown, pairs=()):
    return Row(
        name, Verdict.PASS, "", "x", False, "ratio_to_cublas", 1, 1, slowdown, 0.01, pairs=pairs
    )


def test_a_mean_over_benchmarks_has_bounds_where_all_have_as_many_pairs():
    rows = [
        row_of("A/1x1x1", 0.03, (0.02, 0.03, 0.04)),
        row_of("A/2x2x2", 0.01, (0.02, 0.01, 0.0)),
        row_of("B/1x1x1", 0.0),
        row_of("Cublas/1x1x1", 0.5),
    ]
    every, first, second = pooled(rows)
    assert (every.name, every.count, every.lower) == ("all rungs", 3, None)
    assert (first.name, second.name) == ("A", "B")
    assert first.slowdown == pytest.approx(0.02, abs=1e-4)
    # In each pair the two add up to nearly the same, so that the mean is known well.
    assert first.lower < first.slowdown < first.upper
    assert first.upper - first.lower < 0.001
    assert pooled([]) == []


def test_conditions_of_any_form_are_read():
    after = {"clock_sm_mhz": 1980, "power_w": 500.4, "throttle_reasons": ["hardware slowdown"]}
    sessions = [
        {"started": "2025-11-21T10:00:00Z", "conditions": {"after": {**after, "power_w": 600}}},
        {"started": "2025-11-20T10:00:00Z", "conditions": {"before": {}, "after": after}},
        {"conditions": {"after": {"power_w": "x"}}, "x": 1},
        {"conditions": {"after": None}},
    ]
    run = parsed({**make_run(), "sessions": sessions})
    assert conditions(run) == [
        "SM clock 1980 MHz", "power 500 to 600 W", "throttled by hardware slowdown",
    ]  # fmt: skip
    assert started(run) == "2025-11-20T10:00:00Z"
    assert started(parsed({**make_run(), "sessions": []})) == ""


def test_history_skips_what_it_cannot_read(tmp_path):
    repository = report_builder.repository(tmp_path)
    broken = report_builder.baseline()
    broken["benchmarks"][report_builder.SLOW]["gflops"] = float("nan")
    for text in ("{", json.dumps(broken)):
        (tmp_path / "bench/baselines/nvidia-h200.json").write_text(text)
        report_builder.git(tmp_path, "commit", "-q", "-a", "-m", "broken")
    assert len(history(H200, repository)) == 2


def test_without_git_or_profile_the_page_has_neither(tmp_path):
    assert history(H200, tmp_path) == []
    assert load_profile(H200, tmp_path) is None


def test_a_profile_of_another_form_is_refused(tmp_path):
    (tmp_path / "bench/profile").mkdir(parents=True)
    (tmp_path / "bench/profile/nvidia-h200.json").write_text('{"rungs": [{}]}')
    with pytest.raises(GateError, match=r"nvidia-h200\.json: "):
        load_profile(H200, tmp_path)


def test_a_report_that_cannot_be_written_is_exit_2(verdict, report, tmp_path):
    code, _, err = report(verdict, "--html", tmp_path / "none" / "r.html")
    assert code == 2
    assert "cannot be written" in err


def test_the_file_of_a_passing_run(tmp_path):
    verdict_file.write(tmp_path / "v.json", CASES["all_pass"]())
    document = json.loads((tmp_path / "v.json").read_text())
    assert document["exit_code"] == 0
    assert set(document["candidate"]["measured"]) == set(make_run()["benchmarks"])
