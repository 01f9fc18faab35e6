"""ci/ as a package: its version and what it needs, beside what the checkout says of both."""

import re
import tomllib

from gate_builders import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "ci/pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENTS = (REPOSITORY / "ci/requirements.txt").read_text("utf-8")
PINS = dict(re.findall(r"^([\w-]+)==(\d+(?:\.\d+)*)", REQUIREMENTS, re.MULTILINE))


def numbers(version):
    return [int(part) for part in version.split(".")]


def test_the_version_is_that_of_the_checkout():
    text = (REPOSITORY / "CMakeLists.txt").read_text("utf-8")
    assert re.search(r"project\(tilegate VERSION (\S+)", text)[1] == PROJECT["version"]


def test_it_is_tested_with_what_it_needs():
    needed = dict(entry.split(">=") for entry in PROJECT["dependencies"])
    assert needed.keys() <= PINS.keys()
    for name, least in needed.items():
        assert numbers(PINS[name])[: len(numbers(least))] == numbers(least), name


def test_it_needs_what_the_commands_import():
    (modules,) = re.findall(
        r'^modules="(.*?)"', (REPOSITORY / "ci/setup.sh").read_text(), re.MULTILINE
    )
    packages = {"elftools": "pyelftools", "vl_convert": "vl-convert-python"}
    needed = {entry.split(">=")[0] for entry in PROJECT["dependencies"]}
    assert needed == {packages.get(name, name) for name in modules.split()} | {"nvidia-ml-py"}
