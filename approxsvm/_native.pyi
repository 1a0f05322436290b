"""The native core. Private: arrays in, arrays out, nothing is converted."""

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

# The numbers of models/FORMAT.md, from cpp/include/approxsvm/artifact/schema.inc. `records` have name, code in Python's
# struct and count of each field. `layouts` have the name and code of each array, or "" and the multiple that zero bytes
# lead to. `domains` are the numbers that kinds of steps need, in words.
class Schema(TypedDict):
    limits: dict[str, float]
    sections: dict[str, int]
    enumerations: dict[str, dict[str, int]]
    records: dict[str, list[tuple[str, str, int]]]
    layouts: dict[str, list[tuple[str, str | int]]]
    domains: dict[str, str]

def schema() -> Schema: ...

# What bounds and costs share with the core (cpp/python/register_constants.cpp), by its names there. Functions of s take
# numbers, or arrays that broadcast.
def constants() -> dict[str, Any]: ...
def are_few(n_values: int, n_sv: int, n_features: int) -> bool: ...
def max_phi(k: int, low: Any, high: Any) -> Any: ...
def remainder_factor(first: int, theta: float, s: Any) -> Any: ...

# Bounds of expansions (cpp/include/approxsvm/bounds/certificate.hpp). `ends` are the lowest and highest s of cells,
# (2, n_cells). Factors are of N_0 ... N_8, of each theta's remainder (infinite: W replaces it) and of W, (14, n_cells).
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

# Sums of powers, tanh or cos (cpp/include/approxsvm/program/terms.h): reach and moments; the rest takes arrays.
def term_moments(power: int, norms: _Array, moduli: _Array) -> tuple[float, Any]: ...
def term_limit(power: int, order: int, reach: Any) -> Any: ...
def sum_error(power: int, of_arguments: float, of_terms: float, moduli: Any, a1: Any) -> Any: ...

# Origin and step of a grid that few values are on; a step of 0 if there is none.
def common_grid(values: _Array) -> tuple[float, float]: ...

# Bytes that have been validated, as a buffer that nobody may write to. A source that is read-only and begins
# at a multiple of 64 is used as it is, others are copied. ArtifactError names section, field and both numbers.
class Artifact:
    def __init__(self, source: Any) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def n_terms(self) -> int: ...
    # Multiply-adds that the labels of a row alone take at most, up to float64 and with the definition; None if unknown.
    @property
    def row_work(self) -> tuple[float, float] | None: ...
    # Names of cpp/include/approxsvm/parts.inc that a program's approxsvm::ModelOf needs for the model.
    @property
    def parts(self) -> list[str]: ...
    # Of a section with a layout: name, code, offset in it, count, least and largest value; records have no name.
    def list_numbers(self, section: int) -> list[tuple[str, str, int, int, float, float]]: ...

# Reads raw rows of Python's own values, whose texts it looks up in the artifact; columns are (name, role, code of a
# missing value or None where none is taken, codes that the source refuses). None or False where a value is for the
# general way (cpp/python/row_reader.hpp).
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
    # `float32_unit`: the unit roundoff in which the source maps rows that arrive as float32, 2**-24, or 0 where it maps
    # them in float64. Bounds and labels of such rows then hold for both of its ways.
    def __init__(self, artifact: Artifact | bytes, target: str | None = None, *, float32_unit: float = 0.0) -> None: ...
    @property
    def target(self) -> str: ...
    @property
    def counts(self) -> list[int]: ...
    # Rows that `values` sent straight to the engine in float64; `counts` has them, too.
    @property
    def exact_count(self) -> int: ...
    # Multiply-adds that a support vector takes where rows go by the few values of its columns; 0 where they do not.
    @property
    def few_values_work(self) -> float: ...
    # What `want` says of raw rows, bits added up: 1 labels (uint32 positions), 2 decision values, 4 bounds, 8 stages
    # (uint8), 16 whether the first stage proves the row, 32 probabilities, 64 their bounds; several come as a tuple, in
    # this order. `values`: "promised" (exact ones, unless the model has a tolerance), "settled" (of the cheapest stage
    # that settles the label and the tolerance) or "exact". `as_part`: the numbers are those of rows in a large batch,
    # however few they are.
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
    # The position of the label, or a regression's value.
    def one(self, row: _Array) -> float | int: ...
    # The same of a dict, a list or a tuple; None where the reader leaves it to others, or the row is at fault.
    def one_of(self, reader: RowReader, row: Any) -> Any: ...

