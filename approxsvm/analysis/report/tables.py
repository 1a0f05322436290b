"""Tables of a report page: accuracy, plans, costs, rows, the source, and the code that reproduces the report."""

import math
import os
from typing import Any, Final

import numpy as np

from approxsvm.analysis.report.environment import resident_bytes
from approxsvm.analysis.report.evidence import Evidence, Speed
from approxsvm.analysis.report.plots import STAGE_NAMES, share_text
from approxsvm.analysis.report.words import bytes_text, count, cut, time_text
from approxsvm.analysis.source_answers import source_steps
from approxsvm.analysis.summary import summarize
from approxsvm.analysis.verification import Compiled
from approxsvm.artifact.views import Artifact
from approxsvm.runtime.evaluator import STAGES
from approxsvm.system.threads import n_threads

# Maximum number of rows in a table, and of classes in a confusion matrix.
_LISTED_ROWS: Final = 10
_MOST_CLASSES: Final = 30


def confusion(artifact: Artifact, evidence: Evidence) -> dict[str, Any] | None:
    """Build the confusion matrix, with the source's labels as rows and the compiled model's as columns."""
    against = evidence.against
    if against is None or artifact.task == "regression":
        return None
    classes = np.array([-1, 1]) if artifact.task == "one_class" else np.sort(artifact.labels)
    theirs = np.searchsorted(classes, against.judged.answers)
    ours = np.searchsorted(classes, evidence.predicted[against.positions])
    counts = np.zeros((len(classes), len(classes)), np.intp)
    np.add.at(counts, (theirs, ours), 1)
    off = int(counts.sum() - np.trace(counts))
    names = {-1: "outlier", 1: "inlier"} if artifact.task == "one_class" else {}
    return {
        "classes": [names.get(label, cut(str(label))) for label in classes.tolist()],
        "counts": counts.tolist() if len(classes) <= _MOST_CLASSES else None,
        "off_diagonal": off,
        "n_rows": len(against.positions),
    }


def scores(artifact: Artifact, evidence: Evidence) -> list[dict[str, str]]:
    """Compute the accuracy or regression errors of the compiled model and of the source, if true targets are known."""
    y, against = evidence.y, evidence.against
    if y is None:
        return []
    every = np.arange(len(evidence.positions))
    scored = [("compiled", every, evidence.predicted)]
    if against is not None:
        if len(against.positions) < len(every):
            scored.append(("compiled, the same rows", against.positions, evidence.predicted[against.positions]))
        scored.append(("source", against.positions, against.judged.answers))
    return [
        {"name": name, "rows": f"{len(where):,}"} | _score(artifact, y[where], answers)
        for name, where, answers in scored
    ]


def _score(artifact: Artifact, truth: Any, answers: Any) -> dict[str, str]:
    from sklearn.metrics import (
        accuracy_score,
        balanced_accuracy_score,
        mean_absolute_error,
        r2_score,
        root_mean_squared_error,
    )

    if artifact.task == "regression":
        measures = {
            "root mean squared error": f"{root_mean_squared_error(truth, answers):.6g}",
            "mean absolute error": f"{mean_absolute_error(truth, answers):.6g}",
            "R²": f"{r2_score(truth, answers):.6f}" if len(truth) > 1 else "needs two rows",
        }
    else:
        right = accuracy_score(truth, answers)
        measures = {"accuracy": f"{right:.4%}"}
        classes = np.unique(truth)
        if len(classes) > 1 and np.isin(answers, classes).all():
            measures["balanced accuracy"] = f"{balanced_accuracy_score(truth, answers):.4%}"
    return measures


