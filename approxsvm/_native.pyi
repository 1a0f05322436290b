"""The native core, a private module whose functions take and return arrays without conversions."""

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
from typing_extensions import NotRequired

_Array = npt.NDArray[Any]
_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]
_Integers = npt.NDArray[np.int64]
_Positions = npt.NDArray[np.intp]

class LibsvmModelDict(TypedDict):
    svm_type: str
    kernel_type: str
    degree: int | None
    gamma: float | None
    coef0: float | None
    n_classes: int
    rho: _Floats
    labels: npt.NDArray[np.int32]
    n_sv_per_class: _Integers
    probA: NotRequired[_Floats]
    probB: NotRequired[_Floats]
    prob_density_marks: NotRequired[_Floats]
    coef: _Floats
    indptr: _Integers
    indices: npt.NDArray[np.int32]
    values: _Floats
    scaled_indices: NotRequired[npt.NDArray[np.int32]]
    scales: NotRequired[_Floats]
    min_index: int
    max_index: int
    ends_in_line_break: bool

# The constants of models/FORMAT.md, from cpp/include/approxsvm/artifact/schema.inc. Fields of `records` have a name, a
# code of Python's struct and a count. Arrays of `layouts` have a name and a code; the name "" means padding with zero
# bytes to a multiple of a number of bytes. `domains` describes the numbers that each kind of op accepts.
class Schema(TypedDict):
    limits: dict[str, float]
    sections: dict[str, int]
    enumerations: dict[str, dict[str, int]]
    records: dict[str, list[tuple[str, str, int]]]
    layouts: dict[str, list[tuple[str, str | int]]]
    domains: dict[str, str]

def schema() -> Schema: ...

# Constants of bounds and costs that are shared with the core (cpp/python/register_constants.cpp), by their names in
# C++. Functions of s take numbers or arrays that can be broadcast.
def constants() -> dict[str, Any]: ...
def are_few(n_values: int, n_sv: int, n_features: int) -> bool: ...
def max_phi(k: int, low: Any, high: Any) -> Any: ...
def remainder_factor(first: int, theta: float, s: Any) -> Any: ...

# Bounds of expansions (cpp/include/approxsvm/bounds/certificate.hpp). `ends` holds the lowest and highest s of each
# cell, (2, n_cells). The result, (14, n_cells), has factors of N_0 ... N_8, of the remainder for each theta (infinite
# if W replaces the remainder) and of W.
class ExpansionArithmetic:
    def __init__(self, unit: float, form: float, half_norm: float) -> None: ...
    unit: float
    form: float
    half_norm: float

def float32_arithmetic(n_features: int, degree: int) -> ExpansionArithmetic: ...
def bound_cells(n_features: int) -> _Floats: ...
def bound_factors(
    ends: _Floats, degree: int, first_remainder_degree: int, arithmetic: ExpansionArithmetic
) -> _Floats: ...

# Sums of powers, tanh or cos (cpp/include/approxsvm/program/terms.h): reach and moments. Other functions take arrays.
def term_moments(power: int, norms: _Array, moduli: _Array) -> tuple[float, Any]: ...
def term_limit(power: int, order: int, reach: Any) -> Any: ...
def sum_error(power: int, of_arguments: float, of_terms: float, moduli: Any, a1: Any) -> Any: ...

# Origin and step of a grid that contains the few values; the step is 0 if there is no such grid.
def common_grid(values: _Array) -> tuple[float, float]: ...

# Validated bytes, as a read-only buffer. A source that is read-only and aligned to 64 bytes is used without a copy; any
# other source is copied. ArtifactError names the section, the field, the found and the expected number.
class Artifact:
    def __init__(self, source: Any) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def n_terms(self) -> int: ...
    # Maximum numbers of multiply-adds for the labels of a single row, without and with the definition, or None.
    @property
    def row_work(self) -> tuple[float, float] | None: ...
    # Names in cpp/include/approxsvm/parts.inc of the parts that approxsvm::ModelOf needs for this model.
    @property
    def parts(self) -> list[str]: ...
    # Name (empty for records), code, offset, count, smallest and largest value of each array in a section.
    def list_numbers(self, section: int) -> list[tuple[str, str, int, int, float, float]]: ...

