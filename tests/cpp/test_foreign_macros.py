"""The public headers included after third-party ones: windows.h, Qt, X11, Unreal, Arduino and similar ones."""

from __future__ import annotations

import pytest
from conftest import REPOSITORY
from foreign_macros import check_behind_macros

CPP = ["g++", "-x", "c++", "-std=c++17", f"-I{REPOSITORY}/cpp/include", f"-I{REPOSITORY}/cpp/runtime"]
OPENED = """
int opened(const unsigned char* bytes, std::size_t n);
int opened(const unsigned char* bytes, std::size_t n) {
    approxsvm::Model model;
    return model.open({bytes, n}) == approxsvm::Status::ok ? 0 : 1;
}
"""


@pytest.mark.parametrize("flags", [[], ["-march=x86-64-v3"]], ids=str)
def test_the_cpp_headers(flags: list[str]) -> None:
    check_behind_macros([*CPP, *flags], "approxsvm/approxsvm.hpp", behind=OPENED)


def test_the_cpp_header_of_the_library() -> None:
    check_behind_macros(CPP, "approxsvm_runtime.hpp", behind="\napproxsvm::runtime::Model model;\n")


@pytest.mark.parametrize("command", [CPP, ["gcc", "-x", "c", "-std=c99", f"-I{REPOSITORY}/cpp/runtime"]], ids=len)
def test_the_c_header(command: list[str]) -> None:
    check_behind_macros(command, "approxsvm.h", behind="\nsize_t n(const approxsvm_model* model);\n")
