"""Several artifacts in one: the second kind of .asvm file (models/FORMAT.md, last part)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import container
from approxsvm.artifact import Artifact, Mode, SealedBytes
from approxsvm.ensemble import Ensemble
from approxsvm.errors import ApproxSVMError, ArtifactError
from approxsvm.kernel_model import Task

_MAX_MEMBERS: Final = 1 << 10


class EnsembleArtifact(SealedBytes):
    """Compiled classifiers whose probabilities are averaged; has what estimators ask of an `Artifact`.

    Parameters
    ----------
    data : bytes
        The content of an .asvm file of this kind.

    Raises
    ------
    ArtifactError
        The bytes break a rule of models/FORMAT.md.
    """

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)
        about, arrays = container.unpack(container.ENSEMBLE_MAGIC, self.data)
        if not 1 <= len(arrays) <= _MAX_MEMBERS or list(arrays) != [f"member_{k}" for k in range(len(arrays))]:
            raise ArtifactError(f"the members are {list(arrays)[:3]}, ..., expected member_0, member_1, ...")
        self.members = tuple(Artifact(content.tobytes()) for content in arrays.values())
        self.source = str(about.get("source", ""))
        try:
            # Members are checked by what they share with the models of an ensemble: labels, heads, columns.
            self.ensemble = Ensemble(self.members, source=self.source)  # type: ignore[arg-type]
        except ApproxSVMError as error:
            raise ArtifactError(f"the members do not match: {error}") from None
        headers = [member.header for member in self.members]
        self.header: dict[str, Any] = {
            "tolerance": max(float(header["tolerance"]) for header in headers),
            "degree": max(int(header["degree"]) for header in headers),
            "n_support_vectors": sum(int(header["n_support_vectors"]) for header in headers),
            "center_kind": max(int(header["center_kind"]) for header in headers),
            "gamma": max(float(header["gamma"]) for header in headers),
            "max_sv_norm": max(float(header["max_sv_norm"]) for header in headers),
        }

    def __repr__(self) -> str:
        return f"<EnsembleArtifact: {len(self.members)} members, {len(self.data):,} bytes>"

    @property
    def task(self) -> Task:
        """Always "classification"."""
        return self.members[0].task

    @property
    def mode(self) -> Mode:
        """Of the members: "certified" where they differ and none is approximate."""
        modes = {member.mode for member in self.members}
        if len(modes) == 1:
            return modes.pop()
        return "approximate" if "approximate" in modes else "certified"

    @property
    def kernel_name(self) -> str:
        """Of the members, in words."""
        return ", ".join(sorted({member.kernel_name for member in self.members}))

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Class labels in the order of every member."""
        return self.members[0].labels

    @property
    def n_features(self) -> int:
        """Number of columns that the first member's kernel sees."""
        return self.members[0].n_features

    @property
    def n_raw_features(self) -> int:
        """Number of columns of raw rows."""
        return self.members[0].n_raw_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the raw columns, where the source knew them."""
        return self.members[0].feature_names

    @property
    def n_centers(self) -> int:
        """The most of any member."""
        return max(member.n_centers for member in self.members)

    @property
    def plan(self) -> str:
        """The members' plans."""
        plans = [member.plan for member in self.members]
        return plans[0] if len(set(plans)) == 1 else " | ".join(plans)


def pack(members: list[Artifact], source: str) -> EnsembleArtifact:
    """Put the members' artifacts into one."""
    arrays: container.Arrays = {f"member_{k}": np.frombuffer(member.data, np.uint8) for k, member in enumerate(members)}
    return EnsembleArtifact(container.pack(container.ENSEMBLE_MAGIC, {"source": source}, arrays))
