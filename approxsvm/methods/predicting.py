"""Methods shared by estimators and `Predictor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ArtifactError, InputError
from approxsvm.frames.columns import error_of_cells, known_rows
from approxsvm.frames.dtypes import as_checked
from approxsvm.ir.plan import Plan
from approxsvm.runtime.evaluator import ARRAY, Evaluator


class Predicts(Protocol):
    """Interface of estimators and predictors, as used by their methods."""

    @property
    def _evaluator(self) -> Evaluator: ...

    @property
    def artifact(self) -> Any:
        """Compiled model."""

    def _rows(self, X: Any) -> Any: ...

    def _converted(self, X: Any) -> Any: ...


class Predicting:
    """Prediction of single rows and Arrow tables, and conversion of rows to the source's dtype."""

    @property
    def plan(self: Predicts) -> Plan | None:
        """Plan that was built, with a plan for each member of an ensemble; None if the artifact stores no plan."""
        built: Plan | None = self.artifact.build_plan
        return built

    def predict(self: Predicts, X: Any) -> npt.NDArray[Any]:
        """Predict class labels, a regressor's values, or 1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Raw rows, before any scaling, because the artifact includes the scaling. A data frame must have the columns
            that the source was fitted with, in order; if the source begins with a ColumnTransformer, columns are
            matched by name. If the model has no column names, a `Predictor` matches columns as `predict_arrow` does.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_targets) if each row has several labels, or a regressor was fitted
        with two-dimensional targets

        Raises
        ------
        InputError
            X contains NaN, infinity or a value that is not a real number, or has the wrong shape.
        """
        return self._evaluator.predict(self._rows(X))

    def certified(self: Predicts, X: Any) -> npt.NDArray[np.bool_]:
        """Return whether the first stage's bound proves the label or value of each row, without the exact model.

        In "certified" mode, the exact model computes the labels of all other rows, so these labels also equal the exact
        model's. In "approximate" mode, the labels of the other rows may differ from the exact model's.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_targets) if each row has several labels, bool
        """
        return np.asarray(self._evaluator.certified(self._rows(X)))

    @property
    def rows_per_stage(self: Predicts) -> dict[str, int]:
        """Number of rows predicted by each stage since this object was created.

        The stages are "expansion" (up to degree 2), "direction" (the same with a sharper bound), "higher_degree",
        "subspace" (sums over the coordinates of a subspace), "float32" and "float64" (the exact engine), and
        "definition" (term by term in LIBSVM's order). Labels, and values within a tolerance, come from the cheapest
        stage whose bound proves the result. Requests for exact values (``decision_function`` without a tolerance, and
        probabilities) start at "float64" or "definition". If a label depends on scores or on members of an ensemble,
        the row counts once for each stage that it reaches.
        """
        return self._evaluator.rows_per_stage

    def _rows_in_dtype(self: Predicts, X: Any) -> Any:
        """Convert rows in any container except plain arrays to the dtype in which the source computes."""
        frames = self._evaluator.frames
        rows = frames.rows(X)
        if rows is None:
            raw, dtypes = self.artifact.raw_columns, self.artifact.row_dtypes
            known = known_rows(X, raw)
            narrow = bool(dtypes) and dtypes.check(known, raw.names)
            try:
                with np.errstate(all="ignore"):  # independent of the caller's NumPy error state
                    rows = self._converted(known)
                    rows = as_checked(rows, narrow, raw.used) if dtypes else rows
            except (InputError, ArtifactError):
                raise
            except (TypeError, OverflowError) as error:
                raise error_of_cells(known, raw, f"X is not a matrix of real numbers: {error}") from None
            except ValueError as error:  # scikit-learn also raises this for wrong names and shapes
                is_of_cells = "could not convert" in str(error) or "array element" in str(error)
                raise error_of_cells(known, raw, str(error)) if is_of_cells else InputError(str(error)) from None
            frames.learn(X, rows)
        return rows

    def predict_one(self: Predicts, row: Any, outputs: Sequence[str] | None = None) -> Any:
        """Predict a single row, with as little overhead as possible.

        Parameters
        ----------
        row : ndarray of shape (n_features,) or (1, n_features)
            Contiguous float32 or float64 rows are fastest. A list, a mapping, a pandas Series, a named tuple, or a data
            frame of one row is also accepted. Values with names are matched by name, in any order
            (docs/howto/scikit-learn.md, "One row").
        outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
            Outputs to return, as a dict. Default: only the label, or a regressor's value.

        Returns
        -------
        scalar, ndarray of shape (n_targets,), or dict
            A class label, 1 or -1 (inlier or outlier), or a value; an array if `predict` returns several results per
            row.

        Raises
        ------
        InputError
            The row has the wrong shape or type, lacks a column, or contains NaN or infinity; or an output does not
            exist.

        Examples
        --------
        >>> import approxsvm
        >>> predictor = approxsvm.Predictor("models/breast_cancer.asvm")
        >>> predictor.predict_one([0.5] * 30, outputs=["label", "certified"])
        {'label': np.int64(-1), 'certified': np.True_}
        """
        if outputs is None and type(row) is ARRAY:
            return self._evaluator.one(row)
        return self._evaluator.one_of_any_kind(row, outputs, self._rows)

    def category_code(self: Predicts, column: int | str, value: Any) -> float:
        """Return the code of a value in a string column, for numeric arrays and for interfaces without strings.

        Parameters
        ----------
        column : int or str
            Index of the raw column, or its name.
        value : str, None or NaN
            A category, or a missing value.

        Returns
        -------
        float
            The index of a known string among the categories; NaN for NaN, -2 for None, and -1 for unknown values.

        Raises
        ------
        InputError
            The column does not contain strings, or the source rejects the value.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import OneHotEncoder
        >>> from sklearn.svm import SVC
        >>> import approxsvm
        >>> colors = np.array([["red"], ["blue"], ["green"], ["blue"]] * 5, dtype=object)
        >>> fast = approxsvm.compile(make_pipeline(OneHotEncoder(), SVC()).fit(colors, colors.ravel() == "red"))
        >>> fast.category_code(0, "red")
        2.0
        >>> fast.predict(np.array([[2.0], [0.0]]))
        array([ True, False])
        """
        return float(self.artifact.raw_columns.code_of(column, value))

    def predict_arrow(
        self: Predicts,
        data: Any,
        *,
        outputs: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        on_error: Literal["fail", "null", "skip"] = "fail",
    ) -> Any:
        """Predict the rows of a table of Arrow columns, without Python objects; return a table.

        Columns are matched by the names that the model was fitted with, in any order; additional columns are ignored. A
        model without names takes the columns f0, f1, ... if all are present, and rejects a table with only some of
        them. Otherwise, it takes the columns that are not in `keep` by position, with a `ColumnsByPositionWarning`.
        There must then be exactly one column per feature, with no gaps or disorder in numbered names (such as x0, x2),
        or a single column of fixed-size lists with one item per feature. Columns that the model does not use, such as
        those dropped by a ColumnTransformer, are not read: they may have any contents, and may be missing if the model
        has names. Fixed-size lists are not copied; columns are copied once, into a reused buffer.

        Parameters
        ----------
        data : pyarrow.Table, RecordBatch, a reader or iterable of batches, or any object that exports an Arrow stream
            Polars, DuckDB and pandas objects export such a stream. Features are numbers of any type, booleans, or
            dictionaries of them.
        outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
            Outputs to return. Default: "label", or "value" for a regressor. If an output has several columns, the class
            or pair of classes is appended to the output's name, as in "probability_setosa".
        keep : sequence of str
            Columns to copy to the result, before the outputs.
        columns : sequence of str, optional
            The feature columns, in the order of the model's features.
        on_error : {"fail", "null", "skip"}
            Treatment of rows that contain a null, NaN, infinity, or a value outside the model's range.

        Returns
        -------
        pyarrow.Table
            One row for each input row, except skipped rows. The values equal the results of `predict` and the related
            methods for a large batch, regardless of the number of rows and of their division into batches.

        Raises
        ------
        InputError
            A column is missing or not numeric, an output does not exist, or a row is invalid; the message names the
            column, output or row.
        MissingPackageError
            pyarrow is not installed: ``pip install 'approxsvm[arrow]'``.
        """
        from approxsvm.integrations.arrow.batches import predict_stream  # imported here because it needs pyarrow

        return predict_stream(self._evaluator, data, outputs=outputs, keep=keep, columns=columns, on_error=on_error)
