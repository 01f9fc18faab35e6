"""Long work in parts, each kept when it ends: the same command goes on where it was stopped."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from tilegate_ci.core.files import Steps

T = TypeVar("T")


def work_off(
    parts: Iterable[T],
    do: Callable[[T], None],
    title: Callable[[T], str],
    limit_s: float | None = None,
    kind: Callable[[T], object] = lambda _: None,
    jobs: int = 1,
) -> list[T]:
    """Does the parts in their order, `jobs` at a time; gives the parts that the time limit leaves.
    None but the first begins that would end too late, as the slowest of its kind so far did."""
    waiting, began = deque(parts), time.monotonic()
    longest: dict[object, float] = {}
    problems: list[BaseException] = []
    turn = threading.Lock()

    def likely_s(part: T) -> float:
        return longest.get(kind(part), max(longest.values(), default=0.0))

    def next_part() -> T | None:
        with turn:
            if not waiting or problems:
                return None
            spent = time.monotonic() - began
            if longest and limit_s is not None and spent + 1.2 * likely_s(waiting[0]) > limit_s:
                return None
            return waiting.popleft()

    def work() -> None:
        try:
            while (part := next_part()) is not None:
                start = time.monotonic()
                do(part)
                took = time.monotonic() - start
                with turn:
                    longest[kind(part)] = max(longest.get(kind(part), 0.0), took)
                    left_s = sum(map(likely_s, waiting)) / jobs
                    steps.done(title(part), took, len(waiting), left_s)
        except BaseException as problem:
            problems.append(problem)

    with Steps() as steps:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs - 1)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads if not problems else ():
            thread.join()
        if problems:  # the others end with this process, and what they run with them
            raise problems[0]
    return [*waiting]
