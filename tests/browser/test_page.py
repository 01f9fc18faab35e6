"""The HTML report in headless Chromium: clicks, keys, filters, dark mode, a phone's width.

Screenshots go to $TILEGATE_SCREENSHOTS, if that is set, for a person to look at."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "ci"), str(REPOSITORY / "tests" / "gate")]

import chromium  # noqa: E402
import report_builder  # noqa: E402

from gate_builders import make_row, make_run, make_simt_run, write  # noqa: E402
from tilegate_ci.cli import main  # noqa: E402

PROGRAM = chromium.find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=f"none of {chromium.PROGRAMS} in PATH")
MARKS = "#{} g[data-rung='{}'] .mark"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    repository = report_builder.repository(folder / "repository")
    base = write(folder / "base.json", report_builder.baseline())
    document = report_builder.candidate()
    run = write(folder / "run.json", document)
    verdict = folder / "verdict.json"
    main(["compare", str(base), str(run), "--json", str(verdict)])
    verdict.write_text(
        verdict.read_text().replace("not verified in the candidate", "<img src=x> & 'quotes'")
    )
    page = folder / "report.html"
    arguments = ["report", verdict, base, "--html", page, "--repository", repository]
    assert main([*map(str, arguments)]) == 0
    return page


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Page(PROGRAM, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(browser, report):
    browser.resize(1200, 900)
    browser.prefer("light")
    browser.open(report)
    yield browser
    wrong = ("Runtime.exceptionThrown", "Log.entryAdded")
    assert [event for event in browser.events if event.get("method") in wrong] == []


def screenshot(page, name, tmp_path):
    folder = Path(os.environ.get("TILEGATE_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return page.screenshot(folder / f"{name}.png")


def count(page, selector):
    return page.run(f'document.querySelectorAll("{selector}").length')


def text(page, selector):
    return page.run(f'document.querySelector("{selector}").textContent')


def test_it_opens_from_disk_and_asks_for_nothing_else(page, report):
    asked = [e for e in page.events if e.get("method") == "Network.requestWillBeSent"]
    assert [e["params"]["request"]["url"] for e in asked] == [report.resolve().as_uri()]
    assert text(page, "#result").startswith("13 judged: 1 error, 1 regressed")


def test_every_part_is_drawn(page, tmp_path):
    for chart in ("speed", "share", "roofline"):
        assert count(page, f"#{chart} svg g[data-rung]") >= 3, chart
    assert count(page, MARKS.format("speed", "Warptile")) == 4
    assert count(page, MARKS.format("roofline", "Warptile")) == 1  # at the profile's shape
    assert count(page, MARKS.format("history", "Warptile")) == 2
    assert count(page, "#roofline .roof") == 1
    assert count(page, "#ladder tbody tr") == 3
    assert count(page, "#verdicts tbody tr") == 13
    screenshot(page, "light", tmp_path)


def test_a_click_on_the_legend_toggles_a_rung_in_every_chart(page):
    button = "#legend button[data-rung='Warptile']"
    page.click(button)
    for chart in ("speed", "share", "roofline", "history"):
        assert count(page, MARKS.format(chart, "Warptile")) == 0
        assert count(page, MARKS.format(chart, "Naive")) > 0
    assert page.run(f'document.querySelector("{button}").getAttribute("aria-pressed")') == "false"
    page.click(button)
    assert count(page, MARKS.format("speed", "Warptile")) == 4


def test_hovering_tells_the_values(page):
    page.hover(MARKS.format("speed", "Naive") + ":last-of-type")
    assert text(page, "#speed .tip") == "Naive: 4096x4096x4096, 625 GFLOPS"


def test_the_keyboard_reaches_and_works_everything(page):
    focused = "document.activeElement"
    name = f"{focused}.id || {focused}.dataset.rung || {focused}.getAttribute('aria-label')"
    reached = []
    for _ in range(30):
        page.press("Tab")
        reached.append(page.run(name))
    order = ["source", "size", "Naive", "verdict", "rung", "text", "Verdicts, worst first"]
    found = [reached.index(name) for name in order]
    assert found == sorted(found)
    page.run("document.querySelector('#legend button[data-rung=Naive]').focus()")
    page.press(" ")
    assert count(page, MARKS.format("speed", "Naive")) == 0
    page.press("Enter")
    assert count(page, MARKS.format("speed", "Naive")) == 4


def test_arrow_keys_walk_through_a_chart(page):
    page.run("document.querySelector('#speed svg').focus()")
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp"):
        page.press(key)
        told.append(text(page, "#speed .tip").split(",")[0])
    assert told == [
        "Naive: 512x512x512",
        "Naive: 1024x1024x1024",
        "Warptile: 1024x1024x1024",
        "Warptile: 512x512x512",
        "Naive: 512x512x512",
        "Cublas: 512x512x512",
    ]
    page.press("Escape")
    assert text(page, "#speed .tip") == ""


def test_filters_narrow_the_table(page):
    page.run("document.querySelector('#verdict').focus()")
    for _ in range(2):
        page.press("ArrowDown")
    assert page.run("document.querySelector('#verdict').value") == "regressed"
    assert count(page, "#verdicts tbody tr") == 1
    assert text(page, "#verdicts tbody th") == report_builder.SLOW
    assert text(page, "#count") == "1 of 13 benchmarks"
    assert "--benchmark_filter" in text(page, "#verdicts code")


def test_a_part_of_a_name_narrows_the_table(page):
    page.click("#text")
    page.type("warptile/4096")
    assert count(page, "#verdicts tbody tr") == 1
    assert text(page, "#count") == "1 of 13 benchmarks"


def test_another_run_can_be_chosen(page):
    page.run("document.querySelector('#source').focus()")
    page.press("ArrowDown")
    assert text(page, "#result") == "a run, not compared"
    assert page.run("document.querySelector('#gate').hidden") is True
    assert count(page, MARKS.format("speed", "Warptile")) == 4


def test_notes_are_text(page):
    assert count(page, "#verdicts img") == 0
    assert text(page, "#verdicts tbody tr .note") == "<img src=x> & 'quotes'"


def test_dark_mode_is_dark(page, tmp_path):
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.run(paper) == "rgb(255, 255, 255)"
    light = screenshot(page, "light_top", tmp_path)
    page.prefer("dark")
    assert page.run(paper) == "rgb(13, 17, 23)"
    assert screenshot(page, "dark", tmp_path) != light


def test_colours_have_contrast(page):
    script = """(() => {
      const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const light = (hex) => [1, 3, 5].map((i) => channel(parseInt(hex.slice(i, i + 2), 16)))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      const style = getComputedStyle(document.documentElement);
      const of = (name) => light(style.getPropertyValue(name).trim());
      const paper = of("--paper");
      return ["ink", "axis", "bad", "good", "warn", "c0", "c1", "c2", "c3", "c4", "c5"]
        .map((name) => [of("--" + name), paper].sort((a, b) => b - a))
        .map(([high, low]) => (high + 0.05) / (low + 0.05));
    })()"""
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        assert min(page.run(script)) >= 4.5


@pytest.mark.parametrize(
    ("document", "result"),
    [
        (
            {"schema": 1, "kind": "verdict", "error": "run.json: the file is empty"},
            "error: run.json: the file is empty",
        ),
        (make_simt_run(), "a run, not compared"),
        (make_run({"Naive/3x5x7/off4": make_row(None, 1.0)}), "a run, not compared"),
    ],
)
def test_a_page_of_little_says_what_it_lacks(page, tmp_path, document, result):
    arguments = ["report", write(tmp_path / "x.json", document), "--html", tmp_path / "x.html"]
    assert main([*map(str, arguments)]) == 0
    page.open(tmp_path / "x.html")
    assert text(page, "#result") == result
    assert page.run("document.querySelector('#gate').hidden") is True
    for chart in ("speed", "share", "roofline", "history"):
        drawn = count(page, f"#{chart} .mark") > 0
        assert drawn != (count(page, f"#{chart} .remark") > 0) or chart == "roofline"


def test_a_history_without_shares_is_not_told_as_none(page, tmp_path):
    repository = report_builder.repository(tmp_path / "repository")
    baseline = write(repository / "bench/baselines/simt.json", make_simt_run())
    report_builder.git(repository, "add", "-A")
    report_builder.git(repository, "commit", "-q", "-m", "simt")
    arguments = ["report", baseline, "--html", tmp_path / "x.html", "--repository", repository]
    assert main([*map(str, arguments)]) == 0
    page.open(tmp_path / "x.html")
    told = "No committed baseline of this device has a share of cuBLAS at 4096x4096x4096."
    assert text(page, "#history .remark") == told


@pytest.mark.parametrize("width", [375, 320, 768])
def test_no_page_scrolls_sideways(browser, report, width, tmp_path):
    browser.resize(width, 800)
    browser.open(report)
    assert browser.run("document.documentElement.scrollWidth") == width
    screenshot(browser, f"width_{width}", tmp_path)