def alternatives(compiled: Compiled, evidence: Evidence) -> list[list[dict[str, Any]]]:
    """List the plans tried for each member, with predicted and measured costs."""
    history = compiled.compilation
    if history is None:
        return []
    against = evidence.against
    engine = against.exact_engine if against is not None else None
    tables = []
    for plans in history.plans:
        least = min((p.share_of_exact for p in plans if p.share_of_exact is not None), default=1.0)
        most = max((p.share_of_exact for p in plans if p.share_of_exact is not None), default=1.0)
        rows = []
        for plan in plans:
            measured = evidence.speed if plan.chosen else engine if plan.share_of_exact == 1.0 else None
            if compiled.artifact.members:
                measured = None
            share = plan.share_of_exact
            rows.append(
                {
                    "name": plan.name,
                    "chosen": plan.chosen,
                    "predicted": "not predicted" if share is None else _share_of_time(share),
                    "alone": "—" if plan.share_alone is None else _share_of_time(plan.share_alone),
                    "bar": 0.0 if share is None else round(100.0 * share / max(most, least, 1e-9), 1),
                    "certified": "—" if plan.certified is None else share_text(plan.certified),
                    "planning": "—" if plan.seconds_per_row is None else time_text(plan.seconds_per_row),
                    "raced": "—" if plan.raced is None else time_text(plan.raced),
                    "here": "—" if measured is None else time_text(measured.seconds_per_row),
                }
            )
        tables.append(rows)
    return [rows for rows in tables if rows]


