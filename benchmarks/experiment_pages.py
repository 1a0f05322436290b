"""The tables and pictures of docs/experiments.md, from the records of the experiments and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from benchmarks import cotter, overview
from benchmarks.charts import Chart
from benchmarks.pages import Records, as_table, three

DATA_OF_COTTER: Final = {"cotter_adult": "Adult", "cotter_mnist": "MNIST, 8", "cotter_covertype": "Covertype, 1"}


def _rahimi_recht(records: Records) -> str:
    rows = [
        (
            x["data"],
            x["method"],
            f"{x['training_rows']:,}",
            f"{x['columns']:,}",
            f"{three(x['seconds'])} s",
            f"{x['error_percent']:.1f} %",
            f"{x['paper_percent']:g} %",
        )
        for x in records["rahimi_recht"].tables["errors"]
    ]
    headings = ("data", "method", "training rows", "columns, or support vectors", "training", "error", "paper's error")
    return as_table(headings, rows)


def _overview(records: Records) -> str:
    models: dict[str, dict[bool, Any]] = {}
    for x in records["overview"].tables["models"]:
        models.setdefault(x["model"], {})[x["compiled"]] = x
    rows = [
        (
            name,
            f"{found[False]['accuracy_percent']:.1f} %",
            f"{three(found[False]['fit_seconds'])} s",
            f"{three(found[False]['microseconds_per_row'])} µs",
            *_compiled(found),
        )
        for name, found in models.items()
    ]
    return as_table(("model", "accuracy", "training", "per row", "compiled, per row", "times", "compiling"), rows)


def _compiled(found: dict[bool, Any]) -> tuple[str, str, str]:
    if True not in found:
        return "-", "-", "-"
    source, fast = found[False], found[True]
    times = source["microseconds_per_row"] / fast["microseconds_per_row"]
    seconds = fast["fit_seconds"] - source["fit_seconds"]
    return f"{three(fast['microseconds_per_row'])} µs", three(times), f"{three(seconds)} s"


def _stand_ins(records: Records) -> str:
    rows = [
        (
            f"{x['data']}, {x['n_features']:,} features",
            f"{x['support_vectors']:,} ({x['support_vectors_in_paper']:,})",
            f"{x['accuracy_percent']:.1f} %",
            f"{x['changed_about_origin_percent']:.3f} %",
            f"{x['changed_about_mean_percent']:.3f} %, {three(x['expansion_microseconds'])} µs",
            f"{x['plan']}; {x['certified_percent']:.1f} % proven, {three(x['microseconds'])} µs",
            f"{three(x['engine_microseconds'])} µs",
            f"{three(x['sklearn_microseconds'])} µs",
        )
        for x in records["stand_ins"].tables["models"]
    ]
    headings = (
        "generated rows",
        "support vectors (the paper's)",
        "accuracy",
        "labels changed about the origin",
        "about the mean",
        "planned, all labels exact",
        "our exact engine",
        "scikit-learn",
    )
    return as_table(headings, rows)


def _cotter(records: Records) -> str:
    record = records["cotter"]
    exact = {x["data"]: x for x in record.tables["exact"]}
    rows = [
        (
            f"{x['data']}, {exact[x['data']]['training_rows']:,} rows, sigma² = {x['sigma2']:g}, C = {x['C']:g}",
            x["name"],
            f"{x['columns']:,}",
            f"{x['non_zeros']:,.0f}",
            f"{x['multiply_adds']:,.0f}",
            f"{100 * x['test_error']:.2f} %",
            f"{100 * exact[x['data']]['test_error']:.2f} %",
        )
        for x in record.tables["features"]
    ]
    headings = ("data", "features", "columns", "non-zeros", "multiply-adds per row", "test error", "SVC's")
    return as_table(headings, rows)


TABLES: Final[dict[str, Callable[[Records], str]]] = {
    "stand-ins": _stand_ins,
    "cotter": _cotter,
    "rahimi-recht": _rahimi_recht,
    "overview": _overview,
}


def _of_cotter(data: str) -> Callable[[Records], Chart]:
    return lambda records: cotter.chart(records["cotter"], data)


PICTURES: Final[dict[str, Callable[[Records], Chart]]] = {
    **{name: _of_cotter(data) for name, data in DATA_OF_COTTER.items()},
    "overview": lambda records: overview.chart(records["overview"].tables["models"]),
}
