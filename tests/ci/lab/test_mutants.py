"""ci/gate lab mutants: the rules, their switches, what is compared, and the committed table."""

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from ladder_builder import REPOSITORY
from stage_builder import stage, write_stages

from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.formats.stages import read_stages
from tilegate_ci.lab.commands.mutants import draw, find
from tilegate_ci.lab.mutants.build import Build, CTest, Group, group_of, groups
from tilegate_ci.lab.mutants.rules import (
    RULES,
    Mutant,
    mutants_of,
    plant,
    plant_switches,
    read_rules,
)
from tilegate_ci.lab.mutants.table import (
    AIMED,
    KNOWN,
    PAGE,
    Campaign,
    FileRow,
    KnownFile,
    KnownMutant,
    MutantJournal,
    Record,
    Survivor,
    of_today,
    page,
    with_records,
)
from tilegate_ci.lab.mutants.trial import Runner, _apart, execute, fingerprint, in_tree

RULES_HERE = read_rules(REPOSITORY / RULES)


def record(file: str, before: str, after: str, outcome: str, kind: str = "k") -> Record:
    mutant = {"file": file, "before": before, "after": after, "kind": kind, "line": 1}
    return Record(**mutant, outcome=outcome, preset="cpu", commit="a" * 40)


@pytest.fixture
def mutants(tmp_path):
    """The changed lines of a file with these lines."""

    def of(*lines: str) -> list[str]:
        (tmp_path / "file.cu").write_text("\n".join(lines) + "\n")
        return [mutant.after for mutant in mutants_of(tmp_path, "file.cu", RULES_HERE)]

    return of


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("__syncthreads();  // why", ";  // why"),
        ("sum += a[k] * b[k + 1];", "sum += a[k] * b[k + 1 + 1];"),
        ("at = row * lda + col;", "at = row * (lda + 1) + col;"),
        ("if (row < shape.m) {", "if (row <= shape.m) {"),
        ("if (row < shape.m) {", "if (row < shape.n) {"),
        ("if (k > kLimit) return;", "if (k > (kLimit * 3 / 2)) return;"),
        ("if (ratio > 0.25F) return;", "if (ratio > (0.25F * 0.64F)) return;"),
        ("rows = ceil_div(m, tile.m);", "rows = ((m) / (tile.m));"),
        ("rows = (m + kRows - 1) / kRows;", "rows = (m + kRows - 0) / kRows;"),
        ("end = std::min(end, k);", "end = std::max(end, k);"),
        ("end = std::min(end, k);", "end = (std::min(end, k) + 1);"),
        ("static constexpr int kMaxSplits = 9;", "static constexpr int kMaxSplits = 9 - 1;"),
        ("device::barrier_wait(full, phase);", ";"),
        ("device::barrier_wait(full, phase);", "device::barrier_wait(full, (phase ^ 1));"),
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


def test_every_class_has_rules():
    wanted = "width statement vector scalar condition arithmetic constant"
    assert {rule.kind for rule in RULES_HERE} == {*AIMED, *wanted.split()}


def test_a_class_leaves_lines_alone(tmp_path):
    (tmp_path / "f.cu").write_text("a = 2e-6 * n;\nseconds = 2e-6 * n;\n")
    found = mutants_of(tmp_path, "f.cu", RULES_HERE)
    assert [each.line for each in found if each.kind == "threshold"] == [1, 1]


@pytest.mark.parametrize(
    "text", ["[a]\n( ==> b\n", "a ==> b\n", "[a]\nno arrow\n", "[a !(]\n", "[a]\nb\n~~ c\n"]
)
def test_bad_rules(tmp_path, text):
    path = tmp_path / "rules.txt"
    path.write_text(text)
    with pytest.raises(GateError, match=r"line [123]: "):
        read_rules(path)


