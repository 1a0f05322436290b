"""Paths of the installed files needed to build C and C++ programs."""

from pathlib import Path

from approxsvm import _native


def _folder(*parts: str) -> str:
    # The folders are next to the compiled module; the sources of an editable installation are elsewhere.
    folder = Path(str(_native.__file__)).parent.joinpath(*parts)
    if not folder.is_dir():
        raise ImportError(f"this installation of approxsvm has no {folder}: install it from its sources or a wheel")
    return str(folder)


def get_include() -> str:
    """Return the folder of ``approxsvm_runtime.hpp``, ``approxsvm/approxsvm.hpp`` (C++17) and ``approxsvm.h`` (C).

    Returns
    -------
    str
        Value for the compiler's ``-I`` option.

    Raises
    ------
    ImportError
        The installation lacks these files.
    """
    return _folder("include")


def get_cmake_dir() -> str:
    """Return the folder of the CMake package, for ``find_package(approxsvm CONFIG)``.

    Returns
    -------
    str
        Value for ``-Dapproxsvm_DIR=``. The targets are ``approxsvm::approxsvm`` (headers) and ``approxsvm::runtime``
        (the library of ``approxsvm.h``).

    Raises
    ------
    ImportError
        The installation lacks these files.
    """
    return _folder("lib", "cmake", "approxsvm")


def get_pkgconfig_dir() -> str:
    """Return the folder of ``approxsvm.pc`` (headers) and ``approxsvm-runtime.pc`` (library).

    Returns
    -------
    str
        Value for the environment variable PKG_CONFIG_PATH.

    Raises
    ------
    ImportError
        The installation lacks these files.
    """
    return _folder("lib", "pkgconfig")
