"""Write seeds for the fuzz targets: the golden models, and the smallest possible artifacts of every kind.

    python cpp/tests/fuzz/seeds.py FOLDER

fills FOLDER/artifact (for fuzz_artifact and fuzz_runtime), FOLDER/targets, FOLDER/model and FOLDER/data.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import random_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm
from approxsvm.frontends import read_any
from approxsvm.ir.outputs import (
    DensityMarks,
    LaplaceNoise,
    Outputs,
    PairwiseSigmoid,
    TemperatureCalibration,
)

sys.path.insert(0, str(Path(__file__).parents[3] / "tests"))
from forced_subspaces import in_subspaces

MODELS = Path(__file__).parents[3] / "models"
MAX_SEED_BYTES = 1 << 15  # larger seeds slow fuzzing down more than they help


def sources(X: Any, classes: Any) -> dict[str, Any]:
    """Return fitted estimators by name."""
    two, target = np.where(classes == 0, "no", "yes"), X[:, 0] * X[:, 1]
    sparse = random_array((*X.shape[:1], 300), density=0.01, format="csr", random_state=np.random.default_rng(0))
    return {
        "two": SVC(gamma=0.3).fit(X, two),
        "many": SVC(gamma=0.3, decision_function_shape="ovr").fit(X, classes),
        "value": SVR(gamma=0.3).fit(X, target),
        "inliers": OneClassSVM(gamma=0.3, nu=0.2).fit(X),
        "linear": SVC(kernel="linear").fit(X, two),
        "quadratic": SVC(kernel="poly", degree=2, gamma=0.3, coef0=1.0).fit(X, classes),
        "quartic": SVR(kernel="poly", degree=4, gamma=0.1, coef0=1.0).fit(X, target),
        "mapped": make_pipeline(StandardScaler(), PCA(2), SVC(gamma=0.3)).fit(X, two),
        "calibrated": CalibratedClassifierCV(SVC(gamma=0.3), cv=2, ensemble=False).fit(X, classes),
        "isotonic": CalibratedClassifierCV(SVC(gamma=0.3), method="isotonic", cv=2).fit(X, classes),
        "bagged": BaggingRegressor(SVR(gamma=0.3), n_estimators=2, random_state=0).fit(X, target),
        "sparse": SVC(gamma=0.3).fit(sparse, two),
        "fourier": make_pipeline(RBFSampler(n_components=5, random_state=0), LogisticRegression()).fit(X, two),
    }


def with_probabilities(fitted: dict[str, Any]) -> dict[str, Any]:
    """Return models with probabilities as in LIBSVM files, and one model with scikit-learn's calibration."""
    n_pairs = 3
    of_pairs = PairwiseSigmoid(np.full(n_pairs, -1.5), np.linspace(-0.2, 0.2, n_pairs))
    kinds = {
        "two": Outputs(PairwiseSigmoid(np.array([-1.5]), np.array([0.1]))),
        "many": Outputs(of_pairs),
        "value": Outputs(LaplaceNoise(0.3)),
        "inliers": Outputs(DensityMarks(np.linspace(-0.5, 0.5, 10))),
    }
    found = {f"{name}_libsvm": replace(read_any(fitted[name]), outputs=outputs) for name, outputs in kinds.items()}
    cooled = Outputs(TemperatureCalibration(2.0), "probability")
    return {**found, "many_cooled": replace(read_any(fitted["many"]), outputs=cooled)}


def artifacts() -> dict[str, bytes]:
    """Return small artifacts of every mode that each source supports."""
    X, classes = make_classification(40, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    fitted = sources(X, classes)
    found = {}
    for name, source in {**fitted, **with_probabilities(fitted)}.items():
        for mode in ("approximate", "certified", "exact"):
            for label, forced in (("", {}), ("_centers", {"n_centers": 5}), ("_deep", {"degree": 4})):
                rows = None if name == "sparse" else X
                try:
                    made = approxsvm.compile(source, rows, mode=mode, **forced)
                except (approxsvm.ApproxSVMError, ValueError):  # no such plan for this kind of model
                    continue
                found[f"{name}_{mode}{label}"] = made.artifact.data
    for name in ("two", "many"):
        model = read_any(fitted[name])
        found[f"{name}_subspaces"] = in_subspaces(model, (1, 3), X=X).data
    found["expansion_subspaces"] = in_subspaces(read_any(fitted["two"]), (2, 3), 2, X=X).data
    return found


def main() -> None:
    """Fill the folders."""
    folder = Path(sys.argv[1])
    for name, suffix in (("artifact", "asvm"), ("model", "model"), ("data", "t")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for path in MODELS.glob(f"*.{suffix}"):
            if path.stat().st_size <= MAX_SEED_BYTES:
                shutil.copy(path, folder / name)
    for name, data in artifacts().items():
        if len(data) <= MAX_SEED_BYTES:
            (folder / "artifact" / f"{name}.asvm").write_bytes(data)
    (folder / "targets").mkdir(exist_ok=True)
    for number in range(len([*MODELS.glob("*.asvm")])):
        for choice in range(6):
            script = np.random.default_rng(number).bytes(120)
            (folder / "targets" / f"{number}_{choice}").write_bytes(bytes([number, 3 * choice]) + script)


if __name__ == "__main__":
    main()
