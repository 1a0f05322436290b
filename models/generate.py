"""Train the golden models on data bundled with scikit-learn, and compile them.

    python models/generate.py [NAME ...]

writes, for each model that has no artifact yet, the LIBSVM text file, the artifact and rows with the exact decision
values, into this folder; of a scikit-learn model, which has no such file, the artifact, raw rows, the values (not of an
ensemble) and probabilities. What is here never changes after the first release: every release has to open it
(docs/compatibility.md). A new artifact gets its line in SHA256SUMS (`sha256sum *.asvm > SHA256SUMS`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from libsvm.svmutil import svm_save_model, svm_train
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_gaussian_quantiles
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.frontends import read_any
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.reference.definition import definition_of

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from forced_subspaces import in_subspaces

HERE = Path(__file__).parent
WANTED = sys.argv[1:]  # names; all without any


def is_wanted(name: str) -> bool:
    """Whether a model is to be generated: it was asked for, and is not there."""
    return (not WANTED or name in WANTED) and not (HERE / f"{name}.asvm").exists()


def write_libsvm_data(path: Path, X: Any, y: Any) -> None:
    """Rows as LIBSVM text with round-trip digits, zeros left out."""
    lines = []
    for row, label in zip(X, y, strict=True):
        features = "".join(f" {j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value != 0.0)
        lines.append(f"{label:g}{features}\n")
    path.write_text("".join(lines))


def generate(name: str, trainer_options: str, X: Any, y: Any, test: slice, **options: Any) -> None:
    """Train on the rows outside `test`, write model, artifact, test rows and exact decision values."""
    if not is_wanted(name):
        return
    train = np.ones(len(X), bool)
    train[test] = False
    svm_save_model(
        str(HERE / f"{name}.model"), svm_train(y[train].tolist(), X[train].tolist(), f"-q {trainer_options}")
    )
    write_libsvm_data(HERE / f"{name}.t", X[test], y[test])
    model = approxsvm.read_model(HERE / f"{name}.model", n_features=X.shape[1])
    np.savetxt(HERE / f"{name}.values", definition_of(model).values(X[test]), fmt="%.17g")
    approxsvm.compile(model, X[train], **{"degree": 2, "n_centers": 1, **options}).save(HERE / f"{name}.asvm")


def generate_from(name: str, source: Any, X: Any, y: Any, test: slice, **options: Any) -> None:
    """Fit on the rows outside `test`, write artifact, raw test rows, exact decision values and probabilities."""
    if not is_wanted(name):
        return
    train = np.ones(len(X), bool)
    train[test] = False
    source.fit(X[train], y[train])
    targets = np.unique(y, return_inverse=True)[1] if y.dtype.kind == "U" else y
    write_libsvm_data(HERE / f"{name}.t", X[test], targets[test])
    model = read_any(source)
    if not isinstance(model, Ensemble):
        rows = X[test] if model.input_map is None else model.input_map.apply(X[test])
        np.savetxt(HERE / f"{name}.values", definition_of(model).values(rows), fmt="%.17g")
    if hasattr(source, "predict_proba"):
        np.savetxt(HERE / f"{name}.probabilities", source.predict_proba(X[test]), fmt="%.17g")
    approxsvm.compile(source, X[train], **options).save(HERE / f"{name}.asvm")


def generate_all_from_scikit_learn() -> None:
    """Whole pipelines, probabilities, ensembles."""
    X, species = load_iris(return_X_y=True)
    order = np.random.default_rng(2).permutation(len(X))
    X, species = X[order], species[order]
    names = np.array(["setosa", "versicolor", "virginica"])[species]
    test = slice(0, 30)
    generate_from("iris_pipeline", make_pipeline(StandardScaler(), SVC()), X, names, test, n_centers=4)
    calibrated = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False)
    generate_from("iris_calibrated", calibrated, X, species, test, n_centers=1)
    ensemble = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), method="isotonic", cv=2)
    generate_from("iris_ensemble", ensemble, X, names, test, n_centers=1)
    fourier = make_pipeline(
        StandardScaler(), RBFSampler(gamma=0.3, n_components=50, random_state=0), LogisticRegression()
    )
    generate_from("iris_fourier", fourier, X, np.where(species == 1, "yes", "no"), test)
    logarithms = make_pipeline(
        ColumnTransformer([("log", FunctionTransformer(np.log1p), [0, 2]), ("same", "passthrough", [3])]),
        SkewedChi2Sampler(skewedness=0.5, n_components=40, random_state=0),
        LogisticRegression(C=100.0),
    )
    generate_from("iris_logarithms", logarithms, X, np.where(species == 1, "yes", "no"), test)
    X, y = load_diabetes(return_X_y=True, scaled=False)
    pipeline = make_pipeline(StandardScaler(), PCA(3), SVR(C=10, epsilon=50))
    generate_from("diabetes_pipeline", pipeline, X, y, slice(0, 30), n_centers=1)


def generate_subspaces_of_classes(name: str, X: Any, y: Any, test: slice, numbers: tuple[int, ...]) -> None:
    """Several classes with kernel sums in so many coordinates, which a compiler would find too small to be worth it."""
    if not is_wanted(name):
        return
    generate(name, "-s 0 -t 2 -c 10 -g 0.05", X, y, test, mode="exact", degree="auto", n_centers="auto")
    model = approxsvm.read_model(HERE / f"{name}.model", n_features=X.shape[1])
    artifact = in_subspaces(model, numbers, X=np.delete(X, test, axis=0))
    (HERE / f"{name}.asvm").write_bytes(artifact.data)


def main() -> None:
    """Generate every golden model."""
    X, y = load_digits(return_X_y=True)
    automatic = {"degree": "auto", "n_centers": "auto"}
    by_plan = automatic | {"plan": approxsvm.Plan("subspaces", subspaces=(16, 32), basis=32, degree=3)}
    generate("digits_subspace", "-s 0 -t 2 -c 1 -g 0.08", X / 16, np.where(y == 8, 1, -1), slice(0, 60), **by_plan)
    few = y < 5
    generate_subspaces_of_classes("digits_classes", X[few][:500] / 16, y[few][:500] + 1, slice(0, 60), (8, 24))
    generate_all_from_scikit_learn()
    X, y = load_breast_cancer(return_X_y=True)
    X = np.round(MinMaxScaler().fit_transform(X), 4)
    generate("breast_cancer", "-s 0 -t 2 -c 10 -g 0.05", X, np.where(y == 1, 1, -1), slice(0, 150))
    generate(
        "breast_cancer_one_class", "-s 2 -t 2 -n 0.2 -g 0.05", X[y == 1], np.ones(int((y == 1).sum())), slice(0, 50)
    )
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X = np.round(MinMaxScaler().fit_transform(X), 4)
    generate("diabetes_svr", "-s 3 -t 2 -c 10 -g 0.1 -p 5", X, y, slice(0, 50))
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], np.where(y[y > 0] == 1, 1, -1)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    generate("iris_degree3", "-s 0 -t 2 -c 10 -g 0.2", X, y, slice(0, 30), degree=3)
    generate("iris_centers", "-s 0 -t 2 -c 10 -g 2", X, y, slice(0, 30), n_centers=20)
    X, species = load_iris(return_X_y=True)  # wide for its species, of which there is a feature each
    X = np.hstack([X, np.eye(3)[species]])
    medians = np.array([np.median(X[species == kind, 3]) for kind in range(3)])
    wide = X[:, 3] > medians[species]
    order = np.random.default_rng(0).permutation(len(X))
    y = np.where(wide[order], 1, -1)
    generate("iris_slices", "-s 0 -t 2 -c 10 -g 0.5", X[order], y, slice(0, 50), degree=3, n_centers=12)
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    generate("iris_classes", "-s 0 -t 2 -c 10 -g 0.5", X[order], y[order] + 1, slice(0, 50), n_centers=4)
    order = np.random.default_rng(1).permutation(len(X))
    generate("iris_cubic", "-s 0 -t 1 -d 3 -c 1 -g 0.2 -r 1", X[order], y[order] + 1, slice(0, 20))
    X, y = make_gaussian_quantiles(n_samples=500, n_features=3, n_classes=5, random_state=0)  # shells about the origin
    generate("shells_exact", "-s 0 -t 2 -c 10 -g 0.5", np.round(X, 2), y + 1, slice(0, 60), mode="exact", **automatic)


if __name__ == "__main__":
    main()
