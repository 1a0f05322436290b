"""Progress bar of the compiler, shown in terminals and notebooks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

# Fraction of the time spent on planning, including the expansions of small plans.
_PLANNING = 0.6


def progress_bar(show: bool | None = None, *, remaining: bool = False) -> Progress:
    """Make a progress bar on stderr, with the `remaining` time if requested; a finished bar is removed from a terminal.

    By default, the bar is shown if stderr is a terminal, or in a notebook. On a terminal that cannot redraw a line
    (TERM=dumb, IDLE, an empty FORCE_COLOR), a new progress line is printed after 1, 2, 4, ... seconds.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    class Lines(Progress):
        """Progress bar for terminals that cannot redraw a line."""

        start_time = time.monotonic()
        wait = 1.0

        def update(self, *args: Any, **changes: Any) -> None:
            super().update(*args, **changes)
            if time.monotonic() - self.start_time >= self.wait:
                self.wait *= 2.0
                self.console.print(self.get_renderable())

    console = Console(stderr=True)
    if console.is_jupyter:  # not a widget, because some front ends do not support widgets
        console = Console(stderr=True, force_jupyter=False, force_terminal=True)
    draws = console.is_terminal and not console.is_dumb_terminal
    rest = [TimeRemainingColumn()] if remaining else []
    columns = (TextColumn("{task.description}"), BarColumn(), *rest, TimeElapsedColumn())
    if show is not False and not draws and _is_terminal(console.file):
        return Lines(*columns, console=console, disable=True)  # disables the redrawn bar, but not the lines
    return Progress(*columns, console=console, transient=draws, disable=not (draws if show is None else show))


def _is_terminal(file: Any) -> bool:
    try:
        return bool(getattr(file, "isatty", bool)())
    except ValueError:  # the file is closed
        return False


@contextmanager
def compiling(show: bool | None, first: str = "Reading") -> Iterator[Callable[[str, float], None]]:
    """Show one progress bar for all steps of `compile`; yield the `progress` callback that updates it."""
    with progress_bar(show=show) as bar:
        task = bar.add_task(first, total=1.0)

        def report(step: str, share: float) -> None:
            done = _PLANNING * share if step == "Planning" else _PLANNING + (1.0 - _PLANNING) * share
            bar.update(task, description=step, completed=done)

        yield report
