"""Compiles a CUDA source for the executor: `translate.py COMPILER ARGUMENTS...`, as a launcher.

It rewrites the constructs that plain.hpp cannot declare for a C++ compiler, in the preprocessed
source: `__shared__` variables, PTX in `asm`, `<<<...>>>`. Line numbers do not change. A construct
that the executor does not support is an error that names it and its line.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import ptx

_HERE = Path(__file__).resolve().parent

_TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#[^\n]*)|(?P<newline>\n)|(?P<space>[ \t\r\f\v]+)
    |(?:u8|[uUL])?R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)"
    |(?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")|(?P<character>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
    |(?P<name>[A-Za-z_$][\w$]*)|(?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    |(?P<operator><<<|::|->\*?|\.\.\.|[-+*/%^&|=!<]=|<<=?|&&|\|\||\+\+|--|.)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# Position of the lines up to the next marker: `# 12 "file" 3`. The flag 3 marks a system header.
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\\n]|\\.)*)"([ \d]*)$', re.MULTILINE)

_CLOSING = {"(": ")", "[": "]", "{": "}"}

# Names that the executor does not support, and the reason or the alternative.
_UNSUPPORTED = {
    **dict.fromkeys(("nvcuda",), "use the tensor-core functions of tilegate/device/warp_mma.cuh"),
    **dict.fromkeys(
        ("__half", "__half2", "__nv_bfloat16", "__nv_bfloat162"),
        "16-bit floating point",
    ),
    **dict.fromkeys(
        (
            "cudaTextureObject_t",
            "tex1Dfetch",
            "tex1D",
            "tex2D",
            "tex3D",
            "surf2Dread",
            "surf2Dwrite",
        ),
        "textures and surfaces",
    ),
    **dict.fromkeys(("__constant__", "__managed__"), "pass it to the kernel as an argument"),
    **dict.fromkeys(
        ("this_grid", "this_multi_grid", "this_cluster", "__cluster_dims__"),
        "blocks run one after another",
    ),
    **dict.fromkeys(
        ("coalesced_threads", "__activemask", "__match_any_sync", "__match_all_sync"),
        "only a mask says which lanes are together",
    ),
    **dict.fromkeys(("clock64", "__nanosleep"), "there is no time"),
    **dict.fromkeys(("pipeline_shared_state",), "use a pipeline per thread: cuda::make_pipeline()"),
    **dict.fromkeys(
        (
            "cudaMalloc",
            "cudaMallocManaged",
            "cudaMallocAsync",
            "cudaFree",
            "cudaFreeAsync",
            "cudaMemcpy",
            "cudaMemcpyAsync",
            "cudaMemcpyToSymbol",
            "cudaMemset",
            "cudaMemsetAsync",
            "cudaDeviceSynchronize",
            "cudaStreamSynchronize",
            "cudaLaunchKernel",
            "cudaLaunchCooperativeKernel",
            "cublasCreate",
            "cublasSgemm",
        ),
        "a stage launches kernels and nothing else, with <<<...>>>",
    ),
    **dict.fromkeys(
        ("__syncthreads_count", "__syncthreads_and", "__syncthreads_or"),
        "write the result to shared memory",
    ),
}


@dataclass
class Token:
    kind: str
    text: str
    file: str
    line: int


class UnsupportedError(Exception):
    """An unsupported construct: its position and the reason."""

    def __init__(self, token: Token, message: str) -> None:
        super().__init__(f"{token.file}:{token.line}: error: {message}")


def tokens_of(text: str) -> list[Token]:
    """Tokens of preprocessed text. A system header is one token, from marker to marker."""
    tokens: list[Token] = []
    markers = [*_MARKER.finditer(text)]
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    for marker, end in zip(markers, ends):
        file, line = marker[2], int(marker[1])
        if "3" in marker[3].split():
            tokens.append(Token("marker", text[marker.start() : end], file, line))
            continue
        tokens.append(Token("marker", text[marker.start() : marker.end() + 1], file, line))
        for found in _TOKEN.finditer(text, marker.end() + 1, end):
            kind = "string" if found.lastgroup == "delimiter" else str(found.lastgroup)
            tokens.append(Token(kind, found[0], file, line))
            line += found[0].count("\n")
    return tokens


class Translator:
    """Rewrites the tokens of a source, one statement at a time."""

    def __init__(self, text: str) -> None:
        self._in = tokens_of(text)
        self._out: list[Token] = []
        self._at = 0
        self._scopes: list[bool] = []  # per open brace: whether it opens a function
        self._dynamic: dict[str, str] = {}  # `extern __shared__` outside of functions, by name
        self.errors: list[str] = []

    def run(self) -> str:
        while self._at < len(self._in):
            token = self._in[self._at]
            try:
                if not self._rewrite(token):
                    self._out.append(token)
                    self._at += 1
            except UnsupportedError as problem:
                if not self.errors or self.errors[-1].split(": ")[0] != str(problem).split(": ")[0]:
                    self.errors.append(str(problem))  # only the first error of a line
                self._at += 1
        return "".join(token.text for token in self._out)

    def _rewrite(self, token: Token) -> bool:
        text = token.text
        if token.kind == "name":
            if text == "__shared__":
                self._shared(token)
                return True
            if text in ("asm", "__asm__", "__asm"):
                self._asm(token)
                return True
            if text == "__noinline__" and self._before() != "(":
                self._put(token, "__attribute__((noinline))")
                self._at += 1
                return True
            if text in _UNSUPPORTED and self._before() not in (".", "->"):
                raise UnsupportedError(
                    token, f"the executor does not have {text}: {_UNSUPPORTED[text]}"
                )
        elif token.kind == "operator":
            if text == "<<<":
                self._launch(token)
                return True
            if text == "{":
                return self._open_brace(token)
            elif text == "}" and self._scopes:
                self._scopes.pop()
        return False

    def _open_brace(self, token: Token) -> bool:
        is_inside = any(self._scopes)
        self._scopes.append(self._opens_function())
        if is_inside or not self._scopes[-1] or not self._dynamic:
            return False
        body = self._in[self._at : self._group(self._at)]
        used = {t.text for t in body if t.kind == "name"} - {*self._head()}
        self._put(token, "{")
        for declaration in (self._dynamic[name] for name in self._dynamic if name in used):
            self._put(token, declaration)
            self._put(token, ";")
        self._at += 1
        return True

    # Look-ahead and look-back, past tokens that are not code.

    def _before(self) -> str:
        code = (t.text for t in reversed(self._out) if _is_code(t))
        return next(code, "")

    def _head(self) -> list[str]:
        """The declaration before the current brace, from its end."""
        head: list[str] = []
        for token in reversed(self._out):
            if not _is_code(token):
                continue
            if token.text in (";", "{", "}"):
                break
            head.append(token.text)
        return head

    def _opens_function(self) -> bool:
        head = self._head()
        return any(self._scopes) or ("(" in head and head[-1] != "namespace")

    def _group(self, start: int) -> int:
        """One past the bracket that closes the one at `start`."""
        depth = 0
        for i in range(start, len(self._in)):
            token = self._in[i]
            if token.kind != "operator":
                continue
            if token.text in _CLOSING:
                depth += 1
            elif token.text in _CLOSING.values():
                depth -= 1
                if depth == 0:
                    return i + 1
        raise UnsupportedError(self._in[start], f"'{self._in[start].text}' is never closed")

    def _end_of(self, start: int, end: str) -> int:
        """The position of the first `end` outside of all brackets."""
        i = start
        while i < len(self._in):
            token = self._in[i]
            if token.kind == "operator" and token.text in _CLOSING:
                i = self._group(i)
                continue
            if token.kind == "operator" and token.text == end:
                return i
            i += 1
        raise UnsupportedError(self._in[start], f"no '{end}' after it")

    def _put(self, at: Token, text: str) -> None:
        self._out.append(Token("rewritten", text, at.file, at.line))

    def _skip_to(self, end: int) -> None:
        """Skips tokens that were rewritten; keeps their newlines."""
        kept = ("newline", "marker")
        self._out += [t for t in self._in[self._at : end] if t.kind in kept]
        self._at = end

    # __shared__

    def _shared(self, token: Token) -> None:
        head: list[Token] = []
        while self._out and self._out[-1].text not in (";", "{", "}", ":"):
            if self._out[-1].kind in ("marker", "directive"):
                break
            head.insert(0, self._out.pop())
        spaces = [t for t in head if not _is_code(t)]
        self._out += spaces
        end = self._end_of(self._at, ";")
        code = [t for t in head + self._in[self._at + 1 : end] if _is_code(t)]
        if any(self._scopes):
            self._put(token, " ".join(declare_shared(code, token)))
        elif any(t.text == "extern" for t in code):
            for declaration in declare_shared(code, token):
                name = declaration.split()[1]
                self._dynamic[name] = declaration.removesuffix(";")
        else:
            raise UnsupportedError(
                token, "__shared__ outside of a function: declare it in the kernel that uses it"
            )
        self._skip_to(end)

    # asm

    def _asm(self, token: Token) -> None:
        i = self._at + 1
        while self._in[i].text in ("volatile", "__volatile__", "goto") or not _is_code(self._in[i]):
            i += 1
        if self._in[i].text != "(":
            raise UnsupportedError(token, "asm without parentheses")
        end = self._group(i)
        parts: list[list[Token]] = [[]]
        depth = 0
        for t in self._in[i + 1 : end - 1]:
            if t.kind == "operator" and t.text in _CLOSING:
                depth += 1
            elif t.kind == "operator" and t.text in _CLOSING.values():
                depth -= 1
            if depth == 0 and t.text in (":", "::"):
                parts += [[]] * (len(t.text) - 1) + [[]]
            elif _is_code(t):
                parts[-1] = [*parts[-1], t]
        template = "".join(string_of(t.text) for t in parts[0])
        operands = [operand for part in parts[1:3] for operand in _operands(part)]
        try:
            self._put(
                token,
                ptx.translate(
                    template, operands, len(_operands(parts[1])) if len(parts) > 1 else 0
                ),
            )
        except ptx.UnknownError as problem:
            raise UnsupportedError(token, str(problem)) from problem
        self._skip_to(end)

    # <<<...>>>

    def _start_of_kernel(self) -> int:
        """Where the kernel's name with its template arguments begins, at the end of the output."""
        start = len(self._out)
        angles = parentheses = 0
        for i in range(start - 1, -1, -1):
            token = self._out[i]
            if not _is_code(token):
                continue
            parentheses += {")": 1, "(": -1}.get(token.text, 0)
            if parentheses == 0:
                angles += {">": 1, "<": -1}.get(token.text, 0)
                of_name = token.kind == "name" and token.text not in ("return", "else", "do")
                if angles == 0 and not (of_name or token.text in ("::", "<")):
                    break
            elif angles == 0:
                break
            start = i
        return start

    def _launch(self, token: Token) -> None:
        start = self._start_of_kernel()
        kernel = self._out[start:]
        del self._out[start:]
        close = self._at + 1
        while close < len(self._in) and not all(t.text == ">" for t in self._in[close : close + 3]):
            t = self._in[close]
            close = self._group(close) if t.text in _CLOSING and t.kind == "operator" else close + 1
        configuration = "".join(
            t.text for t in self._in[self._at + 1 : close] if t.kind != "marker"
        )
        opening = close + 3
        while not _is_code(self._in[opening]):
            opening += 1
        name = next((t.text for t in kernel if t.kind == "name" and t.text != "tilegate"), "")
        names = [t.text for t in _outside_of_angles(kernel) if t.kind == "name"]
        name = names[-1] if names else name
        if not name:
            raise UnsupportedError(
                token, "<<<...>>> after an expression: name the kernel before it"
            )
        called = "".join(t.text for t in kernel if _is_code(t) or t.kind == "space")
        end = self._group(opening)
        has_arguments = any(_is_code(t) for t in self._in[opening + 1 : end - 1])
        self._put(
            token,
            f'::tilegate::plain::Launch({" ".join(configuration.split())})("{name}", '
            "[&](auto... tilegate_args) __attribute__((noinline)) "
            f"{{ {called}(tilegate_args...); }}" + (", " if has_arguments else ""),
        )
        self._skip_to(opening + 1)


