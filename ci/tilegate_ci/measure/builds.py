"""Base and head, each a commit or a folder, and their builds, kept by the digest of the sources."""

import hashlib
import os
import shlex
import shutil
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, make_folder, read_text, write_text
from tilegate_ci.core.git import checkout_commit, git, merge_base, said
from tilegate_ci.core.outputs import locked
from tilegate_ci.core.progress import message
from tilegate_ci.model import REPOSITORY, Process

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
    process: type[Process]  # the model of its processes
    command: tuple[str, ...]  # that judges it without a screen

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
        commit = commit_in(source) if (source / ".git").exists() else None
        if commit is None and source == project.repository:
            commit = os.environ.get("TILEGATE_COMMIT")
    else:
        commit = revision_of(given, project.repository)
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
    hashed = hashlib.sha256()
    for path in sorted(path for path in paths if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        hashed.update(f"{path.relative_to(source).as_posix()} {content}\n".encode())
    return hashed.hexdigest()[:40]


def revision_of(given: str, repository: Path) -> str:
    done = git(repository, "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}")
    if done.returncode:
        raise GateError(f"{given!r} is neither a folder nor a commit of {repository}{said(done)}")
    return done.stdout.strip()


def commit_in(source: Path) -> str | None:
    try:
        return checkout_commit(source)
    except GateError:  # a repository without a commit
        return None


def extract(commit: str, repository: Path, folder: Path) -> None:
    """The commit's files. The folder appears whole or not at all."""
    if folder.exists():
        return
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    packed = temporary / ".tar"
    try:
        temporary.mkdir(parents=True)
        done = git(repository, "archive", f"--output={packed}", "--format=tar", commit)
        if done.returncode:
            raise GateError(f"git archive {commit}: {done.stderr.strip()}")
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
