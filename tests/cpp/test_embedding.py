"""Programs that embed the library: with a list of parts, one header, a model as a header, or the C++ wrapper."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, REPOSITORY
from native_build import run as build_tool
from runtime_library import LIBRARY_FOLDER, built
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.backends.cpp import export_cpp, one_header
from approxsvm.runtime.evaluator import read_artifact

INCLUDE = REPOSITORY / "cpp" / "include"
COMPILERS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"no {name} here"))
    for name in ("g++", "clang++")
]
FASTEST = shutil.which("clang++") or "c++"  # compiles at -O0 in half of g++'s time
ARTIFACTS = sorted(GOLDEN.glob("*.asvm"))

OPENED = """
#include <approxsvm/approxsvm.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int, char** paths) {
    while (*++paths) {
        std::ifstream file(*paths, std::ios::binary);
        const std::vector<unsigned char> bytes((std::istreambuf_iterator<char>(file)), {});
        approxsvm::ModelOf<approxsvm::rbf, approxsvm::scalers> model;
        const approxsvm::Status status = model.open(bytes);
        std::cout << approxsvm::message(status) << ": " << model.list_needed(bytes).c_str() << '\\n';
    }
}
"""


def test_a_list_refuses_models_by_name(tmp_path: Path) -> None:
    (tmp_path / "opened.cpp").write_text(OPENED)
    built(["c++", "-std=c++17", "-O0", f"-I{INCLUDE}", tmp_path / "opened.cpp", "-o", tmp_path / "opened"])
    ran = subprocess.run([tmp_path / "opened", *ARTIFACTS], capture_output=True, text=True, check=True)
    n_opened = 0
    for path, line in zip(ARTIFACTS, ran.stdout.splitlines(), strict=True):
        artifact = read_artifact(path)
        opens = set(artifact.native.parts) <= {"rbf", "scalers"}
        why = "no error" if opens else "the model has a part that this program's approxsvm::ModelOf leaves out"
        assert re.fullmatch(rf"{why}.*: {artifact.model_of}", line)
        n_opened += opens
    assert 0 < n_opened < len(ARTIFACTS)


PREDICT = """
#include "tumor.hpp"
#include <cstdio>

int n_features(const tumor::Model& model);
int main() {
    tumor::Model model;
    if (model.open(tumor::artifact) != approxsvm::Status::ok) return 1;
    static unsigned char memory[1 << 20], workspace[1 << 20];
    if (model.memory_bytes() > sizeof memory || model.workspace_bytes() > sizeof workspace) return 2;
    if (model.prepare(memory) != approxsvm::Status::ok) return 3;
    static double rows[569 * 30];
    static std::uint32_t labels[569];
    if (std::fread(rows, sizeof(double), 569 * 30, stdin) != 569u * 30u || n_features(model) != 30) return 4;
    if (model.predict(rows, labels, workspace) != approxsvm::Status::ok) return 5;
    for (const std::uint32_t label : labels) std::printf("%d\\n", static_cast<int>(model.label(label).integer));
}
"""
OTHER = """
#include "tumor.hpp"

