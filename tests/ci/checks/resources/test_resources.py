"""`ci/gate check resources` as a command: with a stand-in for nvcc, and with nvcc where it is."""

import json
import re
import shutil

import pytest
from resources_builder import GOOD, SPILLED, Repository, launches
from stage_builder import stage

from tilegate_ci.checks.resources import compile as resources_compile
from tilegate_ci.checks.resources.table import load
from tilegate_ci.cli import main

WAIVER = {
    "id": "SW-1",
    "rung": "Swizzle",
    "kernel": "sgemm<true>",
    "architectures": ["80", "90a"],
    "ceiling": 4000,
    "expires": "2999-12-31",
    "reason": "tuned elsewhere",
}
CHECK_ENVIRONMENT = """import os, pathlib, sys
assert "NVCC_APPEND_FLAGS" not in os.environ
"""
TWO = ("--arch", "80", "--arch", "90a")

pytestmark = pytest.mark.skipif(not shutil.which("c++filt"), reason="no c++filt in PATH")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = Repository(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    monkeypatch.setattr(resources_compile, "FETCHED", tmp_path / "none")
    return made


@pytest.fixture
def gate(repository, capsys):
    """Runs the command on the stand-in; gives exit code, stdout, stderr."""

    def run(*arguments):
        code = main(["check", "resources", "--repository", str(repository.root), *TWO, *arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def committed(repository, gate):
    assert gate("--update")[0] == 0
    return json.loads(repository.table.read_text())


def test_an_unchanged_rung_passes_and_costs_no_compiler(repository, committed, gate):
    calls = repository.calls()
    code, out, err = gate()
    assert (code, err) == (0, "")
    assert "1 rungs, 2 kernels, 4 rows, nvcc 13.0.88, 0 changes" in out
    assert repository.calls() == calls


def test_the_table_has_a_line_a_row(committed, repository):
    row = committed["rungs"]["Swizzle"]["kernels"]["sgemm<true>"]["90a"]
    assert row == [126, 0, 0, 0, 0, 32768, 256, 2, 0.25, "default"]
    assert (
        '"90a": [126, 0, 0, 0, 0, 32768, 256, 2, 0.25, "default"]' in repository.table.read_text()
    )


@pytest.mark.parametrize("what", ["header", "rung"])
def test_a_changed_source_is_compiled_again(repository, committed, gate, what):
    repository.say(SPILLED)
    assert gate()[0] == 0  # not seen: nothing changed
    getattr(repository, what).write_text(getattr(repository, what).read_text() + "// edited\n")
    assert gate()[0] == 2


def test_only_what_has_changed_since_the_table(repository, gate):
    every = ("--repository", str(repository.root))
    assert main(["check", "resources", *every, "--update"]) == 0
    repository.say(SPILLED)
    shutil.rmtree(repository.root / "build/resources-cache")
    calls = repository.calls()
    code, out, _ = gate("--changed")
    assert (code, repository.calls()) == (0, calls)
    assert "0 rungs, 0 kernels" in out
    repository.edit()
    assert gate("--changed")[0] == 2


def test_a_table_of_some_architectures_vouches_for_no_sources(repository, gate):
    every = ("--repository", str(repository.root))
    assert main(["check", "resources", *every, "--update"]) == 0
    repository.edit()
    assert gate("--update")[0] == 0  # of two architectures
    calls = repository.calls()
    shutil.rmtree(repository.root / "build/resources-cache")
    assert gate("--changed")[0] == 0
    assert repository.calls() > calls


def test_a_spill_is_an_error_with_a_markdown_diff(repository, committed, gate, tmp_path):
    repository.say(SPILLED)
    repository.edit()
    report = tmp_path / "report.md"
    code, out, _ = gate("--markdown", str(report))
    assert code == 2
    assert (
        "error: Swizzle: sgemm<true>: 1404 bytes of spill stores, 1412 of loads on 90a: not waived"
    ) in out
    assert "changed: Swizzle: sgemm<true>: registers: 126 -> 64 (90a)" in out
    text = report.read_text()
    assert r"| error | Swizzle | sgemm\<true> | 90a | 1404 | 1412 | not waived |" in text
    assert r"| Swizzle | sgemm\<true> | registers | 126 | 64 | 90a |" in text
    assert "<details><summary>All 4 rows</summary>" in text


def test_a_change_without_a_spill_is_exit_1(repository, committed, gate):
    repository.say(GOOD, launches().replace("\t256\t", "\t512\t"))
    repository.edit()
    code, out, _ = gate()
    assert code == 1
    assert "threads: 256 -> 512 (80, 90a)" in out
    assert "ci/gate check resources --update" in out


def write_waiver(repository, **fields):
    document = json.loads(repository.table.read_text())
    document["waivers"] = [{**WAIVER, **fields}]
    repository.table.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({}, 1, "0 spills at fault, 2 waived, 0 noted"),
        ({"ceiling": 2000}, 2, "above the 2000 bytes of waiver SW-1"),
        ({"architectures": ["80"]}, 2, "on 90a: not waived"),
    ],
)
def test_waivers(repository, committed, gate, fields, code, said):
    only_one = launches().replace("kernel\t", "kernel\t", 1)
    repository.say(SPILLED, only_one)
    text = (repository.bin / "ptxas").read_text()
    clean = re.sub(  # the narrow kernel is as it was
        r"(Lb0E[^\n]*\n)    \d+ bytes stack frame, \d+ bytes spill stores, \d+ bytes spill loads",
        r"\1    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
        text,
    )
    (repository.bin / "ptxas").write_text(clean)
    repository.edit()
    write_waiver(repository, **fields)
    found, out, _ = gate()
    assert found == code
    assert said in out


def test_a_waiver_that_nothing_needs_is_said(repository, committed, gate):
    write_waiver(repository)
    code, _, err = gate()
    assert code == 0
    assert err == "gate: warning: waiver SW-1: nothing spills there; remove it\n"


def test_an_update_keeps_waivers_and_reasons(repository, committed, gate):
    document = json.loads(repository.table.read_text())
    document["waivers"] = [WAIVER]
    document["rungs"]["Swizzle"]["not_on"] = {"120": "needs what 90a alone has"}
    repository.table.write_text(json.dumps(document))
    assert gate("--update")[0] == 0
    after = json.loads(repository.table.read_text())
    assert after["waivers"] == [WAIVER]
    assert after["rungs"]["Swizzle"]["not_on"] == {"120": "needs what 90a alone has"}


@pytest.mark.parametrize("some", [(), TWO])
def test_an_update_drops_kernels_that_are_gone(repository, committed, some):
    kernels = committed["rungs"]["Swizzle"]["kernels"]
    committed["rungs"]["Swizzle"]["kernels"] = {**kernels, "gone": kernels["sgemm<true>"]}
    repository.table.write_text(json.dumps(committed))
    command = ["check", "resources", "--repository", str(repository.root), *some]
    assert main(command) == 1
    assert main([*command, "--update"]) == 0
    assert json.loads(repository.table.read_text())["rungs"]["Swizzle"]["kernels"] == kernels


def test_a_spill_in_a_variant_is_noted_only(repository, committed, gate):
    repository.say(SPILLED, launches("Swizzle.small"))
    repository.edit()
    code, out, _ = gate()
    assert code == 1
    assert "0 spills at fault, 0 waived, 4 noted" in out


def test_a_kernel_that_nothing_launches_is_told_and_judged(repository, committed, gate):
    repository.say(SPILLED, "requires\t70\tSwizzle\n")
    repository.edit()
    code, out, _ = gate()
    assert code == 2
    assert "path: default -> unused" in out
    assert "threads: 256 -> none" in out


def test_every_source_of_a_rung_is_compiled(repository, gate):
    variants = repository.rung.with_name("variants.cu")
    variants.write_text("#include <tilegate/tile.hpp>\n")
    sources = [f"kernels/09_swizzle/{name}.cu" for name in ("swizzle", "variants")]
    repository.write_stages(stage("09_swizzle", "Swizzle", sources=sources))
    assert gate("--update")[0] == 0
    calls = (repository.bin / "calls").read_text().splitlines()
    assert [call.count(" -c ") for call in calls] == [1, 1, 0]
    assert all(f"{name}.o" in calls[2] for name in ("swizzle", "variants"))
    assert gate()[0] == 0
    assert len((repository.bin / "calls").read_text().splitlines()) == 3
    variants.write_text("// edited\n")
    assert gate()[0] == 0
    assert len((repository.bin / "calls").read_text().splitlines()) == 6


def test_a_rung_from_outside_is_judged_and_not_written(repository, committed, gate):
    mine = repository.root.with_name("elsewhere") / "20_mine" / "mine.cu"
    mine.parent.mkdir(parents=True)
    mine.write_text("#include <tilegate/tile.hpp>\n")
    outside = {"folder": str(mine.parent), "sources": [str(mine)], "external": True}
    ladder = (stage("09_swizzle", "Swizzle"), stage("20_mine", "Mine", **outside))
    repository.write_stages(*ladder)
    code, out, _ = gate()
    assert (code, "--update" in out) == (0, False)  # that would leave it out
    assert "outside: Mine: from outside the repository, whose table leaves it out" in out
    calls = repository.calls()
    assert gate()[0] == 0
    assert repository.calls() == calls  # its own file is among the sources that are looked at
    mine.write_text("// edited\n")
    repository.say(SPILLED)
    assert gate()[0] == 2
    assert repository.calls() > calls
    repository.say(GOOD)
    assert gate("--update")[0] == 0
    assert list(load(repository.table).rungs) == ["Swizzle"]


def test_without_a_build_it_says_what_to_build(repository, committed, gate):
    (repository.root / "build/cpu/stages.json").unlink()
    code, _, err = gate()
    assert code == 2
    assert "no build tree of " in err
    assert "lists its rungs: cmake --preset cpu && cmake --build --preset cpu" in err


def test_an_architecture_below_the_requirement_is_not_compiled(repository, gate):
    repository.write_stages(stage("09_swizzle", "Swizzle", compute_capability=90))
    assert gate("--update")[0] == 0
    table = json.loads(repository.table.read_text())["rungs"]["Swizzle"]
    assert table["not_on"]["80"] == "needs compute capability 90"
    assert list(table["kernels"]["sgemm<true>"]) == ["90a"]
    assert "compute_80" not in (repository.bin / "calls").read_text()


def test_another_release_is_incomparable(repository, committed, gate):
    repository.say(GOOD, release="12.9.86")
    code, out, _ = gate()
    assert code == 4
    assert "incomparable: the committed table is of nvcc 13.0.88, this is nvcc 12.9.86" in out
    code, _, err = gate("--update")
    assert code == 2
    assert "--update then needs every rung and architecture" in err


def test_a_spill_is_an_error_under_another_release_too(repository, committed, gate):
    repository.say(SPILLED, release="12.9.86")
    assert gate()[0] == 2


def test_a_rung_that_does_not_compile(repository, committed, gate):
    (repository.bin / "fails").write_text("")
    repository.edit()
    before = repository.table.read_text()
    code, out, _ = gate("--update")
    assert code == 2
    assert 'error: Swizzle: nvcc fails: swizzle.cu(3): error: identifier "x" is undefined' in out
    assert repository.table.read_text() == before


def test_a_rung_that_left_the_ladder_is_a_change(repository, committed, gate):
    document = json.loads(repository.table.read_text())
    document["rungs"]["Gone"] = document["rungs"]["Swizzle"]
    repository.table.write_text(json.dumps(document))
    code, out, _ = gate()
    assert code == 1
    assert "changed: Gone: sgemm<true>: kernel: there -> gone (80, 90a)" in out
    assert gate("--rung", "Swizzle")[0] == 0
    assert gate("--update")[0] == 0
    assert list(load(repository.table).rungs) == ["Swizzle"]


def test_a_rung_that_the_table_has_not_is_new(repository, committed, gate, tmp_path):
    committed["rungs"] = {}
    repository.table.write_text(json.dumps(committed))
    code, out, _ = gate("--markdown", str(tmp_path / "r.md"))
    assert code == 0
    assert "new: Swizzle: not in the committed table yet; ci/gate check resources --update" in out
    assert "- new: Swizzle" in (tmp_path / "r.md").read_text()
    repository.say(SPILLED)
    repository.edit()
    assert gate()[0] == 2


def test_flags_of_whoever_runs_it_do_not_reach_the_compiler(repository, gate, monkeypatch):
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--maxrregcount=32")
    nvcc = repository.bin / "nvcc"
    text = nvcc.read_text().replace("import pathlib, sys\n", CHECK_ENVIRONMENT)
    nvcc.write_text(text)
    assert gate("--update")[0] == 0


def test_no_nvcc_is_one_sentence(repository, gate, monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    report = tmp_path / "r.md"
    assert gate("--markdown", str(report)) == (
        2,
        "",
        "gate: error: no nvcc in PATH, $CUDA_HOME/bin or /usr/local/cuda/bin: "
        "install the CUDA toolkit, or run ci/nvcc, which puts it into build/nvcc\n",
    )
    assert report.read_text().startswith("### Gate: error\n\n- **no nvcc in PATH")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema=2), "schema: unknown schema 2; this gate reads schema 1"),
        (lambda d: d.update(schema=True), "schema: unknown schema True"),
        (lambda d: d.pop("nvcc"), '"nvcc" is missing'),
        (lambda d: d.update(columns=["x"]), "columns: not the columns of this gate"),
        (
            lambda d: d["rungs"]["Swizzle"]["kernels"]["sgemm<true>"]["80"].pop(),
            "[9]: Field required",
        ),
        (
            lambda d: d["rungs"]["Swizzle"]["kernels"]["sgemm<true>"].update({"70": []}),
            "'90a', '100' or '120', not \"70\"",
        ),
        (
            lambda d: d["rungs"]["Swizzle"]["kernels"]["sgemm<true>"]["80"].__setitem__(0, -1),
            '["80"][0]: must be greater than or equal to 0, not -1',
        ),
        (
            lambda d: d.update(waivers=[{**WAIVER, "expires": "soon"}]),
            'must be a valid date in the format YYYY-MM-DD, input is too short, not "soon"',
        ),
        (lambda d: d.update(waivers=[{**WAIVER, "reason": ""}]), "must not be empty"),
        (lambda d: d.update(waivers=[WAIVER, WAIVER]), "waiver SW-1 is there twice"),
        (  # although nothing needs it
            lambda d: d.update(waivers=[{**WAIVER, "expires": "2020-01-01"}]),
            "waiver SW-1 expired on 2020-01-01: tuned elsewhere",
        ),
    ],
)
def test_a_malformed_table_is_refused_with_its_place(repository, committed, gate, change, message):
    change(committed)
    repository.table.write_text(json.dumps(committed))
    code, out, err = gate()
    assert (code, out) == (2, "")
    assert str(repository.table) in err
    assert message in err


@pytest.mark.parametrize("text", ["", "{", "[1, 2"])
def test_a_truncated_table_is_refused(repository, gate, text):
    repository.table.write_text(text)
    assert gate()[0] == 2


def test_without_a_table_it_says_how_to_make_one(gate):
    code, _, err = gate()
    assert code == 2
    assert "there is no table yet; `ci/gate check resources --update` writes one" in err


@pytest.mark.parametrize("option", [("--rung", "Nope"), ("--arch", "70"), ("--nope",)])
def test_unknown_names_are_exit_2(gate, option):
    assert gate(*option)[0] == 2


def test_a_broken_cache_is_made_anew(repository, committed, gate):
    for entry in (repository.root / "build/resources-cache").iterdir():
        entry.write_text("[]")
    assert gate()[0] == 0
