"""ci/gate check tables: the generated blocks of the READMEs."""

import json

import pytest
from ladder_builder import REPOSITORY, STAGES
from stage_builder import write_stages

from tilegate_ci.checks.accuracy import ACCURACY
from tilegate_ci.checks.pages.distributed import MODELS, report_path
from tilegate_ci.cli import main
from tilegate_ci.report.figures import PROFILE, RATIO_NOTE, VARIANTS


@pytest.fixture
def run(ladder):
    return lambda option="--update": main(
        ["check", "tables", *[option] * bool(option), "--repository", str(ladder.path)]
    )


def test_without_a_baseline_the_blocks_say_so(ladder, run):
    assert run() == 0
    said = "No baseline committed yet (`bench/baselines/nvidia-h200.json`)."
    block = f"<!-- headline:begin -->\n{said}\n<!-- headline:end -->"
    assert ladder.readme.read_text() == f"# Top\n\n{block}\n\nrest\n"
    assert said in ladder.kernels.read_text()
    assert "No baseline committed yet" in ladder.page("01_naive").read_text()


def test_the_ladder_table(ladder, run):
    ladder.write_baseline()
    assert run() == 0
    lines = ladder.kernels.read_text().splitlines()
    assert (
        "| [09 Swizzle](09_swizzle/README.md) | no padding, no conflicts | 35.16 | 43.31 | 45.63 "
        "| 88.0 % |"
    ) in lines
    assert (
        "| [Cublas](cublas/README.md) | the yardstick | 39.96 | 49.21 | 51.85 | 100.0 % |" in lines
    )
    assert lines[-2] == (
        f"TFLOP/s, M = N = K. {RATIO_NOTE} "
        "NVIDIA H200, driver 580.65.06, CUDA 13.0, cuBLAS 13.1.0, "
        "commits aaaaaaaaaaaa, bbbbbbbbbbbb, median of 3 processes."
    )


def test_the_headline_is_the_last_rung_in_fp32_and_the_fastest_that_splits(ladder, run):
    ladder.write_baseline()
    assert run() == 0
    head = ladder.readme.read_text()
    assert "| [Warptile](kernels/10_warptile) | 49.3 | 0.95 | - | IEEE FP32 multiply-adds |" in head
    assert "![TFLOP/s and share of cuBLAS at 4096³, a bar per rung](bench/plots/stair" in head
    assert "More pictures: [TFLOP/s over size](bench/plots/sizes.svg).\n" in head
    alone = json.loads(ladder.baseline.read_text("utf-8"))
    rows = alone["benchmarks"]
    fast = "Warptile/4096x4096x4096"
    alone["benchmarks"] = {
        fast: rows[fast],
        "Cublas/4096x4096x4096": rows["Swizzle/4096x4096x4096"],
    }
    alone["protocol"]["min_time_s"] = 4
    accuracy = json.loads((REPOSITORY / ACCURACY).read_text("utf-8"))
    changed = set()
    for row in accuracy["rows"]:
        row["case"] = row["case"].replace("Int8x3/", "Warptile/")
        stage = row["case"].split("/")[0]
        if stage not in changed:  # one of each stage
            changed.add(stage)
            row["frobenius"]["stage"] = 1e-3
    for path, document in ((VARIANTS, alone), (ACCURACY, accuracy)):
        path = path.with_name(path.name.replace("variants", "sustained"))
        (ladder.path / path).parent.mkdir(parents=True, exist_ok=True)
        (ladder.path / path).write_text(json.dumps(document), encoding="utf-8")
    split = [dict(stage, splits=stage["name"] == "Warptile") for stage in STAGES]
    write_stages(ladder.path / "build" / "cpu", *split)
    page = ladder.page("10_warptile")
    page.write_text(page.read_text() + "<!-- accuracy:begin -->\n<!-- accuracy:end -->\n")
    assert run() == 0
    head = ladder.readme.read_text()
    assert "| [Swizzle](kernels/09_swizzle) | 45.6 | 0.88 | - | IEEE FP32 multiply-adds |" in head
    assert (
        "| [Warptile](kernels/10_warptile) | 49.3 | 0.95 | 1.08 | error above the larger of cuBLAS "
        "FP32's and 2⁻²⁴ on 1 of 444 problems (12 distributions of operands) |"
    ) in head
    assert "each alone for 4 s without a pause" in head