int n_features(const tumor::Model& model);
int n_features(const tumor::Model& model) {
    return static_cast<int>(model.n_features());
}
"""


@pytest.fixture(scope="module")
def tumor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a two-class model with a scaler as a header, next to the library's header."""
    folder = tmp_path_factory.mktemp("tumor")
    X, y = load_breast_cancer(return_X_y=True)
    fast = approxsvm.compile(make_pipeline(StandardScaler(), SVC(gamma=0.01)).fit(X, y), X)
    assert fast.artifact.native.parts == ["rbf", "scalers"]
    fast.save(folder / "tumor.asvm")
    (folder / "approxsvm.hpp").write_text(one_header())
    export_cpp(fast.artifact, folder / "tumor.hpp", name="tumor", include='"approxsvm.hpp"')
    (folder / "main.cpp").write_text(PREDICT)
    (folder / "other.cpp").write_text(OTHER)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_one_header_in_two_files(tumor: Path, tmp_path: Path, compiler: str) -> None:
    level = ["-Os", "-s"] if compiler == "g++" else ["-O0"]
    flags = ["-std=c++17", *level, "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    built([compiler, *flags, tumor / "main.cpp", tumor / "other.cpp", "-o", tmp_path / "program"])
    X, _ = load_breast_cancer(return_X_y=True)
    rows = np.ascontiguousarray(X, np.float64)
    ran = subprocess.run([tmp_path / "program"], input=rows.tobytes(), capture_output=True)
    assert ran.returncode == 0
    assert ran.stdout.decode().split() == [str(label) for label in approxsvm.load(tumor / "tumor.asvm").predict(X)]
    if compiler == "g++":  # benchmarks/embedding.py measures more programs and compilers
        n_bytes = (tmp_path / "program").stat().st_size - (tumor / "tumor.asvm").stat().st_size
        assert n_bytes < 168_000


@pytest.mark.slow
def test_the_one_file_of_the_documentation(tumor: Path, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "howto" / "cpp.md").read_text()
    (snippet,) = re.findall(r"^```c\+\+\n(#include \"model.hpp\".*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "main.cpp").write_text(snippet.replace("model.hpp", "tumor.hpp"))
    built([FASTEST, "-std=c++17", "-O0", f"-I{tumor}", tmp_path / "main.cpp", "-o", tmp_path / "predict"])
    ran = subprocess.run([tmp_path / "predict"], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(approxsvm.load(tumor / "tumor.asvm").predict(np.full((1, 30), 0.5))[0])]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clang++") is None, reason="no clang++ here")  # g++: test_runtime.py
def test_one_header_of_a_later_standard(tumor: Path) -> None:
    built(["clang++", "-std=c++2b", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", tumor / "main.cpp"])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")  # benchmarks/embedding.py measures more programs
def test_a_two_class_program_is_small(tumor: Path, tmp_path: Path) -> None:
    program = PREDICT.replace("tumor::Model", "approxsvm::ModelOf<approxsvm::rbf, approxsvm::scalers>")
    (tmp_path / "main.cpp").write_text(
        program + "int n_features(const approxsvm::ModelOf<approxsvm::rbf, approxsvm::scalers>&) { return 30; }\n"
    )
    built(["g++", "-std=c++17", "-Os", "-s", f"-I{tumor}", tmp_path / "main.cpp", "-o", tmp_path / "program"])
    n_bytes = (tmp_path / "program").stat().st_size - (tumor / "tumor.asvm").stat().st_size
    assert n_bytes < 122_880


USED = """
int opened(const unsigned char* bytes, std::size_t n) {
    approxsvm::Model model;
    unsigned char memory[8];
    std::uint32_t labels[4];
    double values[4];
    const approxsvm::SparseRows<float, std::int32_t> sparse{};
    model.predict(sparse, labels, memory);
    model.probabilities(approxsvm::Span<const double>(), values, memory);
    return model.open({bytes, n}) == approxsvm::Status::ok && model.replay(memory) == approxsvm::Status::ok ? 0 : 1;
}
"""
TWO_VERSIONS = (
    "error: #error \"this file includes two versions of approxsvm's headers: write all with one version of approxsvm "
    'export --hpp"'
)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two copies of the one-file header to two folders, and a third of another version."""
    folder = tmp_path_factory.mktemp("copies")
    text = one_header(INCLUDE)
    later, n_numbers = re.subn(r"(APPROXSVM_HEADERS (?:!= )?)\d+", r"\g<1>9999", text)
    assert n_numbers == 2
    for name, header in (("one", text), ("two", text), ("later", later)):
        (folder / name).mkdir()
        (folder / name / "approxsvm.hpp").write_text(header)
    return folder


def syntax(folder: Path, compiler: str, *headers: str) -> subprocess.CompletedProcess[str]:
    """Check a file that includes these headers and uses class Model."""
    source = "".join(f"#include <{header}>\n" for header in headers) + "int opened(const unsigned char*, std::size_t);"
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fno-exceptions", "-fno-rtti"]
    includes = [f"-I{folder}", f"-I{INCLUDE}"]
    command = [compiler, "-std=c++17", *strict, *includes, "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=source + USED, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("compiler", "headers"),
    [
        ("g++", ["one/approxsvm.hpp", "two/approxsvm.hpp"]),
        ("clang++", ["one/approxsvm.hpp", "approxsvm/approxsvm.hpp"]),
        ("g++", ["approxsvm/approxsvm.hpp", "one/approxsvm.hpp"]),
        ("clang++", ["approxsvm/outputs/outputs.hpp", "one/approxsvm.hpp", "approxsvm/model.hpp"]),
    ],
    ids=str,
)
def test_copies_of_the_headers_in_one_file(copies: Path, compiler: str, headers: list[str]) -> None:
    ran = syntax(copies, compiler if shutil.which(compiler) else "c++", *headers)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("headers", [["one", "later"], ["later", "one"]], ids=" ".join)
def test_two_versions_in_one_file_are_one_error(copies: Path, headers: list[str]) -> None:
    ran = syntax(copies, "c++", *(f"{folder}/approxsvm.hpp" for folder in headers))
    assert ran.returncode != 0
    assert re.findall("error: .*", ran.stderr) == [TWO_VERSIONS]


@pytest.mark.slow
def test_two_versions_in_one_program(copies: Path, tmp_path: Path) -> None:
    """No function of one version replaces the other's, as a linker would do for equal names."""
    source, made = tmp_path / "later.cpp", tmp_path / "later.s"
    source.write_text(f'#include "{copies / "later" / "approxsvm.hpp"}"\n' + USED)
    built([FASTEST, "-std=c++17", "-O0", "-S", source, "-o", made])
    names = [name for name in re.findall(r"\.weak\w*\s+(\S+)", made.read_text()) if "approxsvm" in name]
    assert len(names) > 100
    assert [name for name in names if "9999" not in name] == []


def test_every_header_has_its_guard() -> None:
    """Guards are named after paths, so that no two are equal; the parts of C headers, and version.hpp, have none."""
    for path in sorted((INCLUDE / "approxsvm").rglob("*.h*")):
        name = str(path.relative_to(INCLUDE))
        if path.parent.name == "exported" or path.name == "version.hpp":
            continue
        guard = re.sub(r"[^A-Z0-9]", "_", name.upper())
        text = path.read_text()
        assert re.search(rf"^#ifndef {guard}\n#define {guard}\n", text, re.MULTILINE), f"{name} needs the guard {guard}"
        assert text.endswith("\n#endif\n"), name


FACE = """
#include <approxsvm_runtime.hpp>
#include <cstdio>
#include <vector>

int main(int, char** words) {
    approxsvm::runtime::Model first, model;
    approxsvm::runtime::Error error;
    if (first.open(words[1], &error) != APPROXSVM_OK) {
        std::puts(error.message);
        return 1;
    }
    model = std::move(first);
    const std::vector<double> rows(2 * model.n_features(), 0.5);
    std::vector<std::uint32_t> labels(2 * model.n_targets());
    if (!model || first || model.predict(rows, labels, &error) != APPROXSVM_OK) return 2;
    for (const std::uint32_t label : labels) std::printf("%s\\n", model.label(label).c_str());
    std::vector<double> values(2 * model.n_decisions());
    approxsvm::runtime::Request request;
    request.values = values;
    if (model.evaluate(rows, request) != APPROXSVM_OK) return 3;
    for (const double value : values) std::printf("%.17g\\n", value);
    std::vector<std::int32_t> columns, starts = {0};
    for (std::int32_t row = 0; row < 2; ++row) {
        for (std::size_t j = 0; j < model.n_features(); ++j) columns.push_back(static_cast<std::int32_t>(j));
        starts.push_back(static_cast<std::int32_t>(columns.size()));
    }
    std::vector<double> again(values.size());
    request.values = again;
    const approxsvm::runtime::SparseRows<double> sparse{rows, columns, starts};
    if (model.evaluate(sparse, request) != APPROXSVM_OK || again != values) return 4;
    values.pop_back();
    request.values = values;
    return model.evaluate(rows, request, &error) == APPROXSVM_BUFFER_TOO_SMALL ? 0 : 5;
}
"""


def test_the_face_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "face.cpp").write_text(FACE)
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    link = [f"-L{LIBRARY_FOLDER}", "-lapproxsvm", f"-Wl,-rpath,{LIBRARY_FOLDER}"]
    built(["c++", *flags, f"-I{REPOSITORY}/cpp/runtime", tmp_path / "face.cpp", *link, "-o", tmp_path / "face"])
    for path in (GOLDEN / "iris_classes.asvm", GOLDEN / "breast_cancer.asvm"):
        ran = subprocess.run([tmp_path / "face", path], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout
        fast = approxsvm.Predictor(path)
        rows = np.full((2, fast.artifact.n_raw_features), 0.5)
        lines = ran.stdout.split()
        assert lines[:2] == [str(label) for label in fast.predict(rows)]
        np.testing.assert_array_equal(np.array(lines[2:], float), np.ravel(fast._evaluator.evaluate(rows)))
    missing = subprocess.run([tmp_path / "face", tmp_path / "none"], capture_output=True, text=True)
    assert missing.returncode == 1
    assert "No such file" in missing.stdout


def test_the_face_in_the_documentation(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "howto" / "cpp.md").read_text()
    snippets = re.findall(r"^```c\+\+\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    program, sparse = (text for text in snippets if "model.hpp" not in text)
    path, link = GOLDEN / "iris_classes.asvm", [f"-L{LIBRARY_FOLDER}", "-lapproxsvm", f"-Wl,-rpath,{LIBRARY_FOLDER}"]
    call = "    if (model.evaluate(rows, request, &error) != APPROXSVM_OK)"
    assert call in program
    of_sparse_rows = program.replace(call, f"{sparse}    if (status != APPROXSVM_OK)")
    for text, rows in ((program, np.full((2, 4), 0.5)), (of_sparse_rows, np.array([[0.5, 0, 0, 2.0], [0, 1, 0, 0]]))):
        (tmp_path / "main.cpp").write_text(text)
        include = f"-I{REPOSITORY}/cpp/runtime"
        built(["c++", "-std=c++17", include, tmp_path / "main.cpp", *link, "-o", tmp_path / "predict"])
        ran = subprocess.run([tmp_path / "predict", path], capture_output=True, text=True, check=True)
        predictor = approxsvm.Predictor(path)
        labels = zip(predictor.predict(rows), np.ravel(predictor._evaluator.certified(rows)), strict=True)
        lines = [f"{label} certified" if is_proven else str(label) for label, is_proven in labels]
        assert ran.stdout.splitlines() == lines


def test_an_installation_of_headers_compiles_nothing(tmp_path: Path) -> None:
    build_tool("cmake", "-S", REPOSITORY, "-B", tmp_path, "-G", "Ninja", "-DAPPROXSVM_BUILD_RUNTIME=OFF")
    assert "no work to do" in build_tool("ninja", "-C", tmp_path)
