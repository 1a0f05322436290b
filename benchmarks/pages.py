"""Tables for docs/benchmarks.md and docs/experiments.md, as Markdown, from the records alone.

A table has a heading and a cell for each column; a cell is a function that formats a figure from a row of a record:

    as_table(record.tables["calls"], {"model": of("model"), "C++": of("cpp_nanoseconds", three)})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import median
from textwrap import fill
from typing import Any, Final, TypeAlias

from benchmarks.record import Record, Row

Records: TypeAlias = Mapping[str, Record]
Cell: TypeAlias = Callable[[Row], str]
_SCALERS: Final = {"standard": ", StandardScaler", "minmax": ", MinMaxScaler", "none": ""}
UNKNOWN: Final = "-"
_MOST_DIGITS: Final = 4
LINE: Final = 125
# Names of other programs in the records, and their headings in tables.
PEERS: Final = {
    "scikit-learn-intelex, dense float32": "scikit-learn-intelex",
    "onnxruntime, dense float32": "onnxruntime",
    "ThunderSVM": "ThunderSVM",
    "NumPy float32 BLAS": "float32 BLAS",
    "KARL, dense float32": "KARL",
    "cuML, needs a GPU": "cuML",
}

# --- numbers as text


def three(value: float) -> str:
    """Format a number with three significant digits, or as an integer from 1,000 on."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def percent(share: float, digits: int = 1) -> str:
    """Format a fraction as a percentage; a fraction below 1 is never shown as 100 %."""
    while share < 1 and float(f"{100 * share:.{digits}f}") == 100 and digits < _MOST_DIGITS:
        digits += 1
    return f"{100 * share:.{digits}f}%"


def seconds(value: float) -> str:
    return f"{three(value)} s" if value >= 1 else f"{three(1e3 * value)} ms"


def size(n_bytes: float) -> str:
    if n_bytes >= 1e6:
        return f"{n_bytes / 1e6:.1f} MB"
    return f"{n_bytes / 1e3:.0f} KB" if n_bytes >= 1e4 else f"{n_bytes / 1e3:.1f} KB"


def count(value: float) -> str:
    return f"{value:,.0f}"


def of(key: str, shown: Callable[[Any], str] = str) -> Cell:
    """Return a cell that shows one figure in its row."""
    return lambda row: UNKNOWN if row[key] is None else shown(row[key])


def of_bold(cell: Cell) -> Cell:
    """Return a cell whose text is bold."""
    return lambda row: f"**{cell(row)}**"


def ratio(slow: str, fast: str, shown: Callable[[float], str] = three) -> Cell:
    """Return a cell that shows the ratio of two figures."""
    return lambda row: UNKNOWN if row[slow] is None else shown(row[slow] / row[fast])


def as_table(rows: Iterable[Row], columns: Mapping[str, Cell]) -> str:
    """Format a Markdown table."""
    lines = [columns.keys(), *([cell(row) for cell in columns.values()] for row in rows)]
    if len(lines) == 1:
        return "Not measured yet."
    first, *rest = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([first, "|" + "---|" * len(columns), *rest])


# --- rows of records


def models_of(record: Record, table: str) -> list[Row]:
    """Return the figures for the models in one table."""
    return [row for row in record.tables["models"] if row["table"] == table]


def name_of(row: Row) -> str:
    """Return the names of a row's model and scaler."""
    return f"{row['model']}{_SCALERS[row['scaler']]}"


def peers_of(record: Record, row: Row) -> dict[str, Row]:
    """Return the peers' figures for a row's model, by heading."""
    return {
        PEERS.get(peer["peer"], peer["peer"]): peer for peer in record.tables["peers"] if name_of(peer) == name_of(row)
    }


def files(records: Records) -> dict[str, dict[str, Row]]:
    """Return the figures for whole processes, by LIBSVM model and input of the tool."""
    by_model: dict[str, dict[str, Row]] = {}
    for row in records["libsvm"].tables["files"]:
        if row["seconds"] is not None:
            by_model.setdefault(row["model"], {})[row["given"]] = row
    return by_model


