"""ci/gate report: verdict files and runs, in any form."""

from tilegate_ci.report.command import EXAMPLES, add_arguments, run

__all__ = ["EXAMPLES", "EXIT_CODES", "add_arguments", "run"]

EXIT_CODES = {0: "the reports were written", 2: "error"}
