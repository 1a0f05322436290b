"""Frontend messages: refusals by name, working remedies, and files that contradict themselves.

The zoo compares the answers.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from libsvm.svmutil import svm_save_model, svm_train
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, StackingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler, SkewedChi2Sampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, MinMaxScaler, SplineTransformer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from zoo import oracle
from zoo.sources import ROWS, TARGETS

import approxsvm
from approxsvm.errors import DataFormatError, InputError, ModelFormatError, UnsupportedModelError
from approxsvm.features import TaylorFeatures
from approxsvm.frontends import read_any
from approxsvm.frontends.svm_scale import read_range_file, with_range_file
from approxsvm.ir import outputs
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.reference.definition import definition_of

X = ROWS["numbers"].make()
TWO, THREE, VALUE = TARGETS["two"], TARGETS["three"], TARGETS["value"]


def values_of(model, raw):
    return oracle.decision_values(model, raw)[0].astype(float)


# Refusals

CUBES = FunctionTransformer(lambda X: X**3)
SPLINES = SplineTransformer(degree=8)
PROCESS = make_pipeline(StandardScaler(), GaussianProcessClassifier(optimizer=None))
BEHIND_MAPS = (
    (Nystroem(n_components=9), SVC()),
    (RBFSampler(), make_pipeline(StandardScaler(), LinearSVC())),
    (SkewedChi2Sampler(skewedness=99), RFE(LinearSVC())),
    (TaylorFeatures(gamma=0.1), GridSearchCV(SVC(), {}, cv=2)),
)
REFUSED = [
    (OneVsOneClassifier(PROCESS), THREE, "OneVsOneClassifier uses values or probabilities of its"),
    (OneVsRestClassifier(PROCESS), THREE, "OneVsRestClassifier uses values or .* or predict with the source itself"),
    (CalibratedClassifierCV(PROCESS, cv=2), TWO, "CalibratedClassifierCV uses values or probabilities"),
    *(
        (make_pipeline(MinMaxScaler(), *steps), TWO, rf"step '{type(steps[0]).__name__.lower()}' .* cannot be folded")
        for steps in BEHIND_MAPS
    ),
    (RidgeClassifier(), np.ones(len(X)), "of one class, which it predicts for every row"),
    *(
        (make_pipeline(*steps), TWO, message)
        for steps, message in (
            (
                (KNNImputer(), SVC()),
                r"'knnimputer' \(KNNImputer\) cannot be folded into the model; compile pipe\[-1\] and give it pipe",
            ),
            ((SPLINES, SVC()), "SplineTransformer"),
            ((Binarizer(threshold=-1.0), SplineTransformer(), SVC()), "one of its columns has only one value"),
            ((FunctionTransformer(np.sqrt), SVC()), "FunctionTransformer.*it calls 'sqrt'"),
            ((FunctionTransformer(np.log1p, kw_args={"dtype": np.float32}), SVC()), "it calls 'log1p' with 'dtype'"),
            ((make_pipeline(StandardScaler(), SPLINES), SVC()), r"step 'pipeline__splinetransformer'"),
            ((make_column_transformer((SPLINES, [0, 1])), SVC()), r"step 'splinetransformer'"),
            (
                (StandardScaler(), GaussianNB()),
                "step 'gaussiannb' of the pipeline: cannot compile a sklearn.naive_bayes.GaussianNB: it is no model",
            ),
            (
                (StandardScaler(), SVC(kernel=linear_kernel)),
                "'svc' of the pipeline: the kernel of this SVC is the call",
            ),
            ((Nystroem(kernel="sigmoid", n_components=9), Ridge()), "kernel of this Nystroem is 'sigmoid'"),
            ((Nystroem(n_components=9), StandardScaler(), Ridge()), r"step 'nystroem' \(Nystroem\) cannot be folded"),
        )
    ),
    *(
        (GaussianProcessRegressor(kernel, optimizer=None), VALUE, message)
        for kernel, message in (
            (RBF(1.0) * RBF(2.0), "several RBF parts"),
            (DotProduct() + RBF(), "supported are sums and products"),
            (WhiteKernel() + ConstantKernel(), "no RBF"),
        )
    ),
    (SVC(break_ties=True, decision_function_shape="ovo"), THREE, "break_ties must be False"),  # as in scikit-learn
    (TransformedTargetRegressor(SVR(), func=np.cbrt, inverse_func=np.sinh), VALUE, r"target transformer .* not affine"),
    (
        make_pipeline(StandardScaler(), make_pipeline(CUBES, SVC())),
        TWO,
        "; compile the steps after it alone, and apply this one and all be",
    ),
    (OneVsOneClassifier(CalibratedClassifierCV(SVC(), ensemble=False)), THREE, "labels by probability"),
    (OneVsOneClassifier(SVC()), TWO, r"has 2 classes; compile estimators_\[0\]"),
    (
        FixedThresholdClassifier(OneVsRestClassifier(SVC(probability=True))),
        TWO,
        "by predict_proba of a one against the",
    ),
    (StackingRegressor([("a", SVR())], final_estimator=SVR(), cv=2), VALUE, "whose final_estimator_ is a SVR"),
    (AdaBoostClassifier(SVC(), n_estimators=2), TWO, "compile each of estimators_ and count their votes, weighted by"),
    (VotingRegressor([("a", make_pipeline(StandardScaler(copy=False), Ridge())), ("b", Ridge())]), VALUE, "overwrites"),
    (SVC(kernel="poly", degree=7), TWO, "'poly' of degree 7; only 'rbf'"),
    (SVC(kernel=lambda a, b: a @ b.T), TWO, "callable '<lambda>'"),
    (
        GaussianNB(),
        TWO,
        r"cannot compile a sklearn.naive_bayes.GaussianNB: it is no model .*; `approxsvm sources` lists them$",
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("source", "y", "message"), REFUSED)
def test_refusals_name_what_they_refuse(source, y, message):
    fitted = clone(source).fit(X.copy(), y)
    with pytest.raises(UnsupportedModelError, match=message):
        approxsvm.compile(fitted)


def test_several_models_are_no_model():
    calibrated = CalibratedClassifierCV(SVC(), cv=3).fit(X, THREE)
    targets = make_pipeline(Nystroem(n_components=5), LinearRegression()).fit(X, TARGETS["values"])
    for source, n in (calibrated, 3), (targets, 2):
        with pytest.raises(UnsupportedModelError, match=f"a mean of {n} models"):
            approxsvm.read_model(source)
    with pytest.raises(ModelFormatError, match="has no numbers to combine"):
        Ensemble((read_any(SVC().fit(X, TWO)),))


def test_precomputed_kernels_are_refused():
    with pytest.raises(UnsupportedModelError, match="'precomputed'"):
        approxsvm.compile(SVC(kernel="precomputed").fit(X @ X.T, TWO))


@pytest.mark.parametrize(
    "source",
    [
        make_pipeline(StandardScaler(), SVC()),
        *(CalibratedClassifierCV(SVC()), KernelRidge(kernel="rbf"), GaussianProcessRegressor()),
        *(TransformedTargetRegressor(SVR()), GridSearchCV(SVC(), {}), LinearSVC(), SVC()),
    ],
)
def test_unfitted_sources_are_refused(source):
    with pytest.raises(NotFittedError, match="not fitted"):
        read_any(source)


@pytest.mark.parametrize(
    "steps",
    [
        [CUBES, SVC()],
        [make_column_transformer((make_pipeline(StandardScaler(), CUBES), [0, 2]), remainder="passthrough"), SVC()],
        [StandardScaler(), make_pipeline(StandardScaler(), CUBES), MinMaxScaler(), SVC()],
        [Nystroem(n_components=9), StandardScaler(), LogisticRegression()],
    ],
)
def test_the_line_that_a_refused_step_names_works(steps):
    pipe = make_pipeline(*steps).fit(X, TWO)
    with pytest.raises(UnsupportedModelError, match="cannot be folded into the model") as caught:
        approxsvm.compile(pipe)
    behind, before = str(caught.value).rpartition("; compile ")[2].split(" and give it ")
    fast = approxsvm.compile(eval(behind, {"pipe": pipe}))
    np.testing.assert_array_equal(fast.predict(eval(before, {"pipe": pipe, "X": X})), pipe.predict(X))


# Information stored about sources


def test_read_model_says_which_kernel():
    model = approxsvm.read_model(SVC(kernel="linear").fit(X, TWO))
    assert (model.degree, model.gamma, model.coef0, model.source) == (1, 1.0, 0.0, "sklearn SVC")
    model = approxsvm.read_model(SVC(kernel="poly", degree=4, gamma=0.5, coef0=-1).fit(X, TWO))
    assert (model.degree, model.gamma, model.coef0) == (4, 0.5, -1.0)
    source = LinearSVC().fit(X, TWO)
    model = approxsvm.read_model(source)
    assert (model.degree, model.n_sv, model.dual_coef.tolist()) == (1, 1, [[1.0]])
    np.testing.assert_array_equal(model.support_vectors, source.coef_)


@pytest.mark.usefixtures("unmeasured")
def test_calibrated_classifiers_have_no_decision_function():
    """Bounds on inner values remain, and so does the comparison of these values with the source's."""
    fitted = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, THREE)
    fast = approxsvm.compile(fitted, X, n_centers=1)
    alone = approxsvm.Predictor(fast.artifact)
    with pytest.raises(InputError, match="without a decision function: use the probabilities"):
        alone.decision_function(X)
    assert (alone.error_bound(X) == fast.error_bound(X)).all()
    assert fast.report(X, THREE, against=fitted).evidence.values is not None


