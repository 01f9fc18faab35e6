"""ci/gate run, collect and report of projects whose build and run are a copy of a JSON file."""

import json
import subprocess
from pathlib import Path

import pytest
from project_builder import google, nvbench, text

from gate_builders import COMMIT, NAIVE, make_row, make_run, write
from tilegate_ci.cli import main
from tilegate_ci.core.files import GateError
from tilegate_ci.formats.reading import Declared
from tilegate_ci.judge.compare import Margin
from tilegate_ci.measure import projects
from tilegate_ci.measure.projects import Foreign

TIMES = {"Kernel/64": 2.0, "Kernel/128": 8.0, "Reference/64": 1.0, "Reference/128": 6.0}
COPY = ("--build", "cp times.json {build}/", "--run", "cp {build}/times.json {out}")


@pytest.fixture
def project(tmp_path, monkeypatch, capsys):
    """Two folders without git; runs the gate on them."""
    folder = tmp_path / "a folder with spaces, and é"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(base, head, *options, command=COPY):
        for side, document in (("base", base), ("head", head)):
            Path(side).mkdir(exist_ok=True)
            Path(side, "times.json").write_text(text(document))
        folders = ("--base", "base", "--head", "head", "--pairs", "4")
        code = main(["run", *folders, *command, *options, "--json", "verdict.json"])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def verdicts():
    rows = json.loads(Path("verdict.json").read_text())["rows"]
    return {row["name"]: row["verdict"] for row in rows}


def slower(percent, **more):
    return {**TIMES, "Kernel/64": 2.0 * (1 + percent / 100), **more}


def test_a_slow_down_beyond_the_margin_is_blocked(project):
    assert project(google(TIMES), google(TIMES))[0] == 0
    code, out, _ = project(google(TIMES), google(slower(5)))
    assert (code, verdicts()["Kernel/64"]) == (1, "regressed")
    assert "2.000 µs   2.100 µs  time" in out
    command = "gate run --base base --head head '--build=cp times.json {build}/'"
    copy = "'--run=cp {build}/times.json {out}'"
    assert f"{command} {copy} --filter '^Kernel/64$'\n" in out
    _, out, _ = project(google(TIMES), google(slower(5)), "--margin", "2.5")
    assert f"{command} {copy} --margin=2.5 --filter '^Kernel/64$'\n" in out
    assert project(google(TIMES), google(slower(5)), "--margin", "6")[0] == 0
    assert project(google(TIMES), google(slower(-5)))[0] == 0
    assert verdicts()["Kernel/64"] == "improved"


def test_an_absolute_margin_must_be_exceeded_too(project):
    """Of 2 µs, 5 % are 100 ns."""
    both = google(TIMES), google(slower(5))
    assert project(*both, "--margin", "1%", "--margin-abs", "90ns")[0] == 1
    assert "margin 4.5 % (90.00 ns)" in project(*both, "--margin-abs", "90ns")[1]
    code, out, _ = project(*both, "--margin-abs", "110ns")
    assert (code, verdicts()["Kernel/64"]) == (0, "pass")
    rows = json.loads(Path("verdict.json").read_text())["rows"]
    widened = {row["name"]: row["margin_s"] for row in rows if row["margin_s"]}
    assert widened == {name: pytest.approx(1.1e-7) for name in TIMES if TIMES[name] < 11}
    code, out, _ = project(*both, "--margin", "4", "--margin-abs", "0.05us")
    assert (code, "--margin=4 --margin-abs=0.05us --filter" in out) == (1, True)
    assert "margin 4.0 %." in out.replace(")", "")


def lines(times):
    return "".join(["name,seconds\n", *(f"{n},{t * 1e-6}\n" for n, t in times.items())])


def objects(times):
    rows = ({"name": name, "seconds": time * 1e-6} for name, time in times.items())
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def pytest_benchmark(times):
    rows = [{"fullname": n, "stats": {"median": t * 1e-6}} for n, t in times.items()]
    return {"machine_info": {}, "benchmarks": rows}


def asv(times):
    rows = {f"a.time_{n}": [[t * 1e-6], []] for n, t in times.items()}
    return {"params": {}, "result_columns": ["result", "params"], "results": rows}


@pytest.mark.parametrize("form", [lines, objects, pytest_benchmark, asv])
def test_every_format_is_taken(project, form):
    code, _, err = project(form(TIMES), form(slower(5)))
    assert code == 1, err
    assert [name for name, word in verdicts().items() if word == "regressed"] == [
        "a.time_Kernel/64" if form is asv else "Kernel/64"
    ]


