"""Base and head of any project, and the commands that build and measure one of them."""

import hashlib
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, make_folder, read_text, write_text
from tilegate_ci.core.git import git
from tilegate_ci.core.progress import message
from tilegate_ci.formats.reading import Declared, read_process
from tilegate_ci.measure import conditions
from tilegate_ci.measure.builds import Side, commit_in, digest_of_files, extract, revision_of
from tilegate_ci.model import Conditions, OtherProcess

TIMEOUT_S = 3600.0  # of one command


@dataclass(frozen=True)
class Commands:
    """Shell commands, run in the folder of a side's sources. {build} in them is the folder that it
    is built in, {out} the JSON file that a process has to write."""

    build: str
    run: str


def repository_at(folder: Path) -> Path:
    """The top of the repository that the folder is in; the folder, where it is in none."""
    top = git(folder, "rev-parse", "--show-toplevel")
    return Path(top.stdout.strip()) if top.returncode == 0 else folder


def make_work(work: Path) -> None:
    """The folder of builds and processes, which git leaves alone."""
    make_folder(work)
    write_text(work / ".gitignore", "*\n")


def resolve(role: str, given: str, repository: Path, work: Path, commands: Commands) -> Side:
    """GateError where `given` is neither a folder nor a commit of the repository."""
    folder = Path(given)
    if folder.is_dir():
        source = folder.resolve()
        commit = commit_in(source) if (source / ".git").exists() else None
    else:
        commit = revision_of(given, repository)
        source = work / f"source-{commit[:16]}"
        extract(commit, repository, source)
        if (source / ".gitmodules").exists():
            raise GateError(
                f"--{role} {given}: it has submodules, which git does not copy; check both commits "
                "out, each in a folder with its submodules, and give the folders"
            )
    digest = digest_of_files(source, _files(source, work))
    built = hashlib.sha256(f"{digest}\n{commands.build}".encode()).hexdigest()
    return Side(role, given, commit or digest, digest, source, work / f"build-{built[:16]}")


def _files(source: Path, work: Path) -> Sequence[Path]:
    """The sources: what git knows or would add; without git, all but what we write."""
    listed = git(source, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if (source / ".git").exists() and listed.returncode == 0:
        return [source / name for name in listed.stdout.split("\0") if name]
    inside = work.is_relative_to(source)
    return [path for path in source.rglob("*") if not (inside and path.is_relative_to(work))]


def build(side: Side, commands: Commands) -> None:
    """The same sources and command are built once: the folder is named after them."""
    done = side.build / ".built"
    if done.exists():
        return
    message(f"building {side.title}")
    make_folder(side.build)
    if commands.build:
        _shell(commands.build, side, {"{build}": side.build})
    write_text(done, f"{side.digest}\n")


def measure(side: Side, commands: Commands, declared: Declared) -> OtherProcess:
    """One process; GateError where it fails, or does not write what it was asked for."""
    with tempfile.TemporaryDirectory(prefix="gate-") as folder:
        out = Path(folder) / f"{side.role}.json"
        before, start = conditions.read(), time.monotonic()
        started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        _shell(commands.run, side, {"{build}": side.build, "{out}": out})
        wall_s, after = time.monotonic() - start, conditions.read()
        if not out.exists():
            raise GateError(f"{side.role}: `{commands.run}` did not write {{out}}")
        process = read_process(read_text(out), f"{side.role}: {{out}}", declared)
    around = Conditions(before=before, after=after)
    update = {"started": started, "wall_s": round(wall_s, 3), "conditions": around}
    return process.model_copy(update=update)


def _shell(command: str, side: Side, places: dict[str, Path]) -> None:
    """GateError where it fails."""
    full = command
    for name, path in places.items():
        full = full.replace(name, shlex.quote(str(path)))
    try:
        done = child.run(
            ["sh", "-ec", full],
            cwd=side.source,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        text = f"{side.role}: `{command}`: not finished after {TIMEOUT_S:g} s"
        raise GateError(text) from None
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-20:])
        text = f"{side.role}: `{command}` failed with exit code {done.returncode}"
        raise GateError(f"{text} in {side.source}:\n{last}")