def _shown_of(part: str, table: str, columns: Mapping[str, Cell]) -> Callable[[Records], str]:
    """Return a function that formats all rows in one table of a record."""
    return lambda records: as_table(records[part].tables[table], columns)


# --- tables of ordinary models

FASTER: Final = {
    "times faster than our exact engine": ratio("engine_microseconds", "microseconds", lambda x: f"{x:.1f}"),
    "than scikit-learn": ratio("sklearn_microseconds", "microseconds"),
    "than LIBSVM": ratio("libsvm_microseconds", "microseconds"),
}


def than_peers(record: Record, models: list[Row]) -> dict[str, Cell]:
    """Return a column for each measured peer: how many times faster our predictions are."""

    def column(heading: str) -> Cell:
        return lambda x: of("microseconds", lambda own: three(own / x["microseconds"]))(
            peers_of(record, x).get(heading, {"microseconds": None})
        )

    return {f"than {h}": column(h) for h in PEERS.values() if any(h in peers_of(record, x) for x in models)}


def _several(table: str) -> Callable[[Records], str]:
    columns: dict[str, Cell] = {
        "model": lambda x: f"{name_of(x)}, {x['n_sv']:,} support vectors x {x['n_features']:,} features",
        "per row": of("microseconds", lambda x: f"{three(x)} µs"),
        **FASTER,
        "plan": of("plan"),
        "rows decided before the exact engine": of("certified", percent),
        "compiling": of("compile_seconds", seconds),
        "rows to break even": paid_after,
        "artifact": of("artifact_bytes", size),
    }
    return lambda records: as_table(models_of(records["ordinary"], table), columns)


def paid_after(row: Row) -> str:
    saved = row["sklearn_microseconds"] - row["microseconds"]
    return f"{1e6 * row['compile_seconds'] / saved:,.0f}" if saved > 0 else UNKNOWN


def _peers(table: str) -> Callable[[Records], str]:
    def shown(records: Records) -> str:
        record = records["ordinary"]
        models = models_of(record, table)

        def of_peer(heading: str) -> Cell:
            return lambda x: (
                three(peers_of(record, x)[heading]["microseconds"]) if heading in peers_of(record, x) else "-"
            )

        columns: dict[str, Cell] = {
            "µs per row": name_of,
            "planned": of_bold(of("microseconds", three)),
            "our exact engine": of("engine_microseconds", three),
            "scikit-learn": of("sklearn_microseconds", three),
            "LIBSVM": of("libsvm_microseconds", three),
            **{h: of_peer(h) for h in PEERS.values() if any(h in peers_of(record, x) for x in models)},
            "compiling": of("compile_seconds", seconds),
            "rows to break even": paid_after,
        }
        return as_table(models, columns)

    return shown


def _times_faster(table: str) -> Callable[[Records], str]:
    """Return a function that formats the speedups relative to every peer."""

    def shown(records: Records) -> str:
        record = records["ordinary"]
        models = models_of(record, table)

        columns: dict[str, Cell] = {
            "model": lambda x: f"{name_of(x)}, {x['n_sv']:,} support vectors x {x['n_features']:,} features",
            "per row": of("microseconds", lambda x: f"{three(x)} µs"),
            **FASTER,
            **than_peers(record, models),
            "plan": of("plan"),
        }
        return as_table(models, columns)

    return shown


# --- tables of LIBSVM's models


def _faster(key: str, stars: str = "") -> Cell:
    ratio_of = ratio("libsvm_microseconds", key)
    return lambda row: f"{three(row[key])}, {stars}{ratio_of(row)}{stars}"


