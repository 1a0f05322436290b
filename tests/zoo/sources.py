"""Every source that the frontends accept, by kind: data, read by the tests and by the generator of random sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from zoo.specimens import Entry, Specimen
from zoo.tables import Table

_RNG = np.random.default_rng(7)
_NUMBERS = np.round(_RNG.gamma(2.0, size=(60, 4)) * [1.0, 3.0, 0.5, 2.0], 3)
_VALUE = np.round(np.sin(_NUMBERS[:, 0]) + 0.3 * _NUMBERS[:, 1] - _NUMBERS[:, 2], 3)
_CLASS = np.digitize(_VALUE, np.quantile(_VALUE, [0.33, 0.67]))

ROWS: dict[str, Table] = {"numbers": Table(_NUMBERS, ("float64",) * 4, "array")}
TARGETS: dict[str, Any] = {
    "two": np.where(np.median(_VALUE) < _VALUE, 5, -2),
    "three": np.array(["red", "green", "blue"])[_CLASS],
    "value": _VALUE,
}


def fitted(estimator: Any) -> Any:
    """Return a function that fits the estimator."""
    return lambda X, y: estimator.fit(X, y)


ENTRIES: tuple[Entry, ...] = (
    Entry("SVC", fitted(SVC())),
    Entry("SVC: three classes", fitted(SVC()), target="three"),
    Entry("SVR", fitted(SVR()), target="value"),
    Entry("StandardScaler, SVC", fitted(make_pipeline(StandardScaler(), SVC())), target="three"),
)
ZOO = {entry.name: entry for entry in ENTRIES}


def specimen(entry: Entry, folder: Path) -> Specimen:
    """Fit the source of an entry."""
    table = ROWS[entry.rows]
    return Specimen(entry.name, entry.fit(table.make(), TARGETS[entry.target]), table, folder, entry)