def test_samplers_of_imbalanced_learn_do_nothing_when_predicting():
    imblearn = pytest.importorskip("imblearn", reason="imbalanced-learn is not installed")
    sampler, make = imblearn.over_sampling.RandomOverSampler(random_state=0), imblearn.pipeline.make_pipeline
    others = [clone(sampler) for _ in range(2)]
    for source in (
        make(sampler, StandardScaler(), others[0], Nystroem(n_components=20, random_state=0), others[1], LinearSVC()),
        make_pipeline(StandardScaler(), make(MinMaxScaler(), sampler, SVC())),
        CalibratedClassifierCV(make(StandardScaler(), sampler, SVC()), ensemble=False),
    ):
        assert (approxsvm.compile(source.fit(X, THREE)).predict(X) == source.predict(X)).all()
    with pytest.raises(
        UnsupportedModelError, match=r"step 'randomoversampler' of the pipeline: .* it does not predict"
    ):
        read_any(make(StandardScaler(), sampler).fit(X, TWO))


class Resampling(StandardScaler):
    """A step that transforms in scikit-learn pipelines, although it can also resample."""

    def fit_resample(self, X, y):
        raise NotImplementedError


def test_steps_of_other_pipelines_that_can_resample_still_transform():
    source = make_pipeline(Resampling(), SVC()).fit(X, TWO)
    assert (approxsvm.compile(source).decision_function(X) - source.decision_function(X) < 1e-6).all()


