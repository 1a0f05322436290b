"""Support vector machines in PMML, as defined by the standard."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import approxsvm


def document(model: str, values: Any = (), kind: str = "string", columns: Sequence[str] = "abcd") -> str:
    values = list(values)
    target = "".join(f'<Value value="{value}"/>' for value in values)
    optype = "categorical" if values else "continuous"
    fields = "".join(f'<DataField name="{c}" optype="continuous" dataType="double"/>' for c in columns)
    return (
        '<?xml version="1.0"?>\n<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/>\n<DataDictionary>'
        f'<DataField name="y" optype="{optype}" dataType="{kind}">{target}</DataField>{fields}</DataDictionary>\n'
        f"{model}</PMML>\n"
    )


def svm_model(
    function: str,
    machines: Sequence[str],
    vectors: Sequence[str],
    *,
    kernel: str,
    derived: str = "",
    fields: Sequence[str] = "abcd",
    columns: Sequence[str] = "abcd",
    attributes: str = "",
    more: str = "",
) -> str:
    schema = "".join(f'<MiningField name="{c}"/>' for c in columns)
    refs = "".join(f'<FieldRef field="{f}"/>' for f in fields)
    rows = "\n".join(f'<VectorInstance id="v{k}">{vector}</VectorInstance>' for k, vector in enumerate(vectors))
    return (
        f'<SupportVectorMachineModel functionName="{function}" classificationMethod="OneAgainstOne"{attributes}>'
        f'<MiningSchema><MiningField name="y" usageType="target"/>{schema}</MiningSchema>{more}'
        f"<LocalTransformations>{derived}</LocalTransformations>{kernel}\n"
        f"<VectorDictionary><VectorFields>{refs}</VectorFields>\n{rows}</VectorDictionary>\n"
        f"{''.join(machines)}</SupportVectorMachineModel>"
    )


def machine(support: Any, coef: Any, value: float, target: str = "", alternate: str = "", threshold: str = "") -> str:
    names = f' targetCategory="{target}" alternateTargetCategory="{alternate}"' if target else ""
    vectors = "".join(f'<SupportVector vectorId="v{k}"/>' for k in support)
    numbers = "".join(f'<Coefficient value="{float(a)!r}"/>' for a in coef)
    return (
        f"<SupportVectorMachine{names}{threshold}><SupportVectors>{vectors}</SupportVectors>"
        f'<Coefficients absoluteValue="{float(value)!r}">{numbers}</Coefficients></SupportVectorMachine>\n'
    )


def dense(row: Any) -> str:
    return f'<Array n="{len(row)}" type="real">{" ".join(repr(float(v)) for v in row)}</Array>'


def sparse(row: Any) -> str:
    at = np.flatnonzero(row)
    return (
        f'<REAL-SparseArray n="{len(row)}"><Indices>{" ".join(str(k + 1) for k in at)}</Indices>'
        f"<REAL-Entries>{' '.join(repr(float(v)) for v in row[at])}</REAL-Entries></REAL-SparseArray>"
    )


def derived(name: str, inside: str) -> str:
    return f'<DerivedField name="{name}" optype="continuous" dataType="double">{inside}</DerivedField>'


def apply(function: str, *inside: Any) -> str:
    shown = [f'<Constant dataType="double">{one!r}</Constant>' if isinstance(one, float) else one for one in inside]
    return f'<Apply function="{function}">{"".join(shown)}</Apply>'


def scaled(name: str, field: str, mean: float, scale: float) -> str:
    return derived(name, apply("/", apply("-", f'<FieldRef field="{field}"/>', float(mean)), float(scale)))


def kernel_of(svm: Any) -> str:
    gamma = repr(float(svm._gamma))
    if svm.kernel == "poly":
        return f'<PolynomialKernelType gamma="{gamma}" coef0="{svm.coef0}" degree="{svm.degree}"/>'
    return "<LinearKernelType/>" if svm.kernel == "linear" else f'<RadialBasisKernelType gamma="{gamma}"/>'


def text_of(svm: Any, vector: Callable[[Any], str] = dense, swapped: Any = (), **options: Any) -> str:
    """Return a fitted machine as PMML; a classifier's class pairs in `swapped` have their categories exchanged."""
    model, labels = approxsvm.read_any(svm), getattr(svm, "classes_", [])
    machines = []
    for k, (i, j) in enumerate(itertools.combinations(range(len(labels)), 2) if len(labels) else [(0, 0)]):
        coef = model.coefficients(k)
        used = np.flatnonzero(coef)
        sign = -1.0 if k in swapped else 1.0  # below 0 is the target category
        names = [str(labels[place]) for place in ((i, j) if k in swapped else (j, i))] if len(labels) else []
        machines.append(machine(used, sign * coef[used], sign * float(model.intercept[k]), *names))
    if model.task == "one_class":
        options["attributes"] = ' algorithmName="sklearn.svm._classes.OneClassSVM"'
    function = "classification" if len(labels) else "regression"
    vectors = [vector(row) for row in np.asarray(model.support_vectors)]
    text = svm_model(function, machines, vectors, kernel=kernel_of(svm), **options)
    kind = {"i": "integer", "b": "boolean", "U": "string"}[labels.dtype.kind] if len(labels) else "double"
    return document(text, labels, kind, options.get("columns", "abcd"))
