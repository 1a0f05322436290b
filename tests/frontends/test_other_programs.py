"""Models from other programs, compared with these programs: OpenCV, onnxruntime, skops and LIBSVM's Python package."""

from __future__ import annotations

import gzip
import itertools
import pickle
import warnings
import zipfile

import numpy as np
import pytest
from broken_files import changed_everywhere
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any
from approxsvm.frontends.other_programs.markup import parse_xml
from approxsvm.frontends.other_programs.opencv_storage import gunzipped, parse_storage
from approxsvm.frontends.pairs import PairTerms, pair_block

pytestmark = pytest.mark.filterwarnings("ignore:Attribute `prob", "ignore:The `probability` parameter")

RNG = np.random.default_rng(0)
X, Z = (RNG.normal(size=(n, 4)).astype(np.float32) for n in (150, 1500))
FOUR = np.argmax(X, axis=1) * 2 - 3
TWO = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, -4, 2)
TARGET = np.sin(X[:, 0])


# --- OpenCV


def trained(kind, y):
    cv2 = pytest.importorskip("cv2")
    svm = cv2.ml.SVM_create()
    svm.setType(getattr(cv2.ml, f"SVM_{kind}"))
    svm.setKernel(cv2.ml.SVM_RBF)
    svm.setGamma(0.3)
    svm.setP(0.1)
    svm.train(X, cv2.ml.ROW_SAMPLE, y.astype(np.int32 if kind.endswith("SVC") else np.float32))
    return svm


def saved(svm, tmp_path, suffix):
    path = tmp_path / f"model.{suffix}"
    svm.save(str(path))
    return path


