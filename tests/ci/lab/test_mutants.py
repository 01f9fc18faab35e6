"""ci/gate mutants: the rules, what is compared, and the committed table. No compiler runs here."""

import json
from pathlib import Path

import pytest
from ladder_builder import REPOSITORY

from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.lab.mutants.campaign import MutantJournal, draw, record_of
from tilegate_ci.lab.mutants.ninja import CTest, in_tree
from tilegate_ci.lab.mutants.reach import GROUPS, group_of
from tilegate_ci.lab.mutants.rules import RULES, Mutant, apply, mutants_of, read_rules
from tilegate_ci.lab.mutants.table import (
    KNOWN,
    PAGE,
    Campaign,
    FileRow,
    KnownFile,
    KnownMutant,
    Survivor,
    campaign_of,
    of_today,
    page,
    with_others,
)
from tilegate_ci.lab.mutants.trial import Baselines, execute, fingerprint


@pytest.fixture
def mutants(tmp_path):
    """The changed lines of a file with these lines."""

    def of(*lines: str) -> list[str]:
        (tmp_path / "file.cu").write_text("\n".join(lines) + "\n")
        found = mutants_of(tmp_path, "file.cu", read_rules(REPOSITORY / RULES))
        return [mutant.after for mutant in found]

    return of


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("__syncthreads();  // why", ";  // why"),
        ("sum += a[k] * b[k + 1];", "sum += a[k] * b[k + 1 + 1];"),
        ("at = row * lda + col;", "at = row * (lda + 1) + col;"),
        ("if (row < shape.m) {", "if (row <= shape.m) {"),
        ("if (row < shape.m) {", "if (row < shape.n) {"),
        ("buffer ^= 1;", "buffer ^= 0;"),
        ("c = alpha * sum + beta * c;", "c = beta * sum + beta * c;"),
        ("load4<kVector>(row, 0);", "load4<true>(row, 0);"),
        ("bytes = n * sizeof(float);", "bytes = n * (sizeof(float) - 1);"),
        ("const std::int64_t row = i / n;", "const int row = i / n;"),
        ("return found ? a : b;", "return found ? b : a;"),
    ],
)
def test_rules(mutants, line, after):
    assert after in mutants(line)


@pytest.mark.parametrize(
    "line",
    ["// a < b", "#include <a>", "static_assert(a < b);", "template <int kA>", 'name = "a < b"'],
)
def test_what_is_no_code_stays(mutants, line):
    assert all(after == ";" for after in mutants(line))


def test_every_kind_of_fault_has_rules():
    kinds = {rule.kind for rule in read_rules(REPOSITORY / RULES)}
    wanted = "barrier index stride clip vector buffer scalar workspace comparison arithmetic"
    assert {*wanted.split()} <= kinds


@pytest.mark.parametrize("text", ["[a]\n( ==> b\n", "a ==> b\n", "[a]\nno arrow\n"])
def test_bad_rules(tmp_path, text):
    path = tmp_path / "rules.txt"
    path.write_text(text)
    with pytest.raises(GateError, match=r"line [12]: "):
        read_rules(path)


def test_a_mutant_is_one_line_of_a_copy(tmp_path):
    (tmp_path / "f.cu").write_text("a;\n  b < c;\n")
    apply(tmp_path, Mutant("f.cu", 2, "comparison", "b < c;", "b <= c;"))
    assert (tmp_path / "f.cu").read_text() == "a;\n  b <= c;\n"
    with pytest.raises(GateError, match=r"the line is 'b <= c;' now"):
        apply(tmp_path, Mutant("f.cu", 2, "comparison", "b < c;", "b > c;"))


