"""What people are shown about a compiled model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from approxsvm.artifact import Artifact
from approxsvm.expansion.validity import limit


@dataclass(frozen=True)
class Summary:
    """What was compiled, how, and how large the result is.

    Attributes
    ----------
    source, task : str
        The model that was compiled.
    mode : str
        "approximate".
    degree, n_centers : int
        Highest power of the expansion, and about how many points.
    center : str
        "mean" (of the support vectors) or "origin".
    n_features, n_support_vectors : int
        Size of the source model.
    gamma : float
        Of the source model.
    gamma_max_support_vectors : float
        The paper's limit 1 / (4 max||x||^2) with norms from the center, taken over the support vectors.
    n_bytes : int
        Size of the artifact.
    """

    source: str
    task: str
    mode: str
    degree: int
    n_centers: int
    center: str
    n_features: int
    n_support_vectors: int
    gamma: float
    gamma_max_support_vectors: float
    n_bytes: int

    def rows(self) -> list[tuple[str, str]]:
        """Names and values as shown to people."""
        return [(name.replace("_", " "), _shown(value)) for name, value in asdict(self).items()]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self.rows())


def summarize(artifact: Artifact) -> Summary:
    """Collect the summary of an artifact."""
    header = artifact.header
    return Summary(
        source=artifact.source,
        task=artifact.task,
        mode="approximate",
        degree=header["degree"],
        n_centers=1,
        center=("origin", "mean")[header["center_kind"]],
        n_features=artifact.n_features,
        n_support_vectors=header["n_support_vectors"],
        gamma=header["gamma"],
        gamma_max_support_vectors=limit(header["max_sv_norm"], header["max_sv_norm"]),
        n_bytes=len(artifact.data),
    )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
