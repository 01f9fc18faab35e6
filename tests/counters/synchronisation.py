"""Every call in the kernels that synchronises, found in their sources, and what sees its removal.

A site is known by the function that it is in and by its text, not by file and line, so that files
may be merged and moved. Wrappers, functions that do nothing but synchronise, have sites where they
are called, too.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tilegate_ci.model import REPOSITORY

KERNELS = REPOSITORY / "kernels"
TABLE = Path(__file__).with_name("synchronisation.json")

# The synchronizing functions of device.cuh, async.cuh and flag.cuh. launch_dependents is not one:
# it lets the next kernel start earlier, and that kernel waits by itself.
PRIMITIVES = (
    r"__syncthreads|__syncwarp|named_barrier(?:_or)?|cluster_(?:sync|arrive|wait)"
    r"|barrier_(?:init|init_fence|arrive|arrive_expect|arrive_remote|wait)"
    r"|copy_async_(?:commit|wait)|store_(?:commit|wait)|fence_async_proxy"
    r"|warpgroup_(?:arrive|commit|fence_operand|wait)|wait_for_previous_kernel"
    r"|raise_flag|wait_for_flag|clear_flags"
)


@dataclass(frozen=True)
class Site:
    """`begin` and `end` are of the call in its file's text."""

    file: str  # below kernels
    function: str  # with its namespace and class
    call: str
    begin: int
    end: int
    number: int = 1  # among the same calls of functions of that name

    @property
    def key(self) -> str:
        again = f" #{self.number}" if self.number > 1 else ""
        return f"{self.function}: {self.call}{again}"

    @property
    def kind(self) -> str:
        return re.split(r"[<(]", self.call)[0].rpartition(".")[2]


@cache
def sources() -> dict[str, str]:
    """The kernels' device code, without that of the device itself."""
    paths = [*KERNELS.glob("[0-9]*/*.cu*"), *KERNELS.glob("sgemm/*.cu*")]
    paths += KERNELS.glob("common/include/**/*.cuh")
    return {path.relative_to(KERNELS).as_posix(): path.read_text("utf-8") for path in sorted(paths)}


@cache
def wrappers() -> frozenset[str]:
    """Functions that do nothing but synchronise; they may call each other."""
    found = frozenset[str]()
    while True:
        names = _names(found)
        more = {name for text in sources().values() for name in _wrappers(blank(text), names)}
        if more <= found:
            return found
        found |= more


def _names(wrappers: frozenset[str]) -> str:
    return "|".join([PRIMITIVES, *sorted(wrappers)])


@cache
def sites() -> tuple[Site, ...]:
    seen = Counter[str]()
    result = []
    for file, text in sources().items():
        for function, begin, end in _calls(blank(text), _names(wrappers())):
            call = re.sub(r"\s+", " ", text[begin:end]).replace("device::", "")
            site = Site(file, function, call, begin, end)
            seen[site.key] += 1
            result.append(replace(site, number=seen[site.key]))
    return tuple(result)