# Files from LIBSVM and svm-scale


def saved_by_libsvm(tmp_path, options, X, y):
    model = svm_train(y.tolist(), X.tolist(), f"{options} -q")
    svm_save_model(str(tmp_path / "file.model"), model)
    return model, tmp_path / "file.model"


@pytest.mark.parametrize("svm_type", [3, 4])
def test_noise_of_regressions_is_read(tmp_path, svm_type):
    original, path = saved_by_libsvm(tmp_path, f"-s {svm_type} -g 0.1 -b 1", X, VALUE)
    noise = read_any(path).outputs.probability
    assert isinstance(noise, outputs.LaplaceNoise)
    assert noise.sigma == pytest.approx(original.get_svr_probability(), rel=1e-12)


def test_probabilities_need_both_lists_as_libsvm_demands(tmp_path):
    head = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\n"
    tail = "SV\n1 1:1 2:0.5\n-1 1:-1\n"
    path = tmp_path / "file.model"
    path.write_text(head + "probA -2\nnr_sv 1 1\n" + tail)
    assert read_any(path).outputs.probability is None
    path.write_text(head + "nr_sv 1 1\nprobA -2\nprobB 0.5\n" + tail)  # ThunderSVM's order
    pair = read_any(path).outputs.probability
    assert (pair.prob_a.tolist(), pair.prob_b.tolist()) == ([-2.0], [0.5])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("kernel_type polynomial\ndegree 7\ngamma 1\ncoef0 0", "polynomial of degree 7, only .* degree 1 to 6 can"),
        ("kernel_type precomputed", "precomputed .it holds row numbers"),
    ],
)
def test_other_kernels_of_files_are_named(tmp_path, kernel, message):
    path = tmp_path / "file.model"
    path.write_text(f"svm_type epsilon_svr\n{kernel}\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n1 0:1 1:1\n")
    with pytest.raises(UnsupportedModelError, match=message):
        read_any(path)


