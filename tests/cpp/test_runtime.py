"""The library declared in approxsvm.h: answers equal to Python's, errors, exported names, and programs that use it."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sysconfig
from ctypes import byref, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, REPOSITORY
from native_build import kernels_of_the_wheel
from runtime_library import (
    LIB,
    LIBRARY,
    LIBRARY_FOLDER,
    STRUCTS,
    Error,
    Label,
    Request,
    Runtime,
    RuntimeLibraryError,
    built,
)
from scipy.sparse import csr_array
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from test_cpp_programs import ANSWERED, DOCUMENTED, sample

import approxsvm
from approxsvm.runtime.evaluator import VALUES, read_artifact

PATH = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]  # cmake and ninja from the test extra
HEADER = REPOSITORY / "cpp" / "runtime" / "approxsvm.h"
IRIS = GOLDEN / "iris_classes.asvm"

# Names that programs built today will need later. If a name disappears or a struct changes, APPROXSVM_ABI_VERSION must
# change; add new names here.
_SYMBOLS = """
abi_version category_code category_text close evaluate_csr_f32 evaluate_csr_f32_i64 evaluate_csr_f64
evaluate_csr_f64_i64 evaluate_f32 evaluate_f64 feature_name label_at label_text mode n_categories n_decisions
n_features n_labels n_probabilities n_targets open_bytes open_file predict_f32 predict_f64 row_of_record status_text
target task version
"""
SYMBOLS = _SYMBOLS.split()
# For each line, the first code, and the names of it and the following codes.
_CODES = {
    0: "OK INVALID_ARGUMENT OUT_OF_MEMORY UNREADABLE_FILE BAD_TARGET INTERNAL",
    10: "TRUNCATED BAD_MAGIC UNSUPPORTED_VERSION SIZE_MISMATCH CHECKSUM_MISMATCH BAD_HEADER BAD_SECTION "
    "BAD_COEFFICIENT BAD_LABELS BAD_SUPPORT_VECTORS CHECK_ROW_MISMATCH",
    30: "NOT_FINITE UNSORTED_INDICES MAP_OVERFLOW BEYOND_FLOAT64 BEYOND_TOLERANCE UNKNOWN_FEATURE OUTSIDE_DOMAIN",
    40: "BUFFER_TOO_SMALL WRONG_ROW_SIZE BAD_ROW_STARTS NO_LABELS NO_VALUES NO_PROBABILITIES NO_EXACT_VALUES "
    "WRONG_FIELD",
}
CODES = {name: first + k for first, names in _CODES.items() for k, name in enumerate(names.split())}


def rows_for(artifact: Any, n: int = 53) -> Any:
    rng = np.random.default_rng(5)
    rows = rng.random((n, artifact.n_raw_features))
    rows[rng.random(rows.shape) < 0.3] = 0.0
    return rows


# --- answers


def test_predict_refuses_too_small_a_buffer() -> None:
    model, rows, labels = Runtime(IRIS), np.ones((3, 4)), np.empty(2, np.uint32)
    places = labels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32))
    numbers = rows.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    assert LIB.approxsvm_predict_f64(model.handle, numbers, 12, places, 2, None) == CODES["BUFFER_TOO_SMALL"]


def test_several_labels_of_a_row_have_no_values() -> None:
    X, y = sample(3)
    fast = approxsvm.compile(
        make_pipeline(StandardScaler(), MultiOutputClassifier(SVC())).fit(X, np.column_stack([y, y > 0]))
    )
    failure(lambda: Runtime(fast.artifact.data).evaluate(X, "values"), "NO_VALUES", "no decision values")


# --- what is refused


def failure(act: Any, code: str, message: str) -> RuntimeLibraryError:
    with pytest.raises(RuntimeLibraryError, match=message) as caught:
        act()
    assert caught.value.code == CODES[code], caught.value
    return caught.value


def test_files_and_bytes_that_are_no_artifact(tmp_path: Path) -> None:
    failure(lambda: Runtime(tmp_path / "none.asvm"), "UNREADABLE_FILE", r"none\.asvm: No such file or directory")
    failure(lambda: Runtime(tmp_path), "UNREADABLE_FILE", "Is a directory")
    failure(
        lambda: Runtime(GOLDEN / "breast_cancer.model"),
        "BAD_MAGIC",
        r"breast_cancer\.model: not an approxsvm artifact: this is a LIBSVM model; approxsvm convert-model compiles it",
    )
    failure(lambda: Runtime(b""), "BAD_MAGIC", "^the file has 0 bytes, expected at least 192")
    whole = IRIS.read_bytes()
    for size in range(0, len(whole), 97):
        with pytest.raises(RuntimeLibraryError) as caught:
            Runtime(whole[:size])
        assert caught.value.code in (CODES["TRUNCATED"], CODES["SIZE_MISMATCH"], CODES["BAD_MAGIC"])
    failure(lambda: Runtime(whole[:-1] + bytes([whole[-1] ^ 1])), "CHECKSUM_MISMATCH", "checksum")


def test_long_paths_are_cut(tmp_path: Path) -> None:
    said = failure(lambda: Runtime(tmp_path / ("x" * 250)), "UNREADABLE_FILE", "xxx: ")
    assert 0 < len(str(said)) < 240


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("number", "word"), [(np.nan, "NaN"), (-np.inf, "infinite")])
def test_rows_that_are_not_finite(kind: Any, sparse: bool, number: float, word: str) -> None:
    model = Runtime(IRIS)
    rows = rows_for(read_artifact(IRIS), 300).astype(kind) + kind(0.5)
    rows[201, 2] = number
    given = csr_array(rows) if sparse else rows
    said = failure(lambda: model.evaluate(given, "labels", n_threads=2), "NOT_FINITE", f"row 201, column 2 is {word}")
    assert said.row == 201


def test_rows_at_fault() -> None:
    model = Runtime(GOLDEN / "breast_cancer.asvm")
    rows = csr_array(rows_for(read_artifact(GOLDEN / "breast_cancer.asvm"), 9))
    start = rows.indptr[4]
    rows.indices[[start, start + 1]] = rows.indices[[start + 1, start]]
    assert failure(lambda: model.evaluate(rows, "labels"), "UNSORTED_INDICES", "^row 4: ").row == 4
    rows.indptr[3] = rows.indptr[4] + 1
    failure(lambda: model.evaluate(rows, "labels"), "BAD_ROW_STARTS", "do not ascend")

    X = np.random.default_rng(0).random((40, 3)) + 1.0
    wide = approxsvm.compile(SVR(kernel="linear").fit(X, 1e3 * X.sum(axis=1)))
    said = failure(
        lambda: Runtime(wide.artifact.data).evaluate(np.full((3, 3), 1e308), "values"), "BEYOND_FLOAT64", "^row 0: "
    )
    assert said.row == 0

    logarithms = GOLDEN / "iris_logarithms.asvm"
    rows = rows_for(read_artifact(logarithms), 300)
    rows[201, 2] = -1.25
    for given in (rows, csr_array(rows)):
        said = failure(
            lambda given=given: Runtime(logarithms).evaluate(given, "labels", n_threads=2),
            "OUTSIDE_DOMAIN",
            "^row 201: log needs a value above -1, got -1.25$",
        )
        assert (said.row, said.found, said.expected) == (201, -1.25, -1.0)


def test_answers_that_a_model_does_not_have() -> None:
    X = np.random.default_rng(0).random((40, 3))
    regression = Runtime(approxsvm.compile(SVR().fit(X, X[:, 0]), mode="approximate").artifact.data)
    failure(lambda: regression.evaluate(X, "labels"), "NO_LABELS", "no labels")
    failure(lambda: regression.evaluate(X, "values", values_kind=2), "NO_EXACT_VALUES", "no support vectors")
    failure(lambda: regression.evaluate(X, "probabilities"), "NO_PROBABILITIES", "without probabilities")
    failure(lambda: regression.evaluate(X[:, :2], "values"), "WRONG_ROW_SIZE", "80 numbers are not whole rows of 3")
    failure(lambda: regression.evaluate(X, "values", values_kind=3), "INVALID_ARGUMENT", "request")
    failure(lambda: regression.evaluate(X, "values", n_threads=-1), "INVALID_ARGUMENT", "request")


def test_null_pointers_and_sizes() -> None:
    model, error, invalid = Runtime(IRIS), Error(), CODES["INVALID_ARGUMENT"]
    request = Request(ctypes.sizeof(Request))
    row = (ctypes.c_double * 4)()
    integers, wide = (ctypes.c_int32 * 2)(), (ctypes.c_int64 * 2)()
    handle = c_void_p(1)
    assert LIB.approxsvm_open_file(None, byref(handle), byref(error)) == invalid
    assert not handle
    assert LIB.approxsvm_open_file(b"x", None, byref(error)) == invalid
    assert LIB.approxsvm_open_bytes(None, 5, byref(handle), byref(error)) == invalid
    assert LIB.approxsvm_open_bytes(row, 2**64 - 1, byref(handle), byref(error)) == CODES["OUT_OF_MEMORY"]
    assert LIB.approxsvm_evaluate_f64(None, row, 4, byref(request), byref(error)) == invalid
    assert error.message == b"the model is null: open a model first"
    assert LIB.approxsvm_evaluate_f64(model.handle, None, 4, byref(request), byref(error)) == invalid
    assert LIB.approxsvm_evaluate_f64(model.handle, row, 4, None, byref(error)) == invalid
    assert error.message.startswith(b"the request")
    assert LIB.approxsvm_predict_f64(model.handle, row, 4, None, 0, None) == invalid
    for starts, columns, evaluate in (
        (integers, integers, LIB.approxsvm_evaluate_csr_f64),
        (wide, wide, LIB.approxsvm_evaluate_csr_f64_i64),
    ):
        assert evaluate(model.handle, None, columns, 1, starts, 1, byref(request), byref(error)) == invalid
        assert evaluate(model.handle, row, None, 1, starts, 1, byref(request), byref(error)) == invalid
        assert evaluate(model.handle, row, columns, 1, None, 1, byref(request), byref(error)) == invalid
        assert evaluate(model.handle, row, columns, 1, starts, 1, byref(request), byref(error)) == 0
    for size in (0, ctypes.sizeof(Request) - 1, ctypes.sizeof(Request) + 8):
        request.struct_size = size
        assert LIB.approxsvm_evaluate_f64(model.handle, row, 4, byref(request), byref(error)) == invalid
    LIB.approxsvm_close(None)


def test_a_null_model_has_nothing() -> None:
    """A program that continues after a failed open reads sizes of 0 rather than invalid memory."""
    for what in ("features", "labels", "targets", "decisions", "probabilities"):
        assert getattr(LIB, f"approxsvm_n_{what}")(None) == 0
    assert (LIB.approxsvm_task(None), LIB.approxsvm_mode(None)) == (-1, -1)
    assert LIB.approxsvm_target(None) == b""
    label, room = Label(7, 7), ctypes.create_string_buffer(b"##", 2)
    LIB.approxsvm_label_at(None, 0, byref(label))
    assert (label.kind, label.integer, label.text) == (0, 0, None)
    LIB.approxsvm_label_at(Runtime(IRIS).handle, 0, None)
    assert LIB.approxsvm_label_text(None, 0, room, 2) == 0
    assert LIB.approxsvm_category_text(None, 0, 0, room, 2) == 0
    assert room.raw == b"\0#"
    assert LIB.approxsvm_category_code(None, 0, b"a", 1) == -1.0
    assert np.isnan(LIB.approxsvm_category_code(None, 0, None, 0))
    assert LIB.approxsvm_n_categories(None, 0) == 0
    assert LIB.approxsvm_feature_name(None, 0, room, 2) == 0


def test_small_buffers_stay_untouched() -> None:
    model = Runtime(IRIS)
    rows, error = np.zeros((3, 4)), Error()
    numbers = rows.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    for name, number in Request._fields_[3::2]:
        room = np.full(64, 77, np.dtype(number._type_))
        request = Request(ctypes.sizeof(Request))
        setattr(request, name, room.ctypes.data_as(number))
        setattr(request, f"{name}_size", 2)
        code = LIB.approxsvm_evaluate_f64(model.handle, numbers, rows.size, byref(request), byref(error))
        assert code in (CODES["BUFFER_TOO_SMALL"], CODES["NO_PROBABILITIES"])
        if code == CODES["BUFFER_TOO_SMALL"]:
            assert error.message.decode().startswith(f"{name} has room for 2 numbers, but 3 rows need ")
        assert (room == 77).all()


def test_texts_are_cut_to_the_room_there_is() -> None:
    X = np.random.default_rng(0).random((40, 3))
    model = Runtime(approxsvm.compile(SVC().fit(X, np.where(X[:, 0] > 0.5, "ham \u00e9", "spam"))).artifact.data)
    room = ctypes.create_string_buffer(b"#########", 9)
    assert LIB.approxsvm_label_text(model.handle, 0, room, 4) == 6
    assert room.raw == b"ham\0#####"
    assert LIB.approxsvm_label_text(model.handle, 1, None, 0) == 4
    assert [model.label(k) for k in range(3)] == ["ham \u00e9", "spam", None]


def test_a_target_that_cannot_run() -> None:
    code = (
        f"import ctypes; lib = ctypes.CDLL({str(LIBRARY)!r}); h = ctypes.c_void_p(); e = (ctypes.c_char * 400)();"
        f"print(lib.approxsvm_open_file({str(IRIS)!r}.encode(), ctypes.byref(h), e), bytes(e[32:90]))"
    )
    environment = {**os.environ, "APPROXSVM_TARGET": "abacus"}
    ran = subprocess.run(
        [shutil.which("python3") or "python3", "-c", code], env=environment, capture_output=True, text=True
    )
    assert ran.stdout.startswith(f"{CODES['BAD_TARGET']} b'the environment variable APPROXSVM_TARGET"), ran.stderr


# --- the linked interface


def test_the_interface_stays() -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("no nm here")
    listed = subprocess.run([nm, "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2] for line in listed.splitlines() if line.split()[1] != "A"}
    assert exported == {f"approxsvm_{name}@@APPROXSVM_1" for name in SYMBOLS}
    text = HEADER.read_text()
    assert set(re.findall(r"^ *APPROXSVM_([A-Z0-9_]+) = (\d+)", text, re.MULTILINE)) >= {
        (name, str(number)) for name, number in CODES.items()
    }
    assert set(re.findall(r"\b(approxsvm_\w+)\(", text)) == {f"approxsvm_{name}" for name in SYMBOLS}
    assert LIB.approxsvm_abi_version() == 1
    assert LIB.approxsvm_version().decode() == approxsvm.__version__


def test_every_code_has_a_text() -> None:
    texts = [LIB.approxsvm_status_text(number).decode() for number in CODES.values()]
    assert len(set(texts)) == len(texts)
    assert all(texts)
    assert "unknown status" not in texts
    assert LIB.approxsvm_status_text(99).decode() == "unknown status"


def compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def test_structs_lie_as_they_did(tmp_path: Path) -> None:
    """Field offsets from a C compiler, and those in runtime_library.py, are as before."""
    said = "".join(
        f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));'
        for name, s in STRUCTS.items()
        for field, _ in s._fields_
    )
    sizes = "".join(f'printf("{name} %zu\\n", sizeof({name}));' for name in STRUCTS)
    program = f"#include <approxsvm.h>\n#include <stdio.h>\nint main(void) {{ {said} {sizes} return 0; }}\n"
    (tmp_path / "offsets.c").write_text(program)
    built(
        [compiler("cc"), "-std=c99", *STRICT, f"-I{HEADER.parent}", tmp_path / "offsets.c", "-o", tmp_path / "offsets"]
    )
    printed = subprocess.run([tmp_path / "offsets"], capture_output=True, text=True, check=True).stdout
    expected = [f"{name}.{field} {getattr(s, field).offset}" for name, s in STRUCTS.items() for field, _ in s._fields_]
    assert printed.splitlines() == expected + [f"{name} {ctypes.sizeof(s)}" for name, s in STRUCTS.items()]


# --- programs


def predicted(program: Path, artifact: Path, rows: Any) -> subprocess.CompletedProcess[str]:
    text = "\n".join(" ".join(f"{x:.17g}" for x in row) for row in rows)
    return subprocess.run([program, artifact], input=text, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("door", ["find_package", "pkg-config"])
def test_a_program_in_c(door: str, tmp_path: Path) -> None:
    source = REPOSITORY / "cpp" / "examples" / "c"
    sanitized = "-fsanitize=address,undefined -fno-sanitize-recover=all"
    if door == "find_package":
        cmake, ninja = (shutil.which(name, path=PATH) for name in ("cmake", "ninja"))
        if cmake is None or ninja is None:
            pytest.skip("cmake or ninja is not installed")
        options = [f"-Dapproxsvm_DIR={approxsvm.get_cmake_dir()}", f"-DCMAKE_C_FLAGS={sanitized} {' '.join(STRICT)}"]
        environment = {**os.environ, "PATH": PATH}
        built([cmake, "-S", source, "-B", tmp_path, "-G", "Ninja", *options], env=environment)
        built([cmake, "--build", tmp_path], env=environment)
    else:
        environment = {**os.environ, "PKG_CONFIG_PATH": approxsvm.get_pkgconfig_dir()}
        command = [compiler("pkg-config"), "--cflags", "--libs", "approxsvm-runtime"]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        flags = ["-std=c99", *STRICT, *sanitized.split()]
        built([compiler("cc"), *flags, source / "main.c", *said, "-o", tmp_path / "predict"])
    ANSWERED["targets"]().save(tmp_path / "targets.asvm")
    for path in (*sorted(GOLDEN.glob("*.asvm")), tmp_path / "targets.asvm"):
        check_program_in_c(tmp_path / "predict", path)
    for path, rows, why in (
        (GOLDEN / "breast_cancer.model", [], "this is a LIBSVM model"),
        (GOLDEN / "breast_cancer.t", [], "it begins with '"),
        (tmp_path / "none.asvm", [], "No such file"),
        (IRIS, [[1.0, 2.0]], "the input is not rows of 4 numbers"),
        (IRIS, [[1.0, 2.0, 3.0, np.inf]], "row 0, column 3 is infinite"),
    ):
        ran = predicted(tmp_path / "predict", path, rows)
        assert (ran.returncode, why in ran.stderr) == (1, True), ran.stderr


def check_program_in_c(program: Path, path: Path) -> None:
    artifact = read_artifact(path)
    predictor, rows = approxsvm.Predictor(artifact), rows_for(artifact, 5)
    ran = predicted(program, path, rows)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    if artifact.task != "regression":
        labels = [" ".join(map(str, np.ravel(row).tolist())) for row in predictor.predict(rows)]
        assert [line[: len(label)] for line, label in zip(lines, labels, strict=True)] == labels
        lines = [line[len(label) :].removeprefix("?") for line, label in zip(lines, labels, strict=True)]
    if artifact.header["n_decisions"]:
        values = np.array([[float(x) for x in line.split() if x != "+-"] for line in lines])[:, ::2]
        expected = np.reshape(predictor._evaluator.evaluate(rows, VALUES), values.shape)
        np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-7)


def test_the_program_of_the_documentation(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"^```c\n(.*?)^```", DOCUMENTED.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "snippet.c").write_text(snippet)
    flags = ["-std=c99", *STRICT, "-fsanitize=address,undefined", f"-I{approxsvm.get_include()}", f"-L{LIBRARY_FOLDER}"]
    link = ["-lapproxsvm", f"-Wl,-rpath,{LIBRARY_FOLDER}"]
    built([compiler("cc"), *flags, tmp_path / "snippet.c", *link, "-o", tmp_path / "program"])
    targets = tmp_path / "targets.asvm"
    ANSWERED["targets"]().save(targets)
    for path in (IRIS, GOLDEN / "breast_cancer.asvm", targets):
        fast = approxsvm.Predictor(path)
        ran = subprocess.run([tmp_path / "program", path], capture_output=True, text=True)
        rows = 0.25 * (1 + np.arange(2 * fast.artifact.n_raw_features) % 7).reshape(2, -1)
        lines = [" ".join(map(str, np.ravel(row).tolist())) for row in fast.predict(rows)]
        assert (ran.returncode, ran.stdout.splitlines()) == (0, lines), ran.stderr
    wrong = subprocess.run([tmp_path / "program", GOLDEN / "diabetes_svr.asvm"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (CODES["NO_LABELS"], "")


@pytest.mark.slow
def test_a_program_in_rust(tmp_path: Path) -> None:
    rustc = shutil.which("rustc", path=PATH + os.pathsep + str(Path.home() / ".cargo" / "bin"))
    if rustc is None:
        pytest.skip("no rustc here")
    source = REPOSITORY / "cpp" / "examples" / "rust" / "main.rs"
    link = ["-L", f"native={LIBRARY_FOLDER}", "-l", "dylib=approxsvm", "-C", f"link-arg=-Wl,-rpath,{LIBRARY_FOLDER}"]
    built([rustc, "-D", "warnings", source, "-o", tmp_path / "predict", *link])
    rows = rows_for(read_artifact(IRIS), 9)
    expected = approxsvm.Predictor(IRIS).predict(rows)
    for row, label in zip(rows, expected.tolist(), strict=True):
        words = [f"{x:.17g}" for x in row]
        ran = subprocess.run([tmp_path / "predict", IRIS, *words], capture_output=True, text=True)
        assert (ran.stdout, ran.stderr) == (f"{label}\n", "")
    for words, why in ((["1", "2"], "2 numbers are not whole rows of 4"), (["1", "x"], "x is not a number")):
        ran = subprocess.run([tmp_path / "predict", IRIS, *words], capture_output=True, text=True)
        assert (ran.returncode, why in ran.stderr) == (1, True)


@pytest.mark.slow
def test_a_project_inside_another(tmp_path: Path) -> None:
    """add_subdirectory provides the headers, and the static library with its kernels."""
    cmake, ninja = (shutil.which(name, path=PATH) for name in ("cmake", "ninja"))
    if cmake is None or ninja is None:
        pytest.skip("cmake or ninja is not installed")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(whole LANGUAGES C CXX)\n"
        f"add_subdirectory({REPOSITORY} approxsvm)\n"
        f"add_executable(predict {REPOSITORY}/cpp/examples/c/main.c)\n"
        "target_link_libraries(predict PRIVATE approxsvm::runtime)\n"
        'file(WRITE ${CMAKE_BINARY_DIR}/headers.cpp "#include <approxsvm/status.hpp>\\n")\n'
        "add_library(headers OBJECT ${CMAKE_BINARY_DIR}/headers.cpp)\n"
        "target_link_libraries(headers PRIVATE approxsvm::approxsvm)\n"
    )
    environment = {**os.environ, "PATH": PATH}
    kernels = kernels_of_the_wheel() or ["-DAPPROXSVM_TARGETS=baseline"]
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_UNITY_BUILD=ON", *kernels]
    built([cmake, "-S", tmp_path, "-B", tmp_path / "out", "-G", "Ninja", *options], env=environment)
    built([cmake, "--build", tmp_path / "out"], env=environment)
    assert not list(tmp_path.rglob("*.so"))
    check_program_in_c(tmp_path / "out" / "predict", IRIS)


@pytest.mark.slow
def test_the_lines_of_the_documentation_for_meson(tmp_path: Path) -> None:
    meson = compiler("meson")
    compiler("pkg-config")
    (lines,) = re.findall(r"^```meson\n(.*?)^```", DOCUMENTED.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "meson.build").write_text(lines)
    (tmp_path / "main.cpp").write_text(
        "#include <approxsvm/status.hpp>\nint main() { return *approxsvm::message(approxsvm::Status::ok) != 'n'; }\n"
    )
    environment = {**os.environ, "PATH": PATH, "PKG_CONFIG_PATH": approxsvm.get_pkgconfig_dir()}
    built([meson, "setup", tmp_path / "out", tmp_path], env=environment)
    built([meson, "compile", "-C", tmp_path / "out"], env=environment)
    built([tmp_path / "out" / "predict"])


@pytest.mark.slow
def test_the_lines_of_the_documentation_for_fetchcontent(tmp_path: Path) -> None:
    """With the headers alone, only the program is compiled, without kernels."""
    cmake, ninja = (shutil.which(name, path=PATH) for name in ("cmake", "ninja"))
    if cmake is None or ninja is None:
        pytest.skip("cmake or ninja is not installed")
    (lines,) = re.findall(r"^```cmake\n(.*?)^```", DOCUMENTED.read_text(), re.MULTILINE | re.DOTALL)
    head = "cmake_minimum_required(VERSION 3.18)\nproject(whole LANGUAGES CXX)\nadd_executable(program main.cpp)\n"
    (tmp_path / "CMakeLists.txt").write_text(head + lines)
    (tmp_path / "main.cpp").write_text("#include <approxsvm/status.hpp>\nint main() {}\n")
    environment = {**os.environ, "PATH": PATH}
    command = [cmake, "-S", tmp_path, "-B", tmp_path / "out", "-G", "Ninja", f"-DAPPROXSVM_SOURCES={REPOSITORY}"]
    built(command, env=environment)
    built([cmake, "--build", tmp_path / "out"], env=environment)
    assert (tmp_path / "out" / "program").exists()
    assert [path.name for path in (tmp_path / "out").rglob("*.o")] == ["main.cpp.o"]


@pytest.mark.slow
def test_headers_are_strict() -> None:
    """They compile as a later standard, too; test_embedding.py checks them as C++17."""
    strict = [*STRICT[:-2], "-Werror", "-fno-exceptions", "-fno-rtti", f"-I{approxsvm.get_include()}"]
    source = REPOSITORY / "cpp" / "examples" / "embed" / "main.cpp"
    built([compiler("c++"), "-std=c++23", *strict, "-fsyntax-only", source])
    built([compiler("c++"), "-std=c++23", *strict, "-fsyntax-only", "-x", "c++", HEADER])
