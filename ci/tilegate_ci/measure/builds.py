"""Base and head, each a commit or a folder, built side by side."""

import hashlib
import os
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, make_folder
from tilegate_ci.core.git import checkout_commit, git, merge_base, said
from tilegate_ci.core.outputs import locked
from tilegate_ci.core.progress import message
from tilegate_ci.model import REPOSITORY

_SOURCES = ("kernels", "bench", "tests/verifier", "cmake")
_BASELINES = "bench/baselines"
_RESULTS = {
    _BASELINES,
    *(f"bench/{name}" for name in ("plots", "profile", "recordings", "results")),
}
_TOP = ("CMakeLists.txt", "CMakePresets.json")
_CONFIGURE = ("--preset", "gpu", "-DTILEGATE_BUILD_TESTS=OFF", "-DTILEGATE_INSTALL=OFF")


@dataclass(frozen=True)
class Side:
    """`digest` is of the sources: the same digest is the same build. `commit` is the digest too
    where there is no git history."""

    role: str
    given: str
    commit: str
    digest: str
    source: Path
    build: Path

    @property
    def binary(self) -> Path:
        return self.build / "bench" / "bench"

    @property
    def suite(self) -> Path:
        return self.source / "bench" / "gate.csv"

    def again(self, repository: Path) -> str:
        """How a command names it again: on another machine, too, where it is a commit."""
        elsewhere = Path(self.given).is_dir() and Path(self.given).resolve() != repository.resolve()
        changed = self.commit == self.digest or self.commit.endswith("-dirty")
        return self.given if elsewhere or changed else self.commit

    @property
    def title(self) -> str:
        return f"{self.role}: {self.given}, commit {self.commit[:12]}{self.commit[40:]}"


def resolve(role: str, given: str, repository: Path, work: Path) -> Side:
    """GateError where `given` is neither a folder with sources nor a commit of `repository`."""
    folder = Path(given)
    if folder.is_dir():
        source, commit = folder.resolve(), None
        if (source / ".git").exists():
            commit = commit_in(source)
    else:
        commit = revision_of(given, repository)
        source = work / f"source-{commit[:16]}"
        extract(commit, repository, source)
    if not (source / "bench" / "gate.csv").exists():
        raise GateError(f"--{role} {given}: no bench/gate.csv in it, which names the gated suite")
    digest = digest_of(source)
    if commit is None and source == repository:
        commit = os.environ.get("TILEGATE_COMMIT")
    # CMake ties a build folder to its source folder, and two folders may hold the same sources.
    place = hashlib.sha256(str(source).encode()).hexdigest()
    build = work / f"build-{digest[:16]}-{place[:4]}"
    return Side(role, given, commit or digest, digest, source, build)


def judged_by(base: str, head: str, repository: Path) -> str:
    """What `head` is to be judged by: its merge base with `base`. Folders stay as they are."""
    if Path(head).is_dir():
        if Path(head).resolve() != repository:
            return base
        head = "HEAD"
    return base if Path(base).is_dir() else merge_base(base, head, repository)


def digest_of(source: Path) -> str:
    """Of the files that a build or a run of bench may read, 40 hexadecimal digits."""
    paths = [source / name for name in _TOP]
    for folder in _SOURCES:
        paths += (source / folder).rglob("*")
    results = {source / name for name in _RESULTS}
    return digest_of_files(source, [path for path in paths if results.isdisjoint(path.parents)])


def digest_of_extra_stages(cmake: Sequence[str]) -> str:
    """Of the rungs outside of the repository that CMake is told of, as digest_of."""
    hashed = hashlib.sha256()
    for argument in cmake:
        name, _, folders = argument.removeprefix("-D").partition("=")
        if name.partition(":")[0] == "TILEGATE_EXTRA_STAGES":
            for folder in map(Path, folders.split(";")):
                hashed.update(digest_of_files(folder, folder.rglob("*")).encode())
    return hashed.hexdigest()[:40]


def digest_of_baselines(source: Path) -> str:
    return digest_of_files(source, (source / _BASELINES).glob("*"))


def digest_of_files(source: Path, paths: Iterable[Path]) -> str:
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


def build(side: Side, extra: Sequence[str]) -> None:
    """Configures and builds bench and the list of its rungs, which older commits have no target of;
    what is built already costs a look of the build tool."""
    message(f"building {side.title}")
    side.build.mkdir(parents=True, exist_ok=True)
    run_cmake([*_CONFIGURE, "-B", str(side.build), *extra], side.source, side.title)
    run_cmake(["--build", str(side.build)], side.source, side.title)


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
    command = ["cmake", *arguments]
    try:
        done = child.run(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
        )
    except OSError as problem:
        raise GateError(f"cmake cannot be run: {problem.strerror}") from problem
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-20:])
        raise GateError(f"{title}: `{shlex.join(command)}` failed:\n{last}")