def _share_of_time(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def costs(compiled: Compiled, evidence: Evidence) -> list[tuple[str, str, str]]:
    """List speed, size and memory, giving each item's name, value and method of measurement."""
    artifact, against = compiled.artifact, evidence.against
    threads = n_threads(compiled.n_jobs)
    lines = [
        ("compiled, time per row", *_speed(evidence.speed, f"labels or values, {count(threads, 'thread', 'threads')}"))
    ]
    alone = evidence.single_rows
    tail = f"99th percentile {time_text(alone.percentile_99)}, slowest {time_text(alone.slowest)}"
    how = f"median of {count(alone.n_rows, 'call', 'calls')} from Python; {tail}"
    lines.append(("a row alone", time_text(alone.median), how))
    if against is not None:
        if against.exact_engine is not None:
            lines.append(("its exact engine alone", *_speed(against.exact_engine, "always a possible plan")))
        what = "kernel sums in float64" if against.is_definition else "its own predict"
        lines.append((f"{against.speed_of}, time per row", *_speed(against.speed, what)))
    lines.append(("artifact", bytes_text(artifact.n_bytes), f"{artifact.n_bytes:,} bytes"))
    if against is not None and against.n_bytes:
        ratio = against.n_bytes / artifact.n_bytes
        lines.append(
            (
                "file of the source" if against.is_definition else "the source, pickled",
                bytes_text(against.n_bytes),
                f"{ratio:.2g} times the artifact",
            )
        )
    memory = resident_bytes(artifact)
    measured = "added to a new process by loading and predicting"
    lines.append(("memory", "not measured" if memory is None else bytes_text(memory), measured))
    if compiled.compilation is not None:
        lines.append(("compile time", f"{compiled.compilation.seconds:.2f} s", "including reading the source"))
    return lines


def speeds(compiled: Compiled, evidence: Evidence) -> list[dict[str, Any]]:
    """Return bars on a log scale for the times per row of the compiled model, its exact engine and the source."""
    against = evidence.against
    if against is None:
        return []
    timed = [
        ("compiled", evidence.speed),
        ("its exact engine alone", against.exact_engine),
        (against.speed_of, against.speed),
    ]
    known = [(name, speed.seconds_per_row) for name, speed in timed if speed is not None]
    least, most = (edge(seconds for _, seconds in known) for edge in (min, max))
    decades = max(math.log10(most / least), 1.0)
    return [
        {
            "name": name,
            "time": time_text(seconds),
            "bar": round(8.0 + 92.0 * math.log10(seconds / least) / decades, 1),
            "chosen": name == "compiled",
        }
        for name, seconds in known
    ]


def _speed(speed: Speed, how: str) -> tuple[str, str]:
    return time_text(speed.seconds_per_row), f"{how}; best of calls with {count(speed.n_rows, 'row', 'rows')}"


def exact_rows(evidence: Evidence) -> dict[str, Any]:
    """List rows that needed the exact engine, beginning with those closest to the decision boundary."""
    positions = np.flatnonzero(~evidence.by_expansion)
    if evidence.values is not None and len(positions):
        positions = positions[np.argsort(np.abs(evidence.values[positions]), kind="stable")]
    return {"n": len(positions), "rows": [_listed(evidence, k) for k in positions[:_LISTED_ROWS]]}


def _listed(evidence: Evidence, k: int) -> dict[str, str]:
    value = "—" if evidence.values is None else f"{evidence.values[k]:.6g}"
    bound = "—" if evidence.bounds is None else f"{evidence.bounds[k]:.2g}"
    return {
        "row": f"{int(evidence.positions[k]):,}",
        "answer": _answer(evidence.predicted[k]),
        "value": value,
        "bound": bound,
        "stage": STAGE_NAMES[STAGES[int(evidence.stages[k])]],
    }


def worst_rows(evidence: Evidence) -> list[dict[str, str]]:
    """List the rows whose errors are closest to their bounds."""
    if evidence.against is None:
        return []
    comparison, positions = evidence.against.judged, evidence.against.positions
    worst = np.argsort(-comparison.ratios, kind="stable")[:_LISTED_ROWS]
    return [
        _listed(evidence, int(positions[k]))
        | {
            "error": f"{comparison.errors[k]:.2g}",
            "bound": f"{comparison.bounds[k]:.2g}",
            "ratio": f"{comparison.ratios[k]:.2%}",
        }
        for k in worst
        if comparison.errors[k] > 0.0
    ]


def differing_rows(evidence: Evidence) -> list[dict[str, str]]:
    """List the rows whose labels differ from the source's."""
    if evidence.against is None:
        return []
    comparison, positions = evidence.against.judged, evidence.against.positions
    some = np.flatnonzero(comparison.differ)[:_LISTED_ROWS]
    return [_listed(evidence, int(positions[k])) | {"source": _answer(comparison.answers[k])} for k in some]


def _answer(answer: Any) -> str:
    if isinstance(answer, (float, np.floating)):
        return f"{answer:.6g}"
    return cut(", ".join(f"{value:.6g}" for value in answer) if np.ndim(answer) else str(answer))


def about_source(compiled: Compiled, against: Any) -> list[tuple[str, str]]:
    """List facts about the source and the compilation."""
    artifact = compiled.artifact
    source = artifact.source
    if isinstance(against, (str, os.PathLike)):
        source = f"{os.fspath(against)} ({source})"
    elif hasattr(against, "predict"):
        source = cut(" ".join(repr(against).split()))
    lines = [("source", source)]
    summary = summarize(artifact, dict.fromkeys(STAGES, 0), 0)
    skipped = {"source", "plan", "n bytes", "certified fraction", "rows per stage"}
    lines += [(name, value) for name, value in summary.rows() if name not in skipped]
    if len(artifact.labels):
        lines.append(("classes", cut(", ".join(map(str, np.sort(artifact.labels).tolist())))))
    if artifact.feature_names is not None:
        lines.append(("feature names", cut(", ".join(artifact.feature_names))))
    history = compiled.compilation
    if history is not None:
        rows = "none: the support vectors were used instead"
        lines.append(("sample rows", rows if history.n_sample_rows is None else f"{history.n_sample_rows:,}"))
        lines.append(("options", ", ".join(f"{name}={value}" for name, value in history.options) or "defaults"))
    return lines


def steps(artifact: Artifact, against: Any) -> dict[str, list[str]]:
    """List the steps of the source's pipeline, and the operations that replace them in the compiled model."""
    members = artifact.members or (artifact,)
    folded = []
    map_ = next((member.input_map for member in members if member.input_map is not None), None)
    if map_ is not None:
        n, raw = len(map_.columns), map_.n_raw_features
        chosen = [] if n == raw and (map_.columns == np.arange(n)).all() else [f"takes {n:,} of {raw:,} columns"]
        folded = chosen + [op.in_words() for op in map_.ops]
    steps_of_source = source_steps(against) or []
    return {
        "own": [cut(" ".join(repr(step).split())) for step in steps_of_source] if len(steps_of_source) > 1 else [],
        "folded": folded,
    }


def python(compiled: Compiled, has_source: bool, has_truth: bool, max_rows: int | None) -> str:
    """Return the Python code that reproduces the page."""
    arguments = ["X"] + ["y"] * has_truth + ["against=source"] * has_source
    arguments += [f"max_rows={max_rows}"] if max_rows is not None else []
    history = compiled.compilation
    made = 'compiled = approxsvm.load("model.asvm")'
    if history is not None:
        sample = ["source"] + ["X_sample"] * (history.n_sample_rows is not None)
        given = ", ".join([*sample, *(f"{name}={value}" for name, value in history.options)])
        made = f"compiled = approxsvm.compile({given})"
    return f'import approxsvm\n\n{made}\ncompiled.report({", ".join(arguments)}).save("report.html")'