# Maps rows by a section input_map (models/FORMAT.md): float64, the columns that it selects.
class InputMap:
    def __init__(self, section: bytes, n_raw_features: int, n_features: int) -> None: ...
    # Values and errors, both (n_rows, n_features), distances, whether a row has left float64, whether a step does not
    # take it; and of the first of the latter the row, the step's kind, the number and what the step needs.
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

# What a section outputs (models/FORMAT.md; None: none) makes of decision values: float64, (n_rows, n_decisions).
# task: 0 classification, 1 regression, 2 one-class, whose classes are normal and outlier; n_labels as in the header.
# Results have the shape (n_rows, n_classes) or (n_rows,); bounds have that of the values.
class Outputs:
    def __init__(self, section: bytes | None, task: int, n_labels: int) -> None: ...
    def probabilities(self, values: _Floats) -> _Floats: ...
    def probability_interval(self, values: _Floats, bounds: _Floats) -> tuple[_Floats, _Floats]: ...
    def one_vs_rest_scores(self, values: _Floats) -> _Floats: ...
    def one_vs_rest_interval(self, values: _Floats, bounds: _Floats) -> tuple[_Floats, _Floats]: ...
    def predicted_class(self, values: _Floats) -> _Positions: ...
    # The predicted classes, and whether the exact values have the same.
    def certified_class(self, values: _Floats, bounds: _Floats) -> tuple[_Positions, _Bools]: ...

def runnable_targets() -> list[str]: ...

# sum_ij left_i gram_ij^k right_j for k = 0, 1, ... as far as `series` goes. Matrices that are given are filled:
# `powers` with gram^k, element by element, by their degrees k; and sum_of_series with sum_k series_k gram^k. All are
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

# sum_ij |a_i a_j| K_ij of a block of the kernel matrix, K_ij = exp(min(0, gram_ij - left_i - right_j)). Arrays that are
# given are filled: `remainders` with K_ij^theta - exp(-theta (left_i + right_j)) (1 + theta gram_ij) for theta = 1/2,
# 1/4, ..., and the sums of K times the coefficients, over the columns for each row and over the rows for each column.
# The number of columns is a multiple of `kernel_block_columns`.
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

# What a file is by its bytes, "a JSON file"; empty where they do not tell.
def file_kind(data: bytes) -> str: ...

# The same in a clause, with advice if there is any: "this is a pickle; approxsvm convert-model --trust reads it".
def described_file(data: bytes) -> str: ...

# Labels, indptr, indices, values, least and largest index of lines in memory.
def parse_libsvm_data(text: bytes) -> tuple[_Floats, _Integers, npt.NDArray[np.int32], _Floats, int, int]: ...

# Counts the terms of texts as scikit-learn's vectorizers do (frames/ngrams.py): `terms` by their positions, or
# columns of hashes where `n_hashes` is above 0. Words are runs of word characters of at least `min_token_size`.
# ArtifactError: a term is listed twice, or too many have the same hash.
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
    # Counts, columns and indptr of CSR rows. A list in the place of a text holds its tokens.
    def count(
        self, texts: list[str] | list[list[str]]
    ) -> tuple[_Floats, npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...

# Divide CSR rows of float32 or float64 by the sums of their values or squares, in place.
def normalize_rows(indptr: npt.NDArray[np.int32], values: _Array, squares: bool) -> None: ...
