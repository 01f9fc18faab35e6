"""Calls of git."""

import os
import re
import shlex
import subprocess
from pathlib import Path

from tilegate_ci.core.documents import commit_digits
from tilegate_ci.core.files import GateError

_REMOTE = re.compile(r"(?:\w+://)?(?:[^@/]+@)?([\w.-]+\.\w+)(?::\d+)?[:/](.+?)(?:\.git)?/?")
GIT = ("git", "-c", "core.hooksPath=/dev/null")


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [*GIT, *arguments],
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as problem:
        raise GateError(f"git cannot be run: {problem.strerror}") from problem


def git_output(folder: Path, *arguments: str) -> str:
    """What git printed; GateError with its reason where it fails."""
    done = git(folder, *arguments)
    if done.returncode:
        raise GateError(f"git {shlex.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def environment(folder: Path) -> dict[str, str]:
    """Messages in English; only the folder's own repository, not one named by a calling hook or in
    a parent folder."""
    named = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"}
    kept = {name: value for name, value in os.environ.items() if name not in named}
    return {**kept, "LC_ALL": "C", "GIT_CEILING_DIRECTORIES": str(folder.resolve().parent)}


def said(done: subprocess.CompletedProcess[str]) -> str:
    """git's own reason, to end a sentence with; empty where --quiet left none."""
    return f"; git says: {done.stderr.strip()}" if done.stderr.strip() else ""


def resolve_commit(given: str, repository: Path, otherwise: str = "not a commit") -> str:
    """The commit of a revision; GateError, which says what it is `otherwise`."""
    done = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^0")
    if done.returncode:
        raise GateError(f"{given!r} is {otherwise} of {repository}{said(done)}")
    return done.stdout.strip()


def checkout_commit(repository: Path) -> str:
    """HEAD, and -dirty after it when the working tree differs from it."""
    head = git(repository, "rev-parse", "HEAD")
    if head.returncode:
        raise GateError(
            f"which commit is this? git says: {head.stderr.strip()}\n"
            "Tell it: --commit SHA, or TILEGATE_COMMIT=SHA in the environment"
        )
    dirty = "-dirty" if git_output(repository, "status", "--porcelain") else ""
    return head.stdout.strip() + dirty


def named_commit(given: str | None, repository: Path) -> str:
    """The commit that --commit or $TILEGATE_COMMIT names, else that of the checkout."""
    given = given or os.environ.get("TILEGATE_COMMIT")
    try:
        return commit_digits(given) if given else checkout_commit(repository)
    except ValueError as problem:
        raise GateError(f"--commit, or $TILEGATE_COMMIT: {problem}") from problem


def show_file(commit: str, name: str, repository: Path) -> str | None:
    """The file as it was at a commit; None where that had none."""
    if not git(repository, "ls-tree", "--name-only", commit, "--", name).stdout:
        return None
    stored = git(repository, "show", f"{commit}:{name}")
    if stored.returncode:
        raise GateError(f"{name} of {commit} cannot be read{said(stored)}")
    return stored.stdout


def top_of(folder: Path) -> Path:
    """The top of the repository that the folder is in; the folder, where it is in none."""
    top = git(folder, "rev-parse", "--show-toplevel")
    return Path(top.stdout.strip()) if top.returncode == 0 else folder


def repository_url(repository: Path) -> str | None:
    """Where the repository can be read on the web, without a user or a password; None where git
    knows of no such place. A commit's page is below it: /commit/<SHA>."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if name and (server or "").startswith("https://"):
        return f"{server}/{name}"
    try:
        remote = git(repository, "remote", "get-url", "origin").stdout.strip()
    except GateError:
        return None
    found = _REMOTE.fullmatch(remote)
    return f"https://{found[1]}/{found[2]}" if found else None


def merge_base(base: str, head: str, repository: Path) -> str:
    """The last commit that both revisions have, so that a change is not blamed for what others
    did since."""
    found = git(repository, "merge-base", "--end-of-options", base, head)
    if found.returncode:
        reason = found.stderr.strip() or "they share no commit; is the clone a shallow one?"
        raise GateError(f"no merge base of {base} and {head}: {reason}")
    return found.stdout.strip()
