"""Who takes part: every peer on one thread, those that can on all, each with its rows and its check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from benchmarks.answers import Answers, Labels
from benchmarks.cases import Case
from benchmarks.compiled import Models
from benchmarks.peers import Libsvm, Peer, Rows, Sample
from benchmarks.timing import Effort, spread


@dataclass(frozen=True, eq=False)
class Contender:
    """One peer on a number of threads; ``peer`` is None where its package is not installed."""

    kind: type[Peer]
    n_threads: int
    sample: Sample
    peer: Peer | None

    def predict(self) -> Labels:
        """Labels of the sample."""
        assert self.peer is not None
        return self.peer.predict()

    def check(self, answers: Answers) -> Labels:
        """Demand the labels that this peer must give, and return them."""
        labels, rows = self.predict(), self.sample.numbers
        own = self.answers(answers)
        checks = {
            "exact": own.check_exact,
            "nearly exact": own.check_nearly_exact,
            "expansion": own.check_expansion,
        }
        checks[self.kind.answer](self.kind.name, labels, rows)
        return labels

    def answers(self, answers: Answers) -> Answers:
        """The answers for the rows in the form that this peer gets."""
        return answers.for_rounded_rows() if self.kind.is_rounded else answers


def contenders_for(
    kinds: Sequence[type[Peer]], case: Case, models: Models, effort: Effort, all_threads: int
) -> list[Contender]:
    """Every kind on one thread, then on all threads those that can use them.

    Libraries must be limited to one thread around all of this, which peers on more threads raise for themselves.
    """
    samples: dict[Rows, Sample] = {
        "few": Sample(case.data.X_test, spread(case.n_rows, effort.slow_rows)),
        "many": Sample(case.data.X_test, spread(case.n_rows, effort.engine_rows)),
        "all": Sample(case.data.X_test, spread(case.n_rows, None)),
    }
    parallel = [(kind, all_threads) for kind in kinds if kind.is_parallel and all_threads > 1]
    contenders = []
    for kind, n_threads in [(kind, 1) for kind in kinds] + parallel:
        peer = None
        try:
            peer = kind(case, models, samples[kind.rows], n_threads)
        except ImportError as error:
            click.echo(f"{kind.name} left out: {error}", err=True)
        contenders.append(Contender(kind, n_threads, samples[kind.rows], peer))
    return contenders


def libsvm_baselines(per_row: Mapping[Contender, float]) -> dict[int, float]:
    """What LIBSVM takes for a row by number of threads; never more than on one thread."""
    times = {x.n_threads: time for x, time in per_row.items() if x.kind is Libsvm}
    return {n_threads: min(time, times[1]) for n_threads, time in times.items()}
