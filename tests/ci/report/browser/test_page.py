"""The HTML report in headless Chromium: clicks, keys, filters, dark mode, a phone's width.

Screenshots go to $TILEGATE_SCREENSHOTS, if that is set, for a person to look at."""

import json
import os
import time
from pathlib import Path

import chromium
import pytest
import report_builder

from gate_builders import make_row, make_run, make_simt_run, write
from tilegate_ci.cli import main
from tilegate_ci.report.charts import base as palette

PROGRAM = chromium.find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=f"none of {chromium.PROGRAMS} in PATH")
CHARTS = ("forest", "ladder", "sizes", "shares", "roofline", "history")
MARKS = "[data-chart='0-{}'] .mark-symbol.role-mark path"
# Between two places where a line may end: parts of names that go over the end of one nevertheless.
BROKEN = """
[...document.querySelectorAll('.verdicts .name')].flatMap((name) => [...name.childNodes])
  .filter((part) => {
    const range = document.createRange();
    range.selectNodeContents(part);
    return range.getClientRects().length > 1;
  }).map((part) => part.textContent)"""
ROW = f".verdicts tbody[data-name='{report_builder.SLOW}']"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    repository = report_builder.repository(folder / "repository")
    base = write(folder / "base.json", report_builder.baseline())
    run = write(folder / "run.json", report_builder.candidate())
    verdict = folder / "verdict.json"
    main(["compare", str(base), str(run), "--json", str(verdict)])
    document = json.loads(verdict.read_text())
    for row in document["rows"]:
        row["note"] = row["note"].replace("not verified", "<img src=x> & 'quotes'")
        if row["name"] == report_builder.SLOW:
            row |= {"lower": 0.05, "upper": 0.06, "p": 1e-9, "pairs": [0.05, 0.06, 0.05]}
            row["again"] = f"ci/gate run --no-screen --base {40 * 'a'} --head {40 * 'b'}"
    write(verdict, document)
    page = folder / "report.html"
    arguments = ["report", verdict, base, "--html", page, "--repository", repository]
    assert main([*map(str, arguments)]) == 0
    return page


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Page(PROGRAM, tmp_path_factory.mktemp("profile")) as page:
        yield page


def until(browser, condition):
    """Waits for what the page does by and by."""
    deadline = time.monotonic() + 30
    while not browser.run(condition):
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)


def show(browser, path):
    """Opens a page and waits until its charts are there."""
    browser.open(path)
    holders = "[...document.querySelectorAll('.chart[data-drawn]')]"
    until(browser, f"{holders}.every((holder) => holder.querySelector('svg'))")


@pytest.fixture
def untouched(browser, report):
    """The page for a test that only looks: loaded once for those in a row."""
    if browser.untouched != report:
        browser.resize(1400, 900)
        browser.prefer("light")
        show(browser, report)
    yield browser
    wrong = ("Runtime.exceptionThrown", "Log.entryAdded")
    assert [event for event in browser.events if event.get("method") in wrong] == []


@pytest.fixture
def page(untouched):
    yield untouched
    untouched.untouched = None


@pytest.fixture
def phone(browser, report):
    browser.resize(390, 800)
    show(browser, report)
    yield browser
    browser.untouched = None


