"""Kernels stored in other programs' files."""

from collections.abc import Callable
from typing import Any

from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.kernel_model import MAX_KERNEL_DEGREE


def kernel_fields(where: str, name: str, kind: str | None, number: Callable[[str], float]) -> dict[str, Any]:
    """Return a kernel as fields of KernelModel; raise UnsupportedModelError if it cannot be compiled.

    The error message contains `where` and `name`, the kernel's name in the file. `kind` is "linear", "rbf", "poly" or
    another string, and the function `number` returns the value of gamma, coef0 or degree.
    """
    if kind == "linear":
        return {"gamma": 1.0, "degree": 1}
    if kind == "rbf":
        return {"gamma": number("gamma")}
    degree = number("degree") if kind == "poly" else 0.0
    if degree in range(1, MAX_KERNEL_DEGREE + 1):
        return {"gamma": number("gamma"), "coef0": number("coef0"), "degree": int(degree)}
    of_degree = f" of degree {degree:g}" if kind == "poly" else ""
    raise UnsupportedModelError(
        f"{where}: the kernel is {name}{of_degree}, only RBF, linear and polynomial ones of degree 1 to "
        f"{MAX_KERNEL_DEGREE} can be compiled"
    )
