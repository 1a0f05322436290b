"""Tables for README and docs/comparison.md, as Markdown, from the records alone."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import fill
from typing import Final

from benchmarks.pages import (
    FASTER,
    LINE,
    PEERS,
    UNKNOWN,
    Cell,
    Records,
    as_table,
    count,
    models_of,
    name_of,
    of,
    of_bold,
    paid_after,
    peers_of,
    percent,
    ratio,
    seconds,
    size,
    than_peers,
    three,
)
from benchmarks.record import Record, Row

_PITCHED: Final = ("onnxruntime", "scikit-learn-intelex", "float32 BLAS")
_BY_ENGINE: Final = ratio("sklearn_microseconds", "engine_microseconds")
_BY_PLAN: Final = FASTER["times faster than our exact engine"]


def _pitch(records: Records) -> str:
    """Return the range of speedups over each peer, and the factors that make up the largest speedup."""
    record = records["ordinary"]
    models = models_of(record, "two classes")
    peers: dict[str, Callable[[Row], float]] = {
        "scikit-learn": lambda x: float(x["sklearn_microseconds"]),
        "LIBSVM": lambda x: float(x["libsvm_microseconds"]),
        **{name: _of_peer(record, name) for name in _PITCHED},
    }

    def gains(key: str) -> Cell:
        return lambda row: _range([row["theirs"](x) / x[key] for x in models])

    ours = {
        "times faster than": of("peer"),
        "approxsvm": gains("microseconds"),
        "its exact engine alone": gains("engine_microseconds"),
    }
    rows = [{"peer": name, "theirs": theirs} for name, theirs in peers.items()]
    most = max(models, key=lambda x: x["sklearn_microseconds"] / x["microseconds"])
    gain, by_engine, by_plan = (cell(most) for cell in (FASTER["than scikit-learn"], _BY_ENGINE, _BY_PLAN))
    sizes = _range([x["n_sv"] for x in models], count)
    words = (
        f"The table covers {len(models)} models with {sizes} support vectors, on one thread. In each call from "
        "Python, approxsvm predicts 4,000 rows or more. The exact engine sums over all support vectors; the plan "
        f"avoids this sum for most rows. The largest factor, {gain}, is the product of {by_engine} from the exact "
        f"engine and {by_plan} from the plan."
    )
    return "\n\n".join([as_table(rows, ours), fill(words, LINE)])


def _of_peer(record: Record, name: str) -> Callable[[Row], float]:
    return lambda x: float(peers_of(record, x)[name]["microseconds"])


def _range(values: list[float], shown: Callable[[float], str] = three) -> str:
    return f"{shown(min(values))} to {shown(max(values))}"


def _readme(records: Records) -> str:
    record = records["ordinary"]
    models, machine = models_of(record, "two classes"), record.machine
    columns: dict[str, Cell] = {
        "model": lambda x: f"{name_of(x)} ({x['n_sv']:,} support vectors)",
        "times faster than scikit-learn": of_bold(FASTER["than scikit-learn"]),
        "from the engine x from the plan": lambda x: f"{_BY_ENGINE(x)} x {_BY_PLAN(x)}",
        "than LIBSVM": FASTER["than LIBSVM"],
        **than_peers(record, models),
        "plan": of("plan"),
        "test rows certified": of("certified", percent),
        "artifact (LIBSVM's model file)": lambda x: f"{size(x['artifact_bytes'])} ({size(x['model_bytes'])})",
    }
    del columns["than KARL"]  # our own implementation of a paper, which cannot be installed
    n_rows = sum(x["n_test_rows"] for x in models)
    words = (
        "The models are scikit-learn `SVC` models with default options, except where a gamma is given. The training "
        "rows served as sample rows. The covtype models separate class 2 from the rest; the test rows of ijcnn1 differ "
        f"from its training rows. On all {n_rows:,} test rows, all labels equal the exact model's labels. The machine "
        f"was an {machine.cpu.split(',')[0]} with {machine.n_cpus} virtual cores and {machine.target}. Compiling took "
        f"at most {seconds(max(x['compile_seconds'] for x in models))}."
    )
    parts = [fill(words, LINE), _of_target(records, "avx2"), fill(_one_row_of_covtype(records), LINE)]
    return "\n\n".join([as_table(models, columns), *parts])


def _of_target(records: Records, target: str) -> str:
    """Return a sentence about another instruction set."""
    tables = records["targets"].tables
    ours = next(x for x in tables["models"] if (x["model"], x["target"], x["threads"]) == ("covtype", target, 1))
    theirs = next(x for x in tables["peers"] if (x["model"], x["peer"]) == ("covtype", "scikit-learn"))["microseconds"]
    by_engine, by_plan = theirs / ours["engine_microseconds"], ours["engine_microseconds"] / ours["microseconds"]
    words = (
        f"**With {target} only**, on {records['targets'].machine.cpu}, approxsvm predicts covtype with a "
        f"StandardScaler {three(by_engine * by_plan)} times faster than scikit-learn. This factor is "
        f"the product of {three(by_engine)} from the engine and {by_plan:.1f} from the plan."
    )
    return fill(words, LINE)


def _one_row_of_covtype(records: Records) -> str:
    tables = records["latency"].tables
    one = next(x for x in tables["calls"] if (x["model"], x["mode"]) == ("covtype", "certified"))
    others = {x["peer"]: x["one_row_nanoseconds"] for x in tables["peers"] if x["model"] == "covtype"}
    return (
        f"**A single row** of covtype takes {three(one['predict_one_nanoseconds'] / 1e3)} µs with `predict_one`. "
        f"LIBSVM takes {three(others['LIBSVM'] / 1e3)} µs, and onnxruntime takes "
        f"{three(others['onnxruntime'] / 1e3)} µs."
    )


# Multiclass models, models with probabilities, and regressors; each appears if it was measured.
_KINDS: Final = (
    "letter, 26 classes",
    "pendigits, 10 classes",
    "MNIST, 10 classes, MinMaxScaler",
    "PowerTransformer, SVR: cpu_act",
    "CalibratedClassifierCV of SVC, probabilities: ijcnn1",
)


def _kinds(records: Records) -> str:
    found = {
        name_of(x): {
            "source": f"SVC: {name_of(x)}",
            "theirs": x["sklearn_microseconds"],
            "ours": x["microseconds"],
            "answers": "all labels equal",
            "bytes": x["artifact_bytes"],
        }
        for x in records["ordinary"].tables["models"]
    }
    found |= {
        x["example"]: {
            "source": x["example"],
            "theirs": x["source_microseconds"],
            "ours": x["microseconds"],
            "answers": "all labels equal" if x["differ"] == 0 else f"within {x['worst']:.0e} of the range of values",
            "bytes": x["artifact_bytes"],
        }
        for x in records["examples"].tables["examples"]
    }
    columns: dict[str, Cell] = {
        "source": of("source"),
        "scikit-learn, µs per row": of("theirs", three),
        "compiled, µs per row": of("ours", three),
        "times faster": ratio("theirs", "ours"),
        "predictions": of("answers"),
        "artifact": of("bytes", size),
    }
    return as_table([found[name] for name in _KINDS if name in found], columns)


def _programs(records: Records) -> str:
    """Return the microseconds per row for every program, with one column per model."""
    record = records["ordinary"]
    models = models_of(record, "two classes")

    def of_peer(name: str) -> Cell:
        return lambda x: three(found[name]["microseconds"]) if name in (found := peers_of(record, x)) else UNKNOWN

    programs: dict[str, Cell] = {
        "**approxsvm**": of_bold(of("microseconds", three)),
        "our exact engine": of("engine_microseconds", three),
        "scikit-learn": of("sklearn_microseconds", three),
        "LIBSVM": of("libsvm_microseconds", three),
        **{name: of_peer(name) for name in PEERS.values()},
        "compiling": of("compile_seconds", seconds),
        "rows to break even": paid_after,
    }
    rows = []
    for program, cell in programs.items():
        shown = {name_of(x): cell(x) for x in models}
        if set(shown.values()) == {UNKNOWN}:
            shown = dict.fromkeys(shown, "") | {name_of(models[0]): "not measured here"}
        rows.append({"program": program, **shown})
    return as_table(rows, {"µs per row": of("program")} | {name_of(x): of(name_of(x)) for x in models})


def _targets(records: Records) -> str:
    tables = records["targets"].tables

    def of_peer(peer: str) -> Cell:
        def cell(row: Row) -> str:
            same = [
                x
                for x in tables["peers"]
                if PEERS.get(x["peer"], x["peer"]) == peer
                and name_of(x) == name_of(row)
                and x["threads"] == (1 if peer == "scikit-learn" else row["threads"])
            ]
            return three(same[0]["microseconds"]) if same else UNKNOWN

        return cell

    peers = dict.fromkeys(PEERS.get(x["peer"], x["peer"]) for x in tables["peers"])
    columns: dict[str, Cell] = {
        "µs per row": name_of,
        "our instruction set": of("target"),
        "threads": of("threads"),
        "approxsvm": of_bold(of("microseconds", three)),
        "our exact engine": of("engine_microseconds", three),
        **{peer: of_peer(peer) for peer in peers},
    }
    cpu = f"{records['targets'].machine.cpu}."
    return "\n\n".join([as_table(tables["models"], columns), cpu])


def _one_row(records: Records) -> str:
    tables = records["latency"].tables
    others = {(x["model"], x["peer"]): x["one_row_nanoseconds"] for x in tables["peers"]}

    def of_peer(peer: str) -> Cell:
        return lambda x: three(others[x["model"], peer] / 1e3) if (x["model"], peer) in others else UNKNOWN

    columns: dict[str, Cell] = {
        "µs for one row": of("model"),
        "approxsvm, C++": of("cpp_nanoseconds", lambda x: three(x / 1e3)),
        "C++, 99th percentile": of("cpp_p99_nanoseconds", lambda x: three(x / 1e3)),
        "Python, `predict_one`": of("predict_one_nanoseconds", lambda x: three(x / 1e3)),
        **{peer: of_peer(peer) for peer in dict.fromkeys(x["peer"] for x in tables["peers"])},
    }
    return as_table([x for x in tables["calls"] if x["mode"] == "certified"], columns)


TABLES: Final[dict[str, Callable[[Records], str]]] = {
    "pitch": _pitch,
    "readme": _readme,
    "kinds": _kinds,
    "programs": _programs,
    "targets": _targets,
    "one row": _one_row,
}