OPENCV = """%YAML:1.0
---
opencv_ml_svm:
   svmType: C_SVC
   kernel: { type:RBF, gamma:0.5 }
   var_count: 2
   class_count: 2
   class_labels: !!opencv-matrix
      rows: 2
      dt: i
      data: [ 3, 8 ]
   sv_total: 2
   support_vectors:
      - [ 0., 1. ]
      - [ 1., 0. ]
   decision_functions:
      -
         sv_count: 2
         rho: 0.25
         alpha: [ 1., -1. ]
         index: [ 1, 0 ]
"""


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("sv_total: 2", "sv_total: 3", r"sv_total is 3, but there are 2 support vectors"),
        ("[ 0., 1. ]", "[ 0., 1., 2. ]", r"support_vectors\[0\]: 3 numbers, expected 2"),
        ("[ 0., 1. ]", "[ 0., .Inf ]", r"support_vectors\[0\]: not a number"),
        ("[ 0., 1. ]", "[ 0., inf ]", r"support_vectors\[0\]: holds NaN or infinity"),
        ("index: [ 1, 0 ]", "index: [ 1, 2 ]", "uses support vector 2 of 2"),
        ("index: [ 1, 0 ]", "index: [ 1, 1 ]", "uses a support vector twice"),
        ("index: [ 1, 0 ]", "index: [ 1, .5 ]", r"decision_functions\[0\].index: not whole numbers"),
        ("sv_count: 2", "sv_count: 1", r"decision_functions\[0\].index: 2 numbers, expected 1"),
        ("class_count: 2", "class_count: 3", "class_count is 3, but there are 1 decision functions"),
        ("class_count: 2", "class_count: -1", "class_count: expected a whole number of at least 0, got -1"),
        ("data: [ 3, 8 ]", "data: [ 3, 3 ]", "labels .* are not distinct"),
        ("   rho: 0.25", "   rha: 0.25", r"decision_functions\[0\]: there is no rho"),
        ("gamma:0.5", "gamma:-0.5", "gamma is -0.5"),
        ("C_SVC", "D_SVC", "svmType: 'D_SVC' is none of"),
        ("   var_count: 2", "  var_count: 2", "line 6: this line is indented more than its siblings"),
        ("   var_count: 2", "     var_count: 2", "line 6: this line is indented more than its siblings"),
        ("   var_count: 2", "   - 2", "line 6: a list item among fields"),
        ("   var_count: 2", "   svmType: 2", "line 6: the field svmType occurs twice"),
        ("   var_count: 2", "   ? 2", "line 6: expected a field"),
        ("index: [ 1, 0 ]", "index: [ 1, 0", "line 21: the file ends before ']'"),
        ("index: [ 1, 0 ]", "index: [ 1, 0 }", "line 21: '}' closes nothing"),
        ("type:RBF, ", "type, ", "line 5: expected a field, got 'type'"),
        ("support_vectors:", "vectors:", "there is no support_vectors"),
        ("type:RBF", "type:CHI2", "the kernel is CHI2"),
        ("type:RBF", "type:POLY, degree:2.5, coef0:1", "POLY of degree 2.5"),
        ("svmType: C_SVC", "layers: 3", "no model of ml::SVM"),
        ("   var_count: 2", "   var_count: 90000000", "the model has 90000000 features"),
    ],
)
def test_opencv_refuses_what_contradicts_itself(old, new, what, tmp_path):
    path = tmp_path / "model.yml"
    path.write_text(OPENCV)
    assert read_any(path).labels.tolist() == [3, 8]
    assert OPENCV.count(old) == 1
    path.write_text(OPENCV.replace(old, new))
    with pytest.raises((ModelFormatError, UnsupportedModelError), match=what) as caught:
        read_any(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("suffix", ["xml", "yml", "json"])
@pytest.mark.parametrize(("kind", "y"), [("C_SVC", FOUR), ("EPS_SVR", TARGET)])
def test_opencv_at_the_root_of_the_file(kind, y, suffix, tmp_path):
    """`svm.write(fs)` writes no model name; in YAML, nothing else in a regressor's file points to OpenCV."""
    svm = trained(kind, y)
    cv2 = pytest.importorskip("cv2")
    path = tmp_path / f"root.{suffix}"
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    svm.write(storage)
    storage.release()
    named = read_any(saved(svm, tmp_path, suffix))
    for content in (path.read_bytes(), b"\xef\xbb\xbf" + path.read_bytes()):
        path.write_bytes(content)
        model = read_any(path)
        np.testing.assert_array_equal(model.support_vectors, named.support_vectors)
        np.testing.assert_array_equal(model.dual_coef, named.dual_coef)
        assert model.source == f"opencv {kind}"
    path.write_bytes(path.read_bytes().replace(b"var_count", b"count"))
    with pytest.raises(ModelFormatError, match=rf"root\.{suffix}: there is no var_count"):
        read_any(path)


def test_storages_of_opencv_2(tmp_path):
    """Old versions used other names for the model and its fields."""
    path = tmp_path / "model.yml"
    path.write_text(OPENCV.replace("opencv_ml_svm:", "my_svm: !!opencv-ml-svm").replace("svmType", "svm_type"))
    assert read_any(path).source == "opencv C_SVC"


@pytest.mark.parametrize(
    "text",
    [
        '{"opencv_ml_svm": {"gamma": 0.5, "gamma": 7}}',
        "<opencv_storage><opencv_ml_svm><gamma>0.5</gamma><gamma>7</gamma></opencv_ml_svm></opencv_storage>",
    ],
)
def test_fields_that_are_there_twice_are_refused(text):
    with pytest.raises(ModelFormatError, match="gamma occurs twice"):
        parse_storage(text.encode(), "model")


def test_nesting_and_compression_have_limits():
    for text in (b"%YAML:1.0\n---\na: " + b"[" * 5000, b"<opencv_storage>" + b"<a>" * 5000, b"{" * 200_000):
        with pytest.raises(ModelFormatError, match=r"nested|not well-formed JSON"):
            parse_storage(text, "file")
    deep = "\n".join(" " * k + "a:" for k in range(300)).encode()
    with pytest.raises(ModelFormatError, match="nested more than 100 deep"):
        parse_storage(deep, "file")
    with pytest.raises(ModelFormatError, match="line 2: this line is indented less"):
        parse_storage(b"  a: 1\nb: 2", "file")
    with pytest.raises(ModelFormatError, match="it holds more than"):
        gunzipped(gzip.compress(bytes(10_000_000)), "file")
    with pytest.raises(ModelFormatError, match="it ends early"):
        gunzipped(gzip.compress(OPENCV.encode())[:-20], "file")


def test_xml_has_no_entities():
    laughs = b'<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c SYSTEM "file:///etc/passwd">]><a>&b;&c;</a>'
    with pytest.raises(ModelFormatError, match="line 1: a document type"):
        parse_xml(laughs, "file")


@pytest.mark.parametrize("suffix", ["xml", "yml", "json"])
def test_broken_opencv_files_are_refused(suffix, tmp_path):
    content = saved(trained("C_SVC", TWO), tmp_path, suffix).read_bytes()
    changed_everywhere(content, tmp_path / "changed")


# --- decision functions of pairs


def test_vectors_of_many_pairs_are_kept_once_for_each_class_that_needs_them():
    """OpenCV's linear machines store one vector per pair, but any other layout is valid, too."""
    for seed in range(50):
        draw = np.random.default_rng(seed)
        n_classes, n_sv = int(draw.integers(2, 6)), int(draw.integers(1, 8))
        functions = []
        for _ in itertools.combinations(range(n_classes), 2):
            support = draw.permutation(n_sv)[: draw.integers(0, n_sv + 1)]
            functions.append(PairTerms(support, draw.normal(size=len(support)), draw.normal()))
        block = pair_block(n_classes, n_sv, functions)
        vectors = draw.normal(size=(n_sv, 3))
        if not len(block.order):
            continue
        model = approxsvm.KernelModel(
            "classification",
            support_vectors=vectors[block.order],
            dual_coef=block.dual_coef,
            intercept=block.intercept,
            gamma=1.0,
            labels=np.arange(n_classes),
            n_support=block.n_support,
        )
        for k, terms in enumerate(functions):
            expected = np.zeros(n_sv)
            expected[terms.support] = terms.coef
            found = np.zeros(n_sv)
            np.add.at(found, block.order, model.coefficients(k))
            assert np.array_equal(found, expected)


# --- skops


class TheirSVC(SVC):
    """A type that skops does not know."""


def test_skops_asks_whom_to_trust(tmp_path):
    io = pytest.importorskip("skops.io")
    path, name = tmp_path / "model", f"{TheirSVC.__module__}.TheirSVC"
    io.dump(TheirSVC().fit(X, FOUR), path)
    with pytest.raises(UnsupportedModelError, match=f"skops does not trust {name}, whose code"):
        read_any(path)
    with pytest.raises(UnsupportedModelError, match=name):
        read_any(path, trust=["other.Type"])
    for trust in (True, [name]):
        assert read_any(path, trust=trust).n_raw_features == 4
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(SVC().fit(X, FOUR)))
    with pytest.raises(UnsupportedModelError, match="a pickle can run any code"):
        read_any(tmp_path / "model.pkl", trust=[name])
    fitted = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, TWO)
    io.dump(fitted, path)
    name = io.get_untrusted_types(file=path)[0]
    for trust in (False, f"{name}, {name}"):  # a single string with two names trusts neither of them
        with pytest.raises(UnsupportedModelError, match=r"does not trust .*CalibratedClassifier"):
            read_any(path, trust=trust)
    assert (approxsvm.compile(read_any(path, trust=True)).predict(Z) == fitted.predict(Z)).all()