@cache
def blank(text: str) -> str:
    """Without comments, strings and preprocessor lines, everything else where it was."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*'
    return re.sub(
        pattern,
        lambda match: re.sub(r"[^\n]", " ", match.group()),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )


@dataclass(frozen=True)
class _Function:
    name: str
    begin: int  # of its body
    end: int
    returns_nothing: bool


@cache
def _functions(text: str) -> tuple[_Function, ...]:
    found: list[_Function] = []
    scopes: list[tuple[str, str, int, str]] = []  # kind, name, where the body begins, its head
    head = 0
    for match in re.finditer(r"[{};]", text):
        at = match.start()
        if match.group() == "{":
            before = text[head:at]
            kind, name = _scope(before, bool(scopes) and scopes[-1][0] in ("function", "other"))
            scopes.append((kind, name, at + 1, before))
        elif match.group() == "}":
            kind, name, begin, before = scopes.pop()
            if kind == "function":
                outer = [scope[1] for scope in scopes if scope[1]]
                is_void = re.search(r"\bvoid\b[^()]*$", before.split(name)[0]) is not None
                found.append(_Function("::".join([*outer, name]), begin, at, is_void))
        elif text.count("(", head, at) != text.count(")", head, at):
            continue  # of a for
        head = match.end()
    return tuple(found)


def _scope(head: str, in_function: bool) -> tuple[str, str]:
    if in_function:
        return "other", ""
    if match := re.search(r"\bnamespace\s+([\w:]*)\s*$", head):
        return "namespace", match.group(1).split("::")[-1]
    if match := re.search(r"\b(?:struct|class|union|enum)\b[^(]*?\b(\w+)\b[^()]*$", head):
        name = re.search(r"\b(?:struct|class|union)\s+(?:alignas\([^)]*\)\s*)?(\w+)", head)
        return "class", name.group(1) if name else match.group(1)
    # The first name before a bracket that closes at depth 0, attributes aside.
    head = re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)", "", head)
    if match := re.search(r"(~?\w+)\s*\(", head):
        return "function", match.group(1)
    return "other", ""


def _calls(text: str, names: str) -> Iterator[tuple[str, int, int]]:
    """The function, begin and end of each call that is a statement, or a whole value."""
    functions = _functions(text)
    pattern = rf"(?<![\w:.>])(?:device::|[a-z]\w*\.)?(?:{names})\b(?:<[^;(){{}}]*>)?\("
    for match in re.finditer(pattern, text):
        end = _closing(text, match.end() - 1) + 1
        before = text[: match.start()].rstrip()[-5:]
        if not re.match(r"\s*;", text[end:]) or not re.search(r"([;{}):=]|\belse)$", before):
            continue
        inside = [f for f in functions if f.begin <= match.start() < f.end]
        if inside:
            yield inside[-1].name, match.start(), end


def _closing(text: str, opening: int) -> int:
    depth = 0
    for match in re.compile(r"[()]").finditer(text, opening):
        depth += 1 if match.group() == "(" else -1
        if depth == 0:
            return match.start()
    raise ValueError("a bracket is not closed")


def _wrappers(text: str, names: str) -> Iterator[str]:
    """Functions without a result all of whose statements synchronise."""
    every = [*_calls(text, names)]
    for function in _functions(text):
        if not function.returns_nothing:
            continue
        calls = [call for call in every if function.begin <= call[1] < function.end]
        body = text[function.begin : function.end]
        for _, begin, end in reversed(calls):
            at = begin - function.begin
            body = body[:at] + body[end - function.begin :]
        body = re.sub(r"\bconst(?:expr)?\s+auto\b[^;]*;", "", body)
        body = _without_conditions(body)
        if calls and not re.sub(r"\belse\b|[{};\s]", "", body):
            yield function.name.split("::")[-1]


def _without_conditions(body: str) -> str:
    while match := re.search(r"\bif\s*(?:constexpr\s*)?\(", body):
        body = body[: match.start()] + body[_closing(body, match.end() - 1) + 1 :]
    return body


@cache
def reached_from(source: str) -> frozenset[str]:
    """The files below kernels that a source includes, itself among them."""
    found: set[str] = set()
    waiting = [KERNELS / source]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(KERNELS).as_posix()
        if name in found:
            continue
        found.add(name)
        for angle, included in re.findall(
            r'^#include ([<"])([^">]+)[">]', path.read_text("utf-8"), re.MULTILINE
        ):
            folder = KERNELS / "common/include" if angle == "<" else path.parent
            if (folder / included).is_file():
                waiting.append((folder / included).resolve())
    return frozenset(found)


@cache
def rungs() -> dict[str, list[str]]:
    """The sources of each rung that has sites, but for variants; by its folder's name without the
    number."""
    files = {site.file for site in sites()}
    found = {}
    for folder in sorted(KERNELS.glob("[0-9]*/")):
        sources = [
            f"{folder.name}/{path.name}"
            for path in sorted(folder.glob("*.cu"))
            if path.name != "variants.cu"
        ]
        if any(reached_from(source) & files for source in sources):
            found[folder.name.partition("_")[2]] = sources
    return found


@dataclass(frozen=True)
class Row:
    """What saw a site's removal: `how` is hazard, deadlock, value or nothing."""

    rung: str = ""
    test: str = ""
    how: str = "nothing"
    what: str = ""
    reason: str = ""  # why nothing does


def read_table() -> dict[str, Row]:
    if not TABLE.exists():
        return {}
    return {key: Row(**row) for key, row in json.loads(TABLE.read_text("utf-8")).items()}


def write_table(table: dict[str, Row]) -> None:
    """A line for each site, and of each what it has."""
    rows = {key: {name: text for name, text in vars(table[key]).items() if text} for key in table}
    lines = [f"{json.dumps(key)}: {json.dumps(rows[key])}" for key in sorted(rows)]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
