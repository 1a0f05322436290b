"""A report's plots, as matplotlib displays that follow scikit-learn's conventions.

The displays need matplotlib: ``pip install 'approxsvm[report]'``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from approxsvm.analysis.report.evidence import Evidence, gather
from approxsvm.errors import InputError
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.runtime.evaluator import EXPANSION_STAGES, STAGES
from approxsvm.system.packages import import_package

Self = TypeVar("Self", bound="_Display")

# Colours of rows predicted by expansions, rows predicted by the exact engine, violations, and reference lines.
EXPANDED: Final = "#2f7ea3"
EXACT: Final = "#c9762b"
BROKEN: Final = "#c43c39"
NEUTRAL: Final = "#6b7480"
# Names of the stages in plots.
STAGE_NAMES: Final = {
    "expansion": "expansion",
    "direction": "expansion, sharper bound",
    "higher_degree": "expansion, higher degree",
    "subspace": "sums in few coordinates",
    "float32": "exact engine, float32",
    "float64": "exact engine, float64",
    "definition": "definition",
}
# Maximum number of points of each kind, in addition to the worst points; the limit keeps pages small.
_DRAWN_POINTS: Final = 600
_WORST_POINTS: Final = 200
_N_BINS: Final = 48
_FEW_ROWS: Final = 200
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def import_matplotlib(name: str) -> Any:
    """Import a module of matplotlib; raise MissingPackageError if matplotlib is not installed."""
    return import_package(name, "report", "a plot or report")


def drawn_svg(
    draw: Callable[[Any], Any],
    inches: tuple[float, float],
    style: Mapping[str, Any],
    metadata: Mapping[str, str | None],
) -> str:
    """Return an SVG file with one axis, drawn by `draw(axis)` independently of the user's styles; needs matplotlib.

    `style` overrides matplotlib's defaults. `metadata` is written to the file without a date, for reproducibility.
    """
    matplotlib = import_matplotlib("matplotlib")
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **style, "backend": matplotlib.rcParams["backend"]}):
        figure = import_matplotlib("matplotlib.figure").Figure(figsize=inches, layout="constrained")
        draw(figure.add_subplot())
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, **metadata})
    return stream.getvalue()


class _Display:
    """Base class of the displays."""

    ax_: Any  # matplotlib Axes
    figure_: Any  # matplotlib Figure

    @classmethod
    def _of(cls: type[Self], evidence: Evidence) -> Self:
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls: type[Self], compiled: Any, X: Any, *, against: Any = None, ax: Any = None, max_rows: int | None = None
    ) -> Self:
        """Predict rows and draw the results.

        Parameters
        ----------
        compiled : CompiledSVC, CompiledSVR, CompiledOneClassSVM or CompiledEnsemble
        X : array-like or sparse matrix of shape (n_rows, n_features)
        against : fitted estimator, KernelModel, or path, optional
            The source, if the display needs a comparison with it.
        ax : matplotlib Axes, optional
            The axis on which to draw. Default: a new axis.
        max_rows : int, optional
            Maximum number of rows to compare with the source. Default: as many as can be compared in about a second.

        Returns
        -------
        display

        Raises
        ------
        InputError
            The display does not apply to the model; the message says what is missing.
        MissingPackageError
            matplotlib is not installed.
        """
        import_matplotlib("matplotlib")
        return cls.from_evidence(gather(compiled, X, against=against, max_rows=max_rows), ax=ax)

    @classmethod
    def from_predictions(cls: type[Self], *numbers: Any, ax: Any = None, **options: Any) -> Self:
        """Draw values, given as the parameters of the class, on the given axis or a new one."""
        return cls(*numbers, **options).plot(ax=ax)

    @classmethod
    def from_evidence(cls: type[Self], evidence: Evidence, *, ax: Any = None) -> Self:
        """Draw evidence that has already been collected."""
        return cls._of(evidence).plot(ax=ax)

    def plot(self: Self, ax: Any = None) -> Self:
        """Draw on the given axis or a new one, and return the display."""
        if ax is None:
            _, ax = import_matplotlib("matplotlib.pyplot").subplots()
        self.ax_, self.figure_ = ax, ax.figure
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        self._draw(ax)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


class ErrorBoundDisplay(_Display):
    """Plot of each row's error against its bound; if the bounds hold, every point is below the line.

    Create the display with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    errors, bounds : ndarray of shape (n_rows,)
    by_expansion : ndarray of shape (n_rows,), bool, optional
        Mask of the rows predicted without the exact engine. Default: all rows.
    tolerance : float, optional
        Guaranteed maximum error of values.

    Examples
    --------
    >>> import approxsvm
    >>> from approxsvm.plots import ErrorBoundDisplay
    >>> compiled = approxsvm.load("models/breast_cancer.asvm")
    >>> X = approxsvm.read_rows("models/breast_cancer.t", n_features=30)
    >>> display = ErrorBoundDisplay.from_estimator(compiled, X, against="models/breast_cancer.model")
    >>> bool((display.errors <= display.bounds).all())
    True
    >>> display.ax_.get_xlabel()
    'bound on the error'
    """

    def __init__(self, errors: Any, bounds: Any, by_expansion: Any = None, *, tolerance: float | None = None) -> None:
        self.errors = np.asarray(errors, dtype=np.float64)
        self.bounds = np.asarray(bounds, dtype=np.float64)
        everything = np.ones(len(self.errors), bool)
        self.by_expansion = everything if by_expansion is None else np.asarray(by_expansion, dtype=bool)
        self.tolerance = tolerance

    @classmethod
    def _of(cls, evidence: Evidence) -> ErrorBoundDisplay:
        if evidence.against is None:
            raise InputError("errors need the source: pass against=...")
        comparison = evidence.against.judged
        tolerance = None if comparison.verification is None else comparison.verification.tolerance
        by_expansion = evidence.values_by_expansion[evidence.against.positions]
        return cls(comparison.errors, comparison.bounds, by_expansion, tolerance=tolerance)

    def _draw(self, ax: Any) -> None:
        known = np.isfinite(self.bounds) & (self.bounds > 0.0)
        errors, bounds = self.errors[known], self.bounds[known]
        by_expansion = self.by_expansion[known]
        low, high = (float(bounds.min()), float(bounds.max())) if len(bounds) else (1e-9, 1.0)
        # Draw errors that float64 cannot distinguish from 0 at the lower end of the axis.
        floor = max(low * 1e-4, float(errors[errors > 0.0].min(initial=low)) / 4.0)
        shown = np.maximum(errors, floor)
        left, right, top = low / 3.0, high * 3.0, max(high, float(shown.max(initial=0.0))) * 3.0
        ends = np.array([left, right])
        ax.plot(ends, ends, color=NEUTRAL, linewidth=1.2)
        middle = np.sqrt(left * right)
        place = {"textcoords": "offset points", "ha": "right", "va": "bottom"}
        ax.annotate("error = bound", (middle, middle), (-8, 4), color=NEUTRAL, **place)
        ratio = errors / bounds
        for chosen, color, label in (
            (by_expansion, EXPANDED, "expansion"),
            (~by_expansion, EXACT, "exact engine"),
            (ratio > 1.0, BROKEN, "above its bound"),
        ):
            kept = _thinned(np.flatnonzero(chosen), ratio)
            if len(kept):
                ax.plot(bounds[kept], shown[kept], ".", color=color, markersize=4, alpha=0.7, mew=0, label=label)
        if self.tolerance is not None and np.isfinite(self.tolerance):
            ax.axhline(self.tolerance, color=NEUTRAL, linewidth=1.0, linestyle=(0, (4, 3)), label="tolerance")
            top = max(top, 3.0 * self.tolerance)
        ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(floor / 2.0, top))
        ax.set(xlabel="bound on the error", ylabel="error")
        _power_ticks(ax.xaxis)
        _power_ticks(ax.yaxis)
        if len(ax.get_legend_handles_labels()[0]) > 1:
            ax.legend(loc="lower right", frameon=False, handletextpad=0.3, borderaxespad=0.1, markerscale=2.5)


class DecisionBandDisplay(_Display):
    """Histogram of decision values, with the band around 0 in which an expansion leaves labels undecided.

    Create the display with `from_estimator` or `from_predictions`. For multiclass models, the histogram shows the
    predicted class's smallest margin over another class.

    Parameters
    ----------
    values, bounds : ndarray of shape (n_rows,)
    by_expansion : ndarray of shape (n_rows,), bool
        Mask of the rows predicted without the exact engine.
    """

    def __init__(self, values: Any, bounds: Any, by_expansion: Any, *, is_lead: bool = False) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.bounds = np.asarray(bounds, dtype=np.float64)
        self.by_expansion = np.asarray(by_expansion, dtype=bool)
        self.is_lead = is_lead

    @classmethod
    def _of(cls, evidence: Evidence) -> DecisionBandDisplay:
        if evidence.values is None or evidence.bounds is None:
            raise InputError("an ensemble that averages probabilities or counts votes has no decision values")
        return cls(evidence.values, evidence.bounds, evidence.values_by_expansion, is_lead=evidence.are_leads)

    @property
    def band(self) -> float:
        """Half-width of the band: the median bound over rows predicted by expansions, or 0 if there are none."""
        bounds = self.bounds[self.by_expansion & np.isfinite(self.bounds)]
        return float(np.median(bounds)) if len(bounds) else 0.0

    def _draw(self, ax: Any) -> None:
        values = self.values[np.isfinite(self.values)]
        by_expansion = self.by_expansion[np.isfinite(self.values)]
        edges = np.linspace(*_span(values), _N_BINS + 1)
        if self.band > 0.0:
            color, dashed = import_matplotlib("matplotlib").rcParams["text.color"], (0, (3, 2))
            ax.axvline(-self.band, color=color, linewidth=1.0, linestyle=dashed, zorder=3, label="± median bound")
            ax.axvline(self.band, color=color, linewidth=1.0, linestyle=dashed, zorder=3)
        inside = np.clip(values, edges[0], edges[-1])
        if by_expansion.any():
            ax.hist(inside[by_expansion], edges, color=EXPANDED, histtype="stepfilled", label="expansion")
        if not by_expansion.all():
            ax.hist(inside[~by_expansion], edges, color=EXACT, histtype="stepfilled", label="exact engine")
        ax.set(
            yscale="log",
            ylabel="rows",
            xlabel="smallest margin of the predicted class" if self.is_lead else "decision value",
        )
        ax.set_ylim(bottom=0.7)
        ticker = import_matplotlib("matplotlib.ticker")
        few = ax.get_ylim()[1] < _FEW_ROWS  # powers of ten alone would give only one or two ticks
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        ax.yaxis.set_major_formatter(_formatter(lambda value: f"{value:,.0f}"))
        ax.minorticks_off()
        ax.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, handlelength=1.0, columnspacing=1.0
        )


class CertifiedShareDisplay(_Display):
    """Histogram of the rows' distances from expansion centers, with the share of certified rows at each distance.

    Create the display with `from_estimator` or `from_predictions`. Support vectors show the distances of training rows;
    rows at much larger distances are unlike the training rows.

    Parameters
    ----------
    distances : ndarray of shape (n_rows,)
    by_expansion : ndarray of shape (n_rows,), bool
        Mask of the rows predicted without the exact engine.
    sv_distances : ndarray of shape (n_support_vectors,), optional
    """

    def __init__(self, distances: Any, by_expansion: Any, sv_distances: Any = None) -> None:
        self.distances = np.asarray(distances, dtype=np.float64)
        self.by_expansion = np.asarray(by_expansion, dtype=bool)
        self.sv_distances = None if sv_distances is None else np.asarray(sv_distances, dtype=np.float64)

    @classmethod
    def _of(cls, evidence: Evidence) -> CertifiedShareDisplay:
        if evidence.distances is None:
            raise InputError("the model has no expansions and therefore no centers")
        return cls(evidence.distances, evidence.by_expansion, evidence.sv_distances)

    def _draw(self, ax: Any) -> None:
        everything = self.distances if self.sv_distances is None else np.append(self.distances, self.sv_distances)
        low, high = _span(everything)
        edges = np.linspace(max(low, 0.0), high, _N_BINS // 2 + 1)
        inside = np.clip(self.distances, edges[0], edges[-1])
        weights = np.full(len(inside), 100.0 / max(len(inside), 1))
        parts = [inside[self.by_expansion], inside[~self.by_expansion]]
        shares = [weights[self.by_expansion], weights[~self.by_expansion]]
        ax.hist(
            parts, edges, weights=shares, stacked=True, color=[EXPANDED, EXACT], label=["expansion", "exact engine"]
        )
        if self.sv_distances is not None and len(self.sv_distances):
            vectors = np.clip(self.sv_distances, edges[0], edges[-1])
            weights = np.full(len(vectors), 100.0 / len(vectors))
            style = {"histtype": "step", "color": NEUTRAL, "linestyle": (0, (3, 2)), "linewidth": 1.1}
            ax.hist(vectors, edges, weights=weights, label="support vectors", **style)
        ax.set(xlabel="distance from the nearest center", ylabel="rows, %")
        drawn = ax.get_legend_handles_labels()
        line, label = self._draw_shares(ax.twinx(), inside, edges)
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2}
        ax.legend([*drawn[0], line], [*drawn[1], label], frameon=False, handlelength=1.0, columnspacing=1.0, **place)

    def _draw_shares(self, ax: Any, inside: FloatArray, edges: FloatArray) -> tuple[Any, str]:
        """Plot each nonempty bin's share of rows predicted without the exact engine; return the line and its label.

        The label is shown in the legend, because an axis label on the right would overlap the next plot.
        """
        every, _ = np.histogram(inside, edges)
        decided, _ = np.histogram(inside[self.by_expansion], edges)
        some = np.flatnonzero(every)
        middles = 0.5 * (edges[:-1] + edges[1:])
        shares = 100.0 * decided[some] / every[some]
        (line,) = ax.plot(middles[some], shares, "-o", color=NEUTRAL, markersize=2.5, linewidth=1.0)
        ax.set(ylim=(0, 104))
        for side in ("top", "left"):
            ax.spines[side].set_visible(False)
        return line, "decided before it, % (right)"


class StageShareDisplay(_Display):
    """Plot of the share of rows predicted by each stage, cheapest stage first.

    Create the display with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    rows_per_stage : dict
        Number of rows for each stage name, as in ``compiled.rows_per_stage``.
    """

    def __init__(self, rows_per_stage: Mapping[str, int]) -> None:
        self.rows_per_stage = dict(rows_per_stage)

    @classmethod
    def _of(cls, evidence: Evidence) -> StageShareDisplay:
        return cls(evidence.rows_per_stage)

    def _draw(self, ax: Any) -> None:
        used = [name for name in STAGES if self.rows_per_stage.get(name)]
        total = max(sum(self.rows_per_stage.values()), 1)
        shares = [100.0 * self.rows_per_stage[name] / total for name in used]
        colors = [EXPANDED if name in EXPANSION_STAGES else EXACT for name in used]
        ax.barh(range(len(used)), shares, color=colors, height=0.34)
        for k, (name, share) in enumerate(zip(used, shares, strict=True)):
            label = f"{STAGE_NAMES[name]}: {self.rows_per_stage[name]:,}, {share_text(share / 100.0)}"
            ax.annotate(label, (0.0, k), (0, 11), textcoords="offset points", va="bottom")
        ax.set(xlim=(0, 100), ylim=(max(len(used), 2) - 0.6, -0.85), xlabel="rows, %", yticks=[])
        ax.spines["left"].set_visible(False)


def share_text(share: float) -> str:
    """Format a share as a percentage; only shares of exactly 1 and 0 are shown as 100% and 0%."""
    for digits in (1, 2, 3, 4):
        text = f"{100.0 * share:.{digits}f}"
        if share in (0.0, 1.0) or 0.0 < float(text) < 100.0:
            break
    return f"{'100' if share == 1.0 else '0' if share == 0.0 else text}%"


def _thinned(rows: npt.NDArray[np.intp], ratio: FloatArray) -> npt.NDArray[np.intp]:
    """Select the rows whose errors are closest to their bounds, and a random sample of the others."""
    if len(rows) <= _DRAWN_POINTS + _WORST_POINTS:
        return rows
    by_ratio = rows[np.argsort(-ratio[rows], kind="stable")]
    others = np.random.default_rng(0).choice(by_ratio[_WORST_POINTS:], _DRAWN_POINTS, replace=False)
    return np.sort(np.append(by_ratio[:_WORST_POINTS], others))


def _span(values: FloatArray) -> tuple[float, float]:
    """Return the range of nearly all values; values outside this range are drawn at its endpoints."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = (float(edge) for edge in np.quantile(finite, [0.001, 0.999]))
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _power_ticks(axis: Any) -> None:
    """Label an axis with a few powers of ten in plain text."""
    ticker = import_matplotlib("matplotlib.ticker")
    axis.set_major_locator(ticker.LogLocator(numticks=6))
    axis.set_major_formatter(_formatter(_power))
    axis.set_minor_locator(ticker.NullLocator())


def _power(value: float) -> str:
    return f"10{str(round(np.log10(value))).translate(_SUPERSCRIPTS)}" if value > 0.0 else "0"


def _formatter(text: Callable[[float], str]) -> Any:
    return import_matplotlib("matplotlib.ticker").FuncFormatter(lambda value, _: text(value))
