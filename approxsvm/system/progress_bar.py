"""A progress bar of the compiler, shown in terminals and notebooks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

# Fraction of the time for planning, which also makes the expansions of small plans.
_PLANNING = 0.6


def progress_bar(show: bool | None = None, *, remaining: bool = False) -> Progress:
    """Make a bar on stderr, with the `remaining` time if requested; it disappears from a terminal when it is done.

    By default it is shown if stderr is a terminal, or in a notebook. Terminals that cannot redraw a line (TERM=dumb,
    IDLE, an empty FORCE_COLOR) get a new line after 1, 2, 4, ... seconds.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    class Lines(Progress):
        """A bar for terminals that cannot redraw a line."""

        start_time = time.monotonic()
        wait = 1.0

        def update(self, *args: Any, **changes: Any) -> None:
            super().update(*args, **changes)
            if time.monotonic() - self.start_time >= self.wait:
                self.wait *= 2.0
                self.console.print(self.get_renderable())

    console = Console(stderr=True)
    if console.is_jupyter:  # not as a widget, which a front end may not support
        console = Console(stderr=True, force_jupyter=False, force_terminal=True)
    draws = console.is_terminal and not console.is_dumb_terminal
    rest = [TimeRemainingColumn()] if remaining else []
    columns = (TextColumn("{task.description}"), BarColumn(), *rest, TimeElapsedColumn())
    if show is not False and not draws and _is_terminal(console.file):
        return Lines(*columns, console=console, disable=True)  # disables the redrawn bar, not the lines
    return Progress(*columns, console=console, transient=draws, disable=not (draws if show is None else show))


def _is_terminal(file: Any) -> bool:
    try:
        return bool(getattr(file, "isatty", bool)())
    except ValueError:  # it is closed
        return False


@contextmanager
def compiling(show: bool | None, first: str = "Reading") -> Iterator[Callable[[str, float], None]]:
    """Show one bar for all steps of `compile`; the value is its `progress` callback."""
    with progress_bar(show=show) as bar:
        task = bar.add_task(first, total=1.0)

        def report(step: str, share: float) -> None:
            done = _PLANNING * share if step == "Planning" else _PLANNING + (1.0 - _PLANNING) * share
            bar.update(task, description=step, completed=done)

        yield report
