"""The package for R: complete files on every machine; where R is, an installation, and models of kernlab and e1071."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

import approxsvm

sys.path.append(str(REPOSITORY))  # release/ is no part of the package

from release.packages import write_r

SOURCES = REPOSITORY / "release" / "r"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package") / "approxsvm"
    write_r(folder)
    return folder


@pytest.fixture(scope="module")
def library(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package, which compiles all instruction sets, into a folder of its own."""
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
    """Run a program of R in a folder; skip the test if a package that it needs is not installed."""
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
    """raise_failure sorts codes by their number."""
    header = (REPOSITORY / "cpp" / "runtime" / "approxsvm.h").read_text()
    codes = {int(code) for code in re.findall(r"APPROXSVM_\w+ = (\d+)[,;} /]", header.split("/* the artifact */")[1])}
    ranges = re.findall(r"status %in% (\d+):(\d+)", (SOURCES / "R" / "conditions.R").read_text())
    assert [int(end) for _, end in ranges[:2]] == [max(c for c in codes if c < limit) for limit in (30, 40)]


@pytest.mark.native
def test_the_sources_are_complete(package: Path, tmp_path: Path) -> None:
    """Every C++ file of the package compiles with the files of the package alone; no placeholder is left."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = package / "src"
    rules = (source / "Makevars.in").read_text()
    assert not re.findall(r"@FLAGS_\w+@", rules)
    units = set(re.findall(r"\$\(COMPILE\) (\S+\.cpp)", rules))
    assert {str(path.relative_to(source)) for path in source.glob("*/*.cpp")} == units
    options = ["-std=c++17", "-fsyntax-only", "-Iinclude", "-Idispatch", "-Iruntime", '-DAPPROXSVM_VERSION="0"']
    options += ["-DAPPROXSVM_STATIC=1", "-DAPPROXSVM_WITH_BASELINE=1", "-DAPPROXSVM_PORTABLE=1"]
    options += ['-DAPPROXSVM_TARGET_NAME="baseline"']
    for unit in sorted(units):
        done = subprocess.run([compiler, *options, unit], cwd=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.native
def test_the_configuration_chooses_instruction_sets(package: Path, tmp_path: Path) -> None:
    """By the compiler's predefined macros, with a stand-in for R that names a compiler."""
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


KSVM = """
suppressPackageStartupMessages(library(kernlab))
set.seed(3)
two <- droplevels(iris[iris$Species != "setosa", ])
x <- as.matrix(iris[1:4])
side <- transform(iris, side = factor(rep(c("left", "right", "top"), 50)))
models <- list(
  two = ksvm(Species ~ ., two, prob.model = TRUE), several = ksvm(Species ~ ., iris, prob.model = TRUE),
  nu = ksvm(Species ~ ., iris, type = "nu-svc", nu = 0.3), bound = ksvm(Species ~ ., iris, type = "C-bsvc"),
  power = ksvm(Species ~ ., iris, kernel = "polydot", kpar = list(degree = 2, scale = 0.5, offset = 1)),
  linear = ksvm(Species ~ ., iris, kernel = "vanilladot", kpar = list()),
  tanh = ksvm(Species ~ ., iris, kernel = "tanhdot", kpar = list(scale = 0.01, offset = -0.1)),
  numbers = ksvm(x, c(-4, 10, 7)[iris$Species], type = "C-svc"), factors = ksvm(Species ~ ., side),
  plain = ksvm(Species ~ ., iris, scaled = FALSE), reversed = ksvm(factor(Species, rev(levels(Species))) ~ ., iris),
  svr = ksvm(Sepal.Length ~ ., side), nusvr = ksvm(Sepal.Length ~ ., iris, type = "nu-svr"),
  bsvr = ksvm(Sepal.Length ~ ., iris, type = "eps-bsvr"), plainsvr = ksvm(x[, 2:4], x[, 1], scaled = FALSE),
  one = ksvm(x, type = "one-svc", nu = 0.1)
)
saveRDS(models, "models.rds")
for (name in names(models)) write_ksvm(models[[name]], name)
for (model in list(ksvm(Species ~ ., iris, type = "spoc-svc"), ksvm(Species ~ ., iris, kernel = "laplacedot"))) {
  stopifnot(inherits(tryCatch(write_ksvm(model, "refused"), error = identity), "approxsvm_input_error"))
}
cat(names(models))
"""
COMPARED = """
suppressPackageStartupMessages(library(kernlab))
models <- readRDS("models.rds")
for (name in names(models)) {
  exact <- models[[name]]
  frame <- transform(iris, side = factor(rep(c("left", "right", "top"), 50)))
  formula <- attr(exact, "kterms")
  rows <- if (is.null(formula)) as.matrix(iris[if (name == "plainsvr") 2:4 else 1:4])
          else model.matrix(delete.response(formula), frame)
  set.seed(1)
  rows <- rows[rep(1:150, 8), ] + rnorm(8 * length(rows), sd = 0.3)
  regression <- type(exact) %in% c("eps-svr", "nu-svr", "eps-bsvr")
  names <- if (is.character(lev(exact))) lev(exact)
  fast <- asvm_load(paste0(name, ".asvm"), levels = names, columns = colnames(rows))
  own <- predict(exact, rows)
  stopifnot(length(own) == 1200)
  if (regression) {
    stopifnot(max(abs(predict(fast, rows) - own)) < 1e-9)
  } else if (name == "one") {
    stopifnot(identical(predict(fast, rows) == "1", as.vector(own)), any(own), !all(own))
  } else {
    stopifnot(identical(as.character(predict(fast, rows)), as.character(own)), length(unique(own)) == length(lev(exact)))
    if (!is.null(names)) stopifnot(identical(predict(fast, rows), own))
    sums <- predict(exact, rows, type = "decision")
    stopifnot(max(abs(predict(fast, rows, "value") + drop(sums))) < 1e-9)  # positive for the other class
    if (name %in% c("two", "several")) {
      shares <- predict(exact, rows, type = "probabilities")
      stopifnot(max(abs(predict(fast, rows, "probability")[, lev(exact)] - shares)) < if (name == "two") 1e-6 else 0.02)
    }
  }
}
"""


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.peers
def test_models_of_kernlab(library: Path, tmp_path: Path) -> None:
    """Every type and kernel predicts as kernlab does, on rows that are not its training rows."""
    for name in r(library, tmp_path, KSVM, "kernlab").split():
        model = approxsvm.with_range_file(tmp_path / name, tmp_path / f"{name}.scale", restore_target="svr" in name)
        approxsvm.compile(model, mode="exact").save(tmp_path / f"{name}.asvm")
    r(library, tmp_path, COMPARED, "kernlab")


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.peers
def test_the_vignette_has_the_model_of_its_training_rows(library: Path, tmp_path: Path) -> None:
    """The shipped artifact answers as e1071 does, columns of factors included."""
    program = """
suppressPackageStartupMessages(library(e1071))
source(system.file("extdata", "scene.R", package = "approxsvm"))
exact <- svm(cover ~ ., training, gamma = 0.5)
bands <- scene_bands()
columns <- model.matrix(~ red + nir + swir + soil - 1, bands)
fast <- asvm_load(system.file("extdata", "scene.asvm", package = "approxsvm"), levels(bands$cover), colnames(columns))
own <- unname(predict(exact, bands))
cat(sum(predict(fast, columns) == own), length(own), nlevels(own), sum(own == bands$cover))
"""
    equal, n, classes, right = map(int, r(library, tmp_path, program, "e1071").split())
    assert (equal, n, classes) == (4800, 4800, 3)
    assert right > 4300
