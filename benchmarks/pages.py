"""The tables that README and docs/benchmarks.md show, as Markdown, from the records and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any, Final, TypeAlias

from benchmarks.record import Record

Records: TypeAlias = Mapping[str, Record]
Figure: TypeAlias = Mapping[str, Any]
_SCALERS: Final = {"standard": ", StandardScaler", "minmax": ", MinMaxScaler", "none": ""}
_UNKNOWN: Final = "-"
_MOST_DIGITS: Final = 4
# Peers as they are in the records, and as headings.
PEERS: Final = {
    "scikit-learn-intelex, dense float32": "scikit-learn-intelex",
    "onnxruntime, dense float32": "onnxruntime",
    "ThunderSVM": "ThunderSVM",
    "NumPy float32 BLAS": "float32 BLAS",
    "KARL, dense float32": "KARL",
    "approxsvm exact, dense float32": "our exact engine",
    "approxsvm certified, dense float32": "certified",
}


def models_of(record: Record, table: str) -> list[Figure]:
    """Figures of the models of one table."""
    return [figure for figure in record.tables["models"] if figure["table"] == table]


def name_of(figure: Figure) -> str:
    """Model and scaler."""
    return f"{figure['model']}{_SCALERS[figure['scaler']]}"


def peers_of(record: Record, figure: Figure) -> dict[str, Figure]:
    """What peers took for the model of a figure, by their headings."""
    of_model = (peer for peer in record.tables["peers"] if name_of(peer) == name_of(figure))
    return {PEERS[peer["peer"]]: peer for peer in of_model}


def exact_labels(records: Records) -> dict[str, dict[str, Figure]]:
    """Of LIBSVM's models, by model and heading: what exact labels took on one thread, where it was measured."""
    found: dict[str, dict[str, Figure]] = {}
    for figure in records["libsvm"].tables["exact labels"]:
        if figure["n_threads"] == 1 and figure["seconds_per_row"] is not None:
            found.setdefault(figure["model"], {})[PEERS.get(figure["peer"], figure["peer"])] = figure
    return found


def files(records: Records) -> dict[str, dict[str, Figure]]:
    """Of LIBSVM's models, by model and what the tool was given: whole processes on one thread."""
    found: dict[str, dict[str, Figure]] = {}
    for figure in records["libsvm"].tables["files"]:
        if figure["n_threads"] == 1 and figure["seconds"] is not None:
            found.setdefault(figure["model"], {})[figure["given"]] = figure
    return found


def _readme(records: Records) -> str:
    record = records["ordinary"]
    models = models_of(record, "two classes")
    rows = [
        (
            f"{name_of(x)} ({x['n_sv']:,} support vectors)",
            x["plan"],
            _percent(x["certified"]),
            _bytes(x["artifact_bytes"]),
            f"{x['engine_microseconds'] / x['microseconds']:.1f}",
            *_speed_ups(x),
        )
        for x in models
    ]
    headings = ("model", "plan", "test rows certified", "artifact", "times faster than our exact engine")
    seconds = [x["compile_seconds"] for x in models]
    n_rows = sum(x["n_test_rows"] for x in models)
    words = (
        "scikit-learn's `SVC` with default options where no gamma is named, planned from the training rows. covtype is "
        "class 2 against the rest; the test rows of ijcnn1 are unlike its training rows. No label differs on any test "
        f"row ({n_rows:,} for all models). One thread each, through Python, on {_machine(record)}, so trust the "
        f"ratios. Compiling took from {three(min(seconds))} to {three(max(seconds))} seconds."
    )
    return as_table((*headings, "than scikit-learn", "than LIBSVM"), rows) + f"\n\n{fill(words, 125)}"


def _peers(records: Records) -> str:
    record = records["ordinary"]
    models = models_of(record, "two classes")
    headings = [h for h in PEERS.values() if any(h in peers_of(record, x) for x in models)]
    rows = []
    for x in models:
        peers = peers_of(record, x)
        times = [peers[h]["microseconds"] if h in peers else None for h in headings]
        rows.append(
            (
                name_of(x),
                *map(_optional, (x["sklearn_microseconds"], x["libsvm_microseconds"], *times)),
                three(x["engine_microseconds"]),
                f"**{three(x['microseconds'])}**",
            )
        )
    return as_table(("µs per row", "scikit-learn", "LIBSVM", *headings, "our exact engine", "planned"), rows)


