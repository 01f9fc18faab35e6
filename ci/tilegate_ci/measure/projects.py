"""Base and head, each a commit or a folder: how they are built and measured, in any project."""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import tarfile
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tilegate_ci.core import child
from tilegate_ci.core.files import (
    GateError,
    digest_of,
    locked,
    make_folder,
    message,
    read_text,
    write_text,
)
from tilegate_ci.core.git import checkout_commit, git, git_output, merge_base, resolve_commit
from tilegate_ci.formats.reading import Declared, read_process
from tilegate_ci.judge.compare import Margin
from tilegate_ci.measure import conditions
from tilegate_ci.measure.identity import loaded
from tilegate_ci.measure.launcher import IN_PAIRS, Launcher, bracketed, check_complete, read_suite
from tilegate_ci.model import MIN_DELTA, REPOSITORY, Process

TIMEOUT_S = 3600.0  # per command of another project


@dataclass(frozen=True)
class Side:
    """`digest` is of the sources: the same digest and command are the same build. `commit` is the
    digest too where there is no git history."""

    role: str
    given: str
    commit: str
    digest: str
    source: Path
    build: Path

    def again(self, repository: Path) -> str:
        """How a command names it again: on another machine, too, where it is a commit."""
        elsewhere = Path(self.given).is_dir() and Path(self.given).resolve() != repository.resolve()
        changed = self.commit == self.digest or self.commit.endswith("-dirty")
        return self.given if elsewhere or changed else self.commit

    @property
    def title(self) -> str:
        return f"{self.role}: {self.given}, commit {self.commit[:12]}{self.commit[40:]}"


@dataclass(frozen=True)
class Project(ABC):
    """How the sides of a project are built and measured. `build` is a shell command, run in the
    folder of a side's sources; {build} in it is the folder that it builds in, below `work`. Checks
    are empty where nothing is known of the project."""

    repository: Path
    work: Path
    build: str
    command: ClassVar[tuple[str, ...]]  # that judges it without a screen

    @abstractmethod
    def sources(self, folder: Path) -> Iterable[Path]:
        """The files that a build or a process may read."""

    @abstractmethod
    def measure(self, side: Side, names: Sequence[str]) -> Process:
        """Runs one process."""

    @abstractmethod
    def options(self) -> list[str]:
        """What is to follow `command`, so that it measures the same."""

    def check(self, folder: Path, given: str) -> None:  # noqa: B027
        """GateError where the folder does not hold such a project."""

    def ready(self) -> None:  # noqa: B027
        """GateError where this machine cannot measure it: said before anything is built."""

    def check_process(self, process: Process, names: Sequence[str]) -> None:  # noqa: B027
        """GateError where it is not what was asked for."""

    @property
    def protocol(self) -> dict[str, object]:
        """What makes its runs other ones, beside sides and options."""
        return {"build": self.build}

    def shell(self, command: str, side: Side, **places: Path) -> None:
        """Runs a command in the side's sources; GateError where it fails."""
        full = command
        for name, path in {"build": side.build, **places}.items():
            full = full.replace(f"{{{name}}}", shlex.quote(str(path)))
        child.checked(["sh", "-ec", full], side.role, command, TIMEOUT_S, cwd=side.source)


def resolve(project: Project, role: str, given: str) -> Side:
    """GateError where `given` is neither a folder with sources nor a commit of the repository."""
    folder, commit = Path(given), None
    if folder.is_dir():
        source = folder.resolve()
        with contextlib.suppress(GateError):  # a repository without a commit
            commit = checkout_commit(source) if (source / ".git").exists() else None
        if commit is None and source == project.repository:
            commit = os.environ.get("TILEGATE_COMMIT")
    else:
        commit = resolve_commit(given, project.repository, "neither a folder nor a commit")
        source = project.work / f"source-{commit[:16]}"
        extract(commit, project.repository, source)
        if (source / ".gitmodules").exists():
            raise GateError(
                f"--{role} {given}: it has submodules, which git does not copy; check both commits "
                "out, each in a folder with its submodules, and give the folders"
            )
    project.check(source, f"--{role} {given}")
    digest = digest_of_files(source, project.sources(source))
    built = hashlib.sha256(f"{digest}\n{project.build}".encode()).hexdigest()
    build = project.work / f"build-{built[:16]}"
    return Side(role, given, commit or digest, digest, source, build)


