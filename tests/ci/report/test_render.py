"""Console and Markdown reports, against golden files."""

import re
from dataclasses import replace

import pytest

from gate_builders import (
    NAIVE,
    OTHER_COMMIT,
    VECTORIZED,
    WARPTILE,
    make_row,
    make_run,
    make_simt_run,
    parsed,
    scaled,
)
from tilegate_ci.formats.run_file import Role
from tilegate_ci.judge.compare import compare
from tilegate_ci.judge.confirm import Confirmed, with_verdicts
from tilegate_ci.model import Verdict
from tilegate_ci.report import render, templates


def every_verdict():
    """All verdicts that one comparison can have, a key benchmark and a warning."""
    baseline = make_run()
    baseline["benchmarks"][WARPTILE]["key"] = True
    baseline["benchmarks"]["Naive/64x64x64"] = make_row(0.02, 12.0)
    baseline["benchmarks"]["Swizzle/64x64x64"] = make_row(0.9, 500.0)
    baseline["benchmarks"]["Cublas/64x64x64"] = make_row(1.0, 550.0)
    candidate = scaled(baseline, WARPTILE, 0.95)
    candidate = scaled(candidate, VECTORIZED, 1.25)
    candidate["commit"] = f"{OTHER_COMMIT}-dirty"
    candidate["benchmarks"]["Naive/64x64x64"]["verified"] = False
    candidate["benchmarks"]["SplitK/64x64x65536"] = make_row(1.5, 9000.0)
    candidate["benchmarks"]["Swizzle/64x64x64"]["ratio_to_cublas"] = 0.88
    del candidate["benchmarks"]["Cublas/64x64x64"]
    return compare(
        parsed(baseline, Role.BASELINE, "bench/baselines/nvidia-h200.json"), parsed(candidate)
    )


def all_pass():
    return compare(parsed(make_run(), Role.BASELINE, "base.json"), parsed(make_run()), "Warp|Naive")


def incomparable():
    candidate = make_run({NAIVE: make_row(0.02, 400.0)})
    candidate["device"].update(name="NVIDIA GeForce RTX 3090", cublas="12.9.1")
    return compare(parsed(make_run(), Role.BASELINE, "base.json"), parsed(candidate), "Naive")


def on_simt():
    candidate = make_simt_run()
    candidate["benchmarks"][NAIVE]["verified"] = False
    return compare(parsed(make_simt_run(), Role.BASELINE, "simt.json"), parsed(candidate))


CASES = {
    "every_verdict": every_verdict,
    "all_pass": all_pass,
    "incomparable": incomparable,
    "simt": on_simt,
}


def test_console(golden):
    for name, case in CASES.items():
        golden(f"{name}.txt", render.console(case()))


def test_markdown(golden):
    for name, case in CASES.items():
        golden(f"{name}.md", render.markdown(case()))


def test_markdown_of_an_error(golden):
    golden("error.md", render.markdown('run_1.json: benchmarks["a|b"]: `odd` <name>'))


def test_a_message_stays_text_in_markdown():
    text = render.markdown("a ~~b~~ &lt;\n# c\n- d\n```\n<b>")
    message = text.splitlines()[2]
    assert message == r"- **a \~\~b\~\~ \&lt;<br>\# c<br>- d<br>\`\`\`<br>\<b>**"
    assert len(text.splitlines()) == 4


def test_the_report_leads_with_five_lines():
    lead = render.markdown(every_verdict()).split("\n- baseline")[0].split("\n")
    lead.remove("")
    assert len(lead) == 5
    assert lead[0] == "### Gate: error"
    assert "2 of 7 benchmarks could not be judged" in lead[1]
    assert "2 of 7 benchmarks are slower" in lead[1]


def test_commits_are_links_where_the_repository_is_known():
    known = replace(every_verdict(), repository="https://example.org/a/b", base_commit="1" * 40)
    text = render.markdown(known)
    assert f"base [111111111111](<https://example.org/a/b/commit/{'1' * 40}>)" in text
    assert f"head [89abcdef0123-dirty](<https://example.org/a/b/commit/{OTHER_COMMIT}>)" in text


@pytest.mark.parametrize("text", ["a|b", "a`|b", "a\\|b", "a`b`|c", "a\n|b", "|", "a\\", "`"])
def test_no_text_breaks_out_of_its_cell(text):
    """Of a cell, a | ends it unless a \\ stands before it; of a code span, a ` ends it."""
    for cell in (templates.escaped(text), templates.code(text)):
        line = f"| {cell} | next |"
        assert len(line.splitlines()) == 1
        bare = re.sub(r"\\\\", "", line)  # pairs of \\ escape themselves
        assert len(re.findall(r"(?<!\\)\|", bare)) == 3
    span = templates.code(text)
    assert ("`" in text or "\\" in text or "\n" in text) != span.startswith("`")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": ()}, "No time was judged."),
        ({"differences": ("a canary moved",)}, "Nothing can be judged: a canary moved."),
    ],
)
def test_the_headline_of_what_was_not_judged(change, words):
    assert render.headline(replace(all_pass(), **change)) == words


