"""Sums in exported C headers: no product undergoes more roundings than the bounds assume."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.native
MOST = {1: 70, 2: 70, 3: 40, 4: 20, 5: 12, 6: 10}  # maximum number of features, by degree

# Replaces float with a number that counts its roundings; adding zero is exact.
PROGRAM = """
#include <algorithm>
#include <cstdio>
#include <vector>
#include "approxsvm/bounds/certificate.hpp"
struct Path {
    int roundings;
    bool is_zero;
    Path(float x = 1.0f) : roundings(0), is_zero(x == 0.0f) {}
    Path& operator+=(const Path& x) {
        if (!is_zero && !x.is_zero) roundings = std::max(roundings, x.roundings) + 1;
        return *this = x.is_zero || !is_zero ? *this : x;
    }
};
inline Path operator+(Path a, const Path& b) { return a += b; }
inline Path operator*(Path a, const Path& b) {
    a.roundings += b.roundings + 1;
    a.is_zero = a.is_zero || b.is_zero;
    return a;
}
static int n_varying;
#define float Path
#define model_coefficient_ Path
#define model_n_varying_ n_varying
#define model_degree_ 1
#define model_sq_norm_ plain_sq_norm
#include "approxsvm/exported/forms.h"
#undef model_sq_norm_
#undef model_degree_
#define model_degree_ 6
#include "approxsvm/exported/forms.h"
#undef float
static void show(int degree, const Path& form, double most) {
    std::printf("%d %d %d %d\\n", degree, n_varying, form.roundings, static_cast<int>(most));
}
int main() {
    const std::vector<Path> u(100), q(100000);
    const Path* next;
    const int most[] = {@MOST@};
    for (int degree = 1; degree <= 6; ++degree) {
        for (n_varying = 1; n_varying <= most[degree - 1]; ++n_varying) {
            const int n = n_varying;
            Path form;
            next = q.data();
            switch (degree) {
                case 1: form = model_linear_form_(next, u.data()); break;
                case 2: form = model_quadratic_form_(next, next, n, u.data()); break;
                case 3: form = model_part_3_(&next, n, u.data()); break;
                case 4: form = model_part_4_(&next, n, u.data()); break;
                case 5: form = model_part_5_(&next, n, u.data()); break;
                default: form = model_part_6_(&next, n, u.data()); break;
            }
            show(degree, form, approxsvm::form_depth(static_cast<std::size_t>(n), degree));
            show(0, plain_sq_norm(u.data()), approxsvm::norm_depth(static_cast<std::size_t>(n)));
            show(0, model_sq_norm_(u.data()), approxsvm::norm_depth(static_cast<std::size_t>(n)));
        }
    }
}
"""


def test_paths_are_within_those_of_the_bounds(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    most = ", ".join(map(str, MOST.values()))
    (tmp_path / "paths.cpp").write_text(PROGRAM.replace("@MOST@", most))
    command = [compiler, "-std=c++17", "-O1", f"-I{REPOSITORY}/cpp/include", "-o", "paths", "paths.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = subprocess.run(["./paths"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == 3 * sum(MOST.values())
    for degree, n, found, most_counted in (map(int, line.split()) for line in lines):
        assert max(degree, 1) <= found <= most_counted, (degree, n, found, most_counted)