def test_a_mutant_is_one_line_of_a_copy(tmp_path):
    (tmp_path / "f.cu").write_text("a;\n  b < c;\n")
    plant(tmp_path, Mutant("f.cu", 2, "boundary", "b < c;", "b <= c;"))
    assert (tmp_path / "f.cu").read_text() == "a;\n  b <= c;\n"
    with pytest.raises(GateError, match=r"f\.cu:2: the line is 'b <= c;' now"):
        plant(tmp_path, Mutant("f.cu", 2, "boundary", "b < c;", "b > c;"))


FUNCTION = """int f(int a, int b, int* v) {
  if (a < b + 1) v[a] = std::min(a * 3, b - 1);
  int phase = a;
  phase ^= 1;
  v[0] += phase;
  return v[a] + 1;
}
"""
MAIN = """#include <algorithm>
#include <cstdio>
void print(int f(int, int, int*)) {
  for (int a = 0; a < 5; ++a) {
    int v[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const int result = f(a, 3, v);
    std::printf("%d %d ", result, v[0]);
  }
  std::puts("");
}
"""


def test_a_switch_is_what_the_mutant_is_alone(tmp_path):
    """Of a function: a program of all mutants, against programs of switches."""
    compiler = shutil.which("c++") or pytest.skip("no C++ compiler")
    source, program = tmp_path / "f.cpp", tmp_path / "f"

    def compile_(text: str, *options: object) -> None:
        source.write_text(text)
        command = [compiler, "-std=c++20", "-w", *options, source, "-o", program]
        subprocess.run(command, check=True)

    def printed(**variables: str) -> list[str]:
        done = subprocess.run(program, env=os.environ | variables, stdout=subprocess.PIPE)
        return done.stdout.decode().splitlines()

    source.write_text(FUNCTION)
    kinds = {*AIMED, "arithmetic", "condition"}
    every = [m for m in mutants_of(tmp_path, "f.cpp", RULES_HERE) if m.switch and m.kind in kinds]
    assert len(every) > 12
    parts = [MAIN]
    for number, mutant in enumerate(every):
        source.write_text(FUNCTION)
        plant(tmp_path, mutant)
        parts.append(f"namespace alone{number} {{\n{source.read_text()}}}\n")
    calls = "".join(f"print(alone{number}::f);" for number in range(len(every)))
    compile_("".join([*parts, FUNCTION, f"int main() {{ print(f); {calls} }}"]))
    original, *alone = printed()
    assert original not in alone
    left = {*every}
    while left:
        together = dict(enumerate(_apart(left)))
        left -= {*together.values()}
        source.write_text(FUNCTION)
        plant_switches(tmp_path, "f.cpp", together.items())
        header = REPOSITORY / "tests/mutants/planted.hpp"
        removals = REPOSITORY / "tests/counters/removals.cpp"
        text = f"{MAIN}{source.read_text()}int main() {{ print(f); }}"
        compile_(text, "-include", header, removals)
        assert printed() == [original]
        for number, mutant in together.items():
            found = printed(TILEGATE_REMOVED=str(number))
            assert found == [alone[every.index(mutant)]], mutant


def test_switches_of_one_place_are_compiled_one_after_the_other():
    def mutant(begin: int, end: int, after: str) -> Mutant:
        return Mutant("f", 1, "k", "before", after, begin, end, ("", ""))

    inner, outer, same, crossing = (
        mutant(2, 4, "a"), mutant(1, 6, "b"), mutant(2, 4, "c"), mutant(3, 8, "d")
    )  # fmt: skip
    assert _apart({inner, outer}) == [outer, inner]
    assert len(_apart({inner, same})) == 1
    assert len(_apart({outer, crossing})) == 1


