"""Table 4: what labels equal to the exact model's cost, by our engines and by others, on rows in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from threadpoolctl import threadpool_limits

from approxsvm.evaluator import EXPANSION_STAGES
from benchmarks.answers import Answers
from benchmarks.cases import Case
from benchmarks.compiled import Models
from benchmarks.contenders import Contender, contenders_for, libsvm_baselines
from benchmarks.exact_peers import EXACT
from benchmarks.peers import CertifiedCsr, CertifiedDense, CompiledPeer, SklearnSVC
from benchmarks.timing import Effort, cores_used, medians, seconds, warm_seconds


@dataclass(frozen=True)
class ExactTime:
    """One contender on one model; None where it is not installed or the figure makes no sense for it.

    Attributes
    ----------
    cores : float
        Processor time over wall-clock time of one call: how many threads really worked.
    libsvm_ratio : float
        LIBSVM's time per row, on as many threads or on one if that is faster, over this one's.
    sklearn_ratio : float
        scikit-learn's time per row, always on one thread, over this one's.
    first_stage : float
        Share of the rows that expansions certified, in mode "certified".
    differ : int
        Labels other than the exact model's, of the ``n_rows`` that were predicted.
    """

    model: str
    peer: str
    n_threads: int
    n_rows: int
    seconds_per_row: float | None
    cores: float | None
    libsvm_ratio: float | None
    sklearn_ratio: float | None
    first_stage: float | None
    differ: int | None


@dataclass(frozen=True)
class _Checked:
    """What is known of a contender before it is timed."""

    differ: int
    rows_per_stage: dict[str, int] | None
    cores: float


def measure(case: Case, answers: Answers, models: Models, effort: Effort, all_threads: int) -> list[ExactTime]:
    """Check all contenders, then let them take turns; exact ones with one wrong label are an error."""
    contenders = contenders_for(EXACT, case, models, effort, all_threads)
    present = [x for x in contenders if x.peer is not None]
    with threadpool_limits(1):  # entered only now: it reaches the libraries that are loaded
        checked = {x: _check(x, answers) for x in present}
        times = medians({x: partial(_clock(x), x.predict) for x in present}, effort.slow_rounds)
    per_row = {x: time / len(x.sample) for x, time in times.items()}
    libsvm = libsvm_baselines(per_row)
    sklearn = next(time for x, time in per_row.items() if x.kind is SklearnSVC)
    return [_exact_time(case, x, per_row.get(x), libsvm.get(x.n_threads), sklearn, checked.get(x)) for x in contenders]


def _clock(x: Contender) -> Callable[[Callable[[], object]], float]:
    """Who takes a microsecond for a row is slower where the rows have left the cache; LIBSVM never notices."""
    return seconds if x.kind.rows == "few" else warm_seconds


def _check(x: Contender, answers: Answers) -> _Checked:
    labels = x.check(answers)
    differ = x.answers(answers).differing(labels, x.sample.numbers)
    stages = x.peer.rows_per_stage if isinstance(x.peer, CompiledPeer) else None  # before another call adds to it
    return _Checked(differ, stages, cores_used(x.predict))


def _exact_time(
    case: Case, x: Contender, own: float | None, libsvm: float | None, sklearn: float, checked: _Checked | None
) -> ExactTime:
    stages = checked.rows_per_stage if checked else None
    certified = sum(stages[name] for name in EXPANSION_STAGES) if stages else 0
    return ExactTime(
        model=case.name,
        peer=x.kind.name,
        n_threads=x.n_threads,
        n_rows=len(x.sample),
        seconds_per_row=own,
        cores=checked.cores if checked else None,
        libsvm_ratio=libsvm / own if libsvm and own else None,
        sklearn_ratio=sklearn / own if own else None,
        first_stage=certified / len(x.sample) if issubclass(x.kind, CertifiedDense | CertifiedCsr) else None,
        differ=checked.differ if checked else None,
    )
