"""A bar that says how far the compiler is, where a person looks: in a terminal, or in a notebook."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

# Planning has expanded few centers already, and all of them where they are few.
_PLANNING = 0.6


def progress_bar(show: bool | None = None, *, remaining: bool = False) -> Progress:
    """Make a bar on stderr, with the `remaining` time if asked; in a terminal or notebook it is gone when it is done.

    It shows by default where there is a person to see it: stderr is a terminal, or the output a notebook's.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if console.is_jupyter and importlib.util.find_spec("ipywidgets") is None:
        console = Console(stderr=True, force_jupyter=False, force_terminal=True)  # a notebook without widgets
    if show is None:
        show = console.is_terminal or console.is_jupyter
    rest = [TimeRemainingColumn()] if remaining else []
    columns = (TextColumn("{task.description}"), BarColumn(), *rest, TimeElapsedColumn())
    return Progress(*columns, console=console, transient=console.is_terminal or console.is_jupyter, disable=not show)


@contextmanager
def compiling(show: bool | None, first: str = "Reading") -> Iterator[Callable[[str, float], None]]:
    """What `compile` reports to, as one bar from the first step to the last."""
    with progress_bar(show=show) as bar:
        task = bar.add_task(first, total=1.0)

        def told(step: str, share: float) -> None:
            done = _PLANNING * share if step == "Planning" else _PLANNING + (1.0 - _PLANNING) * share
            bar.update(task, description=step, completed=done)

        yield told
