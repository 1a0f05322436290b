"""Test the whole zoo and composed sources for a given time, and describe each fault in a few lines.

    python -m tests.zoo --seconds 600 --workers 2
    python -m tests.zoo --only "three classes" --executors "batch,predict_one"
    python -m tests.zoo --number 4711          # one source again, with full output

Sources are numbered: even numbers denote entries with hostile rows from new seeds, odd numbers randomly composed
sources. The exit code is 1 if a fault is found.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])  # for tests and benchmarks

from zoo.composed import Attempt, Fault
from zoo.executors.every import EVERY
from zoo.workers import Task, prepare, try_for


class _Summary:
    """Sources that were tried, and their faults."""

    def __init__(self) -> None:
        self.tried: list[Attempt] = []
        self.faults: dict[str, list[tuple[Attempt, Fault]]] = {}

    def add(self, tried: Attempt) -> None:
        click.echo(tried.script, nl=False)
        self.tried.append(tried)
        for fault in tried.judged.faults:
            self.faults.setdefault(_key(tried, fault), []).append((tried, fault))

    def print(self, seconds: float, deaths: Counter[str]) -> None:
        n_entries = sum(one.source.startswith("entry ") for one in self.tried)
        verdicts = Counter(one.judged.verdict for one in self.tried)
        n_answers = sum(one.judged.n_answers for one in self.tried)
        click.echo(f"{n_entries} entries, {len(self.tried) - n_entries} composed sources, {seconds:.0f} s")
        click.echo(f"{n_answers:,} answers judged; {', '.join(f'{n} {verdict}' for verdict, n in verdicts.items())}")
        _print_counts("sources refused", (one.judged.reason for one in self.tried if one.judged.verdict == "refused"))
        _print_counts("rows refused", (reason for one in self.tried for reason in one.judged.refused))
        for words, n in deaths.items():
            click.echo(f"processes, {words}: {n}")
        click.echo(f"faults: {sum(map(len, self.faults.values()))}")
        for alike in sorted(self.faults.values(), key=len, reverse=True):
            first, fault = min(alike, key=lambda found: len(found[0].source))
            changes = f"; changed: {'; '.join(first.changes)}" if first.changes else ""
            places = sorted({of_other.place for _, of_other in alike})
            click.echo(
                f"{len(alike):6}  {', '.join(places[:4])}{'...' if len(places) > 4 else ''}: {fault.words[:400]}"
            )
            click.echo(f"        source {first.index}: {first.source[:300]}, {first.form}{changes}")


def _print_counts(title: str, reasons: object) -> None:
    counted = Counter(map(_alike, reasons))  # type: ignore[call-overload]
    click.echo(f"{title}: {sum(counted.values())}")
    for words, n in counted.most_common():
        click.echo(f"{n:6}  {words}")


def _key(tried: Attempt, fault: Fault) -> str:
    """Return a key shared by faults with the same cause; for differing answers, it consists of methods and changes."""
    if not fault.words.startswith("differs"):
        return _alike(fault.words)
    changes = [re.sub(r" at .*| is .*|=.*", "", change) for change in tried.changes if "not possible" not in change]
    changes = [re.sub(r": .*[.]", ": ", change) for change in changes]
    return " | ".join(["differs", *re.findall(r"(\w+): [^\d]", fault.words)[1:], *sorted(changes)])


def _alike(words: str) -> str:
    """Return the first clause without numbers, step names and bracketed text, so that similar reasons count as one."""
    clause = re.split(r"; |\n", words, maxsplit=1)[0]
    clause = re.sub(r"(step '[^']*'( of the pipeline:)? )+", "step ... ", clause)
    clause = re.sub(r"[([].*[)\]]", "(...)", clause)
    return re.sub(r"-?\d[\d.,e+-]*", "#", clause)[:160]


@click.command(help=__doc__)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--only", default="", metavar="NAME", help="Entries whose name has this in it, and what is made of them.")
@click.option("--executors", default="", metavar="A,B", help="Those whose names begin so.")
@click.option("--composed-only", is_flag=True, help="No entries as they are.")
@click.option("--number", type=click.IntRange(0), help="This source alone, in full.")
def main(
    seconds: float, workers: int, seed: int, only: str, executors: str, composed_only: bool, number: int | None
) -> None:
    names = tuple(filter(None, executors.split(",")))
    task = Task(seed, only, names, composed_only)
    if not task.zoo().entries:
        raise click.BadParameter(f"no entry has {only!r} in its name")
    if not task.zoo().executors:
        raise click.BadParameter(f"no executor begins with {executors}: {', '.join(one.name for one in EVERY)}")
    if number is not None:
        with tempfile.TemporaryDirectory() as folder:
            zoo = task.zoo()
            prepare(zoo.executors, Path(folder))
            tried = task.attempt(zoo, number, known=Counter())
        for name, value in vars(tried).items():
            click.echo(f"{name}: {value}")
        sys.exit(int(bool(tried.judged.faults)))
    summary, start = _Summary(), time.monotonic()
    deaths = try_for(seconds, workers, task, summary.add)
    summary.print(time.monotonic() - start, deaths)
    sys.exit(int(bool(summary.faults)))


if __name__ == "__main__":
    main()
