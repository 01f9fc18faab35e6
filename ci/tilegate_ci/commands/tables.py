"""ci/gate tables: keeps the generated blocks of the READMEs as the committed baseline has them."""

import argparse

from tilegate_ci.checks.pages.tables import documents
from tilegate_ci.commands.arguments import add_check
from tilegate_ci.core.files import read_text, write_text
from tilegate_ci.core.progress import message

EXIT_CODES = {0: "up to date", 1: "--check: a file is not up to date", 2: "error"}
EXAMPLES = """examples:
  ci/gate tables
  ci/gate tables --check
"""

add_arguments = add_check


def run(arguments: argparse.Namespace) -> int:
    pages = documents(arguments.repository)
    failed = False
    for path, page in pages.items():
        if read_text(path) == page.text:
            continue
        name = path.relative_to(arguments.repository)
        if not arguments.check:
            write_text(path, page.text)
            print(f"{name}: written")
        elif page.measured:
            message(f"{name}: not what the baseline says; `ci/gate tables` writes it")
            failed = True
        else:
            print(f"{name}: the rung is not in the baseline; `ci/gate tables` says so there")
    print(f"{len(pages)} files looked at")
    return 1 if failed else 0