def _is_code(token: Token) -> bool:
    return token.kind not in ("newline", "space", "marker", "directive")


def _outside_of_angles(tokens: list[Token]) -> list[Token]:
    outside, angles, parentheses = [], 0, 0
    for token in tokens:
        parentheses += {"(": 1, ")": -1}.get(token.text, 0)
        if parentheses == 0:
            angles += {"<": 1, ">": -1}.get(token.text, 0)
        if angles == 0:
            outside.append(token)
    return outside


def _operands(part: list[Token]) -> list[ptx.Operand]:
    """`[name] "constraint"(expression), …`"""
    operands: list[ptx.Operand] = []
    constraint, name, depth, expression = "", "", 0, []
    for token in part:
        if depth == 0 and token.kind == "string":
            constraint = string_of(token.text)
        elif depth == 0 and token.kind == "name":
            name = token.text
        elif token.text == "(":
            depth += 1
            if depth == 1:
                expression = []
                continue
        elif token.text == ")":
            depth -= 1
            if depth == 0:
                operands.append(ptx.Operand(constraint, " ".join(expression), name))
                name = ""
        if depth > 0:
            expression.append(token.text)
    return operands


def string_of(literal: str) -> str:
    if literal.startswith('R"'):
        return literal[literal.index("(") + 1 : literal.rindex(")")]
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    inside = literal[literal.index('"') + 1 : -1] if '"' in literal else literal
    return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), inside)


