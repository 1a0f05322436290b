"""Pipelines of RBFSampler and LinearSVC: scikit-learn against compiled, time per row, on data sets as they are, sparse.

Models are trained on a few thousand rows. Labels are compared first: none may differ but where scikit-learn's own value
is within its rounding of zero. Both predict with one thread.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run, demand_labels, number, numbers
from benchmarks.problems import ADULT, SOURCES, Source, split_rows
from benchmarks.timing import microseconds

_CASES = {"Adult": (ADULT, 1.0 / 80.0), "ijcnn1": (SOURCES["ijcnn1"], 1.0)}
_TRAINING_ROWS = 5_000


def measure(run: Run, case: tuple[Source, float]) -> Rows:
    """One data set, with some numbers of features."""
    source, gamma = case
    train, y, test, _ = split_rows(run.data, source)
    X = csr_matrix(test[: run.options.rows])
    for n in run.options.components:
        pipeline = make_pipeline(RBFSampler(gamma=gamma, n_components=n, random_state=0), LinearSVC(dual=False))
        with threadpool_limits(1):
            pipeline.fit(csr_matrix(train[:_TRAINING_ROWS]), y[:_TRAINING_ROWS])
            fast = approxsvm.compile(pipeline)
            labels, values = fast.predict(X), pipeline.decision_function(X)
            share = fast.rows_per_stage["float32"] / X.shape[0]
            clear = np.abs(values) > 1e-9 * np.abs(pipeline[-1].coef_).sum()
            demand_labels(f"{source.name}, {n}", labels, pipeline.predict(X), clear)
            turns = {"theirs": partial(pipeline.predict, X), "ours": partial(fast.predict, X)}
            times = microseconds(turns, X.shape[0], run.options.rounds)
        row = {
            "data": source.name,
            "n_features": X.shape[1],
            "n_cosines": n,
            "sklearn_microseconds": times["theirs"],
            "microseconds": times["ours"],
            "times_faster": times["theirs"] / times["ours"],
            "by_float32": share,
            "bytes": fast.artifact.n_bytes,
        }
        yield "pipelines", row


_OPTIONS = [numbers("--components", (100, 1000)), number("--rows", 16_281), number("--rounds", 5)]
EXPERIMENT = Experiment("fourier_features", __doc__, measure, _CASES, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
