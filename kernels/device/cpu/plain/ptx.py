"""Translates PTX in `asm` to C++ statements: copies, loads, stores, moves and predicates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

KNOWN = (
    "cp.async, ld, st, mov, cvta, cvt.u32.u64, setp, fma.rn.f32, bar.sync, membar, "
    "prefetch and predicates"
)


@dataclass(frozen=True)
class Operand:
    constraint: str
    expression: str
    name: str = ""


class UnknownError(Exception):
    """The executor does not support an instruction."""


_LOCAL = re.compile(r"\.reg\s+\.(\w+)\s+(.+)")
_INSTRUCTION = re.compile(r"(?:@(!?)(\S+)\s+)?([\w.:]+)\s*(.*)", re.DOTALL)
_TYPES = {
    "f32": "float", "f64": "double", "b32": "unsigned", "u32": "unsigned", "s32": "int",
    "b64": "std::uint64_t", "u64": "std::uint64_t", "s64": "std::int64_t", "pred": "bool",
    "b8": "unsigned char", "u8": "unsigned char", "b16": "unsigned short", "u16": "unsigned short",
}  # fmt: skip
_VECTORS = {"v2": 2, "v4": 4}
_OF_VECTORS = {("float", 2): "float2", ("float", 4): "float4", ("unsigned", 2): "uint2",
               ("unsigned", 4): "uint4", ("int", 2): "int2", ("int", 4): "int4"}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_PTX = "::tilegate::plain::ptx::"


def translate(template: str, operands: Sequence[Operand], outputs: int) -> str:
    """One statement, without its semicolon. UnknownError names an unknown instruction."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", template, flags=re.DOTALL)
    values = [f"tilegate_o{i}" for i in range(len(operands))]
    body = "".join(
        f"auto&& {value} = ({operand.expression}); "
        for value, operand in zip(values, operands)
        if operand.constraint != "n"
    )
    values = [
        f"({operand.expression})" if operand.constraint == "n" else value
        for value, operand in zip(values, operands)
    ]
    registers: set[str] = set()
    for line in _lines(text):
        body += _instruction(line, values, operands, registers)
    return f"do {{ {body}}} while (false)"


def _lines(text: str) -> list[str]:
    """The instructions, without the braces that group them."""
    lines = []
    for part in text.split(";"):
        part = part.strip()
        while part.startswith("{") or (part.startswith("}") and part):
            part = part[1:].strip()
        if part.endswith("}") and "{" not in part:
            part = part[:-1].strip()
        if part:
            lines.append(" ".join(part.split()))
    return lines


def _instruction(
    line: str, values: Sequence[str], operands: Sequence[Operand], registers: set[str]
) -> str:
    """`registers`: all that are declared; a declaration adds to them."""
    local = _LOCAL.match(line)
    if local:
        kind = _TYPES.get(local[1])
        names = [name.strip().lstrip("%") for name in local[2].split(",")]
        if kind is None or not all(re.fullmatch(r"\w+", name) for name in names):
            raise UnknownError(f"PTX '{line}': the executor does not have such registers")
        registers.update(names)
        return f"{kind} {', '.join(f'ptx_{name} = {{}}' for name in names)}; "
    found = _INSTRUCTION.fullmatch(line)
    if not found:
        raise UnknownError(f"PTX '{line}': the executor does not have it")
    negated, predicate, opcode, rest = found.groups()
    emit = next(
        (emit for name, emit in _EMIT.items() if opcode == name or opcode.startswith(name + ".")),
        None,
    )

    def value(text: str) -> str:
        return _value(text.strip(), values, operands, registers)

    try:
        done = emit(opcode.split("."), rest, value) if emit else None
    except (IndexError, ValueError):  # another number of operands
        done = None
    if done is None:
        shown = line if emit else opcode
        raise UnknownError(f"PTX '{shown}': the executor does not have it; it has {KNOWN}")
    if predicate:
        return f"if ({'!' if negated else ''}{value(predicate)}) {{ {done}}} "
    return done


def _value(
    text: str, values: Sequence[str], operands: Sequence[Operand], registers: set[str]
) -> str:
    numbered = re.fullmatch(r"%(\d+)", text)
    if numbered:
        return values[int(numbered[1])]
    named = re.fullmatch(r"%\[(\w+)\]", text)
    if named:
        return values[[operand.name for operand in operands].index(named[1])]
    if re.fullmatch(r"-?(?:\d+|0[xX][0-9a-fA-F]+)", text):
        return text
    bits = re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text)
    if bits:
        return f"__int_as_float(0x{bits[1]})"
    name = text.lstrip("%")
    if name not in registers:
        raise UnknownError(f"PTX '{text.replace('%%', '%')}': the executor does not have it")
    return f"ptx_{name}"


def _split(rest: str) -> list[str]:
    parts = re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,\s][^,]*", rest)
    return [part.strip() for part in parts]


_Value = Callable[[str], str]


def _address(place: str, space: str, value: _Value) -> str:
    """`[%1 + 16]` as a C++ expression: a pointer to bytes."""
    base, _, offset = place.strip("[]").partition("+")
    address = f"{_PTX}address({value(base)})"
    if space == "shared":
        address = f"{_PTX}shared({address})"
    else:
        address = f"reinterpret_cast<std::byte*>({address})"
    return f"({address} + {value(offset)})" if offset else address