_LIBSVM: Final[dict[str, Cell]] = {
    "model": lambda x: f"{x['model']}, {x['n_sv']:,} support vectors",
    "LIBSVM, µs per row": of("libsvm_microseconds", three),
    "certified: µs per row, **times faster**": _faster("microseconds", "**"),
    "rows certified by expansions": of("certified", percent),
    "exact engine: µs per row, times faster": _faster("engine_microseconds"),
    "only an expansion of degree 2: µs per row, times faster": _faster("expansion_microseconds"),
    "labels of the expansion that differ": of("expansion_differs", lambda share: percent(share, 3)),
    "size of the model file": of("model_bytes", size),
    "of the certified artifact": of("artifact_bytes", size),
    "of the expansion": of("expansion_bytes", size),
}


def _files(records: Records) -> str:
    def of_tool(given: str) -> Cell:
        def cell(x: Row) -> str:
            if given not in x:
                return UNKNOWN
            differ = x[given]["differ"]
            return seconds(x[given]["seconds"]) + (f", {percent(differ, 2)}" if differ else "")

        return cell

    rows = [{**next(iter(found.values())), **found} for found in files(records).values()]
    columns: dict[str, Cell] = {
        "model": of("model"),
        "rows": of("n_rows", count),
        "`svm-predict`": of("libsvm_seconds", seconds),
        "`approxsvm-predict`, LIBSVM's model file": of_tool("LIBSVM model"),
        "certified artifact": of_tool("certified"),
        "only an expansion: time, labels that differ": of_tool("approximate"),
        "the tool of 2014: time, labels that differ": of_tool("2014 tool"),
    }
    return as_table(rows, columns)


# --- tables of the papers' experiments


def _overview(records: Records) -> str:
    found: dict[str, dict[str, Any]] = {}
    for x in records["overview"].tables["models"]:
        found.setdefault(x["model"], {})["compiled" if x["compiled"] else "source"] = x

    def of_compiled(shown: Callable[[Row, Row], str]) -> Cell:
        return lambda x: shown(x["source"], x["compiled"]) if "compiled" in x else UNKNOWN

    columns: dict[str, Cell] = {
        "model": lambda x: x["source"]["model"],
        "accuracy": lambda x: f"{x['source']['accuracy_percent']:.1f}%",
        "training": lambda x: f"{three(x['source']['fit_seconds'])} s",
        "time per row": lambda x: f"{three(x['source']['microseconds_per_row'])} µs",
        "time per row, compiled": of_compiled(lambda source, fast: f"{three(fast['microseconds_per_row'])} µs"),
        "times faster": of_compiled(
            lambda source, fast: three(source["microseconds_per_row"] / fast["microseconds_per_row"])
        ),
        "compiling": of_compiled(lambda source, fast: f"{three(fast['fit_seconds'] - source['fit_seconds'])} s"),
    }
    return as_table(found.values(), columns)


def _cotter(records: Records) -> str:
    record = records["cotter"]
    exact = {x["data"]: x for x in record.tables["exact"]}
    columns: dict[str, Cell] = {
        "data": lambda x: f"{x['data']}, {x['training_rows']:,} rows, sigma² = {x['sigma2']:g}, C = {x['C']:g}",
        "features": of("name"),
        "columns": of("columns", count),
        "non-zeros": of("non_zeros", count),
        "multiply-adds per row": of("multiply_adds", count),
        "test error": lambda x: f"{100 * x['test_error']:.2f}%",
        "test error of SVC": lambda x: f"{100 * exact[x['data']]['test_error']:.2f}%",
    }
    return as_table(record.tables["features"], columns)


