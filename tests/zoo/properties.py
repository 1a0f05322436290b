"""Properties that the answers from every interface must have."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from comparison import FAULTS, answers, compare_answers
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

import approxsvm
from zoo import oracle
from zoo.balls import Ball
from zoo.executors import Executor
from zoo.executors.in_python import BATCH
from zoo.specimens import Answers, Expected, RefusedError, Specimen
from zoo.tables import Table
from zoo.tampering import state_of

_NUMBERS = (("values", "bounds", "slack"), ("probabilities", "probability_bounds", "probability_slack"))
# Rows that a source answers and that the package, as documented, refuses: dtypes and containers for which steps compute
# other numbers, repeated entries, which SciPy sums, and values outside the range of float64.
_REFUSED_ALONE = (
    r"; pass |several entries in one column|X\.sort_indices|exceeds the range of float|"
    r"certain to .* in float64, and not to the tolerance|norm of a sparse row must be|"
    r"a number that a step of the pipeline does not take|a value between its limits is needed"
)


def interface_faults(specimen: Specimen, executor: Executor, table: Table) -> Iterator[str]:
    """Yield the faults of an interface for a table's rows or, if it does not serve the source, of its refusal."""
    if executor.why_not(specimen):
        yield from _closed_faults(specimen, executor)
    elif executor.takes(specimen, table):
        yield from _faults_of_rows(specimen, executor, table)


def _closed_faults(specimen: Specimen, executor: Executor) -> Iterator[str]:
    """Yield a fault if a closed interface answers, or gives a different reason than `why_not`."""
    if not executor.refuses_itself:
        return
    try:
        executor.answers(specimen, specimen.table)
    except RefusedError as error:
        if executor.why_not(specimen) not in str(error):
            yield f"{specimen.name}, {executor.name} is closed: {executor.why_not(specimen)}; but says: {error}"
    else:
        yield f"{specimen.name}, {executor.name} is closed: {executor.why_not(specimen)}; but answers"


def _faults_of_rows(specimen: Specimen, executor: Executor, table: Table) -> Iterator[str]:
    """Yield the faults in an interface's answers for a table's rows."""
    for fault in _faults(specimen, executor, table):
        yield f"{specimen.name}, {executor.name}, {table.form}: {fault}"


def _faults(specimen: Specimen, executor: Executor, table: Table) -> Iterator[str]:
    expected = specimen.expected(executor.seen(specimen, table))
    good = specimen.rows_of(table, ~(expected.refused | expected.chance))
    found = _answers(specimen, executor, good) if len(good.values) else None
    for i in np.flatnonzero(expected.refused)[:4]:
        row = table.take(slice(i, i + 1))
        if not executor.may_answer(specimen, row):
            answered = good.take(slice(3 if isinstance(found, Answers) else 0))
            yield from _refusal_faults(specimen, executor, row, answered)
    if found is None:
        return
    if isinstance(found, RefusedError):
        alone = [_refused_alone(specimen, executor, good.take(slice(i, i + 1))) for i in range(len(good.values))]
        if not all(re.search(_REFUSED_ALONE, words) for words in (str(found), *alone) if words):
            yield f"refused: {found}"
        kept = np.array([not words for words in alone])
        if not kept.any():
            return
        expected, good = expected.take(kept), specimen.rows_of(good, kept)
        found = _answers(specimen, executor, good)
        if isinstance(found, RefusedError):  # sparse rows are unsorted only together
            if not re.search(_REFUSED_ALONE, str(found)):
                yield f"refused: {found}"
            return
    yield from _answer_faults(specimen, executor, found, expected)
    yield from _relation_faults(specimen, executor, found, good)


def _promises(found: Answers) -> bool:
    """Return whether the answers for one row include any guarantee."""
    if found.certified is not None:
        return bool(found.certified.any())
    return found.bounds is None or bool(np.isfinite(found.bounds).any())


def _answers(specimen: Specimen, executor: Executor, table: Table) -> Answers | RefusedError:
    """Ask an interface; a batch, with which others are compared, only once for the same table."""

    def ask(one: Specimen) -> Answers | RefusedError:
        try:
            return executor.answers(one, table)
        except RefusedError as error:
            return error

    return specimen.once((BATCH.name, table), ask) if executor is BATCH else ask(specimen)


def _refused_alone(specimen: Specimen, executor: Executor, row: Table) -> str:
    """Return why the interface refuses rows, or "" if it answers."""
    found = _answers(specimen, executor, row)
    return str(found) if isinstance(found, RefusedError) else ""