# Reads raw rows of Python values; strings in the rows are looked up in the artifact. Each column is (name, role, code
# of a missing value or None if it is rejected, codes that the source rejects). Methods return None or False if a value
# must take the general path (cpp/python/row_reader.hpp).
class RowReader:
    def __init__(
        self,
        artifact: Artifact,
        columns: list[tuple[str, int, float | None, tuple[float, ...]]],
        *,
        by_column: bool,
        has_names: bool,
        needs_real: bool,
    ) -> None: ...
    def row(self, row: Any) -> _Floats | None: ...
    def row_of_table(self, values: list[Any], none_is_null: bool) -> _Floats | None: ...
    def fill(self, column: int, values: list[Any] | _Array, out: _Floats, none_is_null: bool) -> bool: ...

class Predictor:
    # `float32_unit`: the unit roundoff in which the source transforms float32 rows, 2**-24; or 0 if the source
    # transforms these rows in float64. With 2**-24, bounds and labels hold for a source that computes in float32 or in
    # float64.
    def __init__(self, artifact: Artifact | bytes, target: str | None = None, *, float32_unit: float = 0.0) -> None: ...
    @property
    def target(self) -> str: ...
    @property
    def counts(self) -> list[int]: ...
    # Number of rows sent straight to the float64 engine because of the option `values`; included in `counts`.
    @property
    def exact_count(self) -> int: ...
    # Number of multiply-adds per support vector if rows are evaluated on a grid of few values, otherwise 0.
    @property
    def few_values_work(self) -> float: ...
    # `want` is a sum of bits, one for each requested output: 1 labels (uint32 positions), 2 decision values, 4 bounds,
    # 8 stages (uint8), 16 whether the first stage proves the label or value, 32 probabilities, 64 bounds on the
    # probabilities. Several outputs are returned as a tuple, in this order. `values`: "promised" (exact values, or
    # values within the model's tolerance if it has one), "settled" (values of the cheapest stage that determines the
    # label and meets the tolerance) or "exact". `as_part`: the results are identical to the results for the same rows
    # in a large batch.
    def dense(
        self, rows: _Array, n_threads: int, want: int = 2, values: str = "promised", as_part: bool = False
    ) -> Any: ...
    def csr(
        self,
        indptr: _Array,
        indices: _Array,
        data: _Array,
        n_threads: int,
        want: int = 2,
        values: str = "promised",
        as_part: bool = False,
    ) -> Any: ...
    # Returns the position of the row's label, or the value of a regression.
    def one(self, row: _Array) -> float | int: ...
    # Predicts a dict, list or tuple as `one` does; returns None for an invalid row, or for a row that the reader cannot
    # convert.
    def one_of(self, reader: RowReader, row: Any) -> Any: ...

# Transforms rows by a section "input_map" (models/FORMAT.md), in float64, for the columns that the map selects.
class InputMap:
    def __init__(self, section: bytes, n_raw_features: int, n_features: int) -> None: ...
    # Returns values and errors, both (n_rows, n_features); a bound on each row's Euclidean distance from the exact row;
    # whether a number of the row left the range of float64; whether a step rejects the row; and, for the first rejected
    # row, the position, kind of step, number, and limit of the step.
    def map(
        self,
        rows: _Floats,
        errors: _Floats | None = None,
        is_source: bool = True,
        exactly: bool = False,
        counts_source: bool = False,
        is_sparse: bool = False,
        in_float32: bool = False,
    ) -> tuple[_Floats, _Floats, _Floats, _Bools, _Bools, tuple[int, int, float, float] | None]: ...

