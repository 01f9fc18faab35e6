"""ci/setup.sh: what it does on machines that lack this or that."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pip
import pytest
from ladder_builder import REPOSITORY


@pytest.fixture
def bash(tmp_path):
    """Runs a script after sourcing ci/setup.sh, with stand-ins for the tools in `tools`."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()

    def run(script, tools=None, alone=False, **environment):
        for name, body in (tools or {}).items():
            (stubs / name).write_text(f"#!/bin/bash\n{body}\n")
            (stubs / name).chmod(0o755)
        path = str(stubs) if alone else f"{stubs}:{os.environ['PATH']}"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("TILEGATE_")}
        setup = f'set -euo pipefail; source "{REPOSITORY}/ci/setup.sh"; PATH="{path}"'
        return subprocess.run(
            ["bash", "-c", f"{setup}; venv={tmp_path}/build/venv; {script}"],
            env={**inherited, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_an_empty_machine_misses_everything(bash):
    assert bash("missing_packages cpu", alone=True, CXX="").stdout.split() == [
        *("cmake", "ninja-build", "git", "g++", "libgtest-dev", "libbenchmark-dev"),
        *("libboost-context-dev", "clang", "python3-venv"),
    ]


def test_a_missing_header_is_a_missing_package(bash):
    done = bash("missing_packages cpu", tools={"g++": 'case "$(cat)" in *gtest*) exit 1;; esac'})
    assert "libgtest-dev" in done.stdout.split()
    assert "libbenchmark-dev" not in done.stdout.split()


def test_a_gpu_build_needs_neither_boost_nor_clang(bash):
    missing = bash("missing_packages gpu", alone=True, CXX="").stdout.split()
    assert "cmake" in missing
    assert not {"libboost-context-dev", "clang"} & set(missing)


def test_nothing_is_installed_where_nothing_is_missing(bash):
    script = "missing_packages() { :; }; set_up_packages cpu; echo done"
    done = bash(script, tools={"apt-get": "exit 9", "sudo": "exit 9"})
    assert (done.stdout, done.returncode) == ("done\n", 0)


def test_a_read_only_checkout_is_one_line(bash, tmp_path):
    (tmp_path / "build").write_text("")  # root may write to any folder
    done = bash(f'root="{tmp_path}"; set_up_packages cpu')
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("/build cannot be written: is the checkout read-only?\n")


def test_root_installs_by_name(bash):
    done = bash(
        "missing_packages() { echo cmake; echo git; }; set_up_packages cpu",
        tools={"id": "echo 0", "apt-get": 'echo "$*" >&2'},
    )
    assert done.returncode == 0
    assert "install -y --no-install-recommends cmake git" in done.stderr


def test_sudo_is_used_by_others(bash):
    done = bash(
        "missing_packages() { echo git; }; set_up_packages cpu",
        tools={
            "id": "echo 1000",
            "apt-get": 'echo "apt $*" >&2',
            "sudo": '[[ $1 == -n ]] && exit; echo "sudo $*" >&2',
        },
    )
    assert "sudo apt-get update" in done.stderr
    assert "sudo env DEBIAN_FRONTEND=noninteractive apt-get install" in done.stderr


def test_without_root_and_sudo_the_packages_are_named(bash):
    done = bash(
        "missing_packages() { echo cmake; echo git; }; set_up_packages cpu",
        tools={"id": "echo 1000", "apt-get": "exit 9", "sudo": "exit 1"},
    )
    assert done.returncode == 2
    assert "run as root: apt-get install -y --no-install-recommends cmake git" in done.stderr


def test_nothing_is_installed_against_the_users_will(bash):
    done = bash(
        "missing_packages() { echo cmake; }; set_up_packages cpu",
        tools={"apt-get": "echo called >&2"},
        TILEGATE_NO_INSTALL="1",
    )
    assert done.returncode == 2
    assert "missing, and not to be installed: cmake" in done.stderr
    assert "called" not in done.stderr


def test_a_current_venv_is_used_without_a_look_at_the_network(bash, tmp_path):
    venv = tmp_path / "build" / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to("/bin/true")
    (venv / "requirements.txt").write_text((REPOSITORY / "ci" / "requirements.txt").read_text())
    script = 'make_venv() { echo called; }; set_up_python pytest; echo "$python"'
    assert bash(script).stdout == f"{venv}/bin/python\n"
    (venv / "requirements.txt").write_text("older==1\n")
    assert "called" in bash(script).stdout


def test_of_two_commands_at_once_one_makes_the_venv(bash, tmp_path):
    (tmp_path / "build").mkdir()
    script = f"""
root={tmp_path}
venv_is_current() {{ [[ -e $root/made ]]; }}
make_venv() {{ echo "made twice"; }}
exec 9<"$root/build" && flock 9                # the first is making it
exec 8< <(exec 9<&-; set_up_python; echo "$python")
read -r line <&8 && read -r line <&8 && touch "$root/made" && exec 9<&-
cat <&8
"""
    assert bash(script).stdout == f"{tmp_path}/build/venv/bin/python\n"


def test_a_venv_that_is_a_link_is_never_cleared(bash, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "requirements.txt").write_text("older==1\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "venv").symlink_to(shared)
    done = bash("set_up_python json")
    assert done.returncode == 0
    assert f"build/venv is a link to {shared}, which is left alone" in done.stderr
    assert (shared / "requirements.txt").read_text() == "older==1\n"


def test_offline_the_python_of_the_machine_will_do_if_it_has_the_modules(bash):
    script = 'make_venv() { return 1; }; set_up_python json; echo "$python"'
    done = bash(script)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("/python3")
    assert "tests that need more will say that they are skipped" in done.stdout


def test_offline_without_the_modules_it_says_which(bash):
    done = bash("make_venv() { return 1; }; set_up_python json no_such_module")
    assert done.returncode == 2
    assert "python3 lacks one of: json no_such_module" in done.stderr


METADATA = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheels(tmp_path):
    """A folder with the wheel of one package."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "VALUE = 5\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("tiny-1.0.dist-info/WHEEL", WHEEL)
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    return folder


def test_packages_come_from_a_folder_of_wheels_or_the_machine_without_an_index(
    bash, wheels, tmp_path
):
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "of_the_machine.py").write_text("")
    # A pip of its own takes a virtual environment seconds to make: it borrows ours.
    borrowed = Path(pip.__file__).parents[1]
    python = f"""
if [[ $1 == -c && $2 == *getsitepackages* ]]; then echo {tmp_path}/machine; exit; fi
if [[ $2 != venv ]]; then exec "{sys.executable}" "$@"; fi
"{sys.executable}" "$@" --without-pip
echo {borrowed} >"$(echo "$4"/lib/python*/site-packages)/pip.pth\""""
    script = (
        'take_wheels --wheels wheels --cpu; modules="tiny of_the_machine"; set_up_python tiny; '
    )
    script += 'echo "${arguments[@]} $python"; '
    script += '"$python" -c "import tiny, of_the_machine; print(tiny.VALUE)"'
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "HTTPS_PROXY": "http://127.0.0.1:9/"}
    done = bash(f"cd {tmp_path}; {script}", tools={"python3": python}, **unreachable)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == [f"--cpu {tmp_path}/build/venv/bin/python", "5"]


def test_what_neither_has_is_named(bash, wheels):
    made = 'if [[ $2 == venv ]]; then mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; fi'
    lacks = "if [[ $2 == *import*absent* ]]; then echo No module named absent >&2; exit 1; fi"
    script = f'modules="tiny absent"; TILEGATE_WHEELS={wheels} set_up_python absent'
    done = bash(script, tools={"python3": f"{made}; {lacks}"})
    assert done.returncode == 2
    assert "No module named absent" in done.stderr
    assert "it could not be made, see above, and python3 lacks one of: absent" in done.stderr


@pytest.mark.parametrize("command", ["test", "bench"])
@pytest.mark.parametrize(
    ("words", "message"),
    [(["--wheels"], "needs a folder"), (["--wheels=/nowhere"], "no wheels")],
)
def test_a_folder_without_wheels_is_an_error(command, words, message):
    command = [REPOSITORY / "ci" / command, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr


def test_without_the_packages_one_sentence_says_what_to_do():
    command = [sys.executable, "-S", "-m", "tilegate_ci", "compare", "a", "b"]
    environment = {"PYTHONPATH": str(REPOSITORY / "ci")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"gate: error: {sys.executable} lacks rich: run ci/test, which makes build/venv, "
        "or pip install -r ci/requirements.txt\n"
    )


@pytest.mark.parametrize(
    ("version", "pip_called"), [("3.25.1", False), ("4.0.2", False), ("3.22.1", True)]
)
def test_an_old_cmake_is_replaced_in_the_venv(bash, version, pip_called):
    done = bash(
        'python=$venv/bin/python; mkdir -p "$venv/bin"; '
        'printf "#!/bin/bash\\necho \\"\\$*\\"" >"$python"; chmod +x "$python"; set_up_cmake',
        tools={"cmake": f"echo cmake version {version}"},
    )
    assert done.returncode == 0
    assert ("pip install" in done.stdout and "/ci/cmake.lock" in done.stdout) is pip_called
    assert ("--require-hashes" in done.stdout) is pip_called


def test_an_old_cmake_is_an_error_where_nothing_is_to_be_installed(bash):
    done = bash(
        "python=$venv/bin/python; TILEGATE_NO_INSTALL=1 set_up_cmake",
        tools={"cmake": "echo cmake version 3.22.1"},
    )
    assert done.returncode == 2
    assert "not to be installed: CMake 3.25 (here: 3.22.1)" in done.stderr


@pytest.mark.parametrize(
    ("listed", "answers"), [("GPU 0: NVIDIA H200", True), ("No devices found.", False)]
)
def test_a_driver_without_a_gpu_is_no_gpu(bash, listed, answers):
    done = bash("gpu_answers", tools={"nvidia-smi": f"echo '{listed}'"})
    assert (done.returncode == 0) is answers


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("test", "ci/test"),
        ("format", "ci/format"),
        ("types", "ci/types"),
        ("gate", "ci/gate"),
        ("bench", "ci/gate bench"),
        ("explain", "ci/gate explain"),
    ],
)
def test_every_command_has_help(command, usage):
    done = subprocess.run(
        [REPOSITORY / "ci" / command, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert f"usage: {usage} " in done.stdout


@pytest.mark.parametrize("command", ["test", "format", "types", "gate", "bench", "explain"])
def test_no_command_takes_an_option_that_it_does_not_know(command):
    done = subprocess.run(
        [REPOSITORY / "ci" / command, "--no-such-option"],
        env={**os.environ, "TILEGATE_NO_INSTALL": "1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2


def test_every_requirement_is_pinned():
    lines = (REPOSITORY / "ci" / "requirements.txt").read_text().splitlines()
    packages = [line.split("#")[0].strip() for line in lines if not line.startswith("#")]
    assert packages
    assert all(package.count("==") == 1 for package in packages)


def locked(name: str) -> dict[str, str]:
    """The packages of a lock file, each with its version; all have a digest."""
    entries = re.split(r"^(?=[a-z])", (REPOSITORY / "ci" / name).read_text(), flags=re.MULTILINE)[
        1:
    ]
    assert all("--hash=sha256:" in entry for entry in entries)
    return dict(entry.split()[0].split("==") for entry in entries)


def test_every_package_is_locked_to_its_digests():
    known = locked("requirements.lock")
    pinned = (REPOSITORY / "ci" / "requirements.txt").read_text("utf-8")
    wanted = dict(re.findall(r"^([\w.-]+)==(\S+)", pinned, re.MULTILINE))
    assert {name.replace(".", "-"): version for name, version in wanted.items()}.items() <= (
        known.items()
    )
    assert list(locked("cmake.lock")) == ["cmake"]


def test_packages_are_installed_by_their_digests(bash):
    script = 'mkdir -p "$venv"; python3() { :; }; pip_install() { echo "$@"; }; make_venv; '
    script += "TILEGATE_WHEELS=w "
    done = bash(script + "pip_install_locked x")
    assert done.stdout == f"--require-hashes -r {REPOSITORY}/ci/requirements.lock\n-r x\n"


def test_pre_commit_formats_with_the_same_versions():
    text = (REPOSITORY / ".pre-commit-config.yaml").read_text("utf-8")
    pinned = (REPOSITORY / "ci" / "requirements.txt").read_text("utf-8")
    formatters = re.findall(r"^(clang-format|ruff)==(\S+)", pinned, re.MULTILINE)
    assert re.findall(r"rev: v(\S+)", text) == [version for _, version in formatters]