def _libsvm(records: Records) -> str:
    tables = records["libsvm"].tables
    alone = {
        x["model"]: x
        for x in tables["expansion alone"]
        if x["peer"] == "approxsvm, dense float32" and x["n_threads"] == 1
    }
    accuracy = {x["model"]: x for x in tables["accuracy"]}
    sizes = {x["model"]: x for x in tables["sizes"]}
    rows = []
    for model, times in exact_labels(records).items():
        certified, engine = times["certified"], times["our exact engine"]
        size = sizes[model]
        rows.append(
            (
                f"{model}, {accuracy[model]['n_sv']:,} support vectors",
                _microseconds(times["LIBSVM"]),
                f"{_microseconds(certified)}, **{three(certified['libsvm_ratio'])}**",
                _percent(certified["first_stage"]),
                f"{_microseconds(engine)}, {three(engine['libsvm_ratio'])}",
                f"{_microseconds(alone[model])}, {three(alone[model]['speedup'])}",
                _percent(accuracy[model]["differ_mean"], 3),
                *(_bytes(size[key]) for key in ("model_bytes", "certified_bytes", "artifact_bytes")),
            )
        )
    headings = ("model", "LIBSVM, µs per row", "certified, times faster", "rows certified by expansions")
    of_others = ("exact engine, times", "expansion of degree 2 alone, times", "its labels that differ")
    return as_table((*headings, *of_others, "model file", "certified artifact", "expansion alone"), rows)


def _libsvm_peers(records: Records) -> str:
    found = exact_labels(records)
    headings = [
        h for h in ("scikit-learn SVC", "LIBSVM", *PEERS.values()) if any(h in times for times in found.values())
    ]
    rows = [
        (model, *(_microseconds(times[h]) if h in times else _UNKNOWN for h in headings))
        for model, times in found.items()
    ]
    return as_table(("µs per row", *headings), rows)


def _files(records: Records) -> str:
    rows = []
    for model, found in files(records).items():
        cells = []
        for given in ("LIBSVM model", "certified", "approximate", "2014 tool"):
            figure = found.get(given)
            differ = figure and figure["differ"]
            cells.append(
                _UNKNOWN
                if figure is None
                else _seconds(figure["seconds"]) + (f", {_percent(differ, 2)}" if differ else "")
            )
        libsvm = next(iter(found.values()))
        rows.append((model, f"{libsvm['n_rows']:,}", _optional(libsvm["libsvm_seconds"], _seconds), *cells))
    headings = ("model", "rows", "`svm-predict`", "`approxsvm-predict`, LIBSVM's model file", "certified artifact")
    return as_table((*headings, "expansion alone, labels that differ", "the tool of 2014, labels that differ"), rows)


def _of_process(figure: Figure | None) -> str:
    if figure is None:
        return _UNKNOWN
    differ = f", {_percent(figure['differ'], 2)}" if figure["differ"] else ""
    return _seconds(figure["seconds"]) + differ


def _compiling(records: Records) -> str:
    rows = [
        (
            x["model"],
            _seconds(x["certified_compile_seconds"]),
            _optional(x["peak_bytes"], _bytes),
            _optional(x["import_bytes"], _bytes),
        )
        for x in records["libsvm"].tables["sizes"]
    ]
    return as_table(("model", "compiling", "memory at its peak", "of which imports"), rows)