def test_lines_of_seconds_are_compared_as_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("old.csv").write_text(lines(TIMES))
    Path("new.csv").write_text(lines(slower(5)))
    make = ["compare", "--no-baseline", "--commit", COMMIT, "--out"]
    assert main([*make, "old.json", "old.csv"]) == 0
    assert main([*make, "old.csv", "new.csv"]) == 2  # --out is what a benchmark wrote
    assert main(["compare", "old.csv", "new.csv", "--commit", COMMIT]) == 2
    message = "old.csv: written by a benchmark; `compare --no-baseline` makes a run of it"
    assert message in capsys.readouterr().err
    judge = ["compare", "old.json", "new.csv", "--commit", COMMIT]
    assert main(judge) == 1
    assert main([*judge, "--margin", "6%"]) == 0
    assert main([*judge, "--margin-abs", "90ns"]) == 1
    capsys.readouterr()
    assert main([*judge, "--margin-abs", "110ns"]) == 0
    assert "margin 5.5 % (110.0 ns)" in capsys.readouterr().out


def test_nvbench_too(project):
    code, *_ = project(nvbench({"1": 1.0, "2": 1.0}), nvbench({"1": 1.0, "2": 1.02}))
    assert (code, verdicts()["copy/Elements=2"]) == (1, "regressed")


def test_a_yardstick_takes_the_machine_out(project):
    twice = {name: 2 * time for name, time in slower(2).items()}
    both = {**google(TIMES)}, {**google(twice)}
    assert project(*both)[0] == 1
    assert set(verdicts().values()) == {"regressed"}
    # A yardstick that is slower by itself is no measure of anything.
    code, out, _ = project(*both, "--yardstick", "Reference/*")
    assert (code, "Reference/64 changed in time by +100.00 %" in out) == (4, True)
    assert set(verdicts().values()) == {"incomparable"}
    code, out, _ = project(google(TIMES), google(slower(2)), "--yardstick", "Reference/*")
    assert (code, "50.00 %" in out) == (1, True)
    rows = json.loads(Path("verdict.json").read_text())["rows"]
    assert [row["metric"] for row in rows[:2]] == ["ratio_to_yardstick"] * 2
    assert verdicts() == {
        "Kernel/64": "regressed", "Kernel/128": "pass",
        "Reference/64": "pass", "Reference/128": "pass",
    }  # fmt: skip
    assert out.count("control, assumed unchanged") == 2


def test_a_name_like_our_yardsticks_is_judged_like_any_other(project):
    assert project(google({"Cublas/64": 1.0}), google({"Cublas/64": 1.1}))[0] == 1


def test_what_the_head_lost_is_an_error_and_what_it_adds_is_new(project):
    assert project(google(TIMES), google({**TIMES, "More": 1.0}))[0] == 0
    assert verdicts()["More"] == "new"
    assert project(google({**TIMES, "More": 1.0}), google(TIMES))[0] == 2
    assert verdicts()["More"] == "error"


def test_a_wrong_result_is_an_error_where_a_check_was_declared(project):
    code, out, _ = project(google(TIMES, ok=1), google(TIMES, ok=0), "--verified", "ok")
    assert (code, "not verified in the candidate" in out) == (2, True)
    assert project(google(TIMES, ok=1), google(TIMES, ok=1), "--verified", "ok")[0] == 0


def test_a_benchmark_that_only_some_processes_have_is_an_error(project):
    """Its pairs would be fewer than those that the verdict is by."""
    some = "test -e {build}/ran && cp {build}/times.json {out} || cp {build}/less.json {out}"
    build = "echo '" + text(google({"Reference/64": 1.0})) + "' >{build}/less.json"
    command = ("--build", f"cp times.json {{build}}/; {build}", "--run", f"{some}; >{{build}}/ran")
    code, _, err = project(google(TIMES), google(slower(5)), "--no-identity", command=command)
    assert (code, "Kernel/128 is in" in err) == (2, True), err


def test_what_was_skipped_is_told(project):
    base, head = google(TIMES), google(slower(-20))
    for side in (head, base):
        side["benchmarks"][0] |= {"skipped": True, "skip_message": "no\n\x1b[1mtensor cores"}
        code, _, err = project(base, head)
        assert (
            code,
            r"Kernel/64 is not judged: it was skipped: no \x1b[1mtensor cores" in err,
        ) == (
            2 if side is head else 0,
            True,
        )
    assert project(head, head)[0] == 0


def test_the_same_sources_are_built_once_and_other_ones_again(project):
    _, _, err = project(google(TIMES), google(slower(3)))
    assert err.count("building") == 2
    _, _, err = project(google(TIMES), google(slower(5)))
    assert err.count("building") == 1  # the base is there already
    _, _, err = project(google(TIMES), google(slower(5)))
    assert ("building" in err, "8 processes are there already" in err) == (False, True)