# Outputs computed from decision values, float64 of shape (n_rows, n_decisions), by a section "outputs"
# (models/FORMAT.md), or by the default outputs if the section is None. `task`: 0 for classification, 1 for regression,
# 2 for one-class models, whose classes are normal and outlier; `n_labels` is the number in the header. Results have the
# shape (n_rows, n_classes) or (n_rows,); bounds have the shape of the values.
class Outputs:
    def __init__(self, section: bytes | None, task: int, n_labels: int) -> None: ...
    def probabilities(self, values: _Floats) -> _Floats: ...
    def probability_interval(self, values: _Floats, bounds: _Floats) -> tuple[_Floats, _Floats]: ...
    def one_vs_rest_scores(self, values: _Floats) -> _Floats: ...
    def one_vs_rest_interval(self, values: _Floats, bounds: _Floats) -> tuple[_Floats, _Floats]: ...
    def predicted_class(self, values: _Floats) -> _Positions: ...
    # Returns the predicted classes, and whether the exact values have the same predicted class.
    def certified_class(self, values: _Floats, bounds: _Floats) -> tuple[_Positions, _Bools]: ...

def runnable_targets() -> list[str]: ...

# Computes sum_ij left_i gram_ij^k right_j for k = 0, 1, ..., one sum for each number in `series`. The function stores
# the elementwise power gram^k in the matrix `powers[k]`, and sum_k series_k gram^k in `sum_of_series`. All arrays are
# float64 in C order.
def gram_powers(
    gram: _Floats,
    left: _Floats,
    right: _Floats,
    powers: dict[int, _Floats],
    series: _Floats,
    sum_of_series: _Floats | None,
    target: str | None = None,
) -> _Floats: ...

# Computes sum_ij |a_i a_j| K_ij of a block of the kernel matrix, K_ij = exp(min(0, gram_ij - left_i - right_j)). The
# given arrays are filled: `remainders` with K_ij^theta - exp(-theta (left_i + right_j)) (1 + theta gram_ij) for theta =
# 1/2, 1/4, ..., and the sums of K times the coefficients, over the columns for each row and over the rows for each
# column. The number of columns must be a multiple of `kernel_block_columns`.
def kernel_block(
    gram: _Floats,
    left: _Floats,
    right: _Floats,
    left_coef: _Floats,
    right_coef: _Floats,
    remainders: Sequence[npt.NDArray[np.float32] | None],
    row_sums: _Floats,
    column_sums: _Floats,
    target: str | None = None,
) -> float: ...
def read_libsvm_model(path: str) -> LibsvmModelDict: ...
def read_libsvm_data(
    path: str, n_threads: int
) -> tuple[_Floats, _Integers, npt.NDArray[np.int32], _Floats, int, int]: ...

# Returns the kind of a file with these bytes, such as "a JSON file"; empty if the bytes do not determine the kind.
def file_kind(data: bytes) -> str: ...

# Returns a clause about the kind, with any advice: "this is a pickle; approxsvm convert-model --trust reads it".
def described_file(data: bytes) -> str: ...

# Returns the labels, indptr, indices, values, and the least and largest index of LIBSVM lines in memory.
def parse_libsvm_data(text: bytes) -> tuple[_Floats, _Integers, npt.NDArray[np.int32], _Floats, int, int]: ...

# Counts the terms of strings as scikit-learn's vectorizers do (frames/ngrams.py): the columns are positions in `terms`,
# or hashes if `n_hashes` is positive. Words are runs of at least `min_token_size` word characters. Raises ArtifactError
# if a term is listed twice, or if too many terms have the same hash.
class TermCounter:
    def __init__(
        self,
        analyzer: str,
        min_n: int,
        max_n: int,
        min_token_size: int,
        stop_words: list[str],
        terms: list[str],
        n_hashes: int,
        alternate_sign: bool,
    ) -> None: ...
    # Returns the counts, columns and indptr of CSR rows. A document may also be a list of tokens.
    def count(
        self, texts: list[str] | list[list[str]]
    ) -> tuple[_Floats, npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...

# Divides CSR rows of float32 or float64, in place, by the sums of the values or of their squares.
def normalize_rows(indptr: npt.NDArray[np.int32], values: _Array, squares: bool) -> None: ...