def test_a_sample_is_the_same_for_a_seed_and_of_each_class():
    few = ["*/09_*", "*/common/*/s*", "*/core/s*", "*/executor/t*", "*/counted/s*", "tests/*/f*"]
    every = find(REPOSITORY, "cpu", few, None)
    drawn = [draw(every, "cpu", 3, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    sampled = [each for each in drawn[0] if not group_of("cpu", each.file).all_mutants]
    counts = Counter(each.kind for each in sampled)
    assert max(counts.values()) <= 3
    assert counts.keys() >= {"boundary", "offset", "stride"}
    host = [each for each in every if each.file.startswith("kernels/core") and each.kind in AIMED]
    assert host
    assert {*host} <= {*drawn[0]}  # all of host code
    with pytest.raises(GateError, match="no mutants: none"):
        find(REPOSITORY, "cpu", ["none"], None)
    with pytest.raises(GateError, match=r"no class nought in tests/mutants/rules\.txt"):
        find(REPOSITORY, "cpu", few, ["nought"])


def test_headers_without_a_suffix_have_mutants():
    header = "kernels/device/cpu/plain/include/cuda/barrier"
    assert {each.file for each in find(REPOSITORY, "cpu", [header], None)} == {header}


def test_the_rarest_classes_come_first_and_no_file_fills_a_class():
    def mutants(file: str, kind: str, count: int) -> list[Mutant]:
        return [Mutant(file, line, kind, "x", f"{line}") for line in range(count)]

    every = [m for file in "abcd" for m in mutants(file, "offset", 9)] + mutants("c", "phase", 3)
    drawn = draw(every, "cpu", 8, 1)
    assert drawn[0].file == "c"
    assert Counter(each.kind for each in drawn) == {"phase": 3, "offset": 8}
    assert {*Counter(each.file for each in drawn if each.kind == "offset").values()} == {2}
    assert {*draw(every, "cpu", None, 1)} == {*every}
    assert Counter(each.kind for each in draw(every, "cpu", 30, 1)) == {"phase": 3, "offset": 30}


def test_every_group_has_files_of_its_own():
    tops = (REPOSITORY / "kernels", REPOSITORY / "tests")
    paths = [path for top in tops for path in top.rglob("*.*")]
    files = [path.relative_to(REPOSITORY).as_posix() for path in paths]
    for preset in ("cpu", "gpu"):
        found = {group.title for file in files if (group := group_of(preset, file))}
        assert found == {group.title for group in groups(preset)}


def test_a_shared_header_is_tried_with_tests_that_include_it(tmp_path):
    header, build = "kernels/common/a.hpp", object.__new__(Build)
    build.sources = {
        "mine.o": {"kernels/12_mine/mine.cu", header},
        "other.o": {"kernels/13_other/other.cu", header},
        "models.o": {"tests/models/a.cu", header},
    }
    build.tests = lambda: [CTest("models_test", (), "", program="tests/models_test")]
    build.objects = lambda _: [*build.sources]
    group = Group("shared", [header], ["models_test"], ["models_test"], of_rungs=True)
    write_stages(tmp_path, stage("12_mine", "Mine"), stage("13_other", "Other"))
    steps = build.steps(read_stages(tmp_path), group, header)
    assert [step.objects for step in steps] == [("mine.o", "models.o"), ("other.o", "models.o")]


def test_commands_compile_the_copy():
    command = "/usr/bin/c++ -I/r/kernels/include -I/r/build/x -c /r/tests/a.cu -o a.o"
    assert in_tree(command, Path("/r"), Path("/copy")) == (
        "/usr/bin/c++ -ffile-prefix-map=/copy=/r -I/copy/kernels/include -I/r/build/x "
        "-c /copy/tests/a.cu -o a.o"
    )
    header = in_tree(command, Path("/r"), Path("/copy"), Path("/copy/tests/h.hpp"))
    assert header.startswith("/usr/bin/c++ -include /copy/tests/h.hpp -ffile-prefix-map")


def test_a_red_test_without_a_mutant_ends_the_run():
    test = CTest("name", ("sh", "-c", "echo broken; exit 3"), "/")
    with pytest.raises(GateError, match="name is red without any mutant:\nbroken"):
        Runner().limit(test)


def test_what_takes_too_long_is_ended():
    assert execute(["sleep", "60"], 0.01) == (None, "")


def test_only_objects_have_a_fingerprint(tmp_path):
    (tmp_path / "a.o").write_text("text")
    with pytest.raises(GateError, match="objcopy"):
        fingerprint(tmp_path / "a.o")


def test_a_journal_survives_a_broken_line(tmp_path):
    journal = MutantJournal(tmp_path / "journal")
    journal.add(record("f", "a", "b", "survived"))
    journal.add(record("f", "a", "b", "killed"))
    with journal.path.open("a") as stream:
        stream.write('{"file": "f')
    assert [each.outcome for each in journal.read()] == ["killed"]


def test_the_table_counts():
    outcomes = ["killed", "killed", "survived", "survived", "same code", "does not compile"]
    file = "kernels/01_naive/naive.cu"
    records = [record(file, "a", str(i), outcome) for i, outcome in enumerate(outcomes)]
    records.append(record(file, "a", "7", "killed", "phase"))
    explained = {"file": file, "before": "a", "reason": "because"}
    text = json.dumps(
        [
            {**explained, "after": "2", "equivalent": True},
            {**explained, "after": "3", "equivalent": False},
        ]
    )
    known = documents.parse(KnownFile, f'{{"schema": 1, "known": {text}}}', "known")
    old = Campaign(preset="cpu", commits=[], possible={"k": 9}, files=[], survivors=[])
    campaign = with_records(REPOSITORY, old, records, {each.key: each for each in known.known})
    row, phase = campaign.files
    assert (row.mutants, row.killed, row.equivalent, row.does_not_compile) == (5, 2, 2, 1)
    assert (phase.kind, phase.mutants, phase.killed) == ("phase", 1, 1)
    assert [(each.after, each.reason) for each in campaign.survivors] == [("3", "because")]


def test_lines_that_have_changed_are_no_longer_in_the_table(tmp_path):
    (tmp_path / "f.cu").write_text("  a;\n")
    places = (("f.cu", "a;"), ("f.cu", "b;"), ("g.cu", "a;"))
    records = [record(file, before, "", "killed") for file, before in places]
    kept = of_today(tmp_path, records)
    assert [(each.file, each.before) for each in kept] == [("f.cu", "a;")]


def test_files_that_were_not_tried_again_stay_in_the_table(tmp_path):
    def row(file: str, mutants: int, killed: int) -> FileRow:
        counts = {"mutants": mutants, "killed": killed, "equivalent": 0, "does_not_compile": 0}
        return FileRow(file=file, kind="k", **counts)

    def survivor(file: str, before: str) -> Survivor:
        return Survivor(file=file, before=before, after="x", kind="k", reason="")

    for file in ("again.cu", "kept.cu"):
        (tmp_path / file).write_text("  a;\n  b;\n")
    lost = [survivor("kept.cu", before) for before in ("a;", "b;", "gone;")]
    old = Campaign(
        preset="cpu",
        commits=["a" * 40],
        possible={"k": 20},
        files=[row("again.cu", 3, 1), row("deleted.cu", 2, 2), row("kept.cu", 9, 6)],
        survivors=[survivor("again.cu", "a;"), survivor("again.cu", "b;"), *lost],
    )
    equivalent = KnownMutant(
        file="kept.cu", before="b;", after="x", equivalent=True, reason="because"
    )
    drawn = [record("again.cu", "a;", after, "killed") for after in "xy"]
    drawn = [each.model_copy(update={"commit": "b" * 40}) for each in drawn]
    both = with_records(tmp_path, old, drawn, {equivalent.key: equivalent})
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
    assert read_text(REPOSITORY / PAGE) == page(REPOSITORY), (
        "ci/gate lab mutants --update writes it"
    )


def test_known_mutants_are_of_lines_that_are_there():
    for each in documents.load(KnownFile, REPOSITORY / KNOWN).known:
        lines = [line.strip() for line in read_text(REPOSITORY / each.file).splitlines()]
        assert each.before in lines, each
