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
            Rows to predict, preferably not training rows. Rows with NaN or infinity are listed and not predicted.
        y : array-like of shape (n_rows,), optional
            True labels or targets.
        against : fitted estimator, KernelModel, or path, optional
            The source. Without the source, the report lacks errors, label differences and the speedup, and states the
            reason.
        max_rows : int, optional
            Maximum number of rows to compare with the source. Default: the number that takes about a second.
        title : str, optional

        Returns
        -------
        Report
            ``print(report)`` shows the verdict, figures and speed. ``report.save("report.html")`` writes the page,
            which needs jinja2 and matplotlib: ``pip install 'approxsvm[report]'``. ``report.evidence`` has all figures.
            Notebooks display the page.

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
        """Write the artifact to an .asvm file; if writing fails, the file at `path` keeps its previous content."""
        self.artifact.write(path)

    def to_onnx(
        self: _Model,
        *,
        input_type: Literal["float32", "float64"] = "float32",
        certain: bool | None = None,
        fallback: bool | None = None,
        max_bytes: int = 1 << 28,
    ) -> Any:
        """Export to an ONNX model of standard operators, with the names and shapes that skl2onnx uses for the source.

        The input is "X", with any number of raw rows, which the graph scales as the source does. The outputs are
        "label" and "probabilities" for a classifier (scores if the source has no probabilities), "label" and "scores"
        for a one-class model and for a Gaussian process classifier (its latent values), and "variable" for a
        regression. In mode "certified", the graph predicts the same labels as `predict`: by the expansions if the
        expansions prove the label, otherwise by the exact model. Scores and probabilities come from the same stage as
        the label. Without a tolerance, scores and probabilities may differ from the results of `decision_function` and
        `predict_proba` by the error of the expansions.

        Parameters
        ----------
        input_type : {"float32", "float64"}
            Type of the rows, and of the scores, probabilities or values. The graph computes in float64.
        certain : bool, optional
            Whether to add an output "certain", which states for each row whether the label is proven equal to the exact
            model's, or the value of a regression is proven to be within the tolerance. Default: True, except in mode
            "approximate", for regressions without a tolerance, and for the exact model of a regression.
        fallback : bool, optional
            Whether to include the exact model, for rows whose label the expansions cannot determine. Default: True if
            the constants of the graph then fit into `max_bytes`.
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
            a tolerance that defines it, or `fallback` is requested in mode "approximate".
        MissingPackageError
            The package onnx is not installed: ``pip install 'approxsvm[onnx]'``.

        Warns
        -----
        OpenAnswersWarning
            The model is certified, but its graph has no exact model, because the exact model is too large or `fallback`
            is False. For rows with a false "certain", labels may differ. The ``doc_string`` of the graph also states
            this limitation.
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
        """Write the model as one C99 header for microcontrollers, with constant data and without heap and libc.

        With ``name="m"`` the header has the following functions, which take a raw row and scale the row:

        * ``int m_predict(const float row[])``, the position of the label in ``m_labels``;
          or, for a regression, the value as ``float m_predict``.
        * ``int m_is_certain(const float row[])``, whether this label is proven to be the exact model's;
          for a regression, whether the value is within the tolerance of the exact value.
        * ``int m_predict_if_certain(const float row[])``, which returns -1 for a row that is not certain.
        * ``void m_decision_values(const float row[], float values[])`` and ``void m_error_bounds(const float row[],
          float bounds[])``, except for models that combine votes or probabilities, which have no decision values. A
          regression with several targets has these functions and no ``m_predict``.
        * ``void m_probabilities(const float row[], float probabilities[])`` and ``m_probability_bounds``, if the model
          has probabilities.

        Gaussian kernels are evaluated by their expansions if the artifact has exactly one expansion for each decision
        function. All other kernels, and all kernels in mode "exact", are evaluated by their defining sums in float32.
        Rows too long for float32 are treated like rows with NaN: the values are NaN, and the row is never certain.

        ``m_n_features``, ``m_n_values`` and ``m_n_labels`` are the numbers of features, values and labels.

        Parameters
        ----------
        path : str or path
            Path of the header; the file keeps its previous content if writing fails.
        name : str
            Prefix of every name in the header.
        coefficients : {"float32", "int16", "int8"}
            Type of the coefficients. Integer coefficients take half or a quarter of the memory, and slightly more time.
            All bounds include the rounding of the coefficients, so fewer rows are certain, but no certain label is
            wrong. Integer coefficients are allowed only for expansions.
        inputs : {"float32", "int16", "int8"}
            Type of the rows. Code q of feature j represents all numbers within half a step of ``m_offsets[j] +
            m_steps[j] * q``, and a row is certain only if all these numbers give the same label. Floats are converted
            to codes by ``m_quantize(numbers, row)``. Numbers out of range get the last code, and rows with such numbers
            are never certain.
        X : array-like or sparse matrix of shape (n_rows, n_features), optional
            Sample rows that resemble the rows to predict; they determine the range of integer inputs, and are needed
            only for integer inputs.

        Returns
        -------
        CExport
            The needed ``flash_bytes`` for constants, ``ram_bytes`` for the stack, and ``multiply_adds`` for each row.

        Raises
        ------
        UnsupportedModelError
            A step before the model neither scales nor projects, some numbers do not fit into float32, or integers are
            requested but not supported: for rows after a projection, for several models, or for coefficients of sums.
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
