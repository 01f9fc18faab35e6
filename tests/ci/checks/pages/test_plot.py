"""ci/gate check plot: the pictures, and the charts that they are drawn from."""

import itertools
import json
import math
import re
import shutil
import xml.etree.ElementTree as ElementTree

import ladder_builder
import pytest
from jsonschema import ValidationError
from ladder_builder import REPOSITORY, STAGES
from stage_builder import write_stages

from tilegate_ci.checks.pages import plot
from tilegate_ci.cli import main
from tilegate_ci.model import Benchmark
from tilegate_ci.report.charts import base, speeds
from tilegate_ci.report.charts import base as palette
from tilegate_ci.report.figures import (
    PROFILE,
    Ladder,
    Measured,
    Profile,
    at_common_sizes,
    ladder_of,
    read_baseline,
)

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def run(ladder):
    return lambda option="--update": main(
        ["check", "plot", *[option] * bool(option), "--repository", str(ladder.path)]
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The folder of a ladder with pictures, to be copied."""
    ladder = ladder_builder.build(tmp_path_factory.mktemp("pictures"))
    ladder.write_baseline()
    path = ladder.path / PROFILE
    path.parent.mkdir(parents=True)
    path.write_bytes((REPOSITORY / PROFILE).read_bytes())
    assert main(["check", "plot", "--update", "--repository", str(ladder.path)]) == 0
    return ladder.path


@pytest.fixture
def drawn(pictures, ladder):
    shutil.copytree(pictures, ladder.path, dirs_exist_ok=True)
    return ladder


PICTURES = ("staircase.svg", "sizes.svg", "roofline.svg", "10_warptile.svg")


def texts(path):
    return [element.text for element in ElementTree.parse(path).iter(f"{SVG}text")]


def test_without_a_baseline_nothing_is_drawn(ladder, run, capsys):
    assert run() == 0
    assert run("") == 0
    assert "no baseline committed yet" in capsys.readouterr().out
    assert not ladder.picture("staircase.svg").exists()


def test_without_a_profile_there_is_no_roofline(drawn, sketched, run):
    (drawn.path / PROFILE).unlink()
    assert run() == 0
    assert not drawn.picture("roofline.svg").exists()


def test_every_line_is_labelled_with_its_rung(drawn):
    shown = texts(drawn.picture("sizes.svg"))
    assert {"Naive", "Swizzle", "Warptile", "cuBLAS"} < set(shown)
    assert {"512", "1024", "2048", "4096"} < set(shown)


def test_every_bar_of_the_staircase_has_its_speed_and_share(drawn):
    shown = texts(drawn.picture("staircase.svg"))
    assert {"Naive", "0.933", "2%", "Swizzle", "45.6", "88%", "cuBLAS", "51.9"} < set(shown)
    assert "Cublas" not in shown
    assert "Operands split for tensor cores" not in shown


def test_rungs_that_split_operands_are_a_group_of_their_own(drawn, run):
    split = dict(STAGES[2], splits=True)
    write_stages(drawn.path / "build" / "cpu", *STAGES[:2], split, STAGES[3])
    assert run() == 0
    for name in ("staircase.svg", "sizes.svg"):
        shown = texts(drawn.picture(name))
        first, second = (
            shown.index(title) for title in ("FP32 arithmetic", "Operands split for tensor cores")
        )
        groups = (shown[:first], shown[first:second])  # a group's title comes last
        assert [("Swizzle" in g, "Warptile" in g, "cuBLAS" in g) for g in groups] == [
            (True, False, True),
            (False, True, True),
        ], name


def test_the_page_of_a_rung_has_it_the_one_before_and_cublas_in_colour(drawn):
    text = drawn.picture("10_warptile.svg").read_text("utf-8")
    labels_of = [each for each in texts(drawn.picture("10_warptile.svg")) if "49." in each]
    assert labels_of == ["Warptile 49.3"]
    lines = re.findall(r'<path d="M[^"]*" stroke="(#\w+)" stroke-width="[\d.]+"', text)
    three = (palette.ACCENT, palette.WARN, palette.INK)
    assert [lines.count(colour) for colour in (palette.FAINT, *three)] == [1, 1, 1, 1]
    assert {"Swizzle 45.6", "cuBLAS 51.9"} < set(texts(drawn.picture("10_warptile.svg")))
    assert palette.WARN not in drawn.picture("01_naive.svg").read_text("utf-8")  # the first rung


def test_a_chart_of_many_rungs_shows_a_few():
    found = [measured(f"R{speed}", (64,), 1000.0 * speed) for speed in (1, 2, 2.5, 4, 4.5, 5)]
    spec = speeds.sizes(Ladder([*found, measured("Cublas", (64,))]), 860).to_dict()
    shown = {row["rung"] for data in spec["datasets"].values() for row in data}
    assert shown == {"R1", "R2", "R4", "R5", "Cublas"}  # each half as fast again; the last


def test_the_data_are_told_in_words_too(drawn):
    described = ElementTree.parse(drawn.picture("sizes.svg")).find(f"{SVG}desc").text
    assert "Warptile at 4096: 49.26" in described


def test_drawing_twice_gives_the_same_bytes(drawn, run):
    before = [drawn.picture(name).read_bytes() for name in PICTURES]
    for name in PICTURES:
        drawn.picture(name).unlink()
    assert run() == 0
    assert before == [drawn.picture(name).read_bytes() for name in PICTURES]


@pytest.fixture
def sketched(monkeypatch):
    """Charts as their specifications: to draw them takes most of the time."""
    monkeypatch.setattr(plot, "_svg", lambda spec, title: json.dumps(spec))


def test_check_fails_until_drawn_and_writes_nothing(ladder, sketched, run):
    ladder.write_baseline()
    assert run("") == 1
    assert not ladder.picture("staircase.svg").exists()
    assert run() == 0
    assert run("") == 0
    path = ladder.picture("staircase.svg")
    path.write_text(path.read_text("utf-8").replace("95%", "99%"), "utf-8")
    assert run("") == 1


def test_check_sees_other_numbers(ladder, sketched, run):
    ladder.write_baseline()
    assert run() == 0
    rows = json.loads(ladder.baseline.read_text())["benchmarks"]
    row = rows["Warptile/4096x4096x4096"]
    row["ratio_to_cublas"] = 0.5
    row["per_process"]["ratio_to_cublas"] = [0.5, 0.5, 0.5]
    ladder.write_baseline(benchmarks=rows)
    assert run("") == 1


def test_a_picture_of_no_baseline_is_removed(drawn, run):
    drawn.baseline.unlink()
    assert run("") == 1
    assert run() == 0
    assert not drawn.picture("staircase.svg").exists()


@pytest.mark.parametrize("text", ["{", '{"rungs": [{}]}'])
def test_a_profile_that_cannot_be_read_is_an_error(drawn, run, capsys, text):
    (drawn.path / PROFILE).write_text(text)
    assert run() == 2
    assert f"{drawn.path / PROFILE}: " in capsys.readouterr().err


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


NO_TEXT = {palette.PAPER, palette.GRID, palette.FAINT}


def test_contrast_itself():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("colour", palette.DARK_OF.keys() - NO_TEXT)
def test_text_and_lines_can_be_read_on_light_and_dark_paper(colour):
    assert contrast(colour, palette.PAPER) >= 4.5
    assert contrast(palette.DARK_OF[colour], palette.DARK_OF[palette.PAPER]) >= 4.5


def test_no_two_rungs_look_alike():
    """By colour, and for who does not tell colours apart by marker and dash."""
    looks = list(palette.looks([f"Rung{number}" for number in range(14)]).values())
    assert len({look[0] for look in looks}) == len(looks) == 15
    assert len({look[1:] for look in looks}) == len(looks)
    more = list(palette.looks([f"Rung{number}" for number in range(40)]).values())
    assert len(set(more)) == len(more)


@pytest.mark.parametrize("name", PICTURES)
def test_every_colour_in_the_file_has_a_dark_counterpart(drawn, name):
    text = drawn.picture(name).read_text("utf-8")
    used = set(re.findall(r'(?:fill|stroke)="([^"]*)"', text.split("</style>", 1)[1]))
    assert used - {"none", "transparent"} <= palette.DARK_OF.keys()
    assert all(f'[fill="{colour}"]' in text for colour in used & palette.DARK_OF.keys())


def test_labels_at_the_ends_of_lines_do_not_overlap(drawn):
    places = [
        float(re.search(r",([\d.]+)\)", element.get("transform"))[1])
        for element in ElementTree.parse(drawn.picture("sizes.svg")).iter(f"{SVG}text")
        if element.text in {"Naive", "Swizzle", "Warptile", "cuBLAS"}
    ]
    assert len(places) == 4
    assert all(low - high >= 12 for high, low in itertools.pairwise(sorted(places)))


def measured(name, sizes, gflops=50000.0):
    row = Benchmark(gflops=gflops, pct_peak=gflops / 640, bytes=1, verified=True)
    return Measured(name, {(size, size, size): row for size in sizes})


def test_rungs_are_drawn_at_the_sizes_that_half_of_them_have():
    found = at_common_sizes(
        [measured("A", (64, 128)), measured("B", (128,)), measured("C", (512,))]
    )
    assert [list(rung.squares()) for rung in found] == [[128], [128], []]
    found = at_common_sizes([measured(name, (size,)) for name, size in zip("ABC", (1, 2, 3))])
    assert [list(rung.squares()) for rung in found] == [[1], [2], [3]]  # else nothing would be left


@pytest.mark.parametrize(("roof", "roofs"), [(0, 1), (330.0, 2)])
def test_the_dots_of_the_roofline_are_inside_of_it(roof, roofs):
    found = [measured("A", (64,)), measured("B", (64,), 170000.0), measured("C", (64,), 240000.0)]
    profile = Profile("profile.json", 64, {"A": 100.0, "B": 300.0}, 4800.0)
    spec = speeds.roofline(Ladder(found, roof=roof, profile=profile), 800).to_dict()
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    rows = [row for data in spec["datasets"].values() for row in data]
    shown = [row for row in rows if "rung" in row]
    assert {row["rung"] for row in shown} == {"A", "B"}
    assert all(low < row["y"] < high for row in shown)
    assert len({row["name"] for row in rows if "name" in row}) == roofs


def test_int8x3_and_fp16x3_are_below_their_roof():
    """The committed roofline has both, and neither is faster than what tensor cores allow."""
    run = read_baseline(REPOSITORY)
    ladder = ladder_of(run, (), REPOSITORY, others=True)
    profile, roof = ladder.profile, ladder.roof
    rows = {row["rung"]: row for row in speeds.profiled(ladder)}
    assert roof == pytest.approx(3958 / 2 / 6)
    for name in ("Int8x3", "Fp16x3"):
        assert rows["Sgemm"]["gflops"] < rows[name]["gflops"] < 1000 * roof
        assert rows[name]["x"] > roof / (profile.memory_gb_per_s / 1000)  # not limited by memory


def test_labels_are_pushed_apart_and_stay_below_the_top():
    assert base.apart([5, 1, 5.2], 1, 9) == [5, 1, 6]
    assert base.apart([8.9, 9, 9], 1, 9) == [7, 8, 9]


# As in a roofline: two dots on each other, a column at the right edge, a crowd, a loner.
DOTS = [
    (330, 60, "Vectorized"), (330, 75, "Blocktile2D"), (332, 48, "cuBLAS"), (300, 50, "Warptile"),
    (260, 52, "Swizzle"), (262, 53, "Prefetch"), (200, 62, "Rectangular"), (20, 300, "Naive"),
]  # fmt: skip


@pytest.mark.parametrize("width", [430, 800])
def test_each_label_of_the_roofline_is_beside_its_own_dot(width):
    found = base.beside(DOTS, [], width)
    boxes = [box for box, _ in found]
    for one, other in itertools.combinations(boxes, 2):
        assert not base.hit([one], [other])
    for (x, y, _), (box, end) in zip(DOTS, found):
        assert box[0] >= 0
        assert box[2] <= width
        assert not any(box[0] < u < box[2] and box[1] < v < box[3] for u, v, _ in DOTS)
        # A line leads from the dot to the nearest point of its label, and is short.
        assert box[0] <= end[0] <= box[2]
        assert box[1] <= end[1] <= box[3]
        assert math.hypot(end[0] - x, end[1] - y) < 70


def test_the_charts_are_valid(drawn):
    found = plot.charts(drawn.path)
    for name in PICTURES:
        chart, _ = found[name]
        chart.to_dict()  # checked by Vega-Lite's schema
        with pytest.raises(ValidationError):
            type(chart).validate({**chart.to_dict(), "title": {"text": {}}})


def test_the_committed_pictures_are_up_to_date():
    assert main(["check", "plot"]) == 0