_RAHIMI_RECHT: Final[dict[str, Cell]] = {
    "data": lambda x: f"{x['data']}, {x['columns']} columns",
    "method": of("method"),
    "support vectors or features": of("features", count),
    "multiply-adds per row": of("multiply_adds", count),
    "test error": lambda x: (
        f"{x['test_error']:.3f} of the standard deviation" if x["is_regression"] else f"{100 * x['test_error']:.1f}%"
    ),
}
_STAND_INS: Final[dict[str, Cell]] = {
    "generated rows": lambda x: f"{x['data']}, {x['n_features']:,} features",
    "support vectors (the paper's)": lambda x: f"{x['support_vectors']:,} ({x['support_vectors_in_paper']:,})",
    "accuracy": of("accuracy_percent", lambda x: f"{x:.1f}%"),
    "labels changed by an expansion about the origin": of("changed_about_origin_percent", lambda x: f"{x:.3f}%"),
    "by an expansion about the mean, time per row": lambda x: (
        f"{x['changed_about_mean_percent']:.3f}%, {three(x['expansion_microseconds'])} µs"
    ),
    "planned, all labels exact": (
        lambda x: f"{x['plan']}; {x['certified_percent']:.1f}% certified, {three(x['microseconds'])} µs"
    ),
    "our exact engine": of("engine_microseconds", lambda x: f"{three(x)} µs"),
    "scikit-learn": of("sklearn_microseconds", lambda x: f"{three(x)} µs"),
}
# --- other tables

_LIMITS: Final = {
    "model": of("model"),
    "share of the limit": of("share_of_limit", lambda x: f"**{percent(x, 0)}**"),
    "µs per row": of("microseconds", three),
    "multiply-adds": of("share_of_multiply_adds", lambda x: percent(x, 0)),
    "exponentials": of("share_of_exponentials", lambda x: percent(x, 0)),
    "bytes": of("share_of_bytes", lambda x: percent(x, 0)),
    "plan": of("plan"),
}
_COMPILING: Final = {
    "model": of("model"),
    "compiling": of("certified_compile_seconds", seconds),
    "peak memory": of("peak_bytes", size),
    "memory after imports": of("import_bytes", size),
}
_COMPILE_GROWTH: Final[dict[str, Cell]] = {
    "support vectors x features": lambda x: f"{x['n_sv']:,} x {x['n_features']:,}",
    "classes": of("n_classes", count),
    "sample rows": of("n_sample_rows", count),
    "plan": of("plan"),
    "certified": of("certified", percent),
    "compiling": lambda x: f"{seconds(x['compile_seconds'])}, {three(x['compile_cpu_seconds'])} s of CPU",
    "memory": of("mebibytes", lambda x: f"{x:,.0f} MiB"),
    "artifact (model)": lambda x: f"{size(x['artifact_bytes'])} ({size(x['model_bytes'])})",
    "µs per row": of("microseconds", three),
    "LIBSVM": of("libsvm_microseconds", three),
    "scikit-learn": of("sklearn_microseconds", three),
    "rows to break even": of("paid_after_rows", count),
}
_LATENCY: Final = {
    "ns per row": of("model"),
    "mode": of("mode"),
    "certified": of("certified", percent),
    "C++": of("cpp_nanoseconds", three),
    "C": of("c_nanoseconds", three),
    "C++ wrapper of C": of("wrapper_nanoseconds", three),
    "Python, `predict_one`": of("predict_one_nanoseconds", three),
    "Python, `predict`": of("predict_nanoseconds", three),
    "C++, 99th percentile": of("cpp_p99_nanoseconds", three),
    "C++ with AVX2": of("cpp_nanoseconds_avx2", three),
    "C++ with AVX2, 99th percentile": of("cpp_p99_nanoseconds_avx2", three),
}
_LATENCY_PEERS: Final = {
    "ns per row": of("model"),
    "program": of("peer"),
    "median": of("one_row_nanoseconds", three),
    "99th percentile": of("one_row_p99_nanoseconds", three),
}


def _latency(records: Records) -> str:
    tables = records["latency"].tables
    curves = "![Microseconds per row against the number of rows per call](images/calls.svg)"
    return "\n\n".join([as_table(tables["calls"], _LATENCY), as_table(tables["peers"], _LATENCY_PEERS), curves])