def judged_by(base: str, head: str, repository: Path) -> str:
    """What `head` is to be judged by: its merge base with `base`. Folders stay as they are."""
    if Path(head).is_dir():
        if Path(head).resolve() != repository:
            return base
        head = "HEAD"
    return base if Path(base).is_dir() else merge_base(base, head, repository)


def digest_of_files(source: Path, paths: Iterable[Path]) -> str:
    """40 hexadecimal digits."""
    return digest_of(source, sorted(path for path in paths if path.is_file()))[:40]


def extract(commit: str, repository: Path, folder: Path) -> None:
    """The commit's files. The folder appears whole or not at all."""
    if folder.exists():
        return
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    packed = temporary / ".tar"
    try:
        temporary.mkdir(parents=True)
        git_output(repository, "archive", f"--output={packed}", "--format=tar", commit)
        with tarfile.open(packed) as archive:
            archive.extractall(temporary)  # git's own archive of this repository
        packed.unlink()
        os.replace(temporary, folder)
    except OSError as problem:
        raise GateError(f"{folder}: cannot be written: {problem.strerror or problem}") from problem
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def build(project: Project, side: Side) -> None:
    """Builds a side, unless the same sources were built by the same command before."""
    done, begun = side.build / ".built", side.build / ".source"
    if done.exists():
        return
    message(f"building {side.title}")
    if begun.exists() and read_text(begun) != f"{side.source}\n":
        shutil.rmtree(side.build)  # CMake ties a build folder to one folder of sources
    make_folder(side.build)
    write_text(begun, f"{side.source}\n")
    if project.build:
        project.shell(project.build, side)
    write_text(done, f"{side.digest}\n")


def build_preset(preset: str, target: str, repository: Path = REPOSITORY) -> Path:
    """Brings a target of the working tree's build up to date, and the list of the rungs in it; the
    build folder."""
    folder = repository / "build" / preset
    make_folder(folder)
    with locked(folder):
        message(f"{preset}: building {target}")
        run_cmake(["--preset", preset], repository, preset)
        targets = [target, "stages_json"]
        run_cmake(["--build", "--preset", preset, "--target", *targets], repository, preset)
    return folder


def run_cmake(arguments: Sequence[str], folder: Path, title: str) -> None:
    child.checked(["cmake", *arguments], title, cwd=folder)


_SOURCES = ("kernels", "bench", "tests/verifier", "cmake")
_TOP = ("CMakeLists.txt", "CMakePresets.json")
_RESULTS = {f"bench/{name}" for name in ("baselines", "plots", "profile", "recordings", "results")}
_WAIVERS = "bench/waivers.json"
_CONFIGURE = "cmake --preset gpu -DTILEGATE_BUILD_TESTS=OFF -DTILEGATE_INSTALL=OFF -B {build}"


@dataclass(frozen=True)
class Tilegate(Project):
    """This repository. `extra` are CMake's arguments."""

    extra: tuple[str, ...] = ()
    launcher: Launcher = IN_PAIRS
    command = ("ci/gate", "run", "--no-screen")

    @classmethod
    def at(cls, work: Path, extra: Sequence[str] = (), launcher: Launcher = IN_PAIRS) -> "Tilegate":
        # Older commits have no target stages_json.
        targets = "cmake --build {build} --target bench stages_json || cmake --build {build}"
        build = f"{_CONFIGURE} {shlex.join(extra)} && ({targets})"
        return cls(REPOSITORY, work, build, tuple(extra), launcher)

    def sources(self, folder: Path) -> Iterable[Path]:
        """Documents, results and waivers are none."""
        results = {folder / name for name in _RESULTS}
        paths = [folder / name for name in _TOP]
        for name in _SOURCES:
            paths += (folder / name).rglob("*")
        return [
            p
            for p in paths
            if p.suffix != ".md" and p != folder / _WAIVERS and results.isdisjoint(p.parents)
        ]

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
        check_complete(process, names)

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
    declared: Declared
    margin: Margin
    command = ("gate", "run")

    @classmethod
    def at(
        cls, repository: Path, work: Path, build: str, run: str, declared: Declared, margin: Margin
    ) -> "Foreign":
        make_folder(work)
        write_text(work / ".gitignore", "*\n")
        return cls(repository, work, build, run, declared, margin)

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
        built = any(one.is_relative_to(base.build) for one, _ in there)
        complete = all(one.is_file() and two.is_file() for one, two in there)
        return built and complete and all(loaded(one) == loaded(two) for one, two in there)