def _refusal_faults(specimen: Specimen, executor: Executor, row: Table, answered: Table) -> Iterator[str]:
    """Yield faults for a row that the source refuses: the interface must refuse it, or certify nothing.

    It must also refuse the row after some rows that it answers.
    """
    try:
        found = executor.answers(specimen, row)
    except RefusedError as error:
        if executor.names_row and re.search("NaN|infini", str(error)) and "column" not in str(error):
            yield f"the refusal of a row names no column: {error}"
    else:
        # In float32, a source's own steps may overflow; an uncertified answer is then allowed.
        if (executor.refuses and "float32" not in row.kinds) or _promises(found):
            yield f"answers a row that the source refuses: {row.code()[:200]}"
        return
    n = len(answered.values)
    if executor.refuses and executor.names_row and n:
        try:
            executor.answers(specimen, answered.joined(row))
        except RefusedError as error:
            if not re.search(rf"\brow {n}\b|^rows are|is not a matrix of real numbers", str(error)):
                yield f"the refusal of row {n} is: {error}"
        else:
            yield f"answers a row among others that the source refuses: {row.code()[:200]}"


def _answer_faults(specimen: Specimen, executor: Executor, found: Answers, expected: Expected) -> Iterator[str]:
    if found.labels is not None and expected.labels is not None:
        if found.labels.shape != expected.labels.shape:
            yield f"labels of shape {found.labels.shape} instead of {expected.labels.shape}"
            return
        differ = found.labels != expected.labels
        certified = np.zeros(differ.shape, bool) if found.certified is None else found.certified
        if certified.shape != differ.shape or certified.dtype != bool:
            yield f"certified is {certified.dtype} of shape {certified.shape}"
            return
        if (differ & certified).any():
            yield f"certified labels differ from the source's in rows {np.flatnonzero(differ & certified)[:5]}"
        elif differ.any() and _promises_labels(specimen, executor) and (differ & specimen.certain(expected.rows)).any():
            yield f"labels differ from the source's in rows {np.flatnonzero(differ)[:5]}"
    for name, of_bounds, _ in _NUMBERS:
        given, bounds = getattr(found, name), getattr(found, of_bounds)
        if given is not None and bounds is not None:
            if given.shape != bounds.shape:
                yield f"{name} of shape {given.shape}, bounds of shape {bounds.shape}"
                return
            if not (bounds >= 0.0).all():
                yield f"{name} have a bound of {bounds[~(bounds >= 0.0)][0]}"
    for name, bounds, slack in _NUMBERS:
        given, exact = getattr(found, name), getattr(expected, name)
        if given is not None and exact is not None and getattr(found, bounds) is not None:
            yield from _bound_faults(name, given, getattr(found, bounds), exact, getattr(expected, slack))


def _promises_labels(specimen: Specimen, executor: Executor) -> bool:
    return executor.settles and bool(specimen.artifact.mode != "approximate")


def _bound_faults(name: str, found: Any, bounds: Any, exact: Any, slack: Any) -> Iterator[str]:
    if found.shape != exact.shape:
        yield f"{name} of shape {found.shape} instead of {exact.shape}"
        return
    error = np.abs(found - exact)
    # Where the oracle has no value, the interface must not return a value with a bound.
    broken = np.where(np.isnan(exact), np.isfinite(found) & (bounds < np.inf), ~(error <= bounds + slack))
    if broken.any():
        i = int(np.flatnonzero(broken.any(axis=1))[0])
        n_others = broken.any(axis=1).sum() - 1
        yield (
            f"{name}: off by {error[i]} where the bound is {np.broadcast_to(bounds, error.shape)[i]}, in row {i} and "
            f"{n_others} others"
        )


def _relation_faults(specimen: Specimen, executor: Executor, found: Answers, table: Table) -> Iterator[str]:
    """Yield where answers are not bit-identical to the twin's, or differ by more than the bounds from a batch's."""
    twin, seen = executor.twin, executor.seen(specimen, table)
    if twin is not None:
        theirs = specimen.once(("twin", twin.name, seen), lambda one: _answers(one, twin, seen))
        if isinstance(theirs, RefusedError):
            yield f"answers what {twin.name} refuses: {theirs}"
            return
        for name, answer in vars(found).items():
            other = getattr(theirs, name)
            if answer is not None and other is not None and not _same_bits(answer, other):
                yield f"{name} are not bit for bit those of {twin.name}: {answer.tolist()} and {other.tolist()}"[:400]
    elif executor is not BATCH:
        theirs = _answers(specimen, BATCH, seen)
        if isinstance(theirs, RefusedError):
            return
        if found.values is not None and theirs.values is not None and found.bounds is not None:
            yield from _bound_faults(
                "values beside a batch's", found.values, found.bounds, theirs.values, theirs.bounds
            )


