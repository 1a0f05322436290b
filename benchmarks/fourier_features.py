"""Pipelines of RBFSampler and LinearSVC: scikit-learn against compiled, time per row, on data sets as they are, sparse.

    python -m benchmarks.fourier_features [--components N ...] [--rows N] [--rounds N] [--results FOLDER]

Labels are compared first: none may differ but where scikit-learn's own value is within its rounding of zero. Both
predict with one thread.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import approxsvm
from benchmarks.answers import WrongAnswerError
from benchmarks.problems import Source, data_folder, split_rows
from benchmarks.record import Record, results_option
from benchmarks.timing import medians, seconds

_SOURCES = ((Source("Adult", "a9a", "a9a.t"), 1.0 / 80.0), (Source("ijcnn1", "ijcnn1", "ijcnn1.t"), 1.0))
_TRAINING_ROWS = 5_000


@click.command()
@click.option("--components", multiple=True, type=click.IntRange(min=1), default=(100, 1000), show_default=True)
@click.option("--rows", "n_rows", type=click.IntRange(min=1), default=16_281, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@results_option
def main(components: tuple[int, ...], n_rows: int, rounds: int, results: Path) -> None:
    """Compare on test rows; the models are trained on a few thousand rows."""
    folder = data_folder()
    if folder is None:
        return
    record = Record.begin("fourier_features")
    with threadpool_limits(1):
        for source, gamma in _SOURCES:
            train, y, test, _ = split_rows(folder, source)
            X = csr_matrix(test[:n_rows])
            for n in components:
                pipeline = make_pipeline(RBFSampler(gamma=gamma, n_components=n, random_state=0), LinearSVC(dual=False))
                pipeline.fit(csr_matrix(train[:_TRAINING_ROWS]), y[:_TRAINING_ROWS])
                fast = approxsvm.compile(pipeline)
                labels, values = fast.predict(X), pipeline.decision_function(X)
                share = fast.rows_per_stage["float32"] / X.shape[0]
                clear = np.abs(values) > 1e-9 * np.abs(pipeline[-1].coef_).sum()
                n_differ = int((labels != pipeline.predict(X))[clear].sum())
                if n_differ:
                    raise click.ClickException(str(WrongAnswerError(f"{n_differ} labels differ")))
                times = medians(
                    {
                        "theirs": partial(seconds, partial(pipeline.predict, X)),
                        "ours": partial(seconds, partial(fast.predict, X)),
                    },
                    rounds,
                )
                per_row = 1e6 / X.shape[0]
                record.add(
                    "pipelines",
                    {
                        "data": source.name,
                        "n_features": X.shape[1],
                        "n_cosines": n,
                        "sklearn_microseconds": times["theirs"] * per_row,
                        "microseconds": times["ours"] * per_row,
                        "times_faster": times["theirs"] / times["ours"],
                        "by_float32": share,
                        "bytes": fast.artifact.n_bytes,
                    },
                )
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
