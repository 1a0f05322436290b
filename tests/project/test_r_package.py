"""The R package: completeness on every machine and, with R installed, its answers and models from e1071 and kernlab."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, REPOSITORY

import approxsvm
from approxsvm.runtime.evaluator import VALUES

sys.path.append(str(REPOSITORY))  # release/ is not part of the package

from release.packages import write_r

SOURCES = REPOSITORY / "release" / "r"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package") / "approxsvm"
    write_r(folder)
    return folder


@pytest.fixture(scope="module")
def library(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package in a separate folder, which compiles all instruction sets."""
    if shutil.which("R") is None:
        pytest.skip("R is not installed: apt install r-base-core")
    folder = tmp_path_factory.mktemp("library")
    launcher = os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", "")
    (folder / "Makevars").write_text(f"CXX17 = {launcher} c++\n")
    environment = os.environ | {"R_MAKEVARS_USER": str(folder / "Makevars"), "MAKEFLAGS": "-j2"}
    command = ["R", "CMD", "INSTALL", f"--library={folder}", str(package)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def r(library: Path, folder: Path, program: str, *needed: str) -> str:
    """Run an R program in a folder; skip the test if a package that it needs is not installed."""
    start = f".libPaths(c('{library}', .libPaths())); library(approxsvm); setwd('{folder}')\n"
    check = "".join(f"if (!requireNamespace('{name}', quietly = TRUE)) quit(status = 77)\n" for name in needed)
    (folder / "program.R").write_text(check + start + program)
    done = subprocess.run(["Rscript", folder / "program.R"], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(f"a package of R is not installed: {', '.join(needed)}")
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- without R


def test_exported_functions_are_documented() -> None:
    names = (SOURCES / "NAMESPACE").read_text()
    exported = re.findall(r"[\w.]+", re.findall(r"^export\((.+)\)", names, re.MULTILINE)[0])
    methods = [".".join(pair) for pair in re.findall(r"^S3method\((\w+), (\w+)\)", names, re.MULTILINE)]
    code = "\n".join(path.read_text() for path in sorted((SOURCES / "R").glob("*.R")))
    pages = "\n".join(path.read_text() for path in sorted((SOURCES / "man").glob("*.Rd")))
    for name in exported + methods:
        assert re.search(rf"^{re.escape(name)} <- function\(", code, re.MULTILINE), name
        assert f"\\alias{{{name}}}" in pages, name


def test_calls_have_the_arguments_of_their_registration() -> None:
    binding = (SOURCES / "src" / "binding.c").read_text()
    registered = {name: int(n) for name, n in re.findall(r'\{"(C_\w+)", \(DL_FUNC\)&\w+, (\d+)\}', binding)}
    for entry, function, n in re.findall(r'\{"(C_\w+)", \(DL_FUNC\)&(\w+), (\d+)\}', binding):
        signature = re.search(rf"^static SEXP {function}\(([^)]*)\)", binding, re.MULTILINE)
        assert signature is not None, function
        assert signature[1].count("SEXP") == int(n), entry
    code = "\n".join(path.read_text() for path in sorted((SOURCES / "R").glob("*.R")))
    assert set(re.findall(r"\.Call\((C_\w+)", code)) == set(registered)


def test_error_classes_cover_the_codes_of_the_library() -> None:
    """raise_failure classifies status codes by number."""
    header = (REPOSITORY / "cpp" / "runtime" / "approxsvm.h").read_text()
    codes = {int(code) for code in re.findall(r"APPROXSVM_\w+ = (\d+)[,;} /]", header.split("/* the artifact */")[1])}
    ranges = re.findall(r"status %in% (\d+):(\d+)", (SOURCES / "R" / "conditions.R").read_text())
    assert [int(end) for _, end in ranges[:2]] == [max(c for c in codes if c < limit) for limit in (30, 40)]


def test_the_sources_are_complete(package: Path) -> None:
    """All C++ files are compiled, every included file is in the package, and no placeholder is left."""
    source = package / "src"
    rules = (source / "Makevars.in").read_text()
    assert not re.findall(r"@FLAGS_\w+@", rules)
    assert {str(p.relative_to(source)) for p in source.glob("*/*.cpp")} == set(re.findall(r"\) (\S+\.cpp)", rules))
    n_checked = 0
    for path in (p for p in source.rglob("*") if p.suffix in (".c", ".cpp", ".h", ".hpp", ".inc")):
        for name in re.findall(r'^ *# *include (?:"|<(?=approxsvm))([^>"]+)[>"]', path.read_text(), re.MULTILINE):
            places = (path.parent, *(source / folder for folder in ("include", "dispatch", "runtime")))
            assert any((place / name).is_file() for place in places), (path, name)
            n_checked += 1
    assert n_checked > 250


@pytest.mark.native
def test_the_configuration_chooses_instruction_sets(package: Path, tmp_path: Path) -> None:
    """Instruction sets depend on the compiler's predefined macros; a stand-in for R names a compiler."""
    work = tmp_path / "approxsvm"
    shutil.copytree(package, work)
    (tmp_path / "bin").mkdir()
    for name, macro in (("x86", "__x86_64__"), ("arm", "__aarch64__"), ("other", "__riscv")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '#define {macro} 1'\n")
        (tmp_path / "bin" / "R").write_text(f"#!/bin/sh\necho {tmp_path / name}\n")
        for script in (tmp_path / name, tmp_path / "bin" / "R"):
            script.chmod(0o755)
        subprocess.run(["./configure"], cwd=work, env=os.environ | {"R_HOME": str(tmp_path)}, check=True)
        made = (work / "src" / "Makevars").read_text()
        assert "@" not in made.replace("$@", "")
        objects = re.search(r"kernels_baseline\.o *(.*)", made)
        assert objects is not None
        expected = {"x86": "kernels_avx2.o kernels_avx512.o", "arm": "kernels_neon.o", "other": ""}
        assert objects[1].strip() == expected[name]


# --- with R


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(path.name for path in (SOURCES / "tests").glob("*.R")))
def test_scripts_of_the_package(library: Path, tmp_path: Path, script: str) -> None:
    r(library, tmp_path, (SOURCES / "tests" / script).read_text())


GOLDEN_ANSWERS = """
for (name in readLines("names")) {
  model <- asvm_load(file.path("%s", paste0(name, ".asvm")))
  rows <- matrix(readBin(paste0(name, ".rows"), "double", 1e6), ncol = model$n_features, byrow = TRUE)
  for (type in c("class", "value", "probability", "certified")) {
    found <- tryCatch(predict(model, rows, type, threads = 3), approxsvm_input_error = function(e) NULL)
    if (is.null(found)) next
    stopifnot(identical(predict(model, rows, type), found), identical(predict(model, as.data.frame(rows), type), found))
    numbers <- as.double(if (is.factor(found)) as.integer(found) else t(found))
    writeBin(numbers, paste0(name, ".", type))
  }
}
"""


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_answers_are_those_of_python(library: Path, tmp_path: Path) -> None:
    """Every answer for every golden model's rows is bit-identical, with one thread or several."""
    paths = sorted(GOLDEN.glob("*.asvm"))
    (tmp_path / "names").write_text("".join(f"{path.stem}\n" for path in paths))
    rows = {}
    for path in paths:
        n = approxsvm.Predictor(path).n_features
        rows[path] = approxsvm.read_libsvm_data(path.with_suffix(".t"), n_features=n)[0].toarray().astype(np.float64)
        rows[path].tofile(tmp_path / f"{path.stem}.rows")
    r(library, tmp_path, GOLDEN_ANSWERS % GOLDEN)
    n_answers = {"class": 0, "value": 0, "probability": 0, "certified": 0}
    for path in paths:
        predictor, X = approxsvm.Predictor(path), rows[path]
        labels = predictor.artifact.labels if len(predictor.classes) else np.array([1, -1])
        for output in n_answers:
            file = tmp_path / f"{path.stem}.{output}"
            if not file.exists():
                continue
            n_answers[output] += 1
            if output == "class":
                answer = np.argmax(predictor.predict(X)[:, None] == labels, axis=1) + 1.0
            elif output == "value":
                answer = predictor._evaluator.evaluate(X, VALUES)
            elif output == "probability":
                answer = predictor.predict_proba(X)[:, np.argsort(np.argsort(labels))]
            else:
                answer = predictor.certified(X)
            np.testing.assert_array_equal(np.fromfile(file), np.ravel(answer), err_msg=file.name)
    n = len(paths)
    assert n_answers == {"class": n - 2, "value": n - 1, "probability": 4, "certified": n}  # 2 regressions, 1 ensemble


MODELS = """
suppressPackageStartupMessages({ library(e1071); library(kernlab) })
set.seed(3)
mixed <- transform(iris[c(101:150, 1:100), ], side = factor(rep(c("left", "right", "top"), 50)))
plain <- mixed[1:5]
two <- droplevels(plain[plain$Species != "setosa", ])
x <- as.matrix(iris[1:4])
y <- c(-4, 10, 7)[iris$Species]
saveRDS(models <- list(
  two = svm(Species ~ ., two, probability = TRUE), several = svm(Species ~ ., plain, probability = TRUE),
  nu = svm(Species ~ ., iris, type = "nu-classification", nu = 0.3), factors = svm(Species ~ ., mixed),
  power = svm(Species ~ ., iris, kernel = "polynomial", degree = 2, coef0 = 1),
  linear = svm(x, y, type = "C", kernel = "linear"),
  sigmoid = svm(Species ~ ., iris, kernel = "sigmoid", gamma = 0.05),
  partly = svm(x, iris$Species, scale = c(FALSE, TRUE)),
  svr = svm(Sepal.Length ~ ., mixed), plainsvr = svm(x[, 2:4], x[, 1], type = "nu-regression", scale = FALSE),
  one = svm(x, type = "one-classification", nu = 0.1),
  ktwo = ksvm(Species ~ ., two, prob.model = TRUE), kseveral = ksvm(Species ~ ., iris, prob.model = TRUE),
  knu = ksvm(Species ~ ., iris, type = "nu-svc", nu = 0.3), kbound = ksvm(Species ~ ., iris, type = "C-bsvc"),
  kpower = ksvm(Species ~ ., iris, kernel = "polydot", kpar = list(degree = 2, scale = 0.5, offset = 1)),
  klinear = ksvm(Species ~ ., iris, kernel = "vanilladot", kpar = list()), knumbers = ksvm(x, y, type = "C-svc"),
  ktanh = ksvm(Species ~ ., iris, kernel = "tanhdot", kpar = list(scale = 0.01, offset = -0.1)),
  kfactors = ksvm(Species ~ ., mixed),
  kreversed = ksvm(factor(Species, rev(levels(Species))) ~ ., iris, scaled = FALSE),
  ksvr = ksvm(Sepal.Length ~ ., mixed), knusvr = ksvm(Sepal.Length ~ ., iris, type = "nu-svr"),
  kbsvr = ksvm(x[, 2:4], x[, 1], type = "eps-bsvr", scaled = FALSE), kone = ksvm(x, type = "one-svc", nu = 0.1)
), "models.rds")
for (name in names(models)) write_libsvm(models[[name]], name)
write_libsvm(models$factors, "factors", transform(mixed, Sepal.Width = c(NA, Sepal.Width[-1])))
for (model in list(ksvm(Species ~ ., iris, type = "spoc-svc"), ksvm(Species ~ ., iris, kernel = "laplacedot"), iris)) {
  stopifnot(inherits(tryCatch(write_libsvm(model, "refused"), error = identity), "approxsvm_input_error"))
}
cat(names(models))
"""
COMPARED = """
suppressPackageStartupMessages({ library(e1071); library(kernlab) })
models <- readRDS("models.rds")
set.seed(1)
frame <- transform(iris, side = factor(rep(c("left", "right", "top"), 50)))[rep(1:150, 8), ]
for (j in 1:4) frame[[j]] <- frame[[j]] + rnorm(1200, sd = 0.3)
for (name in names(models)) {
  exact <- models[[name]]
  fast <- asvm_load(paste0(name, ".asvm"), source = exact)
  of_e1071 <- inherits(exact, "svm")
  rows <- if (is.null(fast$terms)) as.matrix(frame[if (fast$n_features == 3) 2:4 else 1:4]) else frame
  own <- if (of_e1071) unname(predict(exact, rows)) else predict(exact, rows)
  found <- predict(fast, rows)
  stopifnot(length(own) == 1200)
  if (fast$task == "regression") {
    stopifnot(max(abs(found - own)) < 1e-9)
  } else if (fast$task == "one_class") {
    stopifnot(identical(found == "1", as.vector(own)), any(own), !all(own))
  } else {
    stopifnot(identical(as.character(found), as.character(own)), length(unique(own)) == length(levels(found)))
    if (is.factor(own)) stopifnot(identical(found, own))
    if (!of_e1071) { # positive for the other class of a pair
      stopifnot(max(abs(predict(fast, rows, "value") + drop(predict(exact, rows, type = "decision")))) < 1e-9)
    }
    if (fast$n_probabilities > 0) {
      shares <- if (of_e1071) attr(predict(exact, rows, probability = TRUE), "probabilities")
                else predict(exact, rows, type = "probabilities")
      limit <- if (name == "kseveral") 0.02 else 1e-6
      stopifnot(max(abs(predict(fast, rows, "probability")[, colnames(shares)] - shares)) < limit)
    }
  }
  rows[3, 2] <- NA
  again <- predict(fast, rows)
  stopifnot(is.na(again[3]), identical(again[-3], found[-3]))
}
Sepal.Length <- frame$Sepal.Length # is not taken for a column that is absent
unknown <- transform(frame, side = factor("middle", c("left", "middle", "right", "top")))
for (rows in list(unknown, frame[-1], transform(frame, side = "top"), transform(frame, side = c("left", "top")))) {
  found <- tryCatch(predict(asvm_load("factors.asvm", source = models$factors), rows), error = identity)
  stopifnot(inherits(found, "approxsvm_input_error"))
}
"""


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.peers
def test_models_of_e1071_and_kernlab(library: Path, tmp_path: Path) -> None:
    """Every type and kernel predicts as its source does, on rows other than its training rows."""
    for name in r(library, tmp_path, MODELS, "e1071", "kernlab").split():
        model = approxsvm.with_range_file(tmp_path / name, tmp_path / f"{name}.scale", restore_target="svr" in name)
        approxsvm.compile(model, mode="exact").save(tmp_path / f"{name}.asvm")
    assert approxsvm.read_libsvm_data(tmp_path / "factors.rows")[0].shape == (149, 7)
    r(library, tmp_path, COMPARED, "e1071", "kernlab")