def declare_shared(code: list[Token], at: Token) -> list[str]:
    """A `__shared__` declaration, without its semicolon, as declarations of references."""
    words = [t.text for t in code]
    is_dynamic = "extern" in words
    alignments = []
    plain: list[str] = []
    i = 0
    while i < len(words):
        word = words[i]
        if word in ("extern", "static", "__shared__"):
            i += 1
        elif word in ("alignas", "__attribute__", "__attribute"):
            end = _close(words, i + 1)
            inside = words[i + 2 : end - 1]
            if word != "alignas":  # ( ( aligned ( n ) ) )
                inside = inside[inside.index("(", 1) + 1 : -2] if inside.count("(") > 1 else []
            if inside:
                alignments.append(" ".join(inside))
            i = end
        else:
            plain.append(word)
            i += 1
    words = plain
    alignment = max(alignments, key=len, default="1")
    begin = _end_of_type(words)
    kind = words[:begin]
    out: list[str] = []
    if "{" in kind:  # declares a class, too
        opening = kind.index("{")
        name = kind[opening - 1] if kind[opening - 1] not in ("struct", "union", "class") else ""
        if not name:
            name = f"tilegate_shared_{at.line}"
            kind.insert(opening, name)
        out += [*kind, ";"]
        kind = [name]
    for declarator in _split(words[begin:]):
        stars = [*takewhile(lambda word: word in ("*", "const", "volatile"), declarator)]
        rest = declarator[len(stars) :]
        if not rest or "=" in rest or "{" in rest or not re.match(r"[A-Za-z_]", rest[0]):
            raise UnsupportedError(
                at,
                "__shared__ "
                + " ".join([*kind, *declarator])
                + ": only variables and arrays without initialisers are supported",
            )
        name, bounds = rest[0], rest[1:]
        of = " ".join([*kind, *stars, *bounds])
        if is_dynamic:
            out.append(f"auto& {name} = ::tilegate::plain::dynamic_shared<{of}>();")
        else:
            out.append(
                f'auto& {name} = ::tilegate::plain::shared<{of}, {alignment}>([] {{}}, "{name}");'
            )
    out[-1] = out[-1].removesuffix(";")
    return out


