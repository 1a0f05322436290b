"""Summary of a compiled model."""

import html
import math
from dataclasses import asdict, dataclass
from typing import Any

from approxsvm.artifact.views import Artifact
from approxsvm.expansion.validity import limit
from approxsvm.runtime.evaluator import EXPANSION_STAGES


def made_of(n_support_vectors: int, kernel: str) -> str:
    """Return the number of support vectors as a phrase, or the name of the terms that replace them."""
    if n_support_vectors:
        return f"{n_support_vectors:,} support vectors"
    return "Taylor features" if kernel == "Gaussian" else kernel


@dataclass(frozen=True)
class Summary:
    """Source, plan and size of a compiled model."""

    source: str
    task: str
    mode: str  # "certified", "approximate" or "exact"
    tolerance: float  # guaranteed maximum error of decision values; infinite if only labels are guaranteed
    kernel: str  # "Gaussian", "linear", "sigmoid, ...", "polynomial of degree ..." or a number of terms
    degree: int  # degree of the expansions; 0 without expansions
    n_centers: int  # number of centers; 0 without expansions
    center: str  # "mean" (of the support vectors) or "origin"
    n_features: int  # number of columns in a row, before a pipeline's steps
    n_mapped_features: int  # number of columns after these steps, as input to the kernels or the linear model
    n_support_vectors: int
    gamma: float  # the source model's kernel parameter
    gamma_max_support_vectors: float  # the paper's limit 1 / (4 max||x - center||^2); x: support vectors
    n_bytes: int  # size of the artifact
    # Maximum numbers of multiply-adds for the label of a single row: with all stages up to the float64 engine, and with
    # the definition in addition, which is evaluated for ties. An exp counts as twelve multiply-adds, and float64
    # operations count twice. None if unknown.
    most_multiply_adds: tuple[int, int] | None
    cpp: str  # type of the model in C++ programs
    plan: str  # reason why the compiler chose this plan
    # Fraction of the rows predicted so far that were certified by expansions or by sums over a few coordinates. Rows
    # whose exact values were requested do not count. None before the first row or if the model has no such stages.
    certified_fraction: float | None
    rows_per_stage: dict[str, int]  # number of rows predicted so far, by the stage that determined the result
    # Time per row, in seconds, of each plan timed by compile(measure=True). Empty without measurement and after
    # loading.
    race: dict[str, float]

    @property
    def made_of(self) -> str:
        """Number of support vectors as a phrase, or the name of the terms; see the function `made_of`."""
        return made_of(self.n_support_vectors, self.kernel)

    def rows(self) -> list[tuple[str, str]]:
        """Return pairs of names and values to display, omitting items that do not apply to the model."""
        texts = {name: shown(value) for name, value in asdict(self).items()}
        texts["most_multiply_adds"] = ""
        if self.most_multiply_adds is not None:
            in_engines, with_definition = self.most_multiply_adds
            of_ties = f"; {with_definition:,} at a tie" if with_definition > in_engines else ""
            texts["most_multiply_adds"] = f"{in_engines:,} for a row alone{of_ties}"
        if math.isinf(self.tolerance):
            texts["tolerance"] = "none requested"
        if not any(self.rows_per_stage.values()):
            texts["certified_fraction"] = texts["rows_per_stage"] = ""
        if self.certified_fraction is None and self.mode != "certified":
            why = {"exact": "every row is exact", "approximate": "labels are not guaranteed"}[self.mode]
            texts["certified_fraction"] = f"not applicable: {why}"
        texts["race"] = ", ".join(f"{name} {1e6 * seconds:.3g} µs a row" for name, seconds in self.race.items())
        unused = ("degree", "n_centers", "center") if self.n_centers == 0 else ()
        if self.n_mapped_features == self.n_features:
            unused = (*unused, "n_mapped_features")
        if self.kernel.startswith(("linear", "polynomial", "sigmoid")):
            unused = (*unused, "gamma_max_support_vectors", *(["gamma"] if self.kernel == "linear" else []))
        if self.gamma == 0.0:
            unused = (*unused, "gamma", "gamma_max_support_vectors")
        if self.n_support_vectors == 0 and self.kernel != "Gaussian":
            unused = (*unused, "n_support_vectors")
        return [(name.replace("_", " "), text) for name, text in texts.items() if text and name not in unused]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        cell = "style='text-align:left;vertical-align:top;padding:2px 12px 2px 0'"
        rows = [(html.escape(name), html.escape(value)) for name, value in self.rows()]
        lines = "".join(f"<tr><th scope='row' {cell}>{name}</th><td {cell}>{value}</td></tr>" for name, value in rows)
        title = f"Compiled model: {self.made_of}, {self.n_bytes:,} bytes"
        return f"<details><summary>{title}</summary><table style='margin:6px 0'>{lines}</table></details>"


def summarize(
    artifact: Artifact, rows_per_stage: dict[str, int], exact_count: int, race: dict[str, float] | None = None
) -> Summary:
    """Summarize an artifact and its predictions so far, including `exact_count` rows with requested exact values."""
    header = artifact.header
    n_rows = sum(rows_per_stage.values()) - exact_count
    may_prove = artifact.mode == "certified" or bool(artifact.section("subspaces"))
    proven = sum(rows_per_stage[name] for name in EXPANSION_STAGES)
    return Summary(
        source=artifact.source,
        task=artifact.task,
        mode="certified" if artifact.mode == "exact" and may_prove else artifact.mode,
        tolerance=header["tolerance"],
        kernel=artifact.kernel_name,
        degree=header["degree"],
        n_centers=artifact.n_centers,
        center=("origin", "mean")[header["center_kind"]],
        n_features=artifact.n_raw_features,
        n_mapped_features=artifact.n_features,
        n_support_vectors=header["n_support_vectors"],
        gamma=header["gamma"],
        gamma_max_support_vectors=limit(header["max_sv_norm"], header["max_sv_norm"]),
        n_bytes=artifact.n_bytes,
        most_multiply_adds=artifact.most_multiply_adds,
        cpp=artifact.model_of,
        plan=artifact.plan,
        certified_fraction=proven / n_rows if n_rows and may_prove else None,
        rows_per_stage=rows_per_stage,
        race=race or {},
    )


def shown(value: Any) -> str:
    """Format a value of the summary."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(count)}" for name, count in value.items() if count) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