def write_libsvm(path, X, y):
    path.write_text(
        "".join(
            f"{label:.17g} " + " ".join(f"{j}:{v:.17g}" for j, v in enumerate(row, 1) if v) + "\n"
            for row, label in zip(X, y, strict=True)
        )
    )


@pytest.mark.skipif(shutil.which("svm-scale") is None, reason="svm-scale is not installed")
@pytest.mark.parametrize("options", [[], ["-l", "0"], ["-l", "0.25", "-u", "0.75", "-y", "-1", "1"]])
def test_range_files_scale_as_svm_scale_does(tmp_path, options):
    rng = np.random.default_rng(0)
    train = np.round(rng.normal(size=(60, 5)) * [1, 100, 1e-3, 1, 1], 6)
    train[rng.uniform(size=train.shape) < 0.2] = 0.0
    train[:, 3] = 4.0  # constant, so it is not in the file and is scaled to 0
    y = np.round(100 + 20 * np.sin(train[:, 0]) + train[:, 1], 3)
    new = np.round(rng.normal(size=(40, 6)) * [2, 300, 1e-3, 5, 1, 1], 6)  # outside the range; an unseen sixth feature
    write_libsvm(tmp_path / "train", train, y)
    write_libsvm(tmp_path / "new", new, np.zeros(40))
    run = {"capture_output": True, "text": True, "check": True, "cwd": tmp_path}
    subprocess.run(["svm-scale", *options, "-s", "range", "train"], **run)
    (tmp_path / "scaled").write_text(subprocess.run(["svm-scale", "-r", "range", "new"], **run).stdout)
    scaled = approxsvm.read_libsvm_data(tmp_path / "scaled", n_features=6)[0].toarray()
    np.testing.assert_allclose(
        read_range_file(tmp_path / "range").input_map(6).apply(new), scaled, rtol=2e-5, atol=1e-9
    )


@pytest.mark.parametrize("scaled_target", [False, True])
def test_range_files_may_have_more_columns_than_the_model(tmp_path, scaled_target):
    """A model with fewer columns is extended; a restored target is in raw units."""
    (tmp_path / "range").write_text("y\n-1 1\n50 80\n" * scaled_target + "x\n-1 1\n" + "1 0 4\n3 -2 2\n5 1 2\n")
    plain = KernelModel("regression", np.eye(3), [1, 2, 3], intercept=0.5, gamma=0.3, first_index=1)
    model = with_range_file(plain, tmp_path / "range")
    assert (model.n_features, model.n_raw_features) == (5, 5)
    rows = np.random.default_rng(0).normal(size=(9, 5))
    scaled = rows * [0.5, 0.0, 0.5, 0.0, 2.0] + [-1.0, 0.0, 0.0, 0.0, -3.0]
    expected = definition_of(replace(plain, support_vectors=np.eye(3, 5))).values(scaled)
    np.testing.assert_allclose(values_of(model, rows), expected, rtol=1e-12)
    if scaled_target:
        restored = with_range_file(plain, tmp_path / "range", restore_target=True)
        np.testing.assert_allclose(values_of(restored, rows), 50 + (expected + 1) / 2 * 30, rtol=1e-12)
    else:
        with pytest.raises(UnsupportedModelError, match="no target to restore"):
            with_range_file(plain, tmp_path / "range", restore_target=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected x"),
        ("1 2 3\n", "line 1: expected x"),
        ("x\n-1\n", "line 2: expected 2 finite numbers"),
        ("x\n1 -1\n", "line 2: the upper limit -1.0 is not above"),
        ("x\n-1 1\n1 0\n", "line 3: expected 3 finite numbers"),
        ("x\n-1 1\n1 0 nan\n", "line 3: expected 3 finite numbers"),
        ("x\n-1 1\n1 0 1\n1 0 1\n", "line 4: 1 is not a new feature index"),
        ("x\n-1 1\n1.5 0 1\n", "line 3: 1.5 is not a new feature index"),
        ("x\n-1 1\n1 2 1\n", "line 3: the least value 2.0 is above"),
        ("y\n0 1\n", "line 3: expected 2 finite numbers"),
        ("y\n0 1\n5 5\nx\n0 1\n", "line 3: the limits of y do not ascend"),
    ],
)
def test_broken_range_files_are_refused_with_name_and_line(tmp_path, text, message):
    path = tmp_path / "range"
    path.write_text(text)
    with pytest.raises(DataFormatError, match=f"range, {message}"):
        read_range_file(path)


