"""Which tests are to see a mutant, and what has to be compiled again for them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from tilegate_ci.formats.stages import Stage
from tilegate_ci.lab.mutants.ninja import Build, CTest

# A header that many rungs share is tried with so many of them, the first and the last included.
_RUNGS_OF_SHARED = 3


@dataclass(frozen=True)
class Group:
    """Files of one kind. `tests` are regular expressions of names in ctest, those that see most
    faults in the least time first; RUNG stands for each rung in turn."""

    name: str
    title: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    programs: tuple[str, ...]
    of_rungs: bool = False


# `name@RUNG`: the test with `--rung RUNG` after its command.
_OF_RUNG = (
    r"ladder\.RUNG\..*",
    r"(int8x3|fp16x3|models|api)_test|Int8Gemm|Int8Decision|Fp16Gemm",
    r"watched\.RUNG",
    r"counters\.baseline@RUNG",
)
_LADDER = ("ladder_test", "api_test", "int8x3_test", "fp16x3_test", "models_test")
_COUNTED = ("watched_test", "tilegate_count")
GROUPS = {
    "cpu": (
        Group(
            "rungs",
            "rungs",
            ("kernels/[0-9]*/*.cu*", "kernels/[0-9]*/*.hpp", "kernels/sgemm/*.cu*"),
            _OF_RUNG,
            (*_LADDER, *_COUNTED),
            of_rungs=True,
        ),
        Group(
            "common",
            "device code that rungs share",
            ("kernels/common/*",),
            _OF_RUNG,
            (*_LADDER, *_COUNTED),
            of_rungs=True,
        ),
        Group(
            "core",
            "problems and plans",
            ("kernels/core/*.cpp",),
            (
                r"api_test",
                r"ladder\.(SharedMemory|AsyncCopy|Sgemm)\.(ErrorsAreValues|BlasSemantics)",
                r"ladder\.AsyncCopy\.MemoryContract",
            ),
            ("api_test", "ladder_test"),
        ),
        Group(
            "verifier",
            "verifier",
            ("tests/verifier/*.c*", "tests/verifier/*.hpp"),
            (r"verifier_test.*|(Skip|Failures)\..*", r"ladder_faults\..*"),
            ("verifier_test", "ladder_faults_test", "ladder_test"),
        ),
        Group(
            "hazards",
            "counters and hazards",
            ("kernels/device/cpu/counted/*pp",),
            (
                r"counters_test|counters\.usage",
                r"watched_faults\..*",
                r"counters\.baseline@Warptile",
                r"counters\.baseline@AsyncCopy",
                r"watched\.(Naive|SplitK)",
            ),
            ("counters_test", "watched_faults_test", *_COUNTED),
        ),
        Group(
            "executor",
            "executor",
            (
                "kernels/device/cpu/executor/*",
                "kernels/device/cpu/*.cpp",
                "kernels/device/include/tilegate/device/cpu/*",
            ),
            (
                r"(simt|async|async_model|counters|verifier)_test",
                r"ladder\.(SharedMemory|AsyncCopy)\.(ExactOnIntegers|MemoryContract|Repeatable)",
                r"watched\.Naive",
            ),
            (
                "simt_test",
                "async_test",
                "counters_test",
                "verifier_test",
                "ladder_test",
                "watched_test",
            ),
        ),
    ),
    "gpu": (
        Group(
            "rungs",
            "rungs",
            ("kernels/[0-9]*/*.cu*", "kernels/[0-9]*/*.hpp", "kernels/sgemm/*.cu*"),
            _OF_RUNG[:2],
            _LADDER,
            of_rungs=True,
        ),
        Group(
            "common",
            "device code that rungs share",
            ("kernels/common/*",),
            _OF_RUNG[:2],
            _LADDER,
            of_rungs=True,
        ),
    ),
}


@dataclass(frozen=True)
class TrialStep:
    """Tests of one program, and its objects that the mutant changes."""

    program: str
    objects: tuple[str, ...]
    tests: tuple[CTest, ...]


def group_of(preset: str, file: str) -> Group | None:
    return next(
        (group for group in GROUPS[preset] if any(fnmatch(file, glob) for glob in group.files)),
        None,
    )


def rungs_of(build: Build, file: str, stages: Sequence[Stage]) -> list[Stage]:
    """Those that are compiled from the file, in the ladder's order; of many a few."""
    mine = [
        stage
        for stage in stages
        if any(
            file in used and any(str(each) in used for each in stage.sources)
            for used in build.sources.values()
        )
    ]
    if len(mine) > _RUNGS_OF_SHARED:
        last = len(mine) - 1
        mine = [mine[i * last // (_RUNGS_OF_SHARED - 1)] for i in range(_RUNGS_OF_SHARED)]
    return mine


def steps_for(
    build: Build, tests: Sequence[CTest], stages: Sequence[Stage], group: Group, file: str
) -> list[TrialStep]:
    """What to build and run for a mutant of the file, in this order, until one test is red."""
    if not group.of_rungs:
        kernels = {str(each) for stage in stages for each in stage.sources}
        others = [name for name, used in build.sources.items() if not used & kernels]
        return _steps(build, tests, group.tests, file, set(others))
    found = []
    for rung in rungs_of(build, file, stages):
        inside = f"{rung.folder}/"
        own = [
            name
            for name, used in build.sources.items()
            if any(source.startswith(inside) for source in used)
        ]
        patterns = [pattern.replace("RUNG", rung.name) for pattern in group.tests]
        found += _steps(build, tests, patterns, file, set(own))
    return found


def _steps(
    build: Build, tests: Sequence[CTest], patterns: Sequence[str], file: str, among: set[str]
) -> list[TrialStep]:
    changed = {name for name in among if file in build.sources[name]}
    found = []
    for pattern in patterns:
        pattern, _, rung = pattern.partition("@")
        matching = [test for test in tests if test.program and re.fullmatch(pattern, test.name)]
        if rung:
            matching = [
                replace(
                    test, name=f"{test.name} of {rung}", command=(*test.command, "--rung", rung)
                )
                for test in matching
            ]
        for program in dict.fromkeys(test.program for test in matching):
            objects = tuple(name for name in build.objects(program) if name in changed)
            if objects:
                mine = tuple(test for test in matching if test.program == program)
                found.append(TrialStep(program, objects, mine))
    return found
