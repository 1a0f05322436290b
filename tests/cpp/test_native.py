"""Build and run the native tests as a C++ developer would, with and without sanitizers."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest
from broken_artifacts import OF_LABELS, all_broken, gamma_of_minus_zero
from conftest import REPOSITORY
from native_build import kernels_of_the_wheel, run

pytestmark = [pytest.mark.native, pytest.mark.slow]

# Sanitizers cover the programs that call the library. The library's kernels are the installed wheel's: the zoo tests
# their headers, and all others, under sanitizers (tests/zoo/executors/headers.cpp). Undefined behavior ends a test
# without a message, which makes compiling a sixth faster. Addresses are checked by function calls, which make compiling
# a third faster and run as fast. A manual build, as in CONTRIBUTING.md, sanitizes everything and reports positions.
SANITIZED = [
    "-DCMAKE_CXX_FLAGS=-Werror -fsanitize-undefined-trap-on-error --param asan-instrumentation-with-call-threshold=0",
    "-DAPPROXSVM_SANITIZE=address,undefined",
    "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
]
OPTIMIZED = ["-DCMAKE_CXX_FLAGS=-Werror"]


@pytest.mark.parametrize(
    ("options", "part", "selection"),
    [
        (OPTIMIZED, "approxsvm_target_tests", ["--label-exclude", "any_target|in_other_programs"]),
        (SANITIZED, "approxsvm_any_target_tests", ["--label-regex", "any_target"]),
    ],
    ids=["release", "sanitized"],
)
def test_native_tests(tmp_path: Path, options: list[str], part: str, selection: list[str]) -> None:
    broken = tmp_path / "broken"
    if options is SANITIZED:
        # All take a minute under sanitizers: these are the first with each message, and one in fifty of all.
        draw, told, some = random.Random(0), {OF_LABELS}, [gamma_of_minus_zero()]
        for one in all_broken():
            if one.must not in told or (draw.random() < 0.02 and one.must != OF_LABELS):
                some.append(one)
            told.add(one.must)
        broken.write_bytes(b"".join(struct.pack("<QB", len(one.data), one.is_refused) + one.data for one in some))
    tests = ["-DAPPROXSVM_BUILD_TESTS=ON", f"-DAPPROXSVM_BROKEN_ARTIFACTS={broken}", *kernels_of_the_wheel()]
    alone = ["-DAPPROXSVM_BUILD_TOOLS=OFF", "-DAPPROXSVM_BUILD_RUNTIME=OFF"]
    unity = ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0"]  # compiles a third faster
    run("cmake", "-S", REPOSITORY, "-B", tmp_path, "-G", "Ninja", *tests, *alone, *unity, *options)
    run("ninja", "-C", tmp_path, part)
    ctest = ["ctest", "--parallel", str(os.cpu_count() or 1), "--output-on-failure", "--test-dir", tmp_path]
    print(run(*ctest, *selection))