def test_the_headline_of_one_and_of_none():
    assert render.headline(all_pass()).startswith("No benchmark is slower than its margin (worst: ")
    rows = tuple(replace(row, verdict=Verdict.INCONCLUSIVE) for row in all_pass().rows)
    assert "2 of 2 benchmarks are too noisy" in render.headline(replace(all_pass(), rows=rows))
    assert "1 of 1 benchmarks is too noisy" in render.headline(replace(all_pass(), rows=rows[:1]))


def test_machine_code_that_is_the_same_is_neither_the_worst_nor_listed():
    """Two boards may differ by more than the margin of what needs no judging."""
    candidate = scaled(scaled(make_run(), WARPTILE, 0.98), NAIVE, 0.999)
    screening = compare(parsed(make_run(), Role.BASELINE, "base.json"), parsed(candidate))
    assert {row.name: row.verdict for row in screening.rows}[WARPTILE] is Verdict.REGRESSED
    found = with_verdicts(screening, Confirmed({WARPTILE: Verdict.IDENTICAL}))
    assert found.exit_code == 0
    for text in (render.headline(found), render.console(found)):
        assert WARPTILE not in text
        assert f"(worst: {NAIVE}, " in text
    assert "rerun the worst" not in render.markdown(found)


def test_the_console_shows_what_did_not_pass_and_one_command():
    comparison = every_verdict()
    *lines, last = render.console(comparison).splitlines()
    for row in comparison.rows:
        shown = [line for line in lines[5:] if f" {row.name} " in line]
        assert len(shown) == (row.verdict is not Verdict.PASS)
    command = f"--benchmark_filter='^{comparison.rows[0].name}(/|$)'"
    assert last.startswith("measure the worst again: build/gpu/bench/bench --shapes=")
    assert last.endswith(command)


def test_a_pass_whose_places_differ_stays_out_of_the_console():
    passing = all_pass()
    rows = tuple(replace(row, placement=0.05) for row in passing.rows)
    assert render.console(replace(passing, rows=rows)) == render.console(passing)


def test_a_table_has_80_columns():
    comparison = every_verdict()
    rows = tuple(
        replace(row, name=f"{row.name}/alpha0.123456", lower=-0.1, upper=0.1)
        for row in comparison.rows
    )
    for shown in (comparison, replace(comparison, rows=rows)):
        table = render.console(shown).split("\n\n")[1]
        assert max(map(len, table.splitlines())) <= 80
        assert re.search(r"^regressed .* \+5.26 %", table, re.MULTILINE)


def test_a_run_on_the_executor_is_verified_not_timed():
    run = parsed(make_simt_run())
    text = render.markdown(compare(parsed(make_simt_run(), Role.BASELINE, "simt.json"), run))
    assert text.startswith("### Gate: verified, not timed\n")
    assert "Results were verified on the executor; no time was judged." in text


def test_many_new_benchmarks_are_counted():
    run = make_run(
        {f"Naive/{n}x8x8": make_row(0.5, 1.0) for n in range(1, 9)} | make_run()["benchmarks"]
    )
    found = compare(parsed(make_run(), Role.BASELINE, "base.json"), parsed(run))
    text = render.console(found)
    assert text.count("not in the baseline") == 5
    assert "\nand 3 more that are new\n" in text


@pytest.mark.parametrize(
    ("case", "first"),
    [
        (every_verdict, "\x1b[1;31mERROR: 2 of 7 benchmarks could not be judged (first: "),
        (all_pass, "\x1b[1;32mPASS: No benchmark is slower than its margin (worst: "),
        (incomparable, "\x1b[1;33mINCOMPARABLE: Nothing can be judged: "),
    ],
)
def test_the_verdict_comes_first_in_its_colour(case, first):
    assert render.console(case(), colour=True).startswith(first)
    plain = render.console(case())
    assert plain.startswith(first.partition("m")[2])
    assert "\x1b" not in plain


@pytest.mark.parametrize(
    ("rerun", "cell"),
    [("bench | b", r"`bench \| b`"), ("bench ` <b>", r"bench \` \<b>"), ("bench \\", r"bench \\")],
)
def test_a_doctored_rerun_stays_in_its_cell(rerun, cell):
    comparison = every_verdict()
    rows = tuple(replace(row, rerun=rerun) for row in comparison.rows)
    text = render.markdown(replace(comparison, rows=rows))
    shown = [line for line in text.splitlines() if line.startswith("| error")]
    assert [line.endswith(f" | {cell} |") for line in shown] == [True, True]


def test_the_second_line_sums_up():
    second = render.console(every_verdict()).splitlines()[1]
    assert second.startswith("7 judged: 2 error, 2 regressed, 1 new, 1 pass, 1 improved. Exit 2, ")


def test_markdown_tables_have_as_many_cells_in_each_row():
    for case in CASES.values():
        cells = 0
        for line in render.markdown(case()).splitlines():
            now = len(re.findall(r"(?<!\\)\|", line))
            assert cells in (0, now) or now == 0
            cells = now