def _end_of_type(words: list[str]) -> int:
    """Where the first declarator begins: at its name, or at the stars before it."""
    i = 0
    while i < len(words):
        if words[i] == "<":
            i = _close_angle(words, i)
        elif words[i] == "{":
            i = _close(words, i)
        elif words[i] in ("[", ",", "=", "("):
            break
        else:
            i += 1
    i -= 1  # the name
    while i > 0 and words[i - 1] == "*":
        i -= 1
    return i


def _split(words: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(word, 0)
        if word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _close(words: list[str], start: int) -> int:
    depth = 0
    for i in range(start, len(words)):
        depth += (words[i] in _CLOSING) - (words[i] in _CLOSING.values())
        if depth == 0:
            return i + 1
    return len(words)


def _close_angle(words: list[str], start: int) -> int:
    depth = 0
    for i in range(start, len(words)):
        depth += {"<": 1, ">": -1, ">>": -2}.get(words[i], 0)
        if depth <= 0:
            return i + 1
    return len(words)


# Names that CUDA declares, by their form: the compiler reports a name that plain.hpp lacks.
_OF_CUDA = (
    r"(?:__\w+|cu(?:da|blas|rand)?[A-Z]\w*|atomic[A-Z]\w*|(?:make_)?(?:float|double|"
    r"u?(?:char|short|int|long|longlong))[1-4]|\w+_group|half2?|nv_bfloat16\w*|rsqrtf?|clock)"
)
_IN_CUDA = r"['\u2018](?:cuda|cooperative_groups)\W"
# Errors of GCC and clang for a name that is not declared.
_UNDECLARED = re.compile(
    rf"""^(?P<position>[^\n]+:\d+):\d+:\ error:\ (?:
    ['\u2018](?P<gcc>{_OF_CUDA})['\u2019]\ (?:was\ not\ declared|does\ not\ name\ a\ type)
    |['\u2018](?P<gcc_member>\w+)['\u2019]\ is\ not\ a\ member\ of\ {_IN_CUDA}
    |there\ are\ no\ arguments\ to\ ['\u2018](?P<gcc_template>{_OF_CUDA})['\u2019]
    |(?:use\ of\ undeclared\ identifier|unknown\ type\ name)\ '(?P<clang>{_OF_CUDA})'
    |no\ (?:member|template|type)\ named\ '(?P<clang_member>\w+)'\ in\ namespace\ {_IN_CUDA})""",
    re.VERBOSE | re.MULTILINE,
)


def undeclared(errors: str) -> list[str]:
    """A line per name of CUDA that the compiler does not know, at its first use."""
    lines: dict[str, str] = {}
    for found in _UNDECLARED.finditer(errors):
        name = next(text for key, text in found.groupdict().items() if text and key != "position")
        lines.setdefault(name, f"{found['position']}: error: the executor does not have {name}")
    return [*lines.values()]


def main(command: list[str]) -> int:
    source = next(i for i, word in enumerate(command) if re.search(r"\.(cu|cc|cpp|cxx)$", word))
    output = command.index("-o") + 1
    translated = command[output] + ".ii"
    preprocess = [word for word in command if word not in ("-c", "-S", "-emit-llvm")]
    preprocess[preprocess.index("-o") + 1] = translated
    # Before all others: where a header of the system includes it, its macros are the system's.
    defines = ["-DTILEGATE_PLAIN", f"-I{_HERE / 'include'}"]
    defines += ["-include", "tilegate/device/cpu/plain.hpp"]
    if "-x" not in command:
        defines += ["-x", "c++"]
    # A launcher, such as ccache, may stand before the compiler.
    first = next(i for i, word in enumerate(preprocess) if word.startswith("-"))
    done = subprocess.run([*preprocess[:first], *defines, "-E", *preprocess[first:]], check=False)
    if done.returncode:
        return done.returncode
    text = Path(translated).read_text(encoding="utf-8", errors="surrogateescape")
    translator = Translator(text)
    text = translator.run()
    if translator.errors:
        sys.stderr.write("\n".join(translator.errors) + "\n")
        return 1
    Path(translated).write_text(text, encoding="utf-8", errors="surrogateescape")
    arguments = iter(
        [*command[:source], "-x", "c++-cpp-output", translated, *command[source + 1 :]]
    )
    compiled: list[str] = []
    for word in arguments:
        if word in ("-MF", "-MT", "-MQ"):
            next(arguments)
        elif word not in ("-MD", "-MMD"):
            compiled.append(word)
    done = subprocess.run([*compiled, "-w"], stderr=subprocess.PIPE, encoding="utf-8", check=False)
    lines = undeclared(done.stderr)
    sys.stderr.write("\n".join(lines) + "\n" if lines else done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
