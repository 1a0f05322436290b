"""The figures as tables for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from rich.table import Table

from approxsvm.predictor import STAGES
from benchmarks.accuracy import Accuracy
from benchmarks.exact_labels import ExactTime
from benchmarks.in_memory import Latency, RowTime
from benchmarks.machine import Machine
from benchmarks.processes import LIBSVM_TOOL, NOT_INSTALLED, OUR_TOOL, ProcessTime
from benchmarks.sizes import ImportTime, Size

T = TypeVar("T")

_NONE = "-"


def machine_table(machine: Machine, peaks: Sequence[float]) -> Table:
    peak = f"{min(peaks) / 1e9:.1f} to {max(peaks) / 1e9:.1f} G multiply-adds/s" if peaks else "not measured"
    packages = ", ".join(f"{name} {number}" for name, number in machine.packages.items())
    tools = ", ".join(f"{name} ({path or NOT_INSTALLED})" for name, path in machine.tools.items())
    table = Table(title="Measured on", show_header=False)
    table.add_row("processor", f"{machine.cpu}; {machine.n_cpus} x {machine.architecture}")
    table.add_row("all threads", str(machine.all_threads))
    table.add_row("target", machine.target)
    table.add_row("float32 peak, one core", peak)
    table.add_row("load when started", f"{machine.load_average:.2f}")
    table.add_row("commit", machine.commit)
    table.add_row("software", f"Python {machine.python}, {packages}")
    table.add_row("tools", tools)
    return table


def accuracy_table(figures: Sequence[Accuracy]) -> Table:
    headings = (
        "model",
        "d",
        "SVs",
        "gamma",
        "gamma max",
        "exact",
        "origin",
        "mean",
        "origin",
        "mean",
        "2014",
    )
    groups = ("", "", "", "", "", "accuracy %", "accuracy %", "accuracy %", *["differ %"] * 3)
    table = _table("Table 1: accuracy, and labels that differ from the exact model's", headings, groups)
    for x in figures:
        table.add_row(
            x.model,
            str(x.n_features),
            f"{x.n_sv:,}",
            f"{x.gamma:g}",
            f"{x.gamma_max:.3g}",
            *(f"{100 * share:.3f}" for share in (x.exact, x.origin, x.mean)),
            *(f"{100 * share:.3f}" for share in (x.differ_origin, x.differ_mean)),
            _optional(x.differ_2014, lambda share: f"{100 * share:.2f}"),
        )
    return table


def process_table(figures: Sequence[ProcessTime]) -> Table:
    headings = (
        "model",
        "ours given",
        "threads",
        "rows",
        LIBSVM_TOOL,
        OUR_TOOL,
        "ratio",
        "2014 tool's ratio",
        "same bytes",
        "labels differ",
    )
    table = _table("Table 2a: whole processes, text in and labels out", headings, left=(0, 1))
    for i, x in enumerate(figures):
        table.add_row(
            x.model,
            x.given,
            str(x.n_threads),
            f"{x.n_rows:,}",
            _optional(x.libsvm_seconds, _time, NOT_INSTALLED),
            _optional(x.our_seconds, _time, x.problem),
            _optional(x.speedup, _ratio),
            _optional(x.speedup_2014, _ratio),
            _optional(x.same_bytes, lambda same: "yes" if same else "no"),
            _optional(x.differ, lambda share: f"{100 * share:.3f} %"),
            end_section=_is_last_of_model(figures, i),
        )
    return table


def batch_table(figures: Sequence[RowTime]) -> Table:
    headings = ("model", "d", "predictor", "threads", "rows", "per row", "LIBSVM / this", "share of peak")
    table = _table("Table 2b: labels of rows in memory", headings, left=(0, 2))
    for i, x in enumerate(figures):
        table.add_row(
            x.model,
            str(x.n_features),
            x.peer,
            str(x.n_threads),
            f"{x.n_rows:,}",
            _optional(x.seconds_per_row, _time, NOT_INSTALLED),
            _optional(x.speedup, _ratio),
            _optional(x.peak_share, lambda share: f"{100 * share:.1f} %"),
            end_section=_is_last_of_model(figures, i),
        )
    return table


def latency_table(figures: Sequence[Latency]) -> Table:
    table = _table("Table 2c: single rows", ("model", "call", "time", "LIBSVM / this"), left=(0, 1))
    for i, x in enumerate(figures):
        last = _is_last_of_model(figures, i)
        table.add_row(x.model, x.call, _time(x.seconds), _optional(x.speedup, _ratio), end_section=last)
    return table


def size_table(figures: Sequence[Size]) -> Table:
    headings = ("model", *["bytes"] * 3, "ratio", "2014 bytes", "ratio", *["compile"] * 3, *["memory"] * 2)
    below = ("", "LIBSVM", "approx.", "certified", "", "", "", "approx.", "certified", "LIBSVM rows", "peak", "imports")
    table = _table("Table 3: size, and what compiling costs (memory: of mode certified)", below, headings)
    for x in figures:
        table.add_row(
            x.model,
            f"{x.model_bytes:,}",
            f"{x.artifact_bytes:,}",
            f"{x.certified_bytes:,}",
            f"{x.ratio:.1f}",
            _optional(x.bytes_2014, lambda size: f"{size:,}"),
            _optional(x.ratio_2014, lambda ratio: f"{ratio:.1f}"),
            _time(x.compile_seconds),
            _time(x.certified_compile_seconds),
            _optional(x.compile_rows, lambda rows: f"{rows:,.0f}"),
            _optional(x.peak_bytes, _mebibytes),
            _optional(x.import_bytes, _mebibytes),
        )
    return table


def import_table(figures: Sequence[ImportTime]) -> Table:
    table = _table("Imports in a fresh interpreter", ("statement", "time", "ratio to NumPy"))
    for x in figures:
        table.add_row(x.statement, _time(x.seconds), f"{x.ratio_to_numpy:.2f}")
    return table


def exact_table(figures: Sequence[ExactTime]) -> Table:
    headings = (
        "model",
        "predictor",
        "threads",
        "cores",
        "rows",
        "per row",
        "LIBSVM / this",
        "sklearn / this",
        "degree 2 %",
        "rows per stage",
        "differ",
    )
    table = _table("Table 4: the exact model's labels of rows in memory", headings, left=(0, 1))
    for i, x in enumerate(figures):
        table.add_row(
            x.model,
            x.peer.removeprefix("approxsvm "),
            str(x.n_threads),
            _optional(x.cores, lambda cores: f"{cores:.1f}"),
            f"{x.n_rows:,}",
            _optional(x.seconds_per_row, _time, NOT_INSTALLED),
            _optional(x.libsvm_ratio, _ratio),
            _optional(x.sklearn_ratio, _ratio),
            _optional(x.first_stage, lambda share: f"{100 * share:.2f}"),
            _optional(x.rows_per_stage, lambda stages: " ".join(map(str, stages.values()))),
            _optional(x.differ, str),
            end_section=_is_last_of_model(figures, i),
        )
    table.caption = f"rows per stage: {', '.join(STAGES)}. sklearn has one thread always. differ: ties aside."
    return table


class _OfModel(Protocol):
    @property
    def model(self) -> str: ...


def _is_last_of_model(figures: Sequence[_OfModel], i: int) -> bool:
    return i + 1 < len(figures) and figures[i + 1].model != figures[i].model


def _table(title: str, headings: Sequence[str], groups: Sequence[str] = (), left: Sequence[int] = (0,)) -> Table:
    table = Table(title=title)
    for i, heading in enumerate(headings):
        above = f"{groups[i]}\n" if groups else ""
        table.add_column(above + heading, justify="left" if i in left else "right", no_wrap=True, vertical="bottom")
    return table


def _optional(value: T | None, shown: Callable[[T], str], otherwise: str = _NONE) -> str:
    return otherwise if value is None else shown(value)


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f} x" if ratio >= 100 else f"{ratio:.3g} x"