def test_range_files_of_any_tokens_are_maps_or_refused(tmp_path):
    lines = "y\n-1 1\n-2 7\nx\n-1 1\n1 0 3\n2 -1 5\n7 1e-3 2e10\n"
    odd = [
        "",
        "-1",
        "0",
        "1e999",
        "nan",
        "1_0",
        "1e308",
        "-1e308",
        "1e-320",
        "1048577",
        "2147483648",
        "1e300",
        "x",
        "\0",
    ]
    rng, n_maps = np.random.default_rng(0), 0
    for _ in range(150):
        tokens = lines.replace("\n", " \n ").split(" ")
        for _ in range(rng.integers(1, 4)):
            tokens[rng.integers(len(tokens))] = rng.choice(odd)
        (tmp_path / "range").write_text(" ".join(tokens))
        try:
            mapped = read_range_file(tmp_path / "range").input_map(8).apply(np.ones((1, 8)))
        except (DataFormatError, InputError, ModelFormatError):
            continue
        assert mapped.shape == (1, 8)
        n_maps += 1
    assert n_maps


# Other libraries, read by attribute


class FakeDeviceArray:
    """A stand-in for a GPU library's array, which is converted to NumPy on request."""

    def __init__(self, values):
        self.values = values

    def get(self):
        return self.values


@pytest.fixture
def fake_class(monkeypatch):
    """Make stand-ins that are recognized as a module's classes; cuML and ThunderSVM cannot be installed here."""

    def make(module, name, **attributes):
        stand_in = type(name, (), attributes | {"__module__": module})
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{name: stand_in}))
        return stand_in()

    return make


def test_cuml_classifiers_with_device_arrays_and_probabilities(fake_class):
    svc = SVC(gamma=0.05).fit(X, TWO)
    held = {name: FakeDeviceArray(getattr(svc, name)) for name in ("support_vectors_", "dual_coef_", "intercept_")}
    held |= {"classes_": FakeDeviceArray(svc.classes_), "_gamma": svc._gamma, "kernel": "rbf", "probability": True}
    held |= {"_probA": np.array([-2.0]), "_probB": np.array([0.1])}
    model = read_any(fake_class("cuml.svm.svc", "SVC", **held))
    values = values_of(model, X)
    np.testing.assert_allclose(values[:, 0], svc.decision_function(X), rtol=1e-9, atol=1e-9)
    shares = oracle.answers(model, X)["predict_proba"].mid.astype(float)
    np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-2.0 * values[:, 0] + 0.1)), rtol=1e-12)
    assert model.source == "cuml SVC"
    with pytest.raises(UnsupportedModelError, match="several classes"):
        read_any(fake_class("cuml.svm.svc", "SVC", _multiclass=object()))


