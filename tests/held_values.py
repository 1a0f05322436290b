"""Check, for any row layout, that an evaluator's values differ from the exact ones by at most their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from zoo import oracle

from approxsvm.runtime.evaluator import BOUNDS, LABELS, VALUES, Evaluator


def assert_values_are_held(model: Any, rows: Any, evaluator: Evaluator) -> None:
    """Check rows in every layout and some single rows, in both precisions; bounds on exact values must be small."""
    exact, slack = oracle.decision_values(model, rows)
    moduli = np.array([np.abs(model.coefficients(k)).sum() for k in range(model.n_decisions)])
    want, labels = LABELS | VALUES | BOUNDS, evaluator.evaluate(rows, LABELS)
    for values in ("settled", "exact"):
        answers = [evaluator.evaluate(form(rows), want, values) for form in (np.asarray, csr_array, np.asfortranarray)]
        alone = [evaluator.evaluate(row[np.newaxis], want, values) for row in rows[::3]]
        answers.append(tuple(np.concatenate(part) for part in zip(*alone, strict=True)))
        for found_labels, found, bounds in answers:
            step = 1 if len(found_labels) == len(rows) else 3
            found, bounds = found.reshape(-1, model.n_decisions), bounds.reshape(-1, model.n_decisions)
            assert (np.abs(found - exact[::step]) <= bounds + slack[::step]).all()
            assert values == "settled" or (bounds <= 1.1e-10 * moduli + 1e-13).all()
            assert np.array_equal(found_labels, labels[::step])