def test_a_sample_is_the_same_for_a_seed_and_of_each_kind_of_file():
    few = ["*/09_*", "*/common/*/s*", "*/core/s*", "*/executor/t*", "*/counted/s*", "tests/*/f*"]
    drawn = [draw(REPOSITORY, "cpu", few, 3, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    groups = [group_of("cpu", mutant.file) for mutant in drawn[0]]
    assert {group: groups.count(group) for group in GROUPS["cpu"]} == dict.fromkeys(
        GROUPS["cpu"], 3
    )
    with pytest.raises(GateError, match="no mutants: none"):
        draw(REPOSITORY, "cpu", ["none"], 3, 1)


def test_commands_compile_the_copy():
    command = "/usr/bin/c++ -I/r/kernels/include -I/r/build/x -c /r/tests/a.cu -o a.o"
    assert in_tree(command, Path("/r"), Path("/copy")) == (
        "/usr/bin/c++ -ffile-prefix-map=/copy=/r -I/copy/kernels/include -I/r/build/x "
        "-c /copy/tests/a.cu -o a.o"
    )


def test_a_red_test_without_a_mutant_ends_the_run():
    test = CTest("name", ("sh", "-c", "echo broken; exit 3"), "/")
    with pytest.raises(GateError, match="name is red without any mutant:\nbroken"):
        Baselines().limit(test)


def test_what_takes_too_long_is_ended():
    assert execute(["sleep", "60"], 0.01) == (None, "")


def test_only_objects_have_a_fingerprint(tmp_path):
    (tmp_path / "a.o").write_text("text")
    with pytest.raises(GateError, match="objcopy"):
        fingerprint(tmp_path / "a.o")


def test_a_journal_survives_a_broken_line(tmp_path):
    journal = MutantJournal(tmp_path / "journal")
    mutant = record_of(Mutant("f", 1, "k", "a", "b"))
    journal.add(mutant | {"outcome": "survived"})
    journal.add(mutant | {"outcome": "killed"})
    with journal.path.open("a") as stream:
        stream.write('{"file": "f')
    assert [record["outcome"] for record in journal.read()] == ["killed"]


def test_the_table_counts():
    outcomes = ["killed", "killed", "survived", "survived", "same code", "does not compile"]
    file = "kernels/01_naive/naive.cu"
    records = [
        record_of(Mutant(file, 1, "k", "a", str(i))) | {"outcome": outcome, "commit": "a" * 40}
        for i, outcome in enumerate(outcomes)
    ]
    explained = {"file": file, "before": "a", "reason": "because"}
    text = json.dumps(
        [
            {**explained, "after": "2", "equivalent": True},
            {**explained, "after": "3", "equivalent": False},
        ]
    )
    known = documents.parse(KnownFile, f'{{"schema": 1, "known": {text}}}', "known")
    campaign = campaign_of("cpu", records, known.known)
    (row,) = campaign.files
    assert (row.mutants, row.killed, row.equivalent, row.does_not_compile) == (5, 2, 2, 1)
    assert [(each.after, each.reason) for each in campaign.survivors] == [("3", "because")]


def test_lines_that_have_changed_are_no_longer_in_the_table(tmp_path):
    (tmp_path / "f.cu").write_text("  a;\n")
    places = (("f.cu", "a;"), ("f.cu", "b;"), ("g.cu", "a;"))
    records = [record_of(Mutant(file, 1, "k", before, "")) for file, before in places]
    kept = of_today(tmp_path, records)
    assert [(record["file"], record["before"]) for record in kept] == [("f.cu", "a;")]


def test_files_that_were_not_tried_again_stay_in_the_table(tmp_path):
    def row(file: str, mutants: int, killed: int) -> FileRow:
        return FileRow(file=file, mutants=mutants, killed=killed, equivalent=0, does_not_compile=0)

    def survivor(file: str, before: str) -> Survivor:
        return Survivor(file=file, before=before, after="x", reason="")

    for file in ("again.cu", "kept.cu"):
        (tmp_path / file).write_text("  a;\n  b;\n")
    lost = [survivor("kept.cu", before) for before in ("a;", "b;", "gone;")]
    old = Campaign(
        preset="cpu",
        commits=["a" * 40],
        files=[row("again.cu", 3, 1), row("deleted.cu", 2, 2), row("kept.cu", 9, 6)],
        survivors=[survivor("again.cu", "a;"), survivor("again.cu", "b;"), *lost],
    )
    new = Campaign(preset="cpu", commits=["b" * 40], files=[row("again.cu", 2, 2)], survivors=[])
    equivalent = KnownMutant(
        file="kept.cu", before="b;", after="x", equivalent=True, reason="because"
    )
    drawn = [record_of(Mutant("again.cu", 1, "k", "a;", "x"))]
    both = with_others(tmp_path, new, drawn, old, [equivalent])
    assert both.commits == ["a" * 40, "b" * 40]
    assert [(each.file, each.mutants, each.killed, each.equivalent) for each in both.files] == [
        ("again.cu", 3, 2, 0),
        ("kept.cu", 8, 6, 1),
    ]
    assert [(each.file, each.before) for each in both.survivors] == [
        ("again.cu", "b;"),
        ("kept.cu", "a;"),
    ]


def test_the_page_is_what_the_results_say():
    assert read_text(REPOSITORY / PAGE) == page(REPOSITORY), "ci/gate mutants --update writes it"


def test_known_mutants_are_of_lines_that_are_there():
    for each in documents.load(KnownFile, REPOSITORY / KNOWN).known:
        lines = [line.strip() for line in read_text(REPOSITORY / each.file).splitlines()]
        assert each.before in lines, each