def screenshot(page, name):
    """For a person to look at; it takes the browser a second."""
    folder = os.environ.get("TILEGATE_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, f"{name}.png").write_bytes(page.screenshot())


def count(page, selector):
    return page.run(f"document.querySelectorAll({json.dumps(selector)}).length")


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def shown_names(page):
    rows = "[...document.querySelectorAll('.view:not([hidden]) tbody[data-name]:not([hidden])')]"
    return page.run(f"{rows}.map((row) => row.dataset.name)")


def test_it_opens_from_disk_and_asks_for_nothing_else(untouched, report):
    asked = [e for e in untouched.events if e.get("method") == "Network.requestWillBeSent"]
    assert [e["params"]["request"]["url"] for e in asked] == [report.resolve().as_uri()]
    assert text(untouched, ".headline").startswith("1 of 13 benchmarks could not be judged")


def test_every_part_is_drawn(untouched):
    assert untouched.run(
        "[...document.querySelectorAll('.scroll')].every((s) => s.scrollWidth === s.clientWidth)"
    )
    for chart in CHARTS:
        assert count(untouched, f"[data-chart='0-{chart}'] svg") == 1, chart
    assert count(untouched, MARKS.format("sizes")) == 3 * 4
    assert count(untouched, MARKS.format("shares")) == 3 * 4
    assert count(untouched, MARKS.format("roofline")) == 3
    assert count(untouched, MARKS.format("history")) == 3 * 3  # two commits and this run
    assert count(untouched, "[data-chart='0-ladder'] .mark-rect.role-mark path") == 3
    assert len(shown_names(untouched)) == 13
    screenshot(untouched, "light")


def test_the_regression_comes_first(untouched):
    sections = untouched.run(
        "[...document.querySelectorAll('.view:not([hidden]) h2')].map((h) => h.textContent)"
    )
    assert sections == ["The regression", "The ladder", "Sizes", "Roofline", "History"]
    forest = text(untouched, "[data-chart='0-forest']")
    assert report_builder.SLOW in forest
    assert "all rungs, mean of 7" in forest
    assert "95.0 % → 90.2 %" in forest
    for nothing in ("undefined", "null", "NaN"):
        assert nothing not in forest


def test_notes_are_text(untouched):
    assert count(untouched, ".verdicts img") == 0
    assert "<img src=x> & 'quotes' in the candidate" in text(untouched, ".verdicts tbody")


def test_every_colour_of_the_charts_has_a_dark_counterpart(untouched):
    used = untouched.run(
        "[...new Set([...document.querySelectorAll('.chart svg *')].flatMap((e) =>"
        " [e.getAttribute('fill'), e.getAttribute('stroke')]))].filter(Boolean)"
    )
    assert set(used) - {"none", "transparent"} <= palette.DARK_OF.keys()


def test_hovering_tells_the_values(page):
    page.hover(MARKS.format("sizes") + ":last-of-type")
    message = text(page, "#vg-tooltip-element")
    assert "rung" in message
    assert "TFLOP/s" in message


def test_another_size_can_be_chosen(page):
    chart = "[data-chart='0-history']"
    assert "Share of cuBLAS at 4096³" in text(page, f"{chart} svg")
    page.run(f'document.querySelector("{chart} select").focus()')
    page.press("ArrowUp")
    assert "Share of cuBLAS at 2048³" in text(page, f"{chart} svg")


def test_the_keyboard_reaches_everything(page):
    name = (
        "document.activeElement.id || document.activeElement.className"
        " || document.activeElement.textContent"
    )
    reached = []
    for _ in range(60):
        page.press("Tab")
        reached.append(page.run(name))
    order = ["source", "by-verdict", "by-name", "scroll tall", "verdict", "name", "copy"]
    found = [reached.index(name) for name in order]
    assert found == sorted(found)


def test_filters_narrow_the_table(page):
    page.run("document.querySelector('.by-verdict').focus()")
    for _ in range(2):
        page.press("ArrowDown")
    assert shown_names(page) == [report_builder.SLOW]
    assert text(page, "output") == "1 of 13 benchmarks"


def test_a_part_of_a_name_narrows_the_table(page):
    page.click(".by-name")
    page.type("warptile/4096")
    assert shown_names(page) == [report_builder.SLOW]
    assert text(page, "output") == "1 of 13 benchmarks"


def test_a_click_on_a_heading_sorts(page):
    before = shown_names(page)
    page.click("thead th:nth-child(2) button")
    assert shown_names(page) == sorted(before)
    page.click("thead th:nth-child(2) button")
    assert shown_names(page) == sorted(before, reverse=True)
    # Numbers as numbers; what was not judged comes last either way.
    for _ in range(2):
        page.click("thead th:nth-child(3) button")
        order = page.run(
            "[...document.querySelectorAll('[data-view=\"0\"] .verdicts tbody')]"
            ".map((body) => body.rows[0].cells[2].dataset.key)"
        )
        known = [float(key) for key in order if key]
        assert order[-2:] == ["", ""]
    assert known == sorted(known, reverse=True)
    sorted_by = "document.querySelector('thead th:nth-child(3)').getAttribute('aria-sort')"
    assert page.run(sorted_by) == "descending"


def test_a_benchmark_unfolds_into_its_pairs(page):
    assert page.run(f'document.querySelector("{ROW} .detail").hidden') is True
    page.click(f"{ROW} .name")
    assert (
        page.run(f'document.querySelector("{ROW} .name").getAttribute("aria-expanded")') == "true"
    )
    assert "interval+5.00 to +6.00 %" in text(page, f"{ROW} .detail .facts").replace("\n", "")
    until(page, f'document.querySelector("{ROW} .mark-symbol.role-mark path") !== null')
    assert count(page, f"{ROW} .mark-symbol.role-mark path") == 3
    assert report_builder.SLOW in text(page, f"{ROW} .chart")
    assert text(page, f"{ROW} .detail p:last-of-type").startswith("ci/gate run --no-screen")
    page.run(f'document.querySelector("{ROW}").scrollIntoView()')
    screenshot(page, "detail")
    page.click(f"{ROW} .name")
    assert page.run(f'document.querySelector("{ROW} .detail").hidden') is True


def test_without_pairs_the_processes_are_shown(page):
    row = ".verdicts tbody[data-name='Warptile/512x512x512']"
    page.click(f"{row} .name")
    until(page, f'document.querySelector("{row} .mark-symbol.role-mark path") !== null')
    assert count(page, f"{row} .mark-symbol.role-mark path") == 3 + 3


@pytest.mark.parametrize("refused", [False, True])
def test_the_rerun_command_can_be_copied(page, refused):
    """Where the browser refuses its clipboard, in the older way."""
    page.run("window.setTimeout = (call, ms) => { window.later = {call, ms}; }")
    page.run(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard', {value: {writeText:"
        f" async (text) => {{ if ({json.dumps(refused)}) throw new Error('no');"
        " copied.push(text); }}}); document.execCommand = () =>"
        " copied.push(document.activeElement.value);"
    )
    page.click(f"{ROW} .copy")
    shown = f'document.querySelector("{ROW} .copy").textContent'
    until(page, f"{shown} === 'Copied'")
    (command,) = page.run("window.copied")
    assert f"--benchmark_filter='^{report_builder.SLOW}(/|$)'" in command
    assert count(page, "textarea") == 0
    assert page.run("window.later.ms") == 2000
    page.run("window.later.call()")
    assert page.run(shown) == "Copy"


def test_another_run_can_be_chosen(page):
    page.run("document.querySelector('#source').focus()")
    page.press("ArrowDown")
    until(page, "document.querySelector(\"[data-chart='1-shares'] svg\") !== null")
    assert page.run("document.querySelector('[data-view=\"0\"]').hidden") is True
    assert text(page, ".view:not([hidden]) .headline") == "A run without a comparison."
    assert count(page, "[data-chart='1-sizes'] .mark-symbol.role-mark path") == 3 * 4
    assert len(shown_names(page)) == 12
    assert count(page, ".view:not([hidden]) [data-chart='1-forest']") == 0


def test_dark_mode_is_dark(page):
    paper = "getComputedStyle(document.body).backgroundColor"
    chart = "getComputedStyle(document.querySelector('.chart svg')).backgroundColor"
    name = "getComputedStyle(document.querySelector('.chart .role-title-text text')).fill"
    assert page.run(f"[{paper}, {chart}]") == ["rgb(255, 255, 255)"] * 2
    light, ink = page.screenshot(whole=False), page.run(name)
    page.prefer("dark")
    assert page.run(f"[{paper}, {chart}]") == ["rgb(13, 17, 23)"] * 2
    assert page.run(name) != ink
    assert page.screenshot(whole=False) != light
    screenshot(page, "dark")


def test_colours_have_contrast(page):
    script = """(() => {
      const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const light = (hex) => [1, 3, 5].map((i) => channel(parseInt(hex.slice(i, i + 2), 16)))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      const style = getComputedStyle(document.documentElement);
      const of = (name) => light(style.getPropertyValue(name).trim());
      const paper = of("--paper");
      return ["ink", "soft", "bad", "good", "warn", "accent"]
        .map((name) => [of("--" + name), paper].sort((a, b) => b - a))
        .map(([high, low]) => (high + 0.05) / (low + 0.05));
    })()"""
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        assert min(page.run(script)) >= 4.5


@pytest.mark.parametrize(
    ("document", "headline", "drawn", "rows"),
    [
        (
            {"schema": 1, "kind": "verdict", "error": "run.json: empty"},
            "run.json: empty",
            0,
            0,
        ),
        (make_simt_run(), "A run without a comparison.", 0, 2),
        (make_run({"Naive/3x5x7/off4": make_row(None, 1.0)}), "A run without a comparison.", 0, 1),
    ],
)
def test_a_page_of_little_says_what_it_lacks(page, tmp_path, document, headline, drawn, rows):
    arguments = ["report", write(tmp_path / "x.json", document), "--html", tmp_path / "x.html"]
    arguments += ["--repository", report_builder.repository(tmp_path / "repository")]
    assert main([*map(str, arguments)]) == 0
    show(page, tmp_path / "x.html")
    assert text(page, ".headline").startswith(headline)
    assert len(shown_names(page)) == rows
    assert count(page, ".chart svg") == drawn
    assert count(page, "main > section:not(.result) > h2") == (5 if rows else 0)
    assert count(page, "main > section:not(.result) > .remark") >= (5 - drawn if rows else 0)


def test_a_page_of_the_executor_shows_no_speeds(page, tmp_path):
    path = write(tmp_path / "x.json", make_simt_run())
    arguments = ["report", path, "--html", tmp_path / "x.html", "--repository", tmp_path]
    report_builder.repository(tmp_path)
    assert main([*map(str, arguments)]) == 0
    show(page, tmp_path / "x.html")
    assert len(shown_names(page)) == 2
    assert count(page, ".chart svg") == 0
    assert count(page, "main > section:not(.result) > h2") == 1


def test_a_phone_shows_verdict_name_and_slow_down_at_once(phone):
    box = f'document.querySelector("{ROW} tr").cells'
    inside = f"[...{box}].slice(0, 3).map((cell) => cell.getBoundingClientRect().right)"
    phone.run(f"{box}[0].textContent = 'inconclusive'")  # the longest
    for width in (320, 390):
        phone.resize(width, 800)
        assert all(0 < right <= width - 12 for right in phone.run(inside))
        assert phone.run(BROKEN) == []
        table = "document.querySelector('.tall')"
        assert phone.run(f"{table}.scrollWidth === {table}.clientWidth")
    assert report_builder.SLOW in text(phone, ".headline")
    assert phone.run("document.querySelector('.headline').getBoundingClientRect().bottom") < 800
    phone.click(f"{ROW} .name")
    assert "margin1.0 %" in text(phone, f"{ROW} .detail .facts").replace("\n", "")
    screenshot(phone, "phone")


def test_no_page_scrolls_sideways_and_a_turned_phone_gets_the_charts_of_a_screen(phone):
    chart = "document.querySelector(\"[data-chart='0-sizes'] svg\").viewBox.baseVal.width"
    narrow = phone.run(chart)
    for width in (390, 320, 768, 1100):
        phone.resize(width, 800)
        if width > 640:
            until(phone, f"{chart} > {2 * narrow}")
        assert phone.run("document.documentElement.scrollWidth") == width
        screenshot(phone, f"width_{width}")
