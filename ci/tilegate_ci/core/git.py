"""What the commands ask git."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tilegate_ci.core.files import GateError

_REMOTE = re.compile(r"(?:\w+://)?(?:[^@/]+@)?([\w.-]+\.\w+)(?::\d+)?[:/](.+?)(?:\.git)?/?")
GIT = ("git", "-c", "core.hooksPath=/dev/null")


class GitError(GateError):
    """git is not there, or cannot tell; its text says what to give instead."""


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [*GIT, *arguments],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as problem:
        raise GitError(f"git cannot be run: {problem.strerror}") from problem


def environment() -> dict[str, str]:
    """git's messages in English, and no repository named by a hook that called us."""
    named = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"}
    kept = {name: value for name, value in os.environ.items() if name not in named}
    return {**kept, "LC_ALL": "C"}


def checkout_commit(repository: Path) -> str:
    """HEAD, and -dirty after it when the working tree differs from it."""
    head = git(repository, "rev-parse", "HEAD")
    if head.returncode:
        raise GitError(
            f"which commit is this? git says: {head.stderr.strip()}\n"
            "Tell it: --commit SHA, or TILEGATE_COMMIT=SHA in the environment"
        )
    changes = git(repository, "status", "--porcelain")
    if changes.returncode:
        raise GitError(f"git status: {changes.stderr.strip()}")
    return head.stdout.strip() + ("-dirty" if changes.stdout.strip() else "")


def repository_url(repository: Path) -> str | None:
    """Where the repository can be read on the web, without a user or a password; None where git
    knows of no such place. A commit's page is below it: /commit/<SHA>."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if name and (server or "").startswith("https://"):
        return f"{server}/{name}"
    try:
        remote = git(repository, "remote", "get-url", "origin").stdout.strip()
    except GitError:
        return None
    found = _REMOTE.fullmatch(remote)
    return f"https://{found[1]}/{found[2]}" if found else None


def parting(base: str, head: str, repository: Path) -> str:
    """The last commit that both revisions have, so that a change is not blamed for what others
    did since."""
    found = git(repository, "merge-base", "--end-of-options", base, head)
    if found.returncode:
        told = found.stderr.strip() or "no common commit; is the clone a shallow one?"
        raise GitError(f"where {base} and {head} parted: {told}")
    return found.stdout.strip()
