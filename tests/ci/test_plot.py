"""ci/plot: the pictures."""

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from ladder_builder import REPOSITORY

from tilegate_ci.report import canvas, plot

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def run(ladder):
    return lambda *options: plot.main([*options, "--repository", str(ladder.path)])


@pytest.fixture
def drawn(ladder, run):
    ladder.write_baseline()
    assert run() == 0
    return ladder


def texts(path):
    return [element.text for element in ElementTree.parse(path).iter(f"{SVG}text")]


def test_without_a_baseline_nothing_is_drawn(ladder, run, capsys):
    assert run() == 0
    assert run("--check") == 0
    assert "no baseline committed yet" in capsys.readouterr().out
    assert not ladder.picture("ladder.svg").exists()


def test_every_line_is_labelled_with_its_rung(drawn):
    shown = texts(drawn.picture("ladder.svg"))
    assert {"Naive", "Swizzle", "Warptile", "cuBLAS"} < set(shown)
    assert {"512", "1024", "2048", "4096"} < set(shown)


def test_every_bar_is_labelled_with_its_share(drawn):
    shown = texts(drawn.picture("share.svg"))
    assert {"Naive", "1.8 %", "Swizzle", "88.0 %", "Warptile", "95.0 %"} < set(shown)
    assert "Cublas" not in shown


def test_the_data_are_told_in_words_too(drawn):
    described = ElementTree.parse(drawn.picture("ladder.svg")).find(f"{SVG}desc").text
    assert "Warptile at 4096: 49258 GFLOPS" in described


def test_drawing_twice_gives_the_same_bytes(drawn, run):
    before = [drawn.picture(name).read_bytes() for name in ("ladder.svg", "share.svg")]
    for name in ("ladder.svg", "share.svg"):
        drawn.picture(name).unlink()
    assert run() == 0
    assert before == [drawn.picture(name).read_bytes() for name in ("ladder.svg", "share.svg")]


def test_no_date_and_no_random_name_in_the_file(drawn):
    text = drawn.picture("ladder.svg").read_text("utf-8")
    assert not re.search(r"\d{4}-\d\d-\d\dT", text)


def test_check_fails_until_drawn_and_writes_nothing(ladder, run):
    ladder.write_baseline()
    assert run("--check") == 1
    assert not ladder.picture("ladder.svg").exists()
    assert run() == 0
    assert run("--check") == 0


def test_check_sees_an_edited_picture(drawn, run):
    path = drawn.picture("share.svg")
    path.write_text(path.read_text("utf-8").replace("95.0 %", "99.0 %"), "utf-8")
    assert run("--check") == 1


def test_check_sees_other_numbers_even_from_another_matplotlib(drawn, run):
    path = drawn.picture("share.svg")
    text = re.sub(r"<!-- matplotlib \S+ -->", "<!-- matplotlib 9.9 -->", path.read_text("utf-8"))
    path.write_text(text.replace("stroke-width", "stroke-Width"), "utf-8")
    assert run("--check") == 0
    rows = json.loads(drawn.baseline.read_text())["benchmarks"]
    rows["Warptile/4096x4096x4096"].update(
        ratio_to_cublas=0.5,
        per_process={
            **rows["Warptile/4096x4096x4096"]["per_process"],
            "ratio_to_cublas": [0.5, 0.5, 0.5],
        },
    )
    drawn.write_baseline(benchmarks=rows)
    assert run("--check") == 1


def test_a_picture_of_no_baseline_is_removed(drawn, run):
    drawn.baseline.unlink()
    assert run("--check") == 1
    assert run() == 0
    assert not drawn.picture("ladder.svg").exists()


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_itself():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("colour", [canvas.INK, canvas.AXIS, *canvas.LINES])
def test_text_and_lines_can_be_read_on_light_and_dark_paper(colour):
    assert contrast(colour, canvas.LIGHT_PAPER) >= 4.5
    assert contrast(canvas.DARK_OF[colour], canvas.DARK_PAPER) >= 4.5


def test_every_colour_in_the_file_has_a_dark_counterpart(drawn):
    for name in ("ladder.svg", "share.svg"):
        text = drawn.picture(name).read_text("utf-8")
        used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text.split("</style>", 1)[1]))
        assert used <= canvas.DARK_OF.keys()
        assert all(f'[style*="fill: {colour}"]' in text for colour in used)


def test_labels_do_not_overlap(drawn):
    tree = ElementTree.parse(drawn.picture("ladder.svg"))
    names = {"Naive", "Swizzle", "Warptile", "cuBLAS"}
    heights = sorted(float(e.get("y")) for e in tree.iter(f"{SVG}text") if e.text in names)
    assert all(low - high >= 10 for high, low in itertools.pairwise(heights))


def test_the_committed_pictures_are_up_to_date():
    assert plot.main(["--check", "--repository", str(REPOSITORY)]) == 0
