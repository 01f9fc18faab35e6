"""ci/new-rung: starts a rung as a copy of another, under the next number of the ladder."""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve()  # beside it the page of a new rung, and what to do next
REPOSITORY = HERE.parents[2]
LIST = Path("kernels") / "CMakeLists.txt"
EXAMPLES = """example:
  ci/new-rung Mine --from Warptile

exit codes:
  0  kernels/<number>_<word> is there, with its line in kernels/CMakeLists.txt
  2  error; nothing was written
"""
_LINE = re.compile(r"^tilegate_add_stage\((\d+_(\w+?))((?: [^)]*)?)\)\n", re.MULTILINE)
# What C++ would not take as the name of a namespace.
_KEYWORDS = """
auto bool break case catch char class concept const continue default delete do double else enum
explicit export extern false float for friend goto if inline int long mutable namespace new not
operator or private protected public register requires return short signed sizeof static struct
switch template this throw true try typedef union unsigned using virtual void volatile while xor
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="ci/new-rung",
        description="Starts a rung as a copy of another, under the next number of the ladder.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="of the new rung, in CamelCase: Mine")
    parser.add_argument("--from", required=True, metavar="RUNG", dest="origin", help="to copy")
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    try:
        folder = create(arguments.repository, arguments.name, arguments.origin)
    except (OSError, ValueError) as problem:
        parser.error(str(problem))
    told = HERE.with_name("new_rung_next.txt").read_text("utf-8")
    print(told.format(name=arguments.name, word=word_of(arguments.name), folder=folder), end="")
    return 0


def word_of(name: str) -> str:
    """As folders, namespaces and libraries have it: split_k for SplitK."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def create(repository: Path, name: str, origin: str) -> str:
    """The new folder's name; ValueError says why there is none."""
    listed = (repository / LIST).read_text("utf-8")
    lines = {match[1]: match for match in _LINE.finditer(listed)}
    folders = {stage_name(repository / "kernels" / folder): folder for folder in lines}
    if origin not in folders:
        raise ValueError(f"unknown rung {origin!r}; there are {', '.join(folders)}")
    word = word_of(name)
    if not re.fullmatch("[A-Z][A-Za-z0-9]*", name) or word in _KEYWORDS.split():
        raise ValueError(f"bad name {name!r}: it should be CamelCase, and no keyword of C++")
    if word in taken(repository, listed):
        raise ValueError(f"name taken: {name} would be the namespace and the library {word}")
    copied = lines[folders[origin]]
    number = 1 + max(int(folder.partition("_")[0]) for folder in lines)
    folder = f"{number:02}_{word}"
    write(repository / "kernels", copied[1], folder, {origin: name, copied[2]: word})
    last = [*lines.values()][-1].end()
    line = f"tilegate_add_stage({folder}{copied[3]})\n"
    (repository / LIST).write_text(listed[:last] + line + listed[last:], "utf-8")
    return folder


def stage_name(folder: Path) -> str:
    """The rung's name, SplitK, from the main file of its folder, 12_split_k."""
    plain = folder.name.partition("_")[2].replace("_", "")
    source = folder / f"{folder.name.partition('_')[2]}.cu"
    for name in re.findall(r'"([A-Z]\w*)"', source.read_text("utf-8")):
        if str(name).lower() == plain:
            return str(name)
    raise ValueError(f"{source}: no stage of that name")


def taken(repository: Path, listed: str) -> set[str]:
    """Words of stages, and of what else stands beside them."""
    kernels = repository / "kernels"
    stages = re.findall(r"^tilegate_add_stage\((?:\d+_)?(\w+)", listed, re.MULTILINE)
    headers = [path.stem for path in (kernels / "include" / "tilegate").glob("*.hpp")]
    folders = [path.name for path in kernels.iterdir()]
    return {*stages, *headers, *folders, "ladder"}


def write(kernels: Path, source: str, folder: str, renamed: Mapping[str, str]) -> None:
    """The sources of one folder in another, and a page for it."""
    (origin, name), (word, new_word) = renamed.items()
    files = [path for path in sorted((kernels / source).iterdir()) if path.suffix != ".md"]
    texts = {
        re.sub(rf"^{word}(?=\.)", new_word, path.name): translated(
            path.read_text("utf-8"), origin, name, word, new_word
        )
        for path in files
    }
    shared = f"namespace tilegate::{word} {{"
    common = (path.read_text("utf-8") for path in (kernels / "common").rglob("*.[ch]*"))
    if any(shared in text for text in common):  # headers have a part of the rung in its namespace
        opened = f"namespace tilegate::{new_word} {{\n"
        used = f"{opened}\nusing namespace tilegate::{word};\n"
        texts = {file: text.replace(opened, used) for file, text in texts.items()}
    page = HERE.with_name("new_rung_page.txt").read_text("utf-8")
    texts["README.md"] = page.format(name=name, origin=origin, folder=source)
    (kernels / folder).mkdir()
    for file, text in texts.items():
        (kernels / folder / file).write_text(text, "utf-8")


def translated(text: str, origin: str, name: str, word: str, new_word: str) -> str:
    """A source with the rung's names replaced where they mean the rung: the same word may be that
    of a header in common/, of a variable, or of a type."""
    for pattern in (
        rf"(?<=\btilegate::){word}\b",  # the namespace
        rf"(?<![:\w]){word}(?=::)",
        rf'(?<=["]){word}(?=["\s])',  # how launches call the kernel
        rf"(?<![\w/]){word}(?=\.(?:cu|cuh|hpp)\b)",  # files of the folder
    ):
        text = re.sub(pattern, new_word, text)
    text = re.sub(rf'(?<="){origin}(?=[".])', name, text)  # the stage and its variants
    return re.sub(r"//.*", lambda line: re.sub(rf"\b{origin}\b", name, line[0]), text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
