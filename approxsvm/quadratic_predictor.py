"""Values of linear and quadratic models by BLAS in float64, with bounds; has what estimators ask of the native core.

The value is constant + linear . z + z . quadratic z. With n = ||z||, C = |constant|, L = ||linear|| and F the
Frobenius norm of quadratic, the sum of the moduli of all products is at most C + L n + F n^2, and 2 d + 8 roundings
happen on every path in any order of summation. What summing over support vectors has rounded away (`QuadraticModel`)
and what a row's own error moves come on top. Rows whose sign this leaves open are summed again over the support
vectors, in LIBSVM's order: their sign is a matter of rounding, and then it is the source's own rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.compensated import UNIT_ROUNDOFF, norms_above
from approxsvm.errors import InputError
from approxsvm.heads import Heads
from approxsvm.kernel_model import FloatArray
from approxsvm.outputs import native_outputs
from approxsvm.quadratic_model import QuadraticModel
from approxsvm.rows import check_finite, chunks, of_the_whole

N_STAGES, _FORM, _DEFINITION = 6, 0, 5


class QuadraticPredictor:
    """Evaluates one model.

    Parameters
    ----------
    model : QuadraticModel
    tolerance : float
        What values have to be within of the exact ones.
    """

    exact_count = 0  # no row skips a stage

    def __init__(self, model: QuadraticModel, tolerance: float = np.inf) -> None:
        self.model = model
        self._tolerance = tolerance
        self.counts = [0] * N_STAGES
        self._linear_norms = norms_above(model.linear)
        self._quadratic_norms = np.zeros(model.n_decisions)
        if model.quadratic is not None:
            self._quadratic_norms = norms_above(model.quadratic.reshape(model.n_decisions, -1))

    def dense(
        self,
        rows: npt.NDArray[Any],
        n_threads: int,
        bounds: bool = False,
        labels: bool = False,
        values: str = "promised",
        row_errors: FloatArray | None = None,
    ) -> Any:
        """As `_native.Predictor.dense`; BLAS has threads of its own, and values are exact whatever is asked for."""
        found, errors, stages = self._all_rows(rows, row_errors)
        for stage, count in enumerate(np.bincount(stages, minlength=N_STAGES)):
            self.counts[stage] += int(count)
        if not labels and (errors > self._tolerance).any():
            row = int(np.argmax(errors.max(axis=1)))
            raise InputError(
                f"row {row}: its value is certain to {errors[row].max():.3g} in float64, and not to the tolerance of "
                f"{self._tolerance:.3g}"
            )
        if labels:
            by_votes = native_outputs(Heads(), self.model.task, len(self.model.labels))
            return by_votes.predicted_class(found).astype(np.uint32)
        if self.model.n_decisions == 1:
            found, errors = found[:, 0], errors[:, 0]
        return (found, errors, stages) if bounds else found

    def csr(
        self,
        indptr: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        data: npt.NDArray[Any],
        n_threads: int,
        **options: Any,
    ) -> Any:
        """As `dense`, for compressed rows."""
        from scipy.sparse import csr_array

        rows: Any = csr_array((data, indices, indptr), shape=(len(indptr) - 1, self.model.n_features))
        return self.dense(rows, n_threads, **options)

    def one(self, row: npt.NDArray[Any]) -> float:
        """The position of the label of one row, or a regression's value.

        Raises
        ------
        InputError
            The row has another shape or type.
        """
        d = self.model.n_features
        if row.shape not in ((d,), (1, d)) or row.dtype not in (np.float32, np.float64):
            raise InputError(f"the row is {row.dtype} of shape {row.shape}, expected float32 or float64 and ({d},)")
        return float(self.dense(row.reshape(1, d), 1, labels=self.model.task != "regression")[0])

    def _all_rows(
        self, rows: Any, row_errors: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.uint8]]:
        n_rows, model = rows.shape[0], self.model
        values, bounds = np.empty((2, n_rows, model.n_decisions))
        stages = np.full(n_rows, _FORM, np.uint8)
        moved = np.zeros(n_rows) if row_errors is None else row_errors
        for part in chunks(n_rows, model.n_features):
            block = rows[part] if isinstance(rows, np.ndarray) else rows[part].toarray()
            try:
                check_finite(block)
            except InputError as error:
                raise of_the_whole(error, part.start) from None
            z = np.ascontiguousarray(block, dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                values[part], bounds[part] = model.decision_function(z), self._bounds(z, moved[part])
                stages[part] = self._settle(z, values[part], bounds[part], moved[part])
            _check_range(values[part], part.start)
        bounds[np.isnan(bounds)] = np.inf
        return values, bounds, stages

    def _bounds(self, z: FloatArray, row_errors: FloatArray) -> FloatArray:
        model, d = self.model, self.model.n_features
        norms = norms_above(z)[:, np.newaxis] + row_errors[:, np.newaxis]  # those of rows over the real numbers, too
        total = np.abs(model.constant) + self._linear_norms * norms
        terms = model.constant_error + model.linear_error * norms
        if model.quadratic is not None:  # one norm after the other: the square of a small one is zero
            total = total + self._quadratic_norms * norms * norms
            terms = terms + model.quadratic_error * norms * norms
        path = 1.01 * (2 * d + 8) * UNIT_ROUNDOFF
        terms = terms + self._moved(norms, row_errors[:, np.newaxis])
        result: FloatArray = (path * total + terms) * (1 + 1e-9) + 2.0**-1000
        return result

    def _moved(self, norms: FloatArray, row_errors: FloatArray) -> FloatArray:
        """What values change when rows move by `row_errors`; both of shape (n_rows, 1)."""
        result: FloatArray = row_errors * (self._linear_norms + self._quadratic_norms * (2 * norms + row_errors))
        return result

    def _settle(self, z: FloatArray, values: FloatArray, bounds: FloatArray, row_errors: FloatArray) -> Any:
        """Evaluate the rows of open sign by the definition, in place; returns every row's stage."""
        stages = np.full(len(z), _FORM, np.uint8)
        if self.model.machine is None or self.model.task == "regression":
            return stages
        for row in np.flatnonzero(~(np.abs(values) > bounds).all(axis=1)):
            stages[row] = _DEFINITION
            values[row], bounds[row] = self._by_definition(z[row], row_errors[row : row + 1])
        return stages

    def _by_definition(self, z: FloatArray, row_error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """sum_i a_i K(x_i, z) + intercept, term after term."""
        machine, kernel = self.model.machine, self.model.kernel
        assert machine is not None
        vectors = machine.dense_support_vectors(0, machine.n_sv)
        products = np.array([np.dot(x, z) for x in vectors])
        powers = (kernel.gamma * products + kernel.coef0) ** kernel.degree
        norm = norms_above(z[np.newaxis])
        moduli = abs(kernel.gamma) * norms_above(vectors) * norm + abs(kernel.coef0)
        values, bounds = np.empty((2, machine.n_decisions))
        moved = self._moved(norm[:, np.newaxis], row_error[:, np.newaxis])[0] + machine.value_error
        for k in range(machine.n_decisions):
            a = machine.coefficients(k)
            used = a != 0
            # cumsum adds one after the other, unlike sum.
            values[k] = np.cumsum(a[used] * powers[used])[-1] if used.any() else 0.0
            values[k] += machine.intercept[k]
            total = float(np.abs(a) @ moduli**kernel.degree) + abs(machine.intercept[k])
            bounds[k] = 1.01 * (machine.n_sv + 3 * len(z) + 16) * UNIT_ROUNDOFF * total * (1 + 1e-9) + moved[k] * 1.01
        return values, bounds


def _check_range(values: FloatArray, first_row: int) -> None:
    """A value, or one of its terms, may be beyond float64 although the row is not.

    Raises
    ------
    InputError
    """
    beyond = ~np.isfinite(values).all(axis=1)
    if beyond.any():
        row = first_row + int(np.flatnonzero(beyond)[0])
        raise InputError(f"the decision value of row {row} of X, or a term of it, exceeds the range of float64")