def test_the_numbers_of_a_rung(ladder, run):
    ladder.write_baseline()
    assert run() == 0
    assert ladder.page("10_warptile").read_text() == (
        "text\n<!-- numbers:begin -->\n"
        "![TFLOP/s over size: Warptile, the rung before it and cuBLAS; the others in grey]"
        "(../../bench/plots/10_warptile.svg)\n\n"
        "| M×N×K | TFLOP/s | of cuBLAS |\n|---|---:|---:|\n"  # noqa: RUF001
        "| 128×128×65536 | 25.63 | 95.0 % |\n"  # noqa: RUF001
        "| 512×512×512 | 25.63 | 95.0 % |\n"  # noqa: RUF001
        "| 1024×1024×1024 | 37.96 | 95.0 % |\n"  # noqa: RUF001
        "| 2048×2048×2048 | 46.75 | 95.0 % |\n"  # noqa: RUF001
        "| 4096×4096×4096 | 49.26 | 95.0 % |\n"  # noqa: RUF001
        f"\n{RATIO_NOTE} Warptile on NVIDIA H200, driver 580.65.06, CUDA 13.0, cuBLAS 13.1.0, "
        "commit aaaaaaaaaaaa, median of 3 processes.\n<!-- numbers:end -->\n"
    )


def test_a_rung_that_the_baseline_does_not_have(ladder, run, capsys):
    ladder.write_baseline()
    rows = json.loads(ladder.baseline.read_text())["benchmarks"]
    ladder.write_baseline(benchmarks={n: r for n, r in rows.items() if "Warptile" not in n})
    assert run() == 0
    assert "Warptile" not in ladder.readme.read_text() + ladder.kernels.read_text()
    assert "\nWarptile is not in the baseline yet.\n" in ladder.page("10_warptile").read_text()
    # Its author may still write it: the numbers copied from another rung are told, not red.
    ladder.page("10_warptile").write_text(ladder.page("09_swizzle").read_text())
    capsys.readouterr()
    assert run("") == 0
    assert "10_warptile/README.md: the rung is not in the baseline" in capsys.readouterr().out
    ladder.page("10_warptile").unlink()
    assert run("") == 0


def test_check_writes_nothing_and_fails_until_the_files_are_written(ladder, run, capsys):
    ladder.write_baseline()
    before = ladder.readme.read_text()
    assert run("") == 1
    assert ladder.readme.read_text() == before
    assert (
        "README.md: out of date; `ci/gate check tables --update` writes it"
        in capsys.readouterr().out
    )
    assert run() == 0
    assert run("") == 0


def test_check_sees_a_number_edited_by_hand(ladder, run):
    ladder.write_baseline()
    assert run() == 0
    ladder.page("01_naive").write_text(
        ladder.page("01_naive").read_text().replace("1.8 %", "9.9 %")
    )
    assert run("") == 1


def test_check_sees_a_new_baseline(ladder, run):
    ladder.write_baseline()
    assert run() == 0
    ladder.write_baseline(commit="c" * 40)
    assert run("") == 1


@pytest.mark.parametrize("text", ["no markers", "<!-- headline:end -->\n<!-- headline:begin -->\n"])
def test_missing_markers_are_an_error(ladder, run, capsys, text):
    ladder.readme.write_text(text)
    assert run() == 2
    assert "should hold <!-- headline:begin -->" in capsys.readouterr().err
    assert ladder.readme.read_text() == text


def test_a_measured_rung_without_a_page_is_an_error(ladder, run, capsys):
    ladder.write_baseline()
    ladder.page("10_warptile").unlink()
    assert run("") == 2
    assert "README.md: missing" in capsys.readouterr().err


def test_a_baseline_that_cannot_be_trusted_is_an_error(ladder, run, capsys):
    ladder.write_baseline(schema=99)
    assert run() == 2
    assert "unknown schema 99" in capsys.readouterr().err


def test_the_committed_files_are_up_to_date():
    assert main(["check", "tables"]) == 0


def test_a_page_shows_configurations_and_counters(ladder, run):
    ladder.write_baseline()
    variants = json.loads((REPOSITORY / VARIANTS).read_text("utf-8"))
    profile = json.loads((REPOSITORY / PROFILE).read_text("utf-8"))
    for path, document in ((VARIANTS, variants), (PROFILE, profile)):
        (ladder.path / path).parent.mkdir(parents=True)
        (ladder.path / path).write_text(json.dumps(document), encoding="utf-8")
    assert run() == 0
    page = ladder.page("10_warptile").read_text()
    speed = variants["benchmarks"]["Warptile.dealt/1024x1024x1024"]["gflops"] / 1000
    assert f"| `Warptile.dealt` | {speed:.2f} |" in page
    kernel = next(rung for rung in profile["rungs"] if rung["name"] == "Warptile")["kernels"][0]
    assert f"| registers per thread | {kernel['registers']} |" in page
    assert "roofline.svg" in ladder.readme.read_text()
    assert "`Naive." not in ladder.page("01_naive").read_text()