def test_broken_skops_files_are_refused(tmp_path):
    io = pytest.importorskip("skops.io")
    path = tmp_path / "model"
    io.dump(SVC().fit(X, TWO), path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        changed_everywhere(path.read_bytes(), path, 60)


def test_an_archive_of_zeros_is_not_read(tmp_path):
    pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("schema.json", "w") as member:
        for _ in range(1100):
            member.write(bytes(1 << 20))
    with pytest.raises(UnsupportedModelError, match=r"1,153,433,600 bytes in a file of 1,\d{3},\d{3}"):
        read_any(path)


# --- ONNX


def converted(fitted, path, **options):
    skl2onnx = pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    graph = skl2onnx.to_onnx(fitted, X[:1], **options).SerializeToString()
    path.write_bytes(graph)
    return onnxruntime.InferenceSession(graph).run(None, {"X": Z})


@pytest.mark.filterwarnings("ignore:\\nThe format of the columns of the 'remainder':FutureWarning")  # scikit-learn 1.6
def test_onnx_inputs_with_a_name_each(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    pandas = pytest.importorskip("pandas")
    from skl2onnx.common.data_types import FloatTensorType

    frame = pandas.DataFrame(X[:, :3], columns=list("abc"))
    fitted = make_pipeline(ColumnTransformer([("s", StandardScaler(), ["c", "a"])], remainder="passthrough"), SVC())
    fitted.fit(frame, FOUR)
    graph = skl2onnx.convert_sklearn(fitted, initial_types=[(name, FloatTensorType([None, 1])) for name in "abc"])
    (tmp_path / "model").write_bytes(graph.SerializeToString())
    model = read_any(tmp_path / "model")
    assert model.feature_names == ("a", "b", "c")
    rows = pandas.DataFrame(Z[:, :3], columns=list("abc"))
    assert (approxsvm.compile(model).predict(rows) == fitted.predict(rows)).all()


def test_onnx_refusals(tmp_path):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "model"
    converted(make_pipeline(StandardScaler(), SVC()).fit(X, TWO), path)
    graph = onnx.load(path)
    machine = next(node for node in graph.graph.node if node.op_type == "SVMClassifier")

    def refused(what, kind, change):
        changed = onnx.ModelProto()
        changed.CopyFrom(graph)
        node = next(node for node in changed.graph.node if node.op_type == "SVMClassifier")
        change(changed.graph, node, {one.name: one for one in node.attribute})
        path.write_bytes(changed.SerializeToString())
        with pytest.raises(kind, match=what) as caught:
            read_any(path)
        assert str(caught.value).startswith(f"{path}: ")

    refused("kernel is SIGMOID", UnsupportedModelError, lambda g, n, a: setattr(a["kernel_type"], "s", b"SIGMOID"))
    refused("2 nodes SVMClassifier", UnsupportedModelError, lambda g, n, a: g.node.append(machine))
    refused("node Tanh before", UnsupportedModelError, lambda g, n, a: setattr(g.node[0], "op_type", "Tanh"))
    refused(
        "post_transform 'SOFT", UnsupportedModelError, lambda g, n, a: setattr(a["post_transform"], "s", b"SOFTMAX")
    )

    def doubled(g, n, a):
        for k in range(60):
            g.node.insert(1 + k, onnx.helper.make_node("Concat", [g.node[k].output[0]] * 2, [f"twice {k}"], axis=1))
        n.input[0] = "twice 59"

    def elsewhere(g, n, a):
        constant = onnx.helper.make_tensor("offset", onnx.TensorProto.FLOAT, [1, 4], [1.0] * 4)
        constant.data_location = onnx.TensorProto.EXTERNAL
        g.initializer.append(constant)
        g.node.insert(1, onnx.helper.make_node("Add", [g.node[0].output[0], "offset"], ["moved"]))
        n.input[0] = "moved"

    refused("node Concat makes .* columns, in a file of", ModelFormatError, doubled)
    refused("constant 'offset' is in another file", UnsupportedModelError, elsewhere)
    refused("not a multiple of 4", ModelFormatError, lambda g, n, a: a["support_vectors"].floats.pop())
    refused("coefficients, expected", ModelFormatError, lambda g, n, a: a["coefficients"].floats.pop())
    refused("vectors_per_class", ModelFormatError, lambda g, n, a: a["vectors_per_class"].ints.pop())
    refused("intercept has shape", ModelFormatError, lambda g, n, a: a["rho"].floats.append(1.0))
    refused("2 kernel_params instead of 3", ModelFormatError, lambda g, n, a: a["kernel_params"].floats.pop())
    refused("there is no input 'lost'", ModelFormatError, lambda g, n, a: n.input.__setitem__(0, "lost"))
    refused("dual_coef contains NaN", ModelFormatError, lambda g, n, a: a["coefficients"].floats.__setitem__(0, np.inf))
    path.write_bytes(graph.SerializeToString())
    changed_everywhere(path.read_bytes(), path)


# --- LIBSVM's own objects


def test_svm_model_refusals():
    svmutil = pytest.importorskip("libsvm.svmutil")
    model = svmutil.svm_train(TWO.astype(float).tolist(), X.astype(float), "-q")
    model.param.svm_type = 9
    with pytest.raises(ModelFormatError, match="svm_type 9"):
        read_any(model)
    model.param.svm_type = 0
    model.SV[3][1].index = 1
    with pytest.raises(ModelFormatError, match="support vector 3 of this svm_model has index 1 after index 1"):
        read_any(model)
    model.SV[3][1].index, model.param.kernel_type = 2, 4
    with pytest.raises(UnsupportedModelError, match="precomputed"):
        read_any(model)
