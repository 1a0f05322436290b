"""The charts in docs/images that show figures of the suite, drawn from the records alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import linear_regression
from typing import Final

from benchmarks.charts import Chart, Dots, Lines, Points
from benchmarks.pages import PEERS, Records, files, models_of, name_of, peers_of
from benchmarks.record import Row


def _speed_up(records: Records) -> Chart:
    models = models_of(records["ordinary"], "two classes")
    series = {
        peer: [x[key] and x[key] / x["microseconds"] for x in models]
        for peer, key in (("than scikit-learn", "sklearn_microseconds"), ("than LIBSVM", "libsvm_microseconds"))
    }
    return Dots("Times faster with equal labels", "times faster, equal labels", [name_of(x) for x in models], series)


def _peers(records: Records) -> Chart:
    record = records["ordinary"]
    models = models_of(record, "LIBSVM's models")
    times: dict[str, list[float | None]] = {
        "planned": [x["microseconds"] for x in models],
        "exact engine": [x["engine_microseconds"] for x in models],
    }
    for name in reversed(PEERS.values()):
        times[name] = [peers_of(record, x).get(name, {}).get("microseconds") for x in models]
    series = {
        name: [time and x["libsvm_microseconds"] / time for x, time in zip(models, found, strict=True)]
        for name, found in times.items()
        if any(found)
    }
    label = "times faster than LIBSVM, one thread"
    return Dots("Times faster than LIBSVM", label, [x["model"] for x in models], series)


def _growth(table: str, key: str, x_label: str) -> Callable[[Records], Chart]:
    def chart(records: Records) -> Chart:
        record = records["growth"]
        models = models_of(record, table)

        def line(of: Callable[[Row], float | None]) -> Sequence[tuple[float, float | None]]:
            return [(x[key], of(x)) for x in models]

        series = {
            "planned": line(lambda x: x["microseconds"]),
            "exact engine": line(lambda x: x["engine_microseconds"]),
            "KARL": line(lambda x: peers_of(record, x).get("KARL", {}).get("microseconds")),
            "LIBSVM": line(lambda x: x["libsvm_microseconds"]),
            "scikit-learn": line(lambda x: x["sklearn_microseconds"]),
        }
        return Lines(f"Time per row against {x_label}", x_label, "µs per row", series)

    return chart


def _compiling_growth(table: str, key: str, x_label: str) -> Callable[[Records], Chart]:
    """Draw compile-time figures and times per row, each with the fitted exponent of x."""

    def chart(records: Records) -> Chart:
        models = models_of(records["compile_growth"], table)

        def line(name: str, figure: str, unit: float = 1.0) -> tuple[str, list[tuple[float, float | None]]]:
            points = [(x[key], x[figure] and x[figure] / unit) for x in models]
            fitted = [(math.log(x), math.log(y)) for x, y in points[len(points) // 3 :] if y]
            exponent = linear_regression(*zip(*fitted, strict=True)).slope if len(fitted) > 1 else math.nan
            return f"{name}: {exponent:.1f}", points

        series = dict(
            (
                line("compiling, s", "compile_seconds"),
                line("memory, MiB", "mebibytes"),
                line("artifact, MB", "artifact_bytes", 1e6),
                line("planned, µs", "microseconds"),
                line("LIBSVM, µs", "libsvm_microseconds"),
                line("scikit-learn, µs", "sklearn_microseconds"),
            )
        )
        return Lines(f"Growth with {x_label}", x_label, "seconds, MiB, MB; µs per row", series)

    return chart


def _centers(records: Records) -> Chart:
    series: dict[str, list[tuple[float, float | None]]] = {}
    for x in records["growth"].tables["centers"]:
        series.setdefault(x["model"], []).append((x["n_centers"], 100 * x["certified"]))
    words = ("Rows certified against the number of centers", "centers, degree 2", "rows certified, %")
    return Lines(*words, series, y_scale="linear")


def _fma_peak(records: Records) -> Chart:
    shares = records["growth"].tables["peak"]
    series = {
        name: [(x["n_features"], 100 * x[key]) for x in shares]
        for name, key in (("quadratic form", "quadratic_form"), ("exact engine", "exact_engine"))
    }
    words = ("Share of the peak rate of float32 multiply-adds", "features", "share of the FMA peak, %")
    return Lines(*words, series, y_scale="linear")


def _latency(records: Records) -> Chart:
    calls = [x for x in records["latency"].tables["calls"] if x["mode"] == "certified"]
    keys = {"C++": "cpp", "C": "c", "Python, predict_one": "predict_one", "Python, predict": "predict"}
    series = {name: [x[f"{key}_nanoseconds"] for x in calls] for name, key in keys.items()}
    names = [x["model"] for x in calls]
    return Dots("Nanoseconds per call with one row, certified", "nanoseconds per call with one row", names, series)


def _sizes(records: Records) -> Chart:
    series: dict[str, list[tuple[float, float | None]]] = {}
    for x in records["latency"].tables["sizes"]:
        series.setdefault(x["model"], []).append((x["rows"], x["microseconds"]))
    return Lines("Time per row against rows per call", "rows per call", "µs per row, C++", series)


def _files(records: Records) -> Chart:
    found = files(records)
    givens = {
        "LIBSVM's model file": "LIBSVM model",
        "certified artifact": "certified",
        "only an expansion": "approximate",
        "the tool of 2014": "2014 tool",
    }
    series = {
        name: [of_model[given]["speedup"] if given in of_model else None for of_model in found.values()]
        for name, given in givens.items()
        if any(given in of_model for of_model in found.values())
    }
    return Dots("Times faster than svm-predict", "times faster than svm-predict", list(found), series)


def _compiling(records: Records) -> Chart:
    tables: dict[str, list[Row]] = {"SVC on real data": [], "LIBSVM's models": [], "generated": []}
    for x in records["ordinary"].tables["models"]:
        tables["LIBSVM's models" if x["table"] == "LIBSVM's models" else "SVC on real data"].append(x)
    tables["generated"] = models_of(records["growth"], "support vectors")
    series = {name: [(x["n_sv"], x["compile_seconds"]) for x in rows] for name, rows in tables.items()}
    return Points("Compile time against the number of support vectors", "support vectors", "seconds to compile", series)


def _cotter(data: str) -> Callable[[Records], Chart]:
    """Draw test error against multiply-adds, as in the paper; the exact model is a horizontal line."""

    def chart(records: Records) -> Chart:
        tables = records["cotter"].tables
        found = [x for x in tables["features"] if x["data"] == data]
        series = {
            kind: [(x["multiply_adds"], 100 * x["test_error"]) for x in found if x["name"].startswith(kind)]
            for kind in ("Taylor", "Fourier")
        }
        costs = [cost for points in series.values() for cost, _ in points]
        exact = next(100 * x["test_error"] for x in tables["exact"] if x["data"] == data)
        series["SVC"] = [(min(costs), exact), (max(costs), exact)]
        title = f"{data}: test error against cost"
        return Lines(title, "multiply-adds per row", "test error, %", series, y_scale="linear")

    return chart


def _overview(records: Records) -> Chart:
    """Plot accuracy against the cost per row, from compiled to trained; up and left is better."""
    series: dict[str, list[tuple[float, float | None]]] = {}
    for x in sorted(records["overview"].tables["models"], key=lambda x: not x["compiled"]):
        series.setdefault(x["model"], []).append((x["microseconds_per_row"], x["accuracy_percent"]))
    names = dict.fromkeys(x["model"] for x in records["overview"].tables["models"])
    title = "Accuracy against time per row: compiled model (left end) and trained model (right end)"
    in_order = {name: series[name] for name in names}
    return Lines(title, "µs per row, one thread", "accuracy, %", in_order, y_scale="linear")


PICTURES: Final[dict[str, Callable[[Records], Chart]]] = {
    "speed_up": _speed_up,
    "peers": _peers,
    "growth_support_vectors": _growth("support vectors", "n_sv", "support vectors"),
    "growth_features": _growth("features", "n_features", "features"),
    "growth_gamma": _growth("gamma", "gamma", "gamma"),
    "compiling_support_vectors": _compiling_growth("support vectors", "n_sv", "support vectors"),
    "compiling_features": _compiling_growth("features", "n_features", "features"),
    "compiling_classes": _compiling_growth("classes", "n_classes", "classes"),
    "compiling_sample_rows": _compiling_growth("sample rows", "n_sample_rows", "sample rows"),
    "centers_certified": _centers,
    "fma_peak": _fma_peak,
    "latency": _latency,
    "files": _files,
    "compiling": _compiling,
    "cotter_adult": _cotter("Adult"),
    "cotter_mnist": _cotter("MNIST, 8"),
    "cotter_covertype": _cotter("Covertype, 1"),
    "overview": _overview,
    "calls": _sizes,
}


def pictures_of(records: Records) -> dict[str, Chart]:
    """Return the charts by name."""
    return {name: chart(records) for name, chart in PICTURES.items()}