def _cp_async(opcode: list[str], rest: str, value: _Value) -> str | None:
    if opcode[2:] == ["commit_group"]:
        return "::tilegate::device::copy_async_commit(); "
    if opcode[2:] == ["wait_all"]:
        return (
            "::tilegate::device::copy_async_commit(); "
            "::tilegate::simt::executor::copy_async_wait(0); "
        )
    if opcode[2:] == ["wait_group"]:
        return f"::tilegate::simt::executor::copy_async_wait({value(rest)}); "
    if opcode[2] not in ("ca", "cg") or not {"shared", "shared::cta"} & {*opcode}:
        return None
    parts = _split(rest)
    to, source, size = parts[:3]
    to, source = (part.strip("[]") for part in (to, source))
    arguments = [f"{_PTX}address({value(to)})", f"{_PTX}address({value(source)})"]
    if len(parts) > 3 and "cache_hint" not in opcode[-1]:
        arguments.append(value(parts[3]))
    return f"{_PTX}cp_async<{value(size)}>({', '.join(arguments)}); "


def _access(opcode: list[str]) -> tuple[str, str, int] | None:
    """State space, type and number of elements of a load or store."""
    kind = _TYPES.get(opcode[-1])
    spaces = [word.split("::")[0] for word in opcode if word.split("::")[0] in ("global", "shared")]
    if kind is None or not spaces or "acquire" in opcode or "release" in opcode:
        return None
    return spaces[0], kind, next((_VECTORS[word] for word in opcode if word in _VECTORS), 1)


def _ld(opcode: list[str], rest: str, value: _Value) -> str | None:
    access = _access(opcode)
    if access is None:
        return None
    space, kind, count = access
    to, place = _split(rest)
    source = _address(place, space, value)
    if count == 1:
        return f"{_PTX}set({value(to)}, {_PTX}load<{kind}>({source})); "
    vector = _OF_VECTORS.get((kind, count))
    if vector is None:
        return None
    sets = "".join(
        f"{_PTX}set({value(name)}, ptx_v.{member}); "
        for name, member in zip(to.strip("{}").split(","), "xyzw")
    )
    return f"{{ const {vector} ptx_v = {_PTX}load<{vector}>({source}); {sets}}} "


def _st(opcode: list[str], rest: str, value: _Value) -> str | None:
    access = _access(opcode)
    if access is None:
        return None
    space, kind, count = access
    place, data = _split(rest)
    to = _address(place, space, value)
    if count == 1:
        return f"{{ {kind} ptx_v; {_PTX}set(ptx_v, {value(data)}); {_PTX}store(({to}), ptx_v); }} "
    vector = _OF_VECTORS.get((kind, count))
    if vector is None:
        return None
    sets = "".join(
        f"{_PTX}set(ptx_v.{member}, {value(name)}); "
        for name, member in zip(data.strip("{}").split(","), "xyzw")
    )
    return f"{{ {vector} ptx_v; {sets}{_PTX}store(({to}), ptx_v); }} "


def _mov(_opcode: list[str], rest: str, value: _Value) -> str:
    to, source = _split(rest)
    return f"{_PTX}set({value(to)}, {value(source)}); "


def _cvta(opcode: list[str], rest: str, value: _Value) -> str | None:
    to, source = _split(rest)
    if opcode[1:3] == ["to", "shared"]:
        pointer = f"reinterpret_cast<const void*>({_PTX}address({value(source)}))"
        return f"{_PTX}set({value(to)}, __cvta_generic_to_shared({pointer})); "
    if opcode[1:3] == ["to", "global"]:
        return f"{_PTX}set({value(to)}, {_PTX}address({value(source)})); "
    return None


def _cvt(opcode: list[str], rest: str, value: _Value) -> str | None:
    return _mov(opcode, rest, value) if opcode[1:] == ["u32", "u64"] else None


def _setp(opcode: list[str], rest: str, value: _Value) -> str | None:
    comparison = _COMPARISONS.get(opcode[1])
    kind = _TYPES.get(opcode[-1])
    if comparison is None or kind is None:
        return None
    to, left, right = _split(rest)
    return f"{value(to)} = ({kind})({value(left)}) {comparison} ({kind})({value(right)}); "


def _fma(opcode: list[str], rest: str, value: _Value) -> str | None:
    if opcode[1:] != ["rn", "f32"]:
        return None
    to, a, b, c = (value(part) for part in _split(rest))
    return f"{to} = __fmaf_rn({a}, {b}, {c}); "


def _bar(opcode: list[str], rest: str, _value: _Value) -> str | None:
    return "__syncthreads(); " if opcode[1] == "sync" and rest.strip() == "0" else None


def _membar(opcode: list[str], _rest: str, _value: _Value) -> str:
    return "" if opcode[1:] == ["cta"] else "__threadfence(); "


def _nothing(_opcode: list[str], _rest: str, _value: _Value) -> str:
    return ""


_EMIT: dict[str, Callable[[list[str], str, _Value], str | None]] = {
    "cp.async": _cp_async,
    "ld": _ld,
    "st": _st,
    "mov": _mov,
    "cvta": _cvta,
    "cvt": _cvt,
    "setp": _setp,
    "fma": _fma,
    "bar": _bar,
    "barrier": _bar,
    "membar": _membar,
    "prefetch": _nothing,
}
