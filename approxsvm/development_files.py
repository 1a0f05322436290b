"""Where the files are that programs in C and C++ are built with: they come with the package."""

from __future__ import annotations

from pathlib import Path

from approxsvm import _native


def _folder(*parts: str) -> str:
    # Beside the compiled module, which the sources of an editable installation are not.
    found = Path(str(_native.__file__)).parent.joinpath(*parts)
    if not found.is_dir():
        raise ImportError(f"this installation of approxsvm has no {found}: install it from its sources or a wheel")
    return str(found)


def get_include() -> str:
    """Return the folder of ``approxsvm/approxsvm.hpp``, for C++17, and ``approxsvm.h``, for C.

    Returns
    -------
    str
        What the compiler takes behind ``-I``.

    Raises
    ------
    ImportError
        The installation lacks these files.
    """
    return _folder("include")


def get_cmake_dir() -> str:
    """Return the folder of CMake's package, for ``find_package(approxsvm CONFIG)``.

    Returns
    -------
    str
        What CMake takes as ``-Dapproxsvm_DIR=``; the targets are ``approxsvm::approxsvm``, the headers, and
        ``approxsvm::runtime``, the library behind ``approxsvm.h``.

    Raises
    ------
    ImportError
        The installation lacks these files.
    """
    return _folder("lib", "cmake", "approxsvm")


def get_pkgconfig_dir() -> str:
    """Return the folder of ``approxsvm.pc``, the headers, and ``approxsvm-runtime.pc``, the library.

    Returns
    -------
    str
        What pkg-config takes in the environment variable PKG_CONFIG_PATH.

    Raises
    ------
    ImportError
        The installation lacks these files.
    """
    return _folder("lib", "pkgconfig")
