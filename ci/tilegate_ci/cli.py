"""The command line of ci/gate: command registry and error handling."""

import argparse
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from tilegate_ci.core.files import GateError, WriteError, message, write_text

HERE = Path(__file__).parent


def _described(folder: str, names: str) -> dict[str, str]:
    """What each command does, in a line."""
    texts = {name: HERE / folder / f"{name}.txt" for name in names.split()}
    return {name: path.read_text("utf-8").partition("\n")[0] for name, path in texts.items()}


COMMANDS = _described(
    "commands", "bench run bisect drift compare accept report check explain profile lab"
)
LAB = _described("lab/commands", "kernels record replay mutants tune problems seeds")
LAB_HELP = "For maintainers: error rates of the gate, mutation testing, autotuning of Sgemm."

ALIASES = {  # old spellings
    "confirm": ["run", "--no-screen"],
    "collect": ["compare", "--no-baseline"],
    "resources": ["check", "resources"],
    "counters": ["check", "counters"],
    "passport": ["check", "passport"],
    "accuracy": ["check", "--update", "accuracy"],
    "plot": ["check", "--update", "plot"],
    "tables": ["check", "--update", "tables"],
    **{name: ["lab", name] for name in LAB},
}


class Parser(argparse.ArgumentParser):
    """Says what is wrong before the usage, which may be long; takes no abbreviations."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            **options, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
        )

    def has(self, option: str) -> bool:
        return option in self._option_string_actions

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n{self.format_usage()}")


def program() -> str:
    """What the command is called here, which in a checkout is ci/gate."""
    return "gate" if Path(sys.argv[0]).name == "gate" else "ci/gate"


def main(argv: Sequence[str]) -> int:
    """Runs one command and returns its exit code: 2 for every error. An ImportError is left to
    __main__."""
    arguments = argparse.Namespace()
    for number in (signal.SIGTERM, signal.SIGHUP):  # these end a command like Ctrl-C
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, signal.default_int_handler)
    try:
        parse(argv, arguments)
        return int(arguments.module.run(arguments))
    except SystemExit as stop:  # argparse has said why
        return stop.code if isinstance(stop.code, int) else 2
    except GateError as problem:
        _report_error(arguments, str(problem), isinstance(problem, WriteError))
    except KeyboardInterrupt:
        module = getattr(arguments, "module", None)
        what = getattr(module, "INTERRUPTED", "nothing was judged")
        _report_error(arguments, f"interrupted; {what}")
    except BrokenPipeError:  # the reader of the report has closed the pipe
        pass
    except ImportError:
        raise
    except OSError as problem:  # of a name that cannot be one of a file, or of a full stdout
        where = problem.filename or "stdout or a file"
        _report_error(arguments, f"{where}: {problem.strerror}", problem.filename is None)
    except Exception:
        message(f"internal error, please report it:\n{traceback.format_exc()}")
    return 2


def renamed(argv: Sequence[str]) -> list[str]:
    """The command line in today's words."""
    words = ALIASES.get(argv[0]) if argv else None
    if words is None:
        return list(argv)
    message(f"{program()} {argv[0]} is now {program()} {' '.join(words)}")
    return [*words, *argv[1:]]


def joined(argv: Sequence[str]) -> list[str]:
    """argparse takes the -DX of `--cmake -DX` for an option of ours, unless it is --cmake=-DX."""
    words: list[str] = []
    for word in argv:
        if words[-1:] == ["--cmake"]:
            words[-1] = f"--cmake={word}"
        else:
            words.append(word)
    return words


def parse(argv: Sequence[str], arguments: argparse.Namespace) -> argparse.Namespace:
    """Fills `arguments`; only the module of the command that is asked for is imported."""
    from tilegate_ci.commands.arguments import add_arguments, read_help

    argv = joined(renamed(argv))
    is_lab = argv[:1] == ["lab"]
    argv = argv[1:] if is_lab else argv
    parser = Parser(
        prog=f"{program()} lab" if is_lab else program(),
        description=(LAB_HELP if is_lab else "Keeps SGEMM kernels from getting slower."),
        epilog=f"`ci/gate {'lab ' * is_lab}COMMAND --help` has examples and exit codes.\n",
    )
    chosen = parser
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    folder = Path("lab/commands" if is_lab else "commands")
    known = LAB if is_lab else COMMANDS
    asked = {name: known[name] for name in argv[:1] if name in known}
    for name, description in (asked or known).items():  # making all takes most of the parsing
        command = commands.add_parser(
            name, help=description, description=description[0].upper() + description[1:] + "."
        )
        if asked:
            module = import_module(".".join(("tilegate_ci", *folder.parts, name)))
            _, options, command.epilog = read_help(HERE / folder / f"{name}.txt")
            types, defaults = (getattr(module, each, {}) for each in ("TYPES", "DEFAULTS"))
            add_arguments(command, options, types, defaults)
            command.set_defaults(module=module)
            chosen = command
    for word in argv[1 : argv.index("--") if "--" in argv else None]:
        if word.startswith("--") and word.endswith("=--"):  # argparse would make a list of it
            parser.error(f"argument {word.partition('=')[0]}: expected a value, not --")
        if word.startswith("--") and not chosen.has(word.partition("=")[0]):
            chosen.error(f"unrecognized arguments: {word}")  # before what is missing
    return parser.parse_args(argv, arguments)


def _report_error(arguments: argparse.Namespace, text: str, full: bool = False) -> None:
    """Writes the error to the reports too, which may be of an older run; not on a full disk."""
    message(f"error: {text}")
    markdown, json = (getattr(arguments, name, None) for name in ("markdown", "json"))
    try:
        if markdown and not full:
            from tilegate_ci.report import render

            write_text(Path(markdown), render.markdown(text))
        if json and not full:
            from tilegate_ci.judge import verdict_file

            verdict_file.write_error(Path(json), text)
    except WriteError as problem:
        message(f"error: {problem}")