def _of_several(table: str) -> Callable[[Records], str]:
    def shown(records: Records) -> str:
        rows = [
            (
                f"{name_of(x)}, {x['n_sv']:,} support vectors x {x['n_features']:,} features",
                x["plan"],
                _optional(x["certified"], _percent),
                f"{three(x['microseconds'])} µs",
                f"{x['engine_microseconds'] / x['microseconds']:.1f}",
                *_speed_ups(x),
                _seconds(x["compile_seconds"]),
                _bytes(x["artifact_bytes"]),
            )
            for x in models_of(records["ordinary"], table)
        ]
        headings = ("model", "plan", "settled before the exact engine", "per row", "times faster than our exact engine")
        return as_table((*headings, "than scikit-learn", "than LIBSVM", "compiling", "artifact"), rows)

    return shown


def _latency(records: Records) -> str:
    keys = ("cpp_nanoseconds", "c_nanoseconds", "predict_one_nanoseconds", "predict_nanoseconds")
    rows = [
        (x["model"], x["mode"], _percent(x["certified"]), *(three(x[key]) for key in keys))
        for x in records["latency"].tables["calls"]
    ]
    return as_table(("ns per row", "mode", "certified", "C++", "C", "Python, `predict_one`", "Python, `predict`"), rows)


def _scoring(records: Records) -> str:
    rows = [
        (
            x["what"],
            f"{x['rows']:,}",
            f"{x['rows_per_second']:,.0f}",
            _percent(x["prediction"], 0),
            f"{x['mebibytes']:,.0f} MiB",
        )
        for x in records["scoring"].tables["runs"]
    ]
    return as_table(("what", "rows", "rows a second", "of the work: prediction", "memory"), rows)


def _measured(records: Records) -> str:
    rows = [
        (f"`{x.command}`", x.date[:10], x.machine.commit, f"{x.machine.load_average:.1f}", f"{x.seconds / 60:.1f} min")
        for x in records.values()
    ]
    machine = next(iter(records.values())).machine
    packages = ", ".join(f"{name} {number}" for name, number in machine.packages.items() if number != "not installed")
    words = f"{machine.cpu}, {machine.n_cpus} cores, {machine.target}. Python {machine.python}, {packages}."
    return as_table(("command", "date", "commit", "load when it began", "took"), rows) + f"\n\n{fill(words, 125)}"


TABLES: Final[dict[str, Callable[[Records], str]]] = {
    "readme": _readme,
    "peers": _peers,
    "libsvm": _libsvm,
    "libsvm peers": _libsvm_peers,
    "files": _files,
    "compiling": _compiling,
    "several classes": _of_several("several classes"),
    "wide, dense": _of_several("wide, dense"),
    "wide, sparse": _of_several("wide, sparse"),
    "latency": _latency,
    "scoring": _scoring,
    "measured": _measured,
}


def _machine(record: Record) -> str:
    machine = record.machine
    load = f"load {machine.load_average:.1f} when it began"
    return f"{machine.cpu.split(',')[0]} ({machine.n_cpus} virtual cores, {machine.target}; {load})"


def as_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (f"| {' | '.join(cells)} |" for cells in (headings, *rows))
    first, *rest = lines
    return "\n".join([first, "|" + "---|" * len(headings), *rest])


def _speed_ups(figure: Figure) -> tuple[str, str]:
    ours = figure["microseconds"]
    libsvm = figure["libsvm_microseconds"]
    return three(figure["sklearn_microseconds"] / ours), _UNKNOWN if libsvm is None else three(libsvm / ours)


def three(value: float) -> str:
    """Three digits, no exponent."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def _optional(value: float | None, shown: Callable[[float], str] = three) -> str:
    return _UNKNOWN if value is None else shown(value)


def _percent(share: float | None, digits: int = 1) -> str:
    """A share; what is not quite all does not look like all."""
    if share is None:
        return _UNKNOWN
    while share < 1 and float(f"{100 * share:.{digits}f}") == 100 and digits < _MOST_DIGITS:
        digits += 1
    return f"{100 * share:.{digits}f} %"


def _microseconds(figure: Figure) -> str:
    return three(1e6 * figure["seconds_per_row"])


def _seconds(seconds: float) -> str:
    return f"{three(seconds)} s" if seconds >= 1 else f"{three(1e3 * seconds)} ms"


def _bytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} KB" if size >= 1e4 else f"{size / 1e3:.1f} KB"