PROGRAM = """
#include <cassert>
#include <cstdio>
int main(int n, char** names) {{ assert(n == {n}); puts(names[1]); }}
"""
COMPILED = ("--build", "g++ -g -c main.cpp -o {build}/main.o && g++ {build}/main.o -o {build}/main")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"README.md": "words"}, 0),
        ({"main.cpp": "// a comment\n" + PROGRAM.format(n=2).removeprefix("\n")}, 0),
        ({"main.cpp": PROGRAM.format(n=1)}, 2),
        ({"input.txt": "more"}, 2),
    ],
)
def test_equal_programs_are_identical(tmp_path, monkeypatch, capsys, changes, code):
    """Whatever else differs, and nothing is measured; what `--run` names counts along."""
    monkeypatch.chdir(tmp_path)
    for side, files in (("base", {}), ("head", changes)):
        Path(side).mkdir()
        files = {"main.cpp": PROGRAM.format(n=2), "input.txt": "some", **files}
        for name, content in files.items():
            Path(side, name).write_text(content)
    run = ("--run", "{build}/main input.txt > {out}")  # no JSON: measured, it would be an error
    done = main(["run", "--base", "base", "--head", "head", *COMPILED, *run, "--json", "v.json"])
    said = capsys.readouterr()
    assert done == code, said
    assert ("the same machine code: identical, nothing to measure" in said.err) is (code == 0)
    if code == 0:
        assert "1 judged: 1 identical. Exit 0" in said.out
        assert main(["run", "--base", "base", "--head", "head", *COMPILED, *run, "--no-identity"])


def test_equal_sources_are_identical_without_a_build(project):
    code, out, err = project(google(TIMES), google(TIMES), command=("--run", "false {out}"))
    assert (code, "1 judged: 1 identical. Exit 0" in out, "building" in err) == (0, True, False)


@pytest.fixture
def commits(tmp_path, monkeypatch):
    """Makes a repository here, with a commit for each slow-down in per cent."""
    monkeypatch.chdir(tmp_path)
    for who in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            monkeypatch.setenv(f"GIT_{who}_{what}", "a@b")

    def make(*slower_by):
        subprocess.run(["git", "init", "-q"], check=True)
        for number, percent in enumerate(slower_by):
            Path("times.json").write_text(text(google(slower(percent))))
            Path("number").write_text(f"{number}\n")
            subprocess.run(["git", "add", "."], check=True)
            subprocess.run(["git", "commit", "-qm", f"change {number}"], check=True)

    return make


def test_the_commit_that_made_it_slower_is_found(commits, capsys):
    commits(0, 0.5, 3, 3)
    assert main(["bisect", "HEAD~3", "HEAD", "--filter", "^Kernel/64$", *COPY]) == 0
    found = capsys.readouterr()
    assert "first bad commit" in found.out
    assert "change 2" in found.out
    assert "change 1: not slower" in found.err
    asked = ["bisect", "HEAD~3", "HEAD", "--filter", "Kernel", *COPY, "--margin", "4"]
    assert main([*asked, "--dry-run"]) == 0
    assert "'--build=cp times.json {build}/'" in (out := capsys.readouterr().out)
    assert "--margin=4 --head COMMIT" in out
    assert main(["bisect", "HEAD~3", "HEAD", "--filter", "x", "--build", "b"]) == 2
    assert "--build is for another project's benchmarks" in capsys.readouterr().err


def test_commits_are_taken_from_git(commits, capsys):
    commits(0, 5)
    run = ["run", *COPY, "--pairs", "4", "--json", ".gate/verdict.json", "--base"]
    assert main([*run, "HEAD~1", "--head", "HEAD"]) == 1
    assert main([*run, "HEAD~1"]) == 1  # the working tree
    assert main([*run, "HEAD"]) == 0
    Path("times.json").write_text(text(google(slower(10))))
    assert main([*run, "HEAD"]) == 1
    assert capsys.readouterr().err.count("building") == 3  # the sources that there were
    assert main([*run, "none"]) == 2
    verdict = json.loads(Path(".gate/verdict.json").read_text())
    assert verdict["error"].startswith("no merge base of none and HEAD: ")
    state = subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True)
    assert state.stdout == " M times.json\n"


