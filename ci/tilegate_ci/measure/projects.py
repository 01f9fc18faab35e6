"""The two kinds of projects: this repository, and another one by its own commands."""

import hashlib
import re
import shlex
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from tilegate_ci.core.files import GateError, make_folder, read_text, write_text
from tilegate_ci.core.git import git
from tilegate_ci.formats.reading import Declared, read_process
from tilegate_ci.judge.compare import Margin
from tilegate_ci.measure import conditions
from tilegate_ci.measure.builds import Project, Side, digest_of_files
from tilegate_ci.measure.launcher import PLACES, Launcher, bracketed
from tilegate_ci.measure.suite import read_suite
from tilegate_ci.model import MIN_DELTA, RATIO, REPOSITORY, OtherProcess, Process

_SOURCES = ("kernels", "bench", "tests/verifier", "cmake")
_TOP = ("CMakeLists.txt", "CMakePresets.json")
_RESULTS = {f"bench/{name}" for name in ("baselines", "plots", "profile", "recordings", "results")}
_CONFIGURE = "cmake --preset gpu -DTILEGATE_BUILD_TESTS=OFF -DTILEGATE_INSTALL=OFF -B {build}"


@dataclass(frozen=True)
class Tilegate(Project):
    """This repository. `extra` are CMake's arguments."""

    extra: tuple[str, ...] = ()
    launcher: Launcher = field(default_factory=lambda: Launcher(placements=PLACES))

    @classmethod
    def at(cls, work: Path, extra: Sequence[str], launcher: Launcher) -> "Tilegate":
        build = f"{_CONFIGURE} {shlex.join(extra)} && cmake --build {{build}}"
        command = ("ci/gate", "run", "--no-screen")
        return cls(REPOSITORY, work, build, Process, command, tuple(extra), launcher)

    def sources(self, folder: Path) -> Iterable[Path]:
        """Documents and results are none."""
        results = {folder / name for name in _RESULTS}
        paths = [folder / name for name in _TOP]
        for name in _SOURCES:
            paths += (folder / name).rglob("*")
        return [p for p in paths if p.suffix != ".md" and results.isdisjoint(p.parents)]

    def check(self, folder: Path, given: str) -> None:
        suite = folder / "bench" / "gate.csv"
        if not suite.exists():
            raise GateError(f"{given}: no bench/gate.csv in it, which names the gated suite")
        read_suite([], suite)  # a malformed one is found before anything is built

    def ready(self) -> None:
        if not conditions.gpu_answers():
            raise GateError(
                "no GPU answers `nvidia-smi -L`, and the sources differ, so that benchmarks may "
                "have to be measured: run this on a machine with an NVIDIA GPU"
            )

    def measure(self, side: Side, names: Sequence[str]) -> Process:
        return self.launcher.run(side.build / "bench" / "bench", names)

    def check_process(self, process: Process, names: Sequence[str]) -> None:
        if set(process.readings) != set(names):
            raise GateError(f"{process.source}: other benchmarks in it; give another --out")
        if any(RATIO not in reading.summary for reading in process.readings.values()):
            raise GateError(f"{process.source}: no time of cuBLAS; a gate run needs a GPU")

    def options(self) -> list[str]:
        return [f"--cmake={argument}" for argument in self.extra]

    @property
    def protocol(self) -> dict[str, object]:
        launcher = {"min_time_s": self.launcher.min_time_s, "seed": self.launcher.seed}
        return {"build": self.build, "extra_stages": self._digest_of_extra_stages(), **launcher}

    def _digest_of_extra_stages(self) -> str:
        """Of the rungs outside of the repository that CMake is told of."""
        hashed = hashlib.sha256()
        for argument in self.extra:
            name, _, folders = argument.removeprefix("-D").partition("=")
            if name.partition(":")[0] == "TILEGATE_EXTRA_STAGES":
                for folder in map(Path, folders.split(";")):
                    hashed.update(digest_of_files(folder, folder.rglob("*")).encode())
        return hashed.hexdigest()[:40]


@dataclass(frozen=True)
class Foreign(Project):
    """Any project. `run` is a command as `build`; {out} in it is the file that a process must
    write."""

    run: str
    declared: Declared = field(default_factory=Declared)
    margin: Margin = field(default_factory=Margin)

    @classmethod
    def at(
        cls, repository: Path, work: Path, build: str, run: str, declared: Declared, margin: Margin
    ) -> "Foreign":
        make_folder(work)
        write_text(work / ".gitignore", "*\n")
        return cls(repository, work, build, OtherProcess, ("gate", "run"), run, declared, margin)

    def sources(self, folder: Path) -> Iterable[Path]:
        """What git knows or would add; without git, all but what we write."""
        listed = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if (folder / ".git").exists() and listed.returncode == 0:
            return [folder / name for name in listed.stdout.split("\0") if name]
        inside = self.work.is_relative_to(folder)
        return [p for p in folder.rglob("*") if not (inside and p.is_relative_to(self.work))]

    def measure(self, side: Side, names: Sequence[str]) -> Process:
        """GateError where it does not write what it was asked for."""
        with tempfile.TemporaryDirectory(prefix="gate-") as folder:
            out = Path(folder) / f"{side.role}.json"

            def process() -> Process:
                self.shell(self.run, side, out=out)
                if not out.exists():
                    raise GateError(f"{side.role}: `{self.run}` did not write {{out}}")
                return read_process(read_text(out), f"{side.role}: {{out}}", self.declared)

            return bracketed(process)

    def options(self) -> list[str]:
        given = {"build": self.build, "run": self.run, "time": self.declared.time}
        given |= {"yardstick": self.declared.yardstick, "verified": self.declared.verified}
        relative, seconds = self.margin.relative, self.margin.seconds
        given |= {"margin": "" if relative == MIN_DELTA else f"{100 * relative:g}"}
        given |= {"margin-abs": f"{1e6 * seconds:g}us" if seconds else ""}
        return [f"--{name}={value}" for name, value in given.items() if value]

    @property
    def protocol(self) -> dict[str, object]:
        return {"options": self.options()}

    def same_code(self, base: Side, head: Side) -> bool:
        """Whether all files that `run` names, at least one of them in {build}, are the same: of
        programs, what is loaded of them."""
        names = re.findall(r"\{build\}/?([^\s'\";|&]*)", self.run)
        files = [(base.build / name, head.build / name) for name in names]
        words = {word for word in re.split(r"[\s'\";|&=]+", self.run) if word and "{" not in word}
        files += [(base.source / word, head.source / word) for word in sorted(words)]
        there = [(one, two) for one, two in files if one.is_file() or two.is_file()]
        return any(one.is_relative_to(base.build) for one, _ in there) and all(
            one.is_file() and two.is_file() and loaded(one) == loaded(two) for one, two in there
        )


def loaded(path: Path) -> str:
    """A digest of what a program is when it runs: of another file, of its bytes."""
    with path.open("rb") as stream:
        try:
            sections = list(ELFFile(stream).iter_sections())
        except ELFError:
            return hashlib.sha256(path.read_bytes()).hexdigest()
        parts = [
            f"{section.name} {hashlib.sha256(section.data()).hexdigest()}"
            for section in sections
            if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name != ".note.gnu.build-id"
        ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
