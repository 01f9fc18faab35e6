"""Links of all pages lead somewhere, and the commands that pages show exist."""

import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from ladder_builder import REPOSITORY

from tilegate_ci.cli import ALIASES, COMMANDS, LAB, main

_NO_PAGES = (
    "ci/tilegate_ci/report/markdown/",
    "tests/ci/report/golden/",
    "tests/ci/checks/profile/golden/",
)
# A line of a code block that is indented, or a span: a command of ci/ with its arguments.
_COMMAND = re.compile(r"^    (ci/[a-z]+ [^|\n]*)$|`(ci/[a-z]+\s[^`|]*)`", re.MULTILINE)


def pages() -> list[str]:
    """The Markdown files that git knows or would add; without git, all outside build/."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    found = listed.stdout.split()
    if listed.returncode:
        paths = (path.relative_to(REPOSITORY) for path in REPOSITORY.rglob("*.md"))
        found = [path.as_posix() for path in paths if path.parts[0] != "build"]
    there = [name for name in found if (REPOSITORY / name).exists()]
    return sorted(name for name in there if not name.startswith(_NO_PAGES))


def without_code(text: str) -> str:
    """No blocks and spans of code, where brackets are no links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^    .*$|`[^`\n]*`", "", text, flags=re.MULTILINE)


def slug(heading: str) -> str:
    """The anchor that GitHub makes of it."""
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        anchor = slug(heading)
        twins = sum(re.sub(r"-\d+$", "", each) == anchor for each in found)
        found.append(f"{anchor}-{twins}" if twins else anchor)
    return frozenset(found)


def dead_links(page: Path) -> list[str]:
    dead = []
    for target in re.findall(r"\]\(<?([^)>]+)>?\)", without_code(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            dead.append(target)
    return dead


def test_there_are_pages():
    names = [
        "README.md",
        "bench/README.md",
        "ci/README.md",
        "ci/REFERENCE.md",
        "ci/proof.md",
        "ci/runner.md",
    ]
    assert {*names, "kernels/README.md", "kernels/GLOSSARY.md", "tests/README.md"} <= set(pages())


@pytest.mark.parametrize("page", pages())
def test_links(page):
    assert dead_links(REPOSITORY / page) == []


def test_dead_links_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# The *first*: one/two\n[a](#the-first-onetwo) [b](none.md) [c](#nowhere) `[d](e.md)`\n"
        "[f](https://example.com/g.md) [h](page.md#twice-1) ![i](none.svg)\n\n## Twice\n## Twice\n"
        "```\n# [no](heading.md)\n```\n    [no](link.md)\n"
    )
    assert dead_links(page) == ["none.md", "#nowhere", "none.svg"]


def commands_in(text: str) -> list[str]:
    """Without comments, and what follows a command after &&."""
    found = (block or span for block, span in _COMMAND.findall(text))
    return [" ".join(re.split(" #| &&", command)[0].split()) for command in found]


def commands() -> list[str]:
    texts = [(REPOSITORY / name).read_text("utf-8") for name in pages()]
    return list(dict.fromkeys(command for text in texts for command in commands_in(text)))


def test_commands_are_found():
    text = "    ci/a --b  # c\n    ci/a d && e\n  ci/a f\nso `ci/a\n  --g` and `ci/a`\n    ci/a h\n"
    assert commands_in(text) == ["ci/a --b", "ci/a d", "ci/a --g", "ci/a h"]


def help_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What --help says of a command, such as ["ci/gate", "run"]; a script of its own may be one
    of ci/gate's commands."""
    program = Path(words[0]).name
    command = words[1] if program == "gate" else program
    if command not in COMMANDS.keys() | ALIASES.keys():
        return subprocess.run(
            [REPOSITORY / words[0], "--help"], capture_output=True, text=True, check=True
        ).stdout
    of_lab = words[2:3] if command == "lab" else []
    assert main([command, *of_lab, "--help"]) == 0
    return capsys.readouterr().out


def unknown_options(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    words = shlex.split(command.partition(" -- ")[0])
    options = [word.partition("=")[0] for word in words[1:] if word.startswith("-")]
    if words[0] == "ci/pytest" or words[1] == "COMMAND":  # pytest's own options; any command
        return []
    said = help_of(words, capsys)
    return [option for option in options if option not in said]


@pytest.mark.parametrize("command", commands())
def test_the_options_of_a_command_exist(command, capsys):
    assert unknown_options(command, capsys) == []


def test_unknown_options_are_seen(capsys):
    assert unknown_options("ci/gate compare A B --json C --nothing", capsys) == ["--nothing"]
    assert unknown_options("ci/gate lab mutants --rung A --nothing", capsys) == ["--nothing"]
    assert unknown_options("ci/test --gpu --nothing=1", capsys) == ["--nothing"]
    assert unknown_options("ci/bench --shapes 1x1x1 -- --cold", capsys) == []


def test_the_presets_that_pages_name_exist():
    listed = json.loads((REPOSITORY / "CMakePresets.json").read_text("utf-8"))
    known = {preset["name"] for preset in listed["configurePresets"] if not preset.get("hidden")}
    texts = "\n".join((REPOSITORY / name).read_text("utf-8") for name in pages())
    named = set(re.findall(r"(?<!`)\bc(?:make|test) (?:--build )?--preset[ =]([a-z]+)", texts))
    assert {"cpu", "gpu", "debug"} <= named <= known


def test_the_page_of_the_commands_has_them_all():
    page = (REPOSITORY / "ci" / "REFERENCE.md").read_text("utf-8")
    table = page.partition("| command | does |")[2].partition("\n\n")[0]
    names = [*COMMANDS, *(f"lab {name}" for name in LAB)]
    assert {name for name in names if f"`ci/gate {name}" not in table} == set()
    scripts = {path.name for path in (REPOSITORY / "ci").iterdir() if path.is_file()}
    scripts = {name for name in scripts if "." not in name} - {"gate", "nvcc"}
    assert {name for name in scripts if f"`ci/{name}" not in table} == set()


def test_the_planted_faults_of_the_page_are_there():
    page = (REPOSITORY / "tests/README.md").read_text("utf-8")
    section = page.partition("\n## Kinds of faults\n")[2].partition("\n## ")[0]
    names = re.findall(r"`([\w.]+)`", section)
    assert len(names) > 30
    suffixes = {".cpp", ".cu", ".txt"}
    sources = [path for path in (REPOSITORY / "tests").rglob("*") if path.suffix in suffixes]
    words = {word for path in sources for word in re.findall(r"[\w.]+", path.read_text("utf-8"))}
    assert set(names) <= words