def _limits(records: Records) -> str:
    record = records["limits"]
    cache, third = (three(median(x[name] for x in record.tables["peaks"]) / 1e9) for name in ("cache", "third"))
    fma, exp = (three(median(x[name] for x in record.tables["peaks"]) / 1e9) for name in ("fma", "exp"))
    words = (
        f"Peak rates of one core ({record.machine.cpu.split(',')[0]}, {record.machine.target}): {fma} billion "
        f"multiply-adds and {exp} billion exponentials per second, {cache} GB/s from the second-level cache, and "
        f"{third} GB/s from the third-level cache."
    )
    return as_table(record.tables["models"], _LIMITS) + f"\n\n{fill(words, LINE)}"


_SCORING: Final = {
    "job": of("what"),
    "rows": of("rows", count),
    "rows per second": of("rows_per_second", count),
    "share of prediction in the work": of("prediction", lambda share: percent(share, 0)),
    "memory": of("mebibytes", lambda x: f"{x:,.0f} MiB"),
}


_EXAMPLES: Final[dict[str, Cell]] = {
    "source and rows": of("example"),
    "source, µs per row": of("source_microseconds", three),
    "compiled model, µs per row": of("microseconds", lambda x: f"**{three(x)}**"),
    "times faster": ratio("source_microseconds", "microseconds"),
    "source, µs for one row": of("source_one_row_microseconds", three),
    "compiled model, µs for one row": of("one_row_microseconds", three),
    "rows decided by the first stage": of("certified", percent),
    "artifact": of("artifact_bytes", size),
    "predictions that differ": lambda x: (
        f"by at most {x['worst']:.0e} of the range" if x["differ"] is None else str(x["differ"])
    ),
}
_DOORS: Final = {
    "raw table": of("example"),
    "interface": of("door"),
    "µs per row": of("microseconds", three),
    "labels that differ": of("differ"),
}


_EMBEDDING: Final = {
    "program": of("program"),
    "compiler": lambda x: f"{x['compiler']}, `{x['flag']}`",
    "CPU time to compile": lambda x: f"{x['cpu_seconds']:.1f} s",
    "program, stripped": lambda x: f"{x['stripped_bytes'] / 1e3:,.0f} KB",
}


def _measured(records: Records) -> str:
    columns: dict[str, Cell] = {
        "command": lambda x: f"`{x['command']}`",
        "date": of("date", lambda date: date[:10]),
        "commit": lambda x: x["machine"].commit,
        "processor": lambda x: x["machine"].cpu,
        "system load at the start": lambda x: f"{x['machine'].load_average:.1f}",
        "duration": lambda x: f"{x['seconds'] / 60:.1f} min",
    }
    machine = next(iter(records.values())).machine
    packages = ", ".join(f"{name} {number}" for name, number in machine.packages.items() if number != "not installed")
    words = f"{machine.cpu}, {machine.n_cpus} cores, {machine.target}. Python {machine.python}, {packages}."
    return as_table(map(vars, records.values()), columns) + f"\n\n{fill(words, LINE)}"


TABLES: Final[dict[str, Callable[[Records], str]]] = {
    "few values": _times_faster("few values"),
    "libsvm": lambda records: as_table(models_of(records["ordinary"], "LIBSVM's models"), _LIBSVM),
    "libsvm peers": _peers("LIBSVM's models"),
    "files": _files,
    "compiling": _shown_of("libsvm", "sizes", _COMPILING),
    "growth of compiling": _shown_of("compile_growth", "models", _COMPILE_GROWTH),
    "limits": _limits,
    "several classes": _several("several classes"),
    "wide, dense": _several("wide, dense"),
    "wide, sparse": _several("wide, sparse"),
    "latency": _latency,
    "embedding": _shown_of("embedding", "programs", _EMBEDDING),
    "scoring": _shown_of("scoring", "runs", _SCORING),
    "examples": _shown_of("examples", "examples", _EXAMPLES),
    "raw tables": _shown_of("examples", "doors", _DOORS),
    "stand-ins": _shown_of("stand_ins", "models", _STAND_INS),
    "cotter": _cotter,
    "rahimi and recht": _shown_of("rahimi_recht", "methods", _RAHIMI_RECHT),
    "overview": _overview,
    "measured": _measured,
}
