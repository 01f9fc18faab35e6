"""The addresses of a warp instruction, drawn: which lane touches which bank or sector."""

from collections.abc import Sequence

_LANES = "0123456789abcdefghijklmnopqrstuv"
_WORD = 4
_WORDS_PER_ROW = 32  # banks, or words of a line of global memory
_MOST_ROWS = 8

LEGEND = "lanes are 0-9, a-v; * is a word of several lanes"


def draw(kind: str, width: int, addresses: Sequence[int | None]) -> list[str]:
    """A row of text per 128 bytes that the access touches; `addresses` in bytes, None: idle."""
    if kind.startswith("shared"):
        lanes, which = _worst_phase(width, addresses)
        header = [f"{which}, by bank:", "       " + "0       8       16      24      "]
        return (
            header + _rows(lanes, width, addresses, "") + _words_per_bank(lanes, width, addresses)
        )
    active = [lane for lane, address in enumerate(addresses) if address is not None]
    rows = _rows(active, width, addresses, "|")
    return ["by sector of 32 bytes, a line of memory per row:", *rows]


def _words(lane: int, width: int, addresses: Sequence[int | None]) -> range:
    first = (addresses[lane] or 0) // _WORD
    return range(first, first + width // _WORD)


def _rows(
    lanes: Sequence[int], width: int, addresses: Sequence[int | None], separator: str
) -> list[str]:
    grid: dict[int, list[str]] = {}
    for lane in lanes:
        for word in _words(lane, width, addresses):
            row = grid.setdefault(word // _WORDS_PER_ROW, ["."] * _WORDS_PER_ROW)
            cell = word % _WORDS_PER_ROW
            row[cell] = _LANES[lane] if row[cell] == "." else "*"
    drawn = []
    for number in sorted(grid)[:_MOST_ROWS]:
        text = "".join(grid[number])
        if separator:
            text = separator.join(text[start : start + 8] for start in range(0, _WORDS_PER_ROW, 8))
        drawn.append(f"{128 * number:6d} {text}")
    if len(grid) > _MOST_ROWS:
        drawn.append(f"       and {len(grid) - _MOST_ROWS} rows more")
    return drawn


def _worst_phase(width: int, addresses: Sequence[int | None]) -> tuple[list[int], str]:
    """The lanes that are served together and cost the most passes."""
    step = 32 * _WORD // width
    phases = [
        [lane for lane in range(start, start + step) if addresses[lane] is not None]
        for start in range(0, 32, step)
    ]
    worst = max(phases, key=lambda lanes: max(_counts(lanes, width, addresses)))
    start = phases.index(worst) * step
    return worst, "the warp" if step == 32 else f"lanes {start} to {start + step - 1}"


def _counts(lanes: Sequence[int], width: int, addresses: Sequence[int | None]) -> list[int]:
    """Different words in each bank."""
    banks: list[set[int]] = [set() for _ in range(_WORDS_PER_ROW)]
    for lane in lanes:
        for word in _words(lane, width, addresses):
            banks[word % _WORDS_PER_ROW].add(word)
    return [len(bank) for bank in banks]


def _words_per_bank(lanes: Sequence[int], width: int, addresses: Sequence[int | None]) -> list[str]:
    counts = _counts(lanes, width, addresses)
    shown = "".join("." if n == 0 else str(n) if n < 10 else "+" for n in counts)
    return [f" words {shown}  most {max(counts)}"]
