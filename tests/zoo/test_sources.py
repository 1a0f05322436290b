"""Everything that the frontends can read or an artifact may contain has an entry in the zoo."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from sklearn.base import clone

import approxsvm
from approxsvm import _native
from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends import _kind_of
from approxsvm.frontends.formats import READERS
from approxsvm.frontends.sklearn.known_types import KNOWN, recognise
from approxsvm.ir.schema import SECTION_IDS, fields_of, names_of, record
from zoo.sources import REFUSED, ROWS, TARGETS, ZOO, specimen
from zoo.tampering import parts_of

pytestmark = pytest.mark.filterwarnings("ignore")

# Entries that together have everything; the others are tried only if something is missing.
_FIRST = (
    """
stack of census; bent; union of texts; ONNX quadratic SVR; process of two; restored targets; votes of texts;
several labels of linear ones, far away; e1071; census, ignored; PMML OneClassSVM(); NuSVC, probability;
KernelRidge, sigmoid; process; density; StandardScaler, SVC of one-hot; Taylor features; skewed waves, Ridge;
CCA; threshold of probabilities; bag of linear values; stack of values; BalancedBaggingClassifier;
SVC in subspaces of signed, 2; svm-scale; VMAF; OpenCV C_SVC, RBF, xml; OpenCV C_SVC, LINEAR, yml;
OpenCV NU_SVC, POLY, json; skops; joblib; SVC, pairs; NuSVR, linear; targets; LinearRegression, one column;
SVC of slices; SVC of many values; bag of landmarks of CSR; Perceptron; LogisticRegressionCV;
PassiveAggressiveClassifier; SGDClassifier; landmarks, search; SGDOneClassSVM; RidgeClassifierCV of three;
ARDRegression; BayesianRidge; ElasticNet; Lasso; HuberRegressor; QuantileRegressor; PassiveAggressiveRegressor;
SGDRegressor; TheilSenRegressor; ElasticNetCV; LassoCV; IncrementalPCA; FastICA; discriminants;
GaussianRandomProjection; SparseRandomProjection; FeatureAgglomeration; PLSCanonical; PLSRegression;
own selector; selector by what takes NaN; SelectFdr; SelectFpr; SelectFwe; SelectPercentile;
GenericUnivariateSelect; VarianceThreshold; RFE; RFECV; SequentialFeatureSelector; scaled by 1e150, Binarizer;
TargetEncoder; isotonic of two; temperature of two; tuned threshold; HalvingGridSearchCV; RandomizedSearchCV;
HalvingRandomSearchCV; SelfTrainingClassifier; pairs; targets, mirrored; rest of a constant; mean;
SVC in subspaces of grid, 0; LIBSVM file, one class; LIBSVM file, cubic regression; ThunderSVM SVC;
ThunderSVM NuSVC; ThunderSVM SVR; ThunderSVM NuSVR; ThunderSVM OneClassSVM; cuML SVC; cuML SVR;
OpenCV ONE_CLASS, RBF, yml.gz; OpenCV EPS_SVR, POLY, xml.gz
""".strip()
    .replace(";\n", "; ")
    .split("; ")
)


def test_everything_has_an_entry(tmp_path: Path) -> None:
    """Check every class and format that can be read, and every section and enumeration value in the schema."""
    refused = [clone(source).fit(ROWS["signed"].make(), TARGETS["value"]) for source in REFUSED.values()]
    found = {recognise(part) for source in refused for _, part in parts_of(source)}
    kinds, written = set(), []
    expected = {known for known in KNOWN if known.library in ("cuml", "thundersvm") or _is_installed(known.library)}
    in_schema = {(name, kind) for name in _native.schema()["enumerations"] for kind in names_of(name)}
    in_schema |= {("section", name) for name in SECTION_IDS}
    formats = {*READERS, "a skops file"}
    for k, name in enumerate(sorted(ZOO, key=lambda name: name not in _FIRST)):
        if k >= len(_FIRST) and expected <= found and in_schema <= kinds and formats <= set(map(_kind_of, written)):
            break
        entry = ZOO[name]
        folder = tmp_path / str(k)
        folder.mkdir()
        one = specimen(entry, folder)
        found |= {recognise(part) for part in (one.compiled_from, *(part for _, part in parts_of(one.source)))}
        written += folder.iterdir()
        kinds |= set(_kinds(one.artifact))
    assert sorted(f"{known.module}.{known.name}" for known in expected - found) == []
    assert formats <= {_kind_of(path) for path in written}
    assert {"libsvm.model", "model.joblib.gz"} <= {path.name for path in written}
    assert sorted(in_schema - kinds) == []


def _is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


@pytest.mark.parametrize("name", REFUSED)
def test_classes_that_are_refused_are_named(name: str) -> None:
    source = clone(REFUSED[name]).fit(ROWS["signed"].make(), TARGETS["value"])
    with pytest.raises(UnsupportedModelError, match=name):
        approxsvm.compile(source)


def _kinds(artifact: Artifact) -> Iterator[tuple[str, str]]:
    numbers = {name: artifact.header[name] for name in ("task", "mode", "kernel", "center_kind", "label_kind")}
    for tag in ("outputs", "combination", "support_vectors"):
        content = artifact.section(tag)
        numbers |= dict(zip(fields_of(tag), record(tag).unpack_from(content), strict=True)) if content else {}
    enumerations = _native.schema()["enumerations"]
    yield from ((name, names_of(name)[number]) for name, number in numbers.items() if name in enumerations)
    yield from (("section", name) for name in SECTION_IDS if artifact.section(name))
    if artifact.input_map is not None:
        yield from (("op_kind", op.kind) for op in artifact.input_map.ops)
    for member in artifact.members:
        yield from _kinds(member)
