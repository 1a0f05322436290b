"""Support vector machines in PMML 4.0 to 4.4, as defined by the standard and as written by JPMML and R's pmml.

According to the standard, a value below the threshold selects the class targetCategory, and any other value selects
alternateTargetCategory. The standard does not say how ties between votes are broken, and programs differ. In this
frontend, the first of the tied classes wins, in the order of the target's values.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.kernels import kernel_fields
from approxsvm.frontends.other_programs.markup import Element, parse_xml
from approxsvm.frontends.pairs import PairTerms, pair_block
from approxsvm.frontends.plain_numbers import plain_float
from approxsvm.frontends.sklearn.kernel_machines import restored
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import MAX_FEATURES, FloatArray, KernelModel
from approxsvm.ir.outputs import class_pairs

# Maximum total number of elements in all vectors if some of them are sparse; it corresponds to a gigabyte of float64.
_MOST_NUMBERS: Final = 1 << 27
_NUMBERS: Final = ("integer", "float", "double")
_DEEPEST: Final = 100
# Functions in Apply elements with a field and a constant, and the corresponding parameters of an affine step.
_OPERATIONS: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_ORDER: Final = ("subtract", "multiply", "divide", "add")


def read_pmml(path: str | os.PathLike[str]) -> KernelModel:
    """Read a SupportVectorMachineModel whose derived fields scale raw fields; errors name the line.

    Raw columns are the mining schema's active numeric fields, in its order and with its names. A regressor converted
    from scikit-learn's OneClassSVM predicts the labels 1 and -1, like the converter's output fields.
    """
    name = os.fspath(path)
    root = parse_xml(Path(path).read_bytes(), name)
    node = root.first("SupportVectorMachineModel")
    if root.name != "PMML" or node is None:
        held = ", ".join(child.name for child in root.children if child.name.endswith("Model")) or root.name
        raise UnsupportedModelError(f"{name}: this PMML file holds {held}, only SupportVectorMachineModel is read")
    return _Reader(name, root, node).read()


@dataclass(frozen=True, eq=False)
class _Machine:
    """SupportVectorMachine element: the indices of its vectors, its coefficients, and its intercept."""

    element: Element
    terms: PairTerms


class _Reader:
    """Reader of one model in a file; its methods check that required elements exist."""

    def __init__(self, name: str, root: Element, model: Element) -> None:
        self.name, self.root, self.model = name, root, model
        dictionary = self.needed(root, "DataDictionary")
        self.fields = {self.attribute(field, "name"): field for field in dictionary.all("DataField")}

    def read(self) -> KernelModel:
        if self.model.attributes.get("svmRepresentation", "SupportVectors") != "SupportVectors":
            raise self.unsupported(self.model, "svmRepresentation is Coefficients, only SupportVectors is read")
        target, raw = self.schema()
        dictionary = self.needed(self.model, "VectorDictionary")
        map_ = self.input_map(self.needed(dictionary, "VectorFields"), raw)
        ids, rows = self.vectors(dictionary, map_.n_features)
        machines = [self.machine(element, ids) for element in self.model.all("SupportVectorMachine")]
        common = {
            "input_map": None if map_.is_identity else map_,
            "feature_names": tuple(raw),
            "source": "pmml SupportVectorMachineModel",
            **self.kernel(),
        }
        task = self.attribute(self.model, "functionName")
        if task == "regression":
            return self.regression(machines, rows, target, common)
        if task != "classification":
            raise self.unsupported(self.model, f"functionName is {task!r}")
        return self.classifier(machines, rows, target, common)

    def error(self, element: Element, what: str) -> ModelFormatError:
        return ModelFormatError(f"{self.name}, line {element.line}: {what}")

    def unsupported(self, element: Element, what: str) -> UnsupportedModelError:
        return UnsupportedModelError(f"{self.name}, line {element.line}: {what}")

    def needed(self, element: Element, name: str) -> Element:
        child = element.first(name)
        if child is None:
            raise self.error(element, f"{element.name} has no {name}")
        return child

    def attribute(self, element: Element, name: str) -> str:
        if name not in element.attributes:
            raise self.error(element, f"{element.name} has no attribute {name}")
        return element.attributes[name]

    def number(self, element: Element, name: str, default: float | None = None) -> float:
        if default is not None and name not in element.attributes:
            return default
        return float(self.numbers(element, self.attribute(element, name), name, 1)[0])

    def numbers(self, element: Element, text: str, what: str, n: int | None = None) -> FloatArray:
        try:
            values = np.array([plain_float(token) for token in text.split()])
        except ValueError as error:
            raise self.error(element, f"{what} of {element.name}: {str(error)[:100]}") from None
        if n is not None and len(values) != n:
            raise self.error(element, f"{what} of {element.name}: {len(values)} numbers, expected {n}")
        if not np.isfinite(values).all():
            raise self.error(element, f"{what} of {element.name} holds NaN or infinity")
        return values

    def schema(self) -> tuple[str | None, dict[str, int]]:
        """Return the target's name, and the column index of each numeric field by name."""
        target: str | None = None
        raw: dict[str, int] = {}
        for field in self.needed(self.model, "MiningSchema").all("MiningField"):
            name, usage = self.attribute(field, "name"), field.attributes.get("usageType", "active")
            if usage in ("target", "predicted"):
                target = name
            elif usage == "active":
                if name not in self.fields:
                    raise self.error(field, f"the data dictionary has no field {name!r}")
                if field.attributes.get("outliers", "asIs") != "asIs":
                    raise self.unsupported(field, f"outliers of field {name!r} are changed, only asIs is read")
                if self.fields[name].attributes.get("dataType") in _NUMBERS:
                    raw[name] = len(raw)
        if not 1 <= len(raw) <= MAX_FEATURES:
            raise self.unsupported(self.model, f"{len(raw)} numeric fields, but 1 to {MAX_FEATURES} are read")
        return target, raw

    def input_map(self, vector_fields: Element, raw: Mapping[str, int]) -> InputMap:
        derived = {}
        for parent in (self.root.first("TransformationDictionary"), self.model.first("LocalTransformations")):
            for field in () if parent is None else parent.all("DerivedField"):
                derived[self.attribute(field, "name")] = field
        derivation = _Derivation(self, derived, raw, tuple(raw))
        maps = []
        for reference in vector_fields.children:
            if reference.name == "Extension":
                continue
            if reference.name != "FieldRef":
                raise self.unsupported(reference, f"{reference.name} in VectorFields, only FieldRef is read")
            maps.append(derivation.field_map(reference, 0))
        if not maps:
            raise self.error(vector_fields, "VectorFields has no field")
        return InputMap.concatenate(maps)

    def vectors(self, dictionary: Element, n_features: int) -> tuple[dict[str, int], FloatArray]:
        ids: dict[str, int] = {}
        rows: list[FloatArray] = []
        for instance in dictionary.all("VectorInstance"):
            name = self.attribute(instance, "id")
            if name in ids:
                raise self.error(instance, f"the id {name!r} occurs twice")
            ids[name] = len(ids)
            dense, sparse = instance.first("Array"), instance.first("REAL-SparseArray")
            if dense is not None:
                rows.append(self.numbers(dense, dense.text, "values", n_features))
            elif sparse is not None:
                if (len(rows) + 1) * n_features > _MOST_NUMBERS:
                    raise self.unsupported(
                        instance,
                        f"{len(rows) + 1:,} sparse vectors of {n_features:,} features: at most {_MOST_NUMBERS:,} "
                        "numbers of sparse vectors are read",
                    )
                rows.append(self.sparse_row(sparse, n_features))
            else:
                raise self.error(instance, "VectorInstance has no Array and no REAL-SparseArray")
        if not rows:
            raise self.error(dictionary, "there are no vectors")
        return ids, np.array(rows)

    def sparse_row(self, element: Element, n_features: int) -> FloatArray:
        indices, entries = element.first("Indices"), element.first("REAL-Entries")
        row = np.full(n_features, self.number(element, "defaultValue", 0.0))
        if indices is not None and entries is not None:
            positions = self.numbers(indices, indices.text, "indices")
            if not all(p in range(1, n_features + 1) for p in positions.tolist()):
                raise self.error(indices, f"an index is not from 1 to {n_features}")
            if len(np.unique(positions)) < len(positions):
                raise self.error(indices, "an index occurs twice")
            row[positions.astype(np.intp) - 1] = self.numbers(entries, entries.text, "values", len(positions))
        return row

    def machine(self, element: Element, ids: Mapping[str, int]) -> _Machine:
        support = []
        for vector in self.needed(element, "SupportVectors").all("SupportVector"):
            name = self.attribute(vector, "vectorId")
            if name not in ids:
                raise self.error(vector, f"there is no vector {name!r}")
            support.append(ids[name])
        coefficients = self.needed(element, "Coefficients")
        coef = np.array([self.number(one, "value", 0.0) for one in coefficients.all("Coefficient")])
        if len(coef) != len(support):
            raise self.error(coefficients, f"{len(coef)} coefficients for {len(support)} support vectors")
        intercept = self.number(coefficients, "absoluteValue", 0.0)
        return _Machine(element, PairTerms(np.array(support, np.intp), coef, intercept))

    def kernel(self) -> dict[str, Any]:
        """Return the kernel as fields of KernelModel."""
        element = next((child for child in self.model.children if child.name.endswith("KernelType")), None)
        if element is None:
            raise self.error(self.model, "the model has no kernel")
        kind = {"LinearKernelType": "linear", "RadialBasisKernelType": "rbf", "PolynomialKernelType": "poly"}
        where = f"{self.name}, line {element.line}"
        return kernel_fields(where, element.name, kind.get(element.name), lambda key: self.number(element, key, 1.0))

    def regression(self, machines: list[_Machine], rows: FloatArray, target: str | None, common: Any) -> KernelModel:
        if len(machines) != 1:
            raise self.error(self.model, f"{len(machines)} SupportVectorMachine, expected 1")
        terms = machines[0].terms
        coef = np.zeros(len(rows))
        np.add.at(coef, terms.support, terms.coef)
        if len(set(terms.support.tolist())) < len(terms.support):
            raise self.error(machines[0].element, "a support vector occurs twice")
        task = "one_class" if self.model.attributes.get("algorithmName", "").endswith("OneClassSVM") else "regression"
        model = KernelModel(
            task=task,  # type: ignore[arg-type]
            support_vectors=rows,
            dual_coef=coef,
            intercept=np.array([terms.intercept]),
            **common,
        )
        for targets in self.model.all("Targets"):
            for one in targets.all("Target"):
                if one.attributes.get("field", target) == target:
                    model = self.rescaled(model, one)
        return model

    def rescaled(self, model: KernelModel, target: Element) -> KernelModel:
        for key in ("castInteger", "min", "max"):
            if key in target.attributes:
                raise self.unsupported(target, f"the target has {key}, which cannot be compiled")
        factor, shift = self.number(target, "rescaleFactor", 1.0), self.number(target, "rescaleConstant", 0.0)
        return model if (factor, shift) == (1.0, 0.0) else restored(model, Fraction(factor), Fraction(shift))

    def classifier(self, machines: list[_Machine], rows: FloatArray, target: str | None, common: Any) -> KernelModel:
        if self.model.attributes.get("classificationMethod", "OneAgainstAll") != "OneAgainstOne" and len(machines) > 1:
            raise self.unsupported(self.model, "classificationMethod is OneAgainstAll, only OneAgainstOne is read")
        names = self.classes(machines, target)
        if len(names) == 2 and len(machines) == 1:
            first = self.attribute(machines[0].element, "targetCategory")
            names.sort(key=lambda name: name != first)  # in this case, a value of 0 means the second class
        by_pair: dict[tuple[int, int], tuple[PairTerms, float]] = {}
        for machine in machines:
            low, high = self.pair_of(machine.element, names)
            pair = (min(low, high), max(low, high))
            if pair in by_pair:
                raise self.error(machine.element, f"there are two machines for {names[pair[0]]} and {names[pair[1]]}")
            by_pair[pair] = self.oriented(machine, -1.0 if low < high else 1.0)
        pairs = class_pairs(len(names))
        missing = [pair for pair in pairs if pair not in by_pair]
        if missing:
            i, j = missing[0]
            raise self.error(self.model, f"there is no machine for the classes {names[i]} and {names[j]}")
        try:
            block = pair_block(len(names), len(rows), [by_pair[pair][0] for pair in pairs])
        except ModelFormatError as error:
            raise self.error(self.model, str(error)) from None
        return KernelModel(
            task="classification",
            support_vectors=rows[block.order],
            dual_coef=block.dual_coef,
            intercept=block.intercept,
            labels=self.labels(names, target),
            n_support=block.n_support,
            value_error=np.array([by_pair[pair][1] for pair in pairs]),
            **common,
        )

    def classes(self, machines: list[_Machine], target: str | None) -> list[str]:
        """Return the names of all classes, in the order of the target's values."""
        field = self.fields.get(target or "")
        given = [] if field is None else [self.attribute(value, "value") for value in field.all("Value")]
        if len(set(given)) < len(given):
            raise self.error(self.model, f"values of the target occur twice: {given}")
        if given:
            return given
        names: dict[str, None] = {}
        for machine in machines:
            names[self.attribute(machine.element, "targetCategory")] = None
            names[self.alternate(machine.element)] = None
        return list(names)

    def alternate(self, element: Element) -> str:
        both = {**self.model.attributes, **element.attributes}
        for key in ("alternateTargetCategory", "alternateBinaryTargetCategory"):
            if key in both:
                return both[key]
        raise self.error(element, "SupportVectorMachine has no attribute alternateTargetCategory")

    def pair_of(self, element: Element, names: list[str]) -> tuple[int, int]:
        """Return the indices of the target category and the alternate target category."""
        target = self.attribute(element, "targetCategory")
        others = [name for name in names if name != target]
        is_known = any(k.startswith("alternate") for k in {**element.attributes, **self.model.attributes})
        alternate = others[0] if len(names) == 2 and others and not is_known else self.alternate(element)
        for name in (target, alternate):
            if name not in names:
                raise self.error(element, f"the target has no value {name!r}")
        if target == alternate:
            raise self.error(element, f"{target!r} against itself")
        return names.index(target), names.index(alternate)

    def oriented(self, machine: _Machine, sign: float) -> tuple[PairTerms, float]:
        """Return the function sign * (value - threshold), and a bound on its rounding error."""
        model_wide = self.number(self.model, "threshold", 0.0)
        threshold = self.number(machine.element, "threshold", model_wide)
        terms = machine.terms
        shifted = terms.intercept - threshold
        error = 0.0 if threshold == 0 else 2 * UNIT64 * abs(shifted)
        return replace(terms, coef=sign * terms.coef, intercept=sign * shifted), error

    def labels(self, names: list[str], target: str | None) -> Any:
        """Convert labels to the target's data type."""
        field = self.fields.get(target or "")
        kind = "string" if field is None else field.attributes.get("dataType", "string")
        if kind == "boolean":
            return np.array([name.lower() in ("true", "1") for name in names])
        if kind not in _NUMBERS:
            return np.array(names)
        assert field is not None
        values = self.numbers(field, " ".join(names), "values", len(names))
        if kind == "integer" and (values == np.floor(values)).all() and (np.abs(values) < 2.0**53).all():
            return values.astype(np.int64)
        return values


