"""When the machine code and the launches of a rung count as the same."""

import subprocess
from pathlib import Path

import pytest
from stage_builder import stage, write_stages

from tilegate_ci.measure import identity
from tilegate_ci.measure.identity import fingerprints, same_rungs

RUNG = """
__attribute__((section(".nv_fatbin"), used)) static const char device[] = "%(device)s";
static const double threshold[] = {%(constant)s, 2.0};
int launch(int n, int i) { return n * %(host)s + (threshold[i] > 1.5); }
const char* where() { return __FILE__; }
"""
PLAIN = {"device": "sass", "constant": "1.0", "host": "3"}
WARPTILE = "kernels/CMakeFiles/tilegate_warptile.dir/10_warptile/warptile.cu"
VARIANTS = "kernels/CMakeFiles/tilegate_warptile_variants.dir/10_warptile/variants.cu"
SGEMM = "kernels/CMakeFiles/tilegate_sgemm.dir/sgemm/sgemm.cu"
SPLIT_K = "kernels/CMakeFiles/tilegate_split_k.dir/12_split_k/split_k.cu"
SHARED = "kernels/device/CMakeFiles/tilegate_device.dir/cuda/device.cpp"


@pytest.fixture(autouse=True)
def without_cuobjdump(monkeypatch):
    monkeypatch.setattr(identity, "find_cuobjdump", lambda: None)


def built(folder: Path, **changes: dict) -> Path:
    """A build folder with three rungs, variants of one and what they share; `changes` are to one.
    Sgemm launches kernels of SplitK, which launches kernels of Warptile."""
    places = {"warptile": WARPTILE, "variants": VARIANTS, "split_k": SPLIT_K, "sgemm": SGEMM}
    for name, place in places.items():
        compiled(folder / place, RUNG % {**PLAIN, **changes.get(name, {})})
    host = changes.get("shared", PLAIN)["host"]
    compiled(folder / SHARED, f"int launches(int n) {{ return n + {host}; }}")
    write_stages(
        folder,
        stage("10_warptile", "Warptile"),
        stage("12_split_k", "SplitK", chooses_from=["tilegate_warptile"]),
        stage("sgemm", "Sgemm", chooses_from=["tilegate_split_k"]),
    )
    return folder


def compiled(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)
    command = ["g++", "-O2", "-x", "c++", "-c", str(path), "-o", f"{path}.o"]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return built(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, {"Warptile", "Warptile.dealt", "SplitK", "Sgemm"}),
        ({"warptile": {"device": "SASS"}}, {"Warptile.dealt"}),
        ({"warptile": {"host": "5"}}, {"Warptile.dealt"}),
        ({"variants": {"device": "SASS"}}, {"Warptile", "SplitK", "Sgemm"}),
        ({"split_k": {"constant": "1.25"}}, {"Warptile", "Warptile.dealt"}),
        ({"sgemm": {"constant": "1.25"}}, {"Warptile", "Warptile.dealt", "SplitK"}),
        ({"shared": {"host": "5"}}, set()),
    ],
)
def test_a_change_is_of_its_own_rung_or_of_all(base, tmp_path, changes, same):
    head = built(tmp_path / "another folder with a longer name", **changes)
    rungs = ["Warptile", "Warptile.dealt", "SplitK", "Sgemm", "Naive"]
    assert same_rungs(base, head, rungs) == same


def test_objects_of_other_targets_do_not_count(base, tmp_path):
    head = built(tmp_path)
    rungs = {"Warptile", "SplitK", "Sgemm"}
    linked = [path.relative_to(head).as_posix() for path in sorted(head.rglob("*.o"))]
    compiled(head / "bench/CMakeFiles/other.dir/other.cpp", "int other() { return 1; }")
    assert same_rungs(base, head, rungs) == set()  # nothing says that it is of another target
    rule = "rule link\n command = true\nbuild bench/bench: link "
    (head / "build.ninja").write_text(rule + " ".join(linked) + "\n")
    assert same_rungs(base, head, rungs) == rungs


def test_a_build_is_identical_to_itself(base):
    assert same_rungs(base, base, ["Warptile", "Naive"]) == {"Warptile"}


def test_a_build_that_does_not_say_what_a_rung_launches_must_be_the_same_as_a_whole(tmp_path):
    base, head = built(tmp_path / "base"), built(tmp_path / "head", sgemm={"host": "5"})
    for folder in (base, head):
        write_stages(folder, stage("12_split_k", "SplitK", chooses_from=None))
    assert same_rungs(base, base, ["SplitK"]) == {"SplitK"}
    assert same_rungs(base, head, ["SplitK"]) == set()


def test_without_objects_nothing_is_identical(tmp_path):
    assert fingerprints(tmp_path) == {}
    assert same_rungs(tmp_path, tmp_path, ["Warptile"]) == set()


def test_a_build_that_does_not_list_its_rungs_has_none_in_common(tmp_path, capsys):
    base = built(tmp_path / "base")
    (base / "stages.json").unlink()
    assert same_rungs(base, base, ["Warptile"]) == set()
    assert "no stages.json, so that no machine code counts as the same" in capsys.readouterr().err


def test_what_is_no_object_file_counts_as_it_is(tmp_path):
    base, head = built(tmp_path / "base"), built(tmp_path / "head")
    assert same_rungs(base, head, ["Warptile"]) == {"Warptile"}
    for folder in (base, head):
        (folder / "kernels" / "bitcode.o").write_text(folder.name)
    assert same_rungs(base, head, ["Warptile"]) == set()
