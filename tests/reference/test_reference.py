"""The definitions in reference/ agree with the oracle within their own rounding bounds."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import oracle
from zoo.test_oracle import some_models, some_rows

from approxsvm.reference.definition import GaussianDefinition, definition_of


@pytest.mark.parametrize("kind", some_models(0))
@pytest.mark.parametrize("seed", range(6))
def test_rounding_is_within_what_the_reference_says(kind: str, seed: int) -> None:
    model = some_models(seed)[kind]
    rows = some_rows(model, seed)
    definition = definition_of(model)
    values = definition.values(rows)
    rounding = np.broadcast_to(definition.rounding(rows, values), values.shape)
    assert oracle.holds(model, rows, values, rounding).all()
    if isinstance(definition, GaussianDefinition):
        exact, slack = oracle.decision_values(model, rows)
        last, longest = model.n_decisions - 1, [float(definition.vector_norms.max())]
        for z, truth, own in zip(rows, exact[:, last], slack[:, last], strict=True):
            value, error = definition.by_norms(z, last, longest)
            assert abs(value - truth) <= error + own
