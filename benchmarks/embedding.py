"""Compile time and size of a C++ program that contains a model, for each form of embedding.

The program opens an artifact, predicts the labels of one row and prints them. It uses either the library, through the
C++ wrapper of approxsvm.h, or the headers: with only the parts for a scaled two-class model, with these parts and the
one for blocks of rows, or with all parts. The figures are the compiler's CPU time and the size of the stripped program
in bytes, for each installed compiler.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import approxsvm
from benchmarks.experiment import Experiment, MissingError, Rows, Run

_HEADERS = """
#include <approxsvm/approxsvm.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int argc, char** argv) {
    if (argc != 2) return 1;
    std::ifstream file(argv[1], std::ios::binary);
    const std::vector<unsigned char> bytes((std::istreambuf_iterator<char>(file)), {});
    TYPE model;
    if (model.open(bytes) != approxsvm::Status::ok) return 1;
    std::vector<unsigned char> memory(model.memory_bytes());
    if (model.prepare(memory) != approxsvm::Status::ok) return 1;
    std::vector<unsigned char> workspace(model.workspace_bytes());
    const std::vector<float> row(model.n_features(), 0.5f);
    std::vector<std::uint32_t> labels(model.n_targets());
    if (model.predict(row, labels, workspace) != approxsvm::Status::ok) return 1;
    for (const std::uint32_t position : labels) std::cout << model.label(position) << '\\n';
}
"""
_LIBRARY = """
#include <approxsvm_runtime.hpp>
#include <iostream>
#include <vector>

int main(int argc, char** argv) {
    approxsvm::runtime::Model model;
    if (argc != 2 || model.open(argv[1]) != APPROXSVM_OK) return 1;
    const std::vector<float> row(model.n_features(), 0.5f);
    std::vector<std::uint32_t> labels(model.n_targets());
    if (model.predict(row, labels) != APPROXSVM_OK) return 1;
    for (const std::uint32_t position : labels) std::cout << model.label(position) << '\\n';
}
"""
_LIST = "approxsvm::ModelOf<approxsvm::rbf, approxsvm::scalers{}>"
_PROGRAMS = {
    "library": _LIBRARY,
    "two classes after a scaler": _HEADERS.replace("TYPE", _LIST.format("")),
    "the same, rows side by side": _HEADERS.replace("TYPE", _LIST.format(", approxsvm::batches")),
    "all kinds": _HEADERS.replace("TYPE", "approxsvm::Model"),
}


def _cases(_: SimpleNamespace) -> Mapping[str, Any]:
    return {
        f"{program}, {compiler} {flag}": (program, compiler, flag)
        for compiler in ("g++", "clang++")
        for program in _PROGRAMS
        for flag in (("-O2",) if program == "library" else ("-O2", "-Os"))
    }


def measure(run: Run, case: tuple[str, str, str]) -> Rows:
    """Measure one program with one compiler."""
    program, compiler, flag = case
    if shutil.which(compiler) is None:
        raise MissingError(f"no {compiler}")
    source, binary = run.scratch / "program.cpp", run.scratch / "program"
    source.write_text(_PROGRAMS[program])
    folder = approxsvm.get_pkgconfig_dir().removesuffix("/pkgconfig")
    link = [f"-L{folder}", "-lapproxsvm"] if program == "library" else []
    command = [compiler, "-std=c++17", flag, "-ffp-contract=off", "-s", f"-I{approxsvm.get_include()}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, str(source), *link, "-o", str(binary)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    version = subprocess.run([compiler, "-dumpversion"], check=True, capture_output=True, text=True).stdout.strip()
    yield (
        "programs",
        {
            "program": program,
            "compiler": f"{'GCC' if compiler == 'g++' else 'Clang'} {version}",
            "flag": flag,
            "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "stripped_bytes": binary.stat().st_size,
        },
    )


EXPERIMENT = Experiment("embedding", __doc__, measure, _cases)

if __name__ == "__main__":
    EXPERIMENT.main()