def test_thundersvm_estimators_through_the_file_they_write(fake_class, tmp_path):
    """The file stores six digits of gamma and rho; the estimator stores rho as intercept_."""
    _, path = saved_by_libsvm(tmp_path, "-g 0.1234567", X, TARGETS["numbered"])
    exact = read_any(path)
    lines = [
        line.split(" ")[0] + "".join(f" {float(v):g}" for v in line.split()[1:]) if line[:3] in ("rho", "gam") else line
        for line in path.read_text().splitlines()
    ]

    def save_to_file(self, name):
        with open(name, "w") as file:
            file.write("\n".join(lines) + "\n")

    held = {"support_vectors_": None, "shape_fit_": X.shape, "_gamma": 0.1234567, "save_to_file": save_to_file}
    model = read_any(fake_class("thundersvm.thundersvm", "SVC", intercept_=-exact.intercept, **held))
    assert (model.gamma, model.source) == (float(np.float32(0.1234567)), "thundersvm SVC")
    np.testing.assert_allclose(values_of(model, X), values_of(exact, X), rtol=1e-5, atol=1e-5)
    with pytest.raises(ModelFormatError, match="but the saved rho"):
        read_any(fake_class("thundersvm.thundersvm", "SVC", intercept_=exact.intercept + 1, **held))


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_intelex_by_its_base_classes():
    sklearnex = pytest.importorskip("sklearnex.svm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = sklearnex.SVC().fit(X, THREE)
        fast = approxsvm.compile(fitted)
        np.testing.assert_array_equal(fast.predict(X), fitted.predict(X))
    assert not hasattr(fast, "predict_proba")


def test_reading_imports_no_library_that_the_user_has_not_loaded():
    code = (
        "import sys, numpy as np\n"
        "from approxsvm.frontends import read_any\n"
        "class SVC: pass\n"
        "try: read_any(SVC())\n"
        "except Exception as error: assert 'cannot compile' in str(error), error\n"
        "others = ('cuml', 'thundersvm', 'pandas', 'sklearn.pipeline', 'sklearn.svm')\n"
        "assert not [name for name in others if name in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


# User-defined models


def test_terms_that_cancel_keep_the_rounding_of_their_sums():
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=(2000, 1)), rng.normal(size=2000)
    order = rng.permutation(4000)
    machine = KernelModel("regression", np.r_[x, x][order], np.r_[a, -a][order], 0.0, 0.1)
    for degree in (1, 2):
        model = replace(machine, degree=degree, gamma=0.3, coef0=1.7)  # exactly 0 in real arithmetic
        fast, rows = approxsvm.compile(model, mode="approximate"), np.array([[0.0], [1.0], [-30.0]])
        values, bounds = fast.predict(rows), fast.error_bound(rows)
        assert (np.abs(values) <= bounds).all()
        assert bounds.max() < 1e-6
        assert np.abs(values).max() > 0


VECTORS = {"support_vectors": np.zeros((4, 3)), "dual_coef": np.ones(4), "intercept": 0.0, "gamma": 0.1}
CLASSES = {"task": "classification", "labels": np.array([1, -1]), "n_support": np.array([2, 2])}
POLYNOMIAL = {"gamma": -1.0, "degree": 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dual_coef": np.ones((2, 4))}, r"dual_coef has shape \(2, 4\), expected \(1, 4\)"),
        ({"intercept": np.ones(2)}, r"dual_coef has shape \(1, 4\), expected \(2, 4\)"),
        ({"gamma": -1.0}, "gamma is -1.0"),
        ({"gamma": np.inf}, "gamma is inf"),
        ({"dual_coef": "many"}, "dual_coef is not an array of numbers"),
        ({"support_vectors": np.full((4, 3), np.nan)}, "support_vectors contains NaN"),
        ({"support_vectors": np.ones(4)}, "support_vectors has 1 dimensions, expected 2"),
        ({"feature_names": ("a",)}, "1 feature names for 3 features"),
        ({"first_index": 2}, "first_index is 2"),
        ({"task": "clustering"}, "unknown task 'clustering'"),
        (CLASSES | {"intercept": np.ones(2)}, r"intercept has shape \(2,\), expected \(1,\)"),
        (CLASSES | {"n_support": np.array([1, 2])}, "3 support vectors in total, but the model has 4"),
        (CLASSES | {"n_support": np.array([4])}, "1 support vector counts for 2 classes"),
        (CLASSES | {"labels": np.array([1, 1])}, "not distinct"),
        (CLASSES | {"labels": np.empty(0)}, "cannot have 0 labels"),
        (
            {"task": "classification", "labels": [1, 2, 3], "dual_coef": np.ones((2, 4)), "intercept": np.zeros(3)},
            "0 support vector counts for 3 classes",
        ),
        *((POLYNOMIAL | {"degree": degree}, "degree is") for degree in (-1, 7, 1.5)),
        *((POLYNOMIAL | {"coef0": x}, "coef0 is") for x in (np.nan, np.inf)),
        *((POLYNOMIAL | {"gamma": x}, "gamma is") for x in (np.nan, -np.inf)),
        *((POLYNOMIAL | {"coef_error": x}, "coef_error is") for x in (np.nan, -1e-16, 1.0)),
    ],
)
def test_models_are_validated_when_built(changes, message):
    with pytest.raises(ModelFormatError, match=message):
        KernelModel(**({"task": "regression"} | VECTORS | changes))