def _same_bits(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


# --- the source, and the compiled estimator as an estimator


def source_faults(specimen: Specimen, table: Table) -> Iterator[str]:
    """Yield faults: numbers from the source that differ from the numbers of the model read from it."""
    model, theirs = specimen.model, specimen.theirs(table)
    ours = oracle.answers(model, specimen.numbers(table))
    is_file = specimen.compiled_from is not specimen.source  # a file does not define the scores of several classes
    if not specimen.artifact.has_decision_function or (is_file and len(model.labels) > 2):
        ours.pop("decision_function", None)
    narrow = any(kind in ("float32", "float16") for kind in table.kinds)
    for method, exact in ours.items():
        found = theirs[method]
        if isinstance(found, Exception) or not isinstance(exact, Ball):
            continue  # labels are compared with the source's elsewhere
        scale = 1.0 if method == "predict_proba" else np.abs(exact.mid).max(axis=0)
        off = np.abs(found.reshape(exact.mid.shape) - exact.mid)
        if not (off <= (1e-3 if narrow else 1e-7) * scale + exact.rad + 1e-300).all():
            yield f"{specimen.name}: {method} is off by {off.max(axis=0)} from the oracle's"


def compiling_faults(specimen: Specimen) -> Iterator[str]:
    """Yield what `compile` changes in its source."""
    before = state_of(specimen.source)
    specimen.fast  # noqa: B018
    after = state_of(specimen.source)
    for path in sorted(path for path in before | after if before.get(path) != after.get(path)):
        yield f"{specimen.name}: compile changes {path} of its source"


def estimator_faults(specimen: Specimen, table: Table) -> Iterator[str]:
    """Yield differences between the compiled estimator's methods and answers and the source's."""
    good = specimen.expected(table).rows  # sparse rows become dense if the source accepts no others
    is_file = specimen.compiled_from is not specimen.source  # its source has only numbers; see `source_faults`
    if is_file or len(good.values) == 0 or _refused_alone(specimen, BATCH, good):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fault in _method_faults(specimen, good):
            yield f"{specimen.name}, as an estimator, {table.form}: {fault}"


def _method_faults(specimen: Specimen, table: Table) -> Iterator[str]:
    source, fast = specimen.source, specimen.fast
    theirs, ours = specimen.theirs(table), answers(fast, table)
    if not hasattr(source, "predict"):  # a density, whose `predict` is our addition
        logs, bounds = fast.score_samples(table.make(), return_bound=True)
        off = np.abs(logs - theirs["score_samples"])
        if not ((off <= bounds + 1e-9 * (1.0 + np.abs(logs))) | (logs == theirs["score_samples"])).all():
            yield f"score_samples are off by {off}, and their bounds are {bounds}"
        return
    finding = compare_answers(source, fast, table, theirs, ours)
    if finding.verdict in (*FAULTS, "refused"):
        yield f"{finding.verdict}: {finding.reason}"
    artifact = specimen.artifact
    for method, answer in ours.items():
        reasons = (artifact.why_no_decision_function, artifact.why_no_probabilities)
        lacks = isinstance(answer, Exception) and not isinstance(theirs[method], Exception)
        if lacks and not any(reason in str(answer) for reason in reasons):
            yield f"{method} is missing: {answer}"
    if artifact.task == "classification" and ours["predict"].dtype != theirs["predict"].dtype:
        yield f"labels are {ours['predict'].dtype} instead of {theirs['predict'].dtype}"
    yield from _narrow_faults(specimen, table, theirs, ours)
    if hasattr(source, "predict_log_proba") and hasattr(fast, "predict_proba"):
        with np.errstate(divide="ignore"):
            if not _same_bits(fast.predict_log_proba(table.make()), np.log(ours["predict_proba"])):
                yield "predict_log_proba is not the logarithm of predict_proba"
    # Ensembles have no values to compare, and verify uses the source's own labels.
    if finding.verdict == "equal" and not artifact.members and specimen.options.get("labels") != "probability":
        report = approxsvm.verify(fast, specimen.compiled_from, table.make())
        if not report.kept:
            yield f"verify says it is not kept: {report}"


def _narrow_faults(specimen: Specimen, table: Table, theirs: Any, ours: Any) -> Iterator[str]:
    """Yield differences, larger than the bounds, from the values of a source that maps rows in float32."""
    machine = specimen.source[-1] if isinstance(specimen.source, Pipeline) else None
    if "float32" not in table.kinds or not isinstance(machine, SVC) or len(machine.classes_) > 2:
        return  # other kernel machines also compute in float32
    given, found = theirs["decision_function"], ours["decision_function"]
    if not isinstance(found, Exception):
        off = np.abs(given - found)
        broken = ~(off <= specimen.fast.error_bound(table.make()) + 1e-11 * (1.0 + np.abs(given).max()))
        if broken.any():
            yield f"values are off by {off[broken]} from those of float32, in rows {np.flatnonzero(broken)}"