def test_a_dry_run_measures_nothing(project):
    code, out, _ = project(google(TIMES), google(TIMES), "--dry-run")
    assert (code, "4 pairs of processes" in out, Path("verdict.json").exists()) == (0, True, False)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("--run", "true"), "--run: the command must name the file that it writes its JSON to"),
        (("--build", "true"), "--build is for another project's benchmarks: give --run CMD too"),
        (("--yardstick", "A"), "--yardstick is for another project's benchmarks"),
        (("--margin", "3"), "--margin is for another project's benchmarks"),
        (("--cmake=-DA=1", "--run", "{out}"), "--cmake and --min-time are for this"),
        (("--min-time=1", "--run", "{out}"), "with --run, say it in --build and --run"),
        (("--margin", "x", "--run", "{out}"), "argument --margin: "),
        (("--margin", "-1", "--run", "{out}"), "argument --margin: between 0 and 100"),
        (("--margin-abs", "2us"), "--margin-abs is for another project's benchmarks"),
        (("--margin-abs", "2", "--run", "{out}"), "argument --margin-abs: a time above zero with"),
        (("--margin-abs", "0ns", "--run", "{out}"), "argument --margin-abs: a time above zero"),
        (("--margin-abs", "xus", "--run", "{out}"), "argument --margin-abs: invalid duration"),
        (("--run", "true {out}"), "base: `true {out}` did not write {out}"),
        (("--run", "echo no; exit 3 {out}"), "failed with exit code 3 in "),
        (("--build", "echo why; false", "--run", "{out}"), "base: `echo why; false` failed with"),
        (("--run", "echo x > {out}"), "base: {out}:1: no JSON, and the first line"),
        (("--run", "sleep 9; echo {out}"), "not finished after 0.2 s"),
    ],
)
def test_what_makes_no_sense_is_exit_2(project, monkeypatch, command, message):
    monkeypatch.setattr(projects, "TIMEOUT_S", 0.2)
    code, _, err = project(google(TIMES), google(slower(1)), command=command)
    assert code == 2
    assert message in err.replace("head: ", "base: ")


def test_submodules_are_for_whoever_checks_them_out(tmp_path):
    (tmp_path / "source-0").mkdir()
    (tmp_path / "source-0" / ".gitmodules").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projects, "resolve_commit", lambda *_: "0")
        project = Foreign.at(tmp_path, tmp_path, "", "", Declared(), Margin())
        with pytest.raises(GateError, match="it has submodules, which git does not copy"):
            projects.resolve(project, "base", "main")


def test_recorded_runs_are_collected_compared_accepted_and_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared = ("--yardstick", "Reference/*", "--verified", "ok")
    for run, percent in (("old", 0), ("new", 5)):
        files = []
        for number in range(3):
            factor = 1 + number / 1000
            document = google({n: t * factor for n, t in slower(percent).items()}, ok=1)
            files.append(f"{run}{number}.json")
            Path(files[-1]).write_text(text(document))
        assert main(["collect", "--out", f"{run}.json", "--commit", COMMIT, *declared, *files]) == 0
    assert main(["accept", "old.json", "--baseline", "baseline.json"]) == 0
    assert main(["compare", "baseline.json", "new.json", "--json", "v.json"]) == 1
    out = capsys.readouterr().out
    assert "4 judged: 1 regressed, 3 pass." in out
    assert main(["report", "v.json", "new.json", "--junit", "r.xml", "--markdown", "r.md"]) == 0
    assert 'name="64" time="0.000002102"' in Path("r.xml").read_text()
    assert "| `Kernel/64` | 2.102 µs | 47.6 % |" in Path("r.md").read_text()
    capsys.readouterr()
    assert main(["report", "new.json"]) == 0
    assert "Kernel/64      2.102 µs            47.6 %\n" in capsys.readouterr().out


def test_what_our_own_bench_wrote_needs_no_declaration(tmp_path, capsys):
    document = google({"Naive/8x8x8": 1.0}, GFLOPS=1.0)
    document["context"] |= {"device_kind": "simt", "device_name": "SIMT executor"}
    path = tmp_path / "process.json"
    path.write_text(text(document))
    words = ["collect", "--out", str(tmp_path / "run.json"), "--commit", COMMIT, str(path)]
    assert main(words) == 0
    assert main([*words, "--verified", "ok"]) == 2
    assert "--verified are for another project's benchmarks" in capsys.readouterr().err


def test_our_own_benchmarks_cannot_pass_for_anothers(tmp_path, capsys):
    """Which would take the checks off them: of names, and that results were verified."""
    run = make_run()
    base = write(tmp_path / "base.json", run)
    run["benchmarks"][NAIVE] |= {"verified": False, "unchecked": True}
    candidate = write(tmp_path / "run.json", run)
    assert main(["compare", str(base), str(candidate)]) == 2
    assert "unchecked and per_second are of other projects' benchmarks" in capsys.readouterr().err
    run["device"] = {"kind": "other", "name": run["device"]["name"]}
    del run["benchmarks"][NAIVE]["unchecked"]
    assert main(["compare", str(base), str(write(candidate, run))]) == 2  # not verified
    run["benchmarks"][NAIVE]["verified"] = True
    assert main(["compare", str(base), str(write(candidate, run))]) == 4
    run = make_run({"a b": make_row(0.5, 1.0)})
    assert main(["compare", str(base), str(write(candidate, run))]) == 2
    assert "malformed benchmark name 'a b'" in capsys.readouterr().err
