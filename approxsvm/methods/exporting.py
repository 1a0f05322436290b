"""Methods that write a compiled model, or a report about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Protocol

from approxsvm.analysis.summary import Summary

if TYPE_CHECKING:
    from approxsvm.analysis.report.page import Report
    from approxsvm.analysis.verification import Compiled
    from approxsvm.backends.c99.header import CExport


class _Model(Protocol):
    @property
    def artifact(self) -> Any: ...

    @property
    def summary(self) -> Summary: ...


class Exporting:
    """Methods that write artifacts, ONNX graphs, C headers and reports."""

    def report(
        self: Compiled,
        X: Any,
        y: Any = None,
        *,
        against: Any = None,
        max_rows: int | None = None,
        title: str | None = None,
    ) -> Report:
        """Report on the compiled model and its predictions for given rows, as text and as a self-contained HTML page.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows to predict, preferably not training rows. Rows with NaN or infinity are listed but not predicted.
        y : array-like of shape (n_rows,), optional
            True labels or targets.
        against : fitted estimator, KernelModel, or path, optional
            The source. Without it, the report omits errors, label differences and the speedup, and explains why.
        max_rows : int, optional
            Maximum number of rows to compare with the source. Default: as many as can be compared in about one second.
        title : str, optional

        Returns
        -------
        Report
            ``print(report)`` shows the verdict, figures and speed. ``report.save("report.html")`` writes the page,
            which needs jinja2 and matplotlib: ``pip install 'approxsvm[report]'``. ``report.evidence`` contains all
            figures. Notebooks display the page.

        Raises
        ------
        InputError
            No row is finite, `y` has the wrong length, or `against` is a different kind of model than the compiled one.

        Examples
        --------
        >>> import approxsvm
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> svc = SVC().fit(X[::2], y[::2])
        >>> report = approxsvm.compile(svc, X[::2]).report(X[1::2], y[1::2], against=svc)
        >>> int(report.evidence.against.judged.differ.sum())
        0
        """
        from approxsvm.analysis.report.page import make_report  # imported here because prediction does not need it

        return make_report(self, X, y, against=against, max_rows=max_rows, title=title)

    def save(self: _Model, path: str | os.PathLike[str]) -> None:
        """Write the artifact to an .asvm file; if writing fails, the file at `path` keeps its previous contents."""
        self.artifact.write(path)

    def to_onnx(
        self: _Model,
        *,
        input_type: Literal["float32", "float64"] = "float32",
        certain: bool | None = None,
        fallback: bool | None = None,
        max_bytes: int = 1 << 28,
    ) -> Any:
        """Export to an ONNX model built from standard operators, with the names and shapes that skl2onnx would use.

        The input is "X", with any number of raw rows, which the graph scales as the source does. The outputs are
        "label" and "probabilities" for a classifier (scores if the source has no probabilities), "label" and "scores"
        for a one-class model and for a Gaussian process classifier (its latent values), and "variable" for a regressor.
        In "certified" mode, the graph predicts the same labels as `predict`: with the expansions if they prove the
        label, otherwise with the exact model. Scores and probabilities are computed by the stage that determines the
        label. Without a tolerance, they may differ from the results of `decision_function` and `predict_proba` by the
        expansions' error.

        Parameters
        ----------
        input_type : {"float32", "float64"}
            Type of the rows, and of the scores, probabilities or values. The graph computes in float64.
        certain : bool, optional
            Whether to add an output "certain", which states for each row whether the label is proven to equal the exact
            model's, or a regressor's value to be within the tolerance. Default: True, except in "approximate" mode, for
            regressors without a tolerance, and for a regressor's exact model.
        fallback : bool, optional
            Whether to include the exact model, for rows whose label the expansions cannot determine. Default: True if
            the graph's constants then fit into `max_bytes`.
        max_bytes : int
            Limit on the size of the graph's constants, by default 256 MiB.

        Returns
        -------
        onnx.ModelProto
            The model, checked by ``onnx.checker``. Save it with ``onnx.save(model, path)``.

        Raises
        ------
        UnsupportedModelError
            The graph would exceed `max_bytes`, labels are neither integers nor strings, `certain` is requested without
            a tolerance that defines it, or `fallback` is requested in "approximate" mode.
        MissingPackageError
            The package onnx is not installed: ``pip install 'approxsvm[onnx]'``.

        Warns
        -----
        OpenAnswersWarning
            The model is certified, but its graph lacks the exact model, because the exact model would be too large or
            `fallback` is False. For rows whose "certain" output is false, labels may differ from the exact model's. The
            graph's ``doc_string`` also states this limitation.
        """
        from approxsvm.backends.onnx.graph import onnx_model  # imported here because prediction does not need it

        return onnx_model(
            self.artifact,
            input_type=input_type,
            certain=certain,
            fallback=fallback,
            max_bytes=max_bytes,
            certified_fraction=self.summary.certified_fraction,
        )

    def export_c(
        self: _Model,
        path: str | os.PathLike[str],
        *,
        name: str = "model",
        coefficients: Literal["float32", "int16", "int8"] = "float32",
        inputs: Literal["float32", "int16", "int8"] = "float32",
        X: Any = None,
    ) -> CExport:
        """Write the model as one C99 header for microcontrollers, with constant data and no use of the heap or libc.

        With ``name="m"`` the header has the following functions, which take a raw row and scale it:

        * ``int m_predict(const float row[])``, which returns the label's index in ``m_labels``; for a regressor,
          ``float m_predict`` returns the value.
        * ``int m_is_certain(const float row[])``, which returns whether this label is proven to be the exact model's;
          for a regressor, whether the value is within the tolerance of the exact value.
        * ``int m_predict_if_certain(const float row[])``, which returns -1 for a row that is not certain.
        * ``void m_decision_values(const float row[], float values[])`` and ``void m_error_bounds(const float row[],
          float bounds[])``, except for models that combine votes or probabilities, which have no decision values. A
          regressor with several targets has these functions but no ``m_predict``.
        * ``void m_probabilities(const float row[], float probabilities[])`` and ``m_probability_bounds``, if the model
          has probabilities.

        Gaussian kernels are evaluated with expansions if the artifact contains them for every decision function. For
        all other kernels, and in "exact" mode, the defining sums are evaluated in float32. Rows for which the sums may
        overflow are treated like rows with NaN: their values are NaN, and they are never certain.

        ``m_n_features``, ``m_n_values`` and ``m_n_labels`` are the numbers of features, values and labels.

        Parameters
        ----------
        path : str or path
            Path of the header; the file keeps its previous contents if writing fails.
        name : str
            Prefix of every name in the header.
        coefficients : {"float32", "int16", "int8"}
            Type of the coefficients. Integers need half or a quarter of the memory, and slightly more time. All bounds
            include the rounding to integers, so fewer rows are certain, but no certain label is wrong. Integer
            coefficients are allowed only for expansions.
        inputs : {"float32", "int16", "int8"}
            Type of the rows. Code q of feature j represents all values within half a step of ``m_offsets[j] +
            m_steps[j] * q``, and a row is certain only if all these values give the same label. Floats are converted to
            codes by ``m_quantize(numbers, row)``. Values out of range are clamped to the nearest code, and rows that
            contain such values are never certain.
        X : array-like or sparse matrix of shape (n_rows, n_features), optional
            Sample rows that resemble the rows to predict. They determine the range of integer inputs, and are needed
            only for such inputs.

        Returns
        -------
        CExport
            The required ``flash_bytes`` (constants), ``ram_bytes`` (stack) and ``multiply_adds`` per row.

        Raises
        ------
        UnsupportedModelError
            Some values cannot be represented in float32, or integers are requested but not supported. Integer inputs
            are not supported if a step does more than scale or if there are several models; integer coefficients are
            supported only for expansions.
        InputError
            `name` is not a valid name in C, `coefficients` or `inputs` is invalid, or `X` is missing or has the wrong
            shape.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> import approxsvm, os, tempfile
        >>> compiled = approxsvm.load("models/breast_cancer.asvm")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cost = compiled.export_c(os.path.join(folder, "tumor.h"), name="tumor", coefficients="int8")
        >>> cost.multiply_adds
        555
        """
        from approxsvm.backends.c99.header import export_c  # imported here because prediction does not need it

        return export_c(self.artifact, path, name=name, coefficients=coefficients, inputs=inputs, X=X)