def test_a_page_shows_how_fast_a_rung_stays(ladder, run):
    ladder.write_baseline()
    alone = json.loads(ladder.baseline.read_text("utf-8"))
    rows = alone["benchmarks"]
    names = ("Warptile/1024x1024x1024", "Cublas/1024x1024x1024", "Naive/1024x1024x1024")
    alone["benchmarks"] = {name: dict(rows[names[0]]) for name in names}
    alone["protocol"]["min_time_s"] = 4
    path = ladder.path / VARIANTS.with_name("nvidia-h200-sustained.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(alone), encoding="utf-8")
    assert run() == 0
    said = (
        "for 4 s without a pause, where power is the limit: 37.96 TFLOP/s at 1024x1024x1024, 1.00 "
    )
    assert said in ladder.page("10_warptile").read_text()
    assert "without a pause" not in ladder.page("09_swizzle").read_text()


def test_a_page_shows_prepared_operands_in_the_order_of_their_rows(ladder, run):
    ladder.write_baseline()
    prepared = json.loads(ladder.baseline.read_text("utf-8"))
    row = prepared["benchmarks"]["Warptile/1024x1024x1024"]
    names = ("Prepared/16x64x64", "Prepared/2x64x64", "Sgemm/16x64x64", "Sgemm/16x64x64/split")
    prepared["benchmarks"] = {
        name: {**row, "gflops": 100.0 * (number + 1)} for number, name in enumerate(names)
    }
    path = ladder.path / VARIANTS.with_name("nvidia-h200-prepared.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(prepared), encoding="utf-8")
    page = ladder.page("10_warptile")
    page.write_text(page.read_text() + "\n<!-- prepared:begin -->\n<!-- prepared:end -->\n")
    assert run() == 0
    shown = page.read_text().partition("<!-- prepared:begin -->")[2].splitlines()
    ratio = f"{row['ratio_to_cublas']:.2f}"
    assert shown[3] == f"| 2x64x64 | - | - | 0.1 µs, {ratio} |"
    assert shown[4] == f"| 16x64x64 | 0.4 µs, {ratio} | 0.3 µs, {ratio} | 1.3 µs, {ratio} |"


def report_of_ranks(**change):
    row = {"name": "InTurn/64x64x64/p1/manual_time", "real_time": 8.0, "efficiency": 1.0}
    exchange = {"name": "Exchange/2097152/p2/manual_time", "real_time": 8.0, "verified": 1.0}
    other = {"name": "InTurn/64x64x64/p2/rows/manual_time", "real_time": 5.0, "efficiency": 0.8}
    context = {"device_name": "Two", "commit": "0123456789abcdef", "nccl": "2.28.3"}
    rows = [exchange, {**row, "verified": 1.0}, {**other, "verified": 1.0, **change}]
    return json.dumps({"context": context, "benchmarks": rows})


def page_of_ranks(ladder, report):
    page = ladder.path / "kernels" / "distributed" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text("<!-- numbers:begin -->\n<!-- numbers:end -->\n")
    path = ladder.path / report_path(MODELS[0])
    path.parent.mkdir(parents=True)
    path.write_text(report, encoding="utf-8")
    return page


def test_a_page_shows_products_over_ranks(ladder, run):
    page = page_of_ranks(ladder, report_of_ranks())
    times = {"one GPU": 1e-3, "fused": 8e-4}
    rows = [{"n": 64, "form": form, "seconds": each} for form, each in times.items()]
    context = {"device_name": "Two", "torch": "2", "cuda": "13", "nccl": "2", "gpus": 2}
    report = {"context": {**context, "commit": "fedcba987654321"}, "rows": rows}
    (ladder.path / report_path(MODELS[0], "-torch")).write_text(
        json.dumps(report), encoding="utf-8"
    )
    assert run() == 0
    shown = page.read_text()
    assert "| 64 | FP32 | 8 µs, 1.000 | - | - | - | 5 µs, 0.800 |" in shown
    assert "NCCL 2.28.3, commit 0123456789ab, one process." in shown
    assert "| µs | 8.0 |\n| GB/s | 262.1 |" in shown
    assert "| one GPU | 1000 µs |\n| fused | 0.625 |" in shown


@pytest.mark.parametrize("change", [{"verified": 0.0}, {"name": "Other/64"}])
def test_rows_of_ranks_that_were_not_verified_are_an_error(ladder, run, capsys, change):
    page_of_ranks(ladder, report_of_ranks(**change))
    assert run() == 2
    assert "not a verified row of bench_distributed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["{", '{"rungs": [{"name": "Warptile", "kernels": [{"name": "a"}]}]}', '{"rungs": 1}']
)
def test_a_profile_that_cannot_be_read_is_an_error(ladder, run, capsys, text):
    ladder.write_baseline()
    (ladder.path / PROFILE).parent.mkdir(parents=True)
    (ladder.path / PROFILE).write_text(text)
    assert run() == 2
    assert f"{ladder.path / PROFILE}: " in capsys.readouterr().err


def test_an_idea_cannot_leave_its_cell(ladder, run):
    ladder.write_baseline()
    naive = {**STAGES[0], "idea": "a | b <i> `c` *d*"}
    write_stages(ladder.path / "build" / "cpu", naive, *STAGES[1:])
    assert run() == 0
    assert r"| a \| b \<i> \`c\` \*d\* |" in ladder.kernels.read_text()