@dataclass(frozen=True)
class _Derivation:
    """Input maps of single fields, built from the fields' derivations."""

    reader: _Reader
    derived: Mapping[str, Element]
    raw: Mapping[str, int]
    names: tuple[str, ...]

    def field_map(self, reference: Element, depth: int) -> InputMap:
        """Return the map for a reference to a raw or derived field."""
        name = self.reader.attribute(reference, "field")
        if depth > _DEEPEST:
            raise self.reader.error(reference, f"the field {name!r} is derived from itself, or through too many others")
        if name in self.derived:
            inside = [child for child in self.derived[name].children if child.name not in ("Extension", "Value")]
            if len(inside) != 1:
                raise self.reader.error(self.derived[name], f"DerivedField has {len(inside)} expressions, expected 1")
            return self.expression_map(inside[0], depth + 1)
        if name not in self.raw:
            raise self.reader.unsupported(reference, f"{name!r} is not an active numeric field")
        return InputMap.selection(len(self.raw), [self.raw[name]], self.names)

    def expression_map(self, element: Element, depth: int) -> InputMap:
        if element.name == "FieldRef":
            return self.field_map(element, depth)
        if element.name == "NormContinuous":
            return self.normalised(element, depth)
        if element.name == "Apply":
            return self.applied(element, depth)
        raise self.reader.unsupported(element, f"a field is derived by {element.name}, which cannot be folded in")

    def normalised(self, element: Element, depth: int) -> InputMap:
        """Return the line through two points: norm + (x - orig) * (difference of norms) / (difference of origs)."""
        points = element.all("LinearNorm")
        if len(points) != 2:
            raise self.reader.unsupported(element, f"NormContinuous has {len(points)} points, only 2 are read")
        x, y = ([self.reader.number(point, key) for point in points] for key in ("orig", "norm"))
        width, height = x[1] - x[0], y[1] - y[0]
        if width == 0 or height == 0 or not np.isfinite([width, height]).all():
            raise self.reader.error(element, f"NormContinuous goes from {x[0]:g} to {x[1]:g}, to {y[0]:g} to {y[1]:g}")
        limits = {}
        outliers = element.attributes.get("outliers", "asIs")
        if outliers == "asExtremeValues":
            limits = {"low": min(y), "high": max(y)}
        elif outliers != "asIs":
            raise self.reader.unsupported(element, f"outliers of NormContinuous are {outliers}")
        exact = (Fraction(y[1]) - Fraction(y[0])) / (Fraction(x[1]) - Fraction(x[0]))
        given = Fraction(height) / Fraction(width)
        error = float(abs(given - exact) / abs(given)) * (1 + 2.0**-50)
        before = self.field_map(element, depth + 1)
        return before.then_affine(
            subtract=x[0], multiply=height, divide=width, add=y[0], relative_error=error, **limits
        )

    def applied(self, element: Element, depth: int) -> InputMap:
        """Fold a chain of operations with constants into as few affine steps as their order allows."""
        chain: list[tuple[str, float]] = []
        inner = element
        while inner.name == "Apply":
            if len(chain) > _DEEPEST:
                raise self.reader.error(inner, f"more than {_DEEPEST} operations on one field")
            steps, inner = self.operation(inner)
            chain = steps + chain
        map_ = self.expression_map(inner, depth + 1)
        parts: dict[str, float] = {}
        for part, value in chain:
            if parts and _ORDER.index(part) <= max(map(_ORDER.index, parts)):
                map_, parts = map_.then_affine(**parts), {}
            parts[part] = value
        return map_.then_affine(**parts)

    def operation(self, element: Element) -> tuple[list[tuple[str, float]], Element]:
        """Return an operation's affine parameters, and the element to which it is applied."""
        function = self.reader.attribute(element, "function")
        inside = [child for child in element.children if child.name != "Extension"]
        constants = [child.name == "Constant" for child in inside]
        if function not in _OPERATIONS or len(inside) != 2 or sum(constants) != 1:
            raise self.reader.unsupported(
                element, f"Apply {function!r} cannot be folded in, only + - * / of one field and constants"
            )
        constant, other = (inside[0], inside[1]) if constants[0] else (inside[1], inside[0])
        value = float(self.reader.numbers(constant, constant.text, "value", 1)[0])
        part = _OPERATIONS[function]
        if function in ("-", "/") and constants[0]:
            if function == "/":
                raise self.reader.unsupported(element, "a constant divided by a field cannot be folded in")
            return [("multiply", -1.0), ("add", value)], other
        if part == "divide" and value == 0:
            raise self.reader.error(element, "a division by 0")
        return [(part, value)], other
