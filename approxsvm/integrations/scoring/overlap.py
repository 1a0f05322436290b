"""Concurrent reading, processing and writing of items, in order and with bounded memory."""

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def overlapped(
    items: Generator[Item, None, None], work: Callable[[Item], Result], n_workers: int
) -> Generator[Result, None, None]:
    """Yield the results of `work` for all items, in order.

    One thread reads the next item, `n_workers` threads process one item each, and the caller writes the results. At
    most `n_workers` + 3 items are in memory.
    """
    pending: deque[Future[Result]] = deque()
    # The threads must end before the caller closes the files they read.
    with closing(items), ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(n_workers) as workers:
        try:
            upcoming = reader.submit(next, items, None)
            while True:
                try:
                    item = upcoming.result()
                except Exception:
                    while pending:  # earlier items are written first
                        yield pending.popleft().result()
                    raise
                if item is None:
                    break
                upcoming = reader.submit(next, items, None)
                pending.append(workers.submit(work, item))
                if len(pending) > n_workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            upcoming.cancel()
            for future in pending:
                future.cancel()
