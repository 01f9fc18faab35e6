"""Benchmark names: the canonical form, and the command line that reruns one."""

from __future__ import annotations

import re

FORM = "<Rung>[.<configuration>]/<M>x<N>x<K>[/ld<lda>x<ldb>x<ldc>][/off<bytes>][/cold]"

_COUNT = r"[1-9][0-9]*"
_TRIPLE = rf"{_COUNT}x{_COUNT}x{_COUNT}"
_CANONICAL = re.compile(
    rf"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)?/{_TRIPLE}(?:/ld{_TRIPLE})?(?:/off{_COUNT})?(?:/cold)?"
)

# What Google Benchmark appends: to the name its own settings, to that the aggregate's name.
_AGGREGATE = re.compile(r"_(?:mean|median|stddev|cv|min|max|BigO|RMS)\Z")
_SETTING = re.compile(
    r"/(?:manual_time|real_time|process_time"
    r"|(?:min_time|min_warmup_time|iterations|repeats|threads):[0-9]+(?:\.[0-9]+)?s?)\Z"
)

_PRESET = {"cuda": "gpu", "simt": "cpu"}


def canonical_name(name: str) -> str:
    """Strips Google Benchmark's suffixes; ValueError when what is left is not of the form FORM."""
    stripped = _AGGREGATE.sub("", name)
    while True:
        shorter = _SETTING.sub("", stripped)
        if shorter == stripped:
            break
        stripped = shorter
    if not _CANONICAL.fullmatch(stripped):
        raise ValueError(f"malformed benchmark name {name!r}; expected {FORM}")
    return stripped


def benchmark_filter(name: str) -> str:
    """A --benchmark_filter that matches `name` with whatever Google Benchmark appends to it."""
    return f"^{name}(/|$)"


def rerun_command(name: str, device_kind: str) -> str:
    """The command that measures this benchmark again, whether or not its shape is a default one."""
    rung, _, problem = name.partition("/")
    shape, cold, _ = problem.partition("/cold")
    flags = [f"--shapes={shape}"]
    flags += ["--cold"] * bool(cold)
    flags += ["--variants"] * ("." in rung)
    flags.append(f"--benchmark_filter='{benchmark_filter(name)}'")
    return f"build/{_PRESET[device_kind]}/bench/bench {' '.join(flags)}"
