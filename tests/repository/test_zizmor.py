"""zizmor, which knows how workflows are attacked, finds nothing in ours."""

import os
import re
import shutil
import subprocess

import pytest
from ladder_builder import REPOSITORY

WORKFLOWS = REPOSITORY / ".github" / "workflows"
FILES = sorted(path.name for path in WORKFLOWS.glob("*.yml"))

pytestmark = pytest.mark.skipif(
    shutil.which("zizmor") is None and "TILEGATE_NO_SKIP" not in os.environ,
    reason="no zizmor; ci/test installs it into build/venv",
)


def audit(path):
    """zizmor's exit code and output; it asks no network."""
    command = ["zizmor", "--offline", "--no-progress", "--color=never", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", FILES)
def test_our_workflows_are_clean(name):
    code, message = audit(WORKFLOWS / name)
    assert code == 0, message


# What each edit of ci.yml plants, and zizmor's name for it: the test above can fail.
@pytest.mark.parametrize(
    ("pattern", "replacement", "finding"),
    [
        (r"actions/checkout@\S+", "actions/checkout@v4", "unpinned-uses"),
        (r"\n +with:\n +persist-credentials: false", "", "artipacked"),
        (r"contents: read", "contents: write", "excessive-permissions"),
        (r"\bpull_request:", "pull_request_target:", "dangerous-triggers"),
        (
            r"- run: ci/format --check",
            "- run: echo ${{ github.event.pull_request.title }}",
            "template-injection",
        ),
    ],
)
def test_a_planted_fault_is_found(tmp_path, pattern, replacement, finding):
    text, edits = re.subn(pattern, replacement, (WORKFLOWS / "ci.yml").read_text("utf-8"), count=1)
    assert edits == 1
    path = tmp_path / ".github" / "workflows" / "ci.yml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    code, message = audit(path)
    assert code != 0
    assert finding in message
