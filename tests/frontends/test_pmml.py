"""Support vector machines in PMML: files from fitted estimators, in the standard form and in dialects of programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from broken_files import changed_everywhere
from pmml_files import apply, dense, derived, document, kernel_of, machine, scaled, sparse, svm_model, text_of
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any
from approxsvm.frontends.other_programs import pmml

# The files name their fields, but these tests predict arrays.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

X, SPECIES = load_iris(return_X_y=True)
X = X + np.random.default_rng(0).normal(size=X.shape) * 0.6
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
COLUMNS = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("kernel", "vector", "y"),
    [("rbf", dense, SPECIES), ("poly", sparse, NAMES), ("linear", sparse, SPECIES > 0)],
    ids=["numbers", "texts", "two"],
)
def test_classifiers(kernel, vector, y, tmp_path):
    svc = SVC(kernel=kernel, C=0.5, degree=2, coef0=1.0).fit(X, y)
    path = tmp_path / "model"
    for swapped in ((), (0,), range(3)):
        path.write_text(text_of(svc, vector=vector, swapped=swapped))
        fast = approxsvm.compile(path)
        assert fast.predict(X).dtype.kind == svc.classes_.dtype.kind
        assert (fast.predict(X) == svc.predict(X)).all()
        assert fast.feature_names_in_.tolist() == list(COLUMNS)


def test_derived_fields(tmp_path):
    pipeline = make_pipeline(StandardScaler(), MinMaxScaler(feature_range=(-1.0, 2.0)), SVC()).fit(X, NAMES)
    standard, minmax, svc = (step for _, step in pipeline.steps)
    fields = []
    for k, c in enumerate(COLUMNS):
        fields.append(scaled(f"s{c}", c, standard.mean_[k], standard.scale_[k]))
        if k % 2:  # computed from raw data, and from the scaler's output
            fields.append(
                derived(
                    f"t{c}",
                    apply("+", float(minmax.min_[k]), apply("*", f'<FieldRef field="s{c}"/>', float(minmax.scale_[k]))),
                )
            )
        else:
            low, high = float(minmax.data_min_[k]), float(minmax.data_max_[k])
            points = f'<LinearNorm orig="{low!r}" norm="-1"/><LinearNorm orig="{high!r}" norm="2"/>'
            fields.append(derived(f"t{c}", f'<NormContinuous field="s{c}">{points}</NormContinuous>'))
    path = tmp_path / "model"
    path.write_text(text_of(svc, derived="".join(fields), fields=[f"t{c}" for c in COLUMNS]))
    model = read_any(path)
    assert np.allclose(model.input_map.apply(X), pipeline[:-1].transform(X), rtol=1e-13, atol=1e-13)
    assert (approxsvm.compile(model, X).predict(X) == pipeline.predict(X)).all()


def test_fields_are_chosen_negated_and_limited(tmp_path):
    """The fields are b, 3 - d, and c clamped to its limits."""
    inside = derived("minus", apply("-", 3.0, '<FieldRef field="d"/>')) + derived(
        "cut",
        '<NormContinuous field="c" outliers="asExtremeValues"><LinearNorm orig="0" norm="0"/>'
        '<LinearNorm orig="4" norm="1"/></NormContinuous>',
    )
    text = svm_model(
        "regression",
        [machine([0], [2.0], 0.5)],
        [dense([1.0, 2.0, 3.0])],
        kernel="<LinearKernelType/>",
        derived=inside,
        fields=("b", "minus", "cut"),
    )
    path = tmp_path / "model"
    path.write_text(document(text, kind="double"))
    expected = 0.5 + 2.0 * (X[:, 1] + 2.0 * (3.0 - X[:, 3]) + 3.0 * np.clip(X[:, 2] / 4.0, 0.0, 1.0))
    assert np.abs(approxsvm.compile(path, mode="exact").predict(X) - expected).max() < 1e-12


def test_regressions_are_rescaled(tmp_path):
    svr = SVR().fit(X[:, :4], X[:, 0])
    machines = [machine(range(len(svr.support_)), svr.dual_coef_[0], svr.intercept_[0])]
    path = tmp_path / "model"
    for targets, expected in (
        ("", svr.predict(X)),
        ('<Targets><Target field="y" rescaleFactor="2.5" rescaleConstant="-3"/></Targets>', 2.5 * svr.predict(X) - 3.0),
    ):
        text = svm_model(
            "regression", machines, [dense(row) for row in svr.support_vectors_], kernel=kernel_of(svr), more=targets
        )
        path.write_text(document(text, kind="double"))
        assert np.abs(approxsvm.compile(path, mode="exact").predict(X) - expected).max() < 1e-10
    path.write_text(path.read_text().replace("<Target ", '<Target castInteger="round" '))
    with pytest.raises(UnsupportedModelError, match="the target has castInteger"):
        read_any(path)


def test_a_value_below_the_threshold_is_the_target_category(tmp_path):
    """The value is the first column, and the threshold is 0.5, at which the alternate category is predicted."""
    path = tmp_path / "model"
    for target, alternate in ("no", "yes"), ("yes", "no"):
        one = machine([0], [1.0], 0.0, target, alternate, ' threshold="0.5"')
        text = svm_model("classification", [one], [dense([1.0, 0, 0, 0])], kernel="<LinearKernelType/>")
        path.write_text(document(text, ("no", "yes")))
        found = approxsvm.compile(path, mode="exact").predict([[0.25, 0, 0, 0], [0.5, 0, 0, 0], [0.75, 0, 0, 0]])
        assert found.tolist() == [target, alternate, alternate]


def test_of_equal_votes_the_first_value_wins(tmp_path):
    """Each of the three classes beats one of the others."""
    machines = [machine([], [], 1.0 - 2.0 * (k == 1), *pair) for k, pair in enumerate(("ba", "ca", "cb"))]
    text = svm_model("classification", machines, [dense(np.ones(4))], kernel="<LinearKernelType/>")
    for values in itertools.permutations("abc"):
        (tmp_path / "model").write_text(document(text, values))
        model = read_any(tmp_path / "model")
        assert model.labels.tolist() == list(values)
        votes = dict.fromkeys(values, 0)
        for value, (i, j) in zip(model.intercept, itertools.combinations(values, 2), strict=True):
            votes[i if value > 0 else j] += 1
        assert set(votes.values()) == {1}


FIELD, TRANSFORMED = '<FieldRef field="a"/>', "<LocalTransformations>"
CONTRADICTIONS = [
    ('vectorId="v0"', 'vectorId="v999"', "there is no vector 'v999'"),
    ('id="v1"', 'id="v0"', "the id 'v0' occurs twice"),
    ("<VectorFields>", "<VectorFields/><VectorFields>", "VectorFields has no field"),
    ('targetCategory="virginica"', 'targetCategory="rose"', "the target has no value 'rose'"),
    ('targetCategory="versicolor"', 'targetCategory="virginica"', "two machines for setosa and virginica"),
    ('<DataField name="a"', '<DataField name="z"', "the data dictionary has no field 'a'"),
    ('<Coefficient value="', '<Coefficient value="1.0"/><Coefficient value="', "coefficients for"),
    ('absoluteValue="', 'absoluteValue="x', "absoluteValue of Coefficients: could not convert"),
    ('absoluteValue="', 'absoluteValue="1_0', "absoluteValue of Coefficients: could not convert"),
    ('absoluteValue="', 'absoluteValue="1e999', "absoluteValue of Coefficients"),
    ('gamma="', 'gamma="-', "gamma is -"),
    ("</VectorDictionary>", "", "not well-formed XML"),
    ("<PMML", "<!DOCTYPE PMML><PMML", "a document type"),
    ("1 2 3 4</Indices>", "1 2 3 5</Indices>", "an index is not from 1 to 4"),
    ("1 2 3 4</Indices>", "1 2 3 3</Indices>", "an index occurs twice"),
    (TRANSFORMED, f"{TRANSFORMED}{derived('a', FIELD)}", "'a' is derived from itself"),
]
UNSUPPORTED = [
    ("RadialBasisKernelType", "SigmoidKernelType", "the kernel is SigmoidKernelType"),
    ("OneAgainstOne", "OneAgainstAll", "OneAgainstAll, only OneAgainstOne"),
    ('functionName="classification"', 'functionName="clustering"', "functionName is 'clustering'"),
    ("SupportVectorMachineModel", "TreeModel", "this PMML file holds TreeModel"),
    ('<MiningField name="a"', '<MiningField outliers="asExtremeValues" name="a"', "outliers of field 'a'"),
    (FIELD, '<CategoricalPredictor name="a" value="1"/>', "CategoricalPredictor in VectorFields"),
    (FIELD, '<FieldRef field="y"/>', "'y' is not an active numeric field"),
    (TRANSFORMED, f"{TRANSFORMED}{derived('a', apply('ln', FIELD))}", "Apply 'ln' cannot be folded in"),
    (TRANSFORMED, f"{TRANSFORMED}{derived('a', '<Discretize/>')}", "derived by Discretize"),
]


@pytest.mark.parametrize(
    ("error", "old", "new", "what"),
    [
        *((ModelFormatError, *one) for one in CONTRADICTIONS),
        *((UnsupportedModelError, *one) for one in UNSUPPORTED),
    ],
)
def test_what_contradicts_itself_or_cannot_be_compiled(error, old, new, what, tmp_path):
    text = text_of(SVC(C=0.5).fit(X, NAMES), vector=sparse)
    assert old in text
    (tmp_path / "model").write_text(text.replace(old, new, 1 if error is ModelFormatError else -1))
    with pytest.raises(error, match=what):
        read_any(tmp_path / "model")


def test_dense_vectors_have_a_number_for_each_field(tmp_path):
    text = text_of(SVC(C=0.5).fit(X, NAMES)).replace('<FieldRef field="d"/>', "")
    (tmp_path / "model").write_text(text)
    with pytest.raises(ModelFormatError, match="values of Array: 4 numbers, expected 3"):
        read_any(tmp_path / "model")


def test_vectors_that_are_written_as_nothing_do_not_fill_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(pmml, "_MOST_NUMBERS", 50)
    (tmp_path / "model").write_text(text_of(SVC(C=0.5).fit(X, NAMES), vector=sparse))
    with pytest.raises(UnsupportedModelError, match="13 sparse vectors of 4 features: at most 50 numbers"):
        read_any(tmp_path / "model")


def test_broken_files_are_refused(tmp_path):
    changed_everywhere(text_of(SVC(C=0.5).fit(X, NAMES)).encode(), tmp_path / "model")
