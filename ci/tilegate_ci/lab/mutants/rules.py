"""The mutants of a source file, by the rules of tests/mutants/rules.txt.

A mutant is one changed line. Where its rule has a switch, the line can hold the original and the
mutant at once, so that one compilation serves all mutants of a file."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tilegate_ci.core.files import GateError, read_text

RULES = Path("tests/mutants/rules.txt")
_NO_CODE = re.compile(r"\s*(#|template\b|using\b|namespace\b|static_assert\b|extern\b|//)")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')
_BRACKETS = r"(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))"  # what {()} in a rule stands for
_RULE = re.compile(r"(.+?) ==> ?(.*?)(?: ~~ (.*)…(.*))?")


@dataclass(frozen=True, order=True)
class Mutant:
    """`before` and `after` are the line without its indent. The switch is what stands before and
    after columns `begin` and `end` of the line; without one a mutant is compiled alone."""

    file: str
    line: int
    kind: str
    before: str
    after: str
    begin: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    switch: tuple[str, str] | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """A mutant is known by its line, wherever that stands in its file."""
        return self.file, self.before, self.after


@dataclass(frozen=True)
class FaultRule:
    kind: str
    not_on: re.Pattern[str] | None  # lines that its class leaves alone
    pattern: re.Pattern[str]
    replacement: str
    switch: tuple[str, str] | None


def read_rules(path: Path) -> list[FaultRule]:
    found: list[FaultRule] = []
    kind, not_on = "", None
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            if head := re.fullmatch(r"\[(\w+)(?: !(.+))?\]", line):
                kind, not_on = head[1], re.compile(head[2]) if head[2] else None
            elif line and not line.startswith("#"):
                rule = _RULE.fullmatch(line)
                if not (rule and kind):
                    raise GateError(
                        f"{path}: line {number}: not `regex ==> replacement` below a [class]"
                    )
                switch = None if rule[3] is None else (rule[3], rule[4])
                pattern = re.compile(rule[1].replace("{()}", _BRACKETS))
                found.append(FaultRule(kind, not_on, pattern, rule[2], switch))
        except re.error as problem:
            raise GateError(f"{path}: line {number}: {problem}") from problem
    return found


def mutants_of(repository: Path, file: str, rules: list[FaultRule]) -> list[Mutant]:
    """All of them, each changed line once, in the order of the lines."""
    found: dict[tuple[int, str], Mutant] = {}
    for number, line in enumerate(read_text(repository / file).splitlines(), 1):
        if _NO_CODE.match(line):
            continue
        # Without strings and comments, in their place nothing that matches.
        code = _STRING_OR_COMMENT.sub(lambda match: "\0" * len(match[0]), line).rstrip("\0 ")
        for rule in rules:
            if rule.not_on and rule.not_on.search(line):
                continue
            for match in rule.pattern.finditer(code):
                begin, end = match.span()
                after = (line[:begin] + match.expand(rule.replacement) + line[end:]).strip()
                if "\0" in match[0] or after == line.strip():
                    continue
                switch = rule.switch and (
                    match.expand(rule.switch[0]),
                    match.expand(rule.switch[1]),
                )
                mutant = Mutant(file, number, rule.kind, line.strip(), after, begin, end, switch)
                found.setdefault((number, after), mutant)
    return list(found.values())


def plant(tree: Path, mutant: Mutant) -> None:
    """In a scratch copy of the repository: the mutant alone."""
    lines = _lines(tree / mutant.file)
    old = lines[mutant.line - 1]
    if old.strip() != mutant.before:
        raise GateError(f"{mutant.file}:{mutant.line}: the line is {old.strip()!r} now")
    lines[mutant.line - 1] = old.replace(mutant.before, mutant.after)
    (tree / mutant.file).write_text("".join(lines), "utf-8")


def plant_switches(tree: Path, file: str, mutants: Iterable[tuple[int, Mutant]]) -> None:
    """All of them, by their numbers. What ends at a column stands before what begins there; inner
    ones end first, outer ones begin first."""
    lines = _lines(tree / file)
    insertions = []
    for number, mutant in mutants:
        assert mutant.switch
        call = f"::tilegate_mutants::planted({number})"
        before, after = (
            text.replace("@", call).replace("#", str(number)) for text in mutant.switch
        )
        insertions += [
            (mutant.line, mutant.end, False, -mutant.begin, -number, after),
            (mutant.line, mutant.begin, True, -mutant.end, number, before),
        ]
    for line, at, *_, text in sorted(insertions, reverse=True):  # columns stay valid on the left
        code = lines[line - 1]
        lines[line - 1] = code[:at] + text + code[at:]
    (tree / file).write_text("".join(lines), "utf-8")


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines(keepends=True)
