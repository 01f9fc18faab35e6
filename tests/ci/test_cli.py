"""ci/gate as a process: exit codes, streams, files."""

import os

import pytest

from gate_builders import NAIVE, REPOSITORY, WARPTILE, make_row, make_run, scaled, write
from tilegate_ci.cli import ALIASES, COMMANDS, LAB, main


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "base.json", make_run()), tmp_path / "run.json"


def unverified(document):
    document["benchmarks"][NAIVE]["verified"] = False
    return document


def other_device(document):
    document["device"]["name"] = "NVIDIA L4"
    return document


def new(document):
    document["benchmarks"]["Extra/1x1x1"] = make_row(0.5, 1.0)
    return document


@pytest.mark.parametrize(
    ("candidate", "code", "last"),
    [
        (make_run(), 0, "3 judged: 3 pass. Exit 0"),
        (new(make_run()), 0, "4 judged: 1 new, 3 pass. Exit 0"),
        (scaled(make_run(), WARPTILE, 1.05), 0, "3 judged: 2 pass, 1 improved. Exit 0"),
        (scaled(make_run(), WARPTILE, 0.95), 1, "3 judged: 1 regressed, 2 pass. Exit 1"),
        (unverified(scaled(make_run(), WARPTILE, 0.95)), 2, "3 judged: 1 error, 1 regressed"),
        (other_device(scaled(make_run(), WARPTILE, 0.95)), 4, "3 judged: 3 incomparable. Exit 4"),
        (other_device(unverified(make_run())), 2, "3 judged: 1 error, 2 incomparable. Exit 2"),
    ],
)
def test_exit_codes(files, candidate, code, last, capsys):
    assert main(["compare", str(files[0]), str(write(files[1], candidate))]) == code
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith(last)
    assert err == ""


@pytest.mark.parametrize(("evidence_too", "stderr"), [(True, ""), (False, "judged as written\n")])
def test_five_percent_off_one_ratio_is_exit_1(files, capsys, evidence_too, stderr):
    candidate = make_run()
    row = candidate["benchmarks"][WARPTILE]
    row["ratio_to_cublas"] *= 0.95
    if evidence_too:
        values = row["per_process"]["ratio_to_cublas"]
        row["per_process"]["ratio_to_cublas"] = [value * 0.95 for value in values]
    assert main(["compare", str(files[0]), str(write(files[1], candidate))]) == 1
    assert capsys.readouterr().err.endswith(stderr)


@pytest.mark.parametrize(("baseline_factor", "candidate_factor"), [(0.9, 1.0), (1.0, 1.1)])
def test_a_summary_that_hides_a_regression_is_exit_2(
    files, baseline_factor, candidate_factor, capsys
):
    for path, factor in zip(files, (baseline_factor, candidate_factor)):
        document = make_run()
        document["benchmarks"][WARPTILE]["ratio_to_cublas"] *= factor
        write(path, document)
    assert main(["compare", *map(str, files)]) == 2
    assert "than the median of its per_process values" in capsys.readouterr().err


def test_errors_go_to_stderr_and_exit_2(gate, files):
    done = gate("compare", files[0], "none.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gate: error: none.json: cannot be read: No such file or directory\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["compare"],
        ["compares"],
        ["compare", "a.json", "b.json", "--no"],
        ["lab"],
        ["lab", "mutant"],
        ["lab", "tune", "--no"],
    ],
)
def test_wrong_usage_is_exit_2(arguments, capsys):
    assert main(arguments) == 2
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert ": error: " in first
    assert second.startswith("usage: ci/gate")


def test_an_unknown_option_is_named_before_what_is_missing(capsys):
    assert main(["run", "--nope"]) == 2
    assert capsys.readouterr().err.startswith("ci/gate run: error: unrecognized arguments: --nope")


@pytest.mark.parametrize(("old", "new"), ALIASES.items())
def test_an_old_spelling_works_with_a_notice(old, new, capsys):
    assert main([old, "--help"]) == 0
    said = capsys.readouterr()
    assert f"usage: ci/gate {' '.join(new[: 1 + (new[0] == 'lab')])} " in said.out
    assert said.err == f"gate: ci/gate {old} is now ci/gate {' '.join(new)}\n"


def test_a_baseline_alone_is_exit_2(capsys):
    assert main(["compare", "a.json"]) == 2
    assert "a.json: only a baseline; give a candidate too" in capsys.readouterr().err


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    folder = REPOSITORY / "ci" / "tilegate_ci"
    shared = {"__init__", "arguments"}
    assert {path.stem for path in folder.glob("commands/*.py")} - shared == COMMANDS.keys() - {
        "lab"
    }
    assert {path.stem for path in folder.glob("lab/commands/*.py")} - {"__init__"} == LAB.keys()
    assert all(f"\n    {name}" in out for name in COMMANDS)
    assert main(["lab", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n    {name}" in out for name in LAB)


@pytest.mark.parametrize(
    "command", [*(name for name in COMMANDS if name != "lab"), *(f"lab {name}" for name in LAB)]
)
def test_help_has_examples_and_exit_codes(command, capsys):
    assert main([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert f"usage: ci/gate {command} " in out
    assert "examples:\n  " in out
    assert "exit codes:\n  0  " in out


def test_markdown_goes_to_its_file(files, tmp_path):
    path = tmp_path / "summary.md"
    write(files[1], scaled(make_run(), WARPTILE, 0.95))
    arguments = ["compare", str(files[0]), str(files[1]), "--markdown", str(path)]
    assert main(arguments) == 1
    assert path.read_text().startswith("### Gate: regressed\n")
    write(files[1], "")
    assert main(arguments) == 2
    assert path.read_text().startswith("### Gate: error\n")
    assert "the file is empty" in path.read_text()


def test_a_pipe_is_written_to_and_stays_a_pipe(files, tmp_path):
    write(files[1], make_run())
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for options in (("--markdown", pipe), ("--json", pipe)):
        assert main(["compare", *map(str, (*files, *options))]) == 0
    message = os.read(reading, 1 << 16).decode()
    os.close(reading)
    assert message.startswith("### Gate: nothing regressed\n")
    assert '"kind": "verdict"' in message
    assert pipe.is_fifo()


def test_markdown_that_cannot_be_written_is_exit_2(files, tmp_path):
    write(files[1], make_run())
    path = tmp_path / "none" / "summary.md"
    assert main(["compare", str(files[0]), str(files[1]), "--markdown", str(path)]) == 2


def test_a_filter_from_the_command_line(files, capsys):
    write(files[1], scaled(make_run(), WARPTILE, 0.95))
    arguments = ["compare", str(files[0]), str(files[1]), "--filter"]
    assert main([*arguments, "^Naive/"]) == 0
    assert main([*arguments, "^Warptile/"]) == 1
    assert "1 judged, 2 not: 1 regressed." in capsys.readouterr().out
    assert main([*arguments, "Warptiel"]) == 2
    assert main([*arguments, "*"]) == 2


def test_a_defect_of_the_gate_itself_is_exit_2_not_1(files, monkeypatch, capsys):
    def broken(*_):
        raise KeyError("planted")

    monkeypatch.setattr("tilegate_ci.commands.compare.compare", broken)
    assert main(["compare", str(files[0]), str(files[0])]) == 2
    assert "planted" in capsys.readouterr().err
