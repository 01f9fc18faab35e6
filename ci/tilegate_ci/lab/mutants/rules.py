"""The mutants of a source file, by the rules of tests/mutants/rules.txt."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.core.files import GateError, read_text

RULES = Path("tests/mutants/rules.txt")
_NO_CODE = re.compile(r"\s*(#|template\b|using\b|namespace\b|static_assert\b|extern\b|//)")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')


@dataclass(frozen=True, order=True)
class Mutant:
    """One changed line. `before` and `after` are that line without its indent."""

    file: str
    line: int
    kind: str
    before: str
    after: str

    @property
    def title(self) -> str:
        return f"{self.file}:{self.line} {self.kind}"


@dataclass(frozen=True)
class FaultRule:
    kind: str
    pattern: re.Pattern[str]
    replacement: str


def read_rules(path: Path) -> list[FaultRule]:
    found, kind = [], ""
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.startswith("[") and line.endswith("]") and "==>" not in line:
            kind = line[1:-1]
        elif line and not line.startswith("#"):
            pattern, arrow, replacement = line.partition(" ==> ")
            if not arrow:
                pattern, arrow, replacement = line.partition(" ==>")
            try:
                found.append(FaultRule(kind, re.compile(pattern), replacement))
            except re.error as problem:
                raise GateError(f"{path}: line {number}: {problem}") from problem
            if not (arrow and kind):
                raise GateError(
                    f"{path}: line {number}: not `regex ==> replacement` below a [kind]"
                )
    return found


def mutants_of(repository: Path, file: str, rules: list[FaultRule]) -> list[Mutant]:
    """All of them, each changed line once, in the order of the lines."""
    found: dict[tuple[int, str], Mutant] = {}
    for number, line in enumerate(read_text(repository / file).splitlines(), 1):
        if _NO_CODE.match(line):
            continue
        code = _STRING_OR_COMMENT.sub(lambda match: "\0" * len(match[0]), line).rstrip("\0 ")
        for rule in rules:
            for after in _changed(line, code, rule):
                mutant = Mutant(file, number, rule.kind, line.strip(), after.strip())
                found.setdefault((number, mutant.after), mutant)
    return list(found.values())


def _changed(line: str, code: str, rule: FaultRule) -> Iterator[str]:
    """`code` is the line without its strings and comments, in their place nothing that matches."""
    for match in rule.pattern.finditer(code):
        start, end = match.span()
        new = line[:start] + match.expand(rule.replacement) + line[end:]
        if "\0" not in match[0] and new.strip() != line.strip():
            yield new


def apply(tree: Path, mutant: Mutant) -> None:
    """In a scratch copy of the repository."""
    path = tree / mutant.file
    lines = path.read_text("utf-8").splitlines(keepends=True)
    old = lines[mutant.line - 1]
    if old.strip() != mutant.before:
        raise GateError(f"{mutant.title}: the line is {old.strip()!r} now")
    lines[mutant.line - 1] = old.replace(mutant.before, mutant.after)
    path.write_text("".join(lines), "utf-8")
