"""Lossless encoding of support vectors in as few bytes as possible (models/FORMAT.md, "support_vectors")."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.schema import MAX_DICTIONARY, names_of, padded, record

_HEADER: Final = record("support_vectors")
_DENSE, _CSR, _RELATIVE = map(names_of("storage").index, ("dense", "compressed", "relative"))
_FLOAT64, _FLOAT32, _CODES8, _CODES16 = map(names_of("value_kind").index, ("float64", "float32", "codes8", "codes16"))
_VALUE_DTYPES: Final = ("<f8", "<f4", "<u1", "<u2")
_INDEX_DTYPES: Final = {1: "<u1", 2: "<u2", 4: "<u4"}
# Dense storage is shorter than sparse storage if the fraction of nonzeros exceeds this, unless all values are equal.
_DENSE_SHARE: Final = 8 / 9
# Support vectors are stored relative to a reference row if two conditions hold. At most the first fraction of the
# values may differ from the row, because the exact engine then reads only those values. For accuracy, the maximum
# distance to the row may be at most the second factor times the maximum distance to the mean.
_FEW: Final = 1 / 3
_NEAR: Final = 2.0
# Minimum sample size for finding a column's most frequent value, and minimum fraction of the sample with this value.
_LOOKED_AT: Final = 256
_FREQUENT: Final = 0.4


def pack(model: KernelModel) -> bytes:
    """Encode a model's support vectors: dense, sparse, or relative to a reference row, whichever is shortest.

    Values are stored as codes into a dictionary, as float32 if exact, or as float64, whichever is shortest.
    """
    vectors: Any = model.support_vectors
    if isinstance(vectors, np.ndarray):
        dense = vectors
        is_dense = np.count_nonzero(dense) > _DENSE_SHARE * dense.size
        others = [] if is_dense else [_pack_csr(model.n_features, *_differences(dense, np.zeros(model.n_features)))]
    else:
        canonical = vectors.copy()
        canonical.eliminate_zeros()
        sparse = _pack_csr(model.n_features, np.diff(canonical.indptr), canonical.indices, canonical.data)
        if model.n_sv * model.n_features > len(
            sparse
        ):  # dense storage needs at least one byte per value, unless all values are equal
            return sparse
        dense, others = vectors.toarray(), [sparse]
    reference = None if model.kernel != "gaussian" else reference_row(dense)
    if reference is not None:
        others.append(_pack_csr(model.n_features, *_differences(dense, reference), reference))
    return min([_pack_dense(dense), *others], key=len)


def reference_row(vectors: FloatArray) -> FloatArray | None:
    """Return the row of most frequent values, or None if it is zero or far away or if many values differ from it.

    It suits standardized one-hot columns, which contain no zeros but only two distinct values each.
    """
    if len(vectors) == 0:
        return None
    # A value shared by more than half of the entries is also their median.
    some = vectors[:: max(len(vectors) // _LOOKED_AT, 1)]
    middle = len(some) // 2
    reference: FloatArray = np.partition(some, middle, axis=0)[middle]
    reference[np.count_nonzero(some == reference, axis=0) < _FREQUENT * len(some)] = 0.0
    if not reference.any() or np.count_nonzero(vectors != reference) > _FEW * vectors.size:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        spread, distance = (np.square(vectors - point).sum(axis=1).max() for point in (vectors.mean(axis=0), reference))
    return reference if distance <= _NEAR**2 * spread else None


def _differences(vectors: FloatArray, reference: FloatArray) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray]:
    """Return each vector's number of values that differ from the reference, and all such values' columns and values."""
    rows, columns = np.nonzero(vectors != reference)
    return np.bincount(rows, minlength=len(vectors)), columns, vectors[rows, columns]


def unpack(content: Any, n_sv: int, n_features: int) -> FloatArray:
    """Decode support vectors into an array of shape (n_sv, n_features)."""
    reader = SectionReader(content)
    storage, kind, index_bytes, n_dictionary, n_values = reader.take(_HEADER)
    dictionary = reader.array("<f8", n_dictionary)
    if storage == _DENSE:
        return _values(reader, kind, dictionary, n_values).reshape(n_sv, n_features)
    reference = reader.array("<f8", n_features) if storage == _RELATIVE else np.zeros(n_features)
    counts, columns = (reader.array(_INDEX_DTYPES[index_bytes], n) for n in (n_sv, n_values))
    result = np.tile(reference, (n_sv, 1))
    result[np.repeat(np.arange(n_sv), counts), columns] = _values(reader, kind, dictionary, n_values)
    return result


def _values(reader: SectionReader, kind: int, dictionary: FloatArray, count: int) -> FloatArray:
    if len(dictionary) == 1:
        return np.broadcast_to(dictionary, count)
    stored = reader.array(_VALUE_DTYPES[kind], count)
    values: FloatArray = dictionary[stored] if kind >= _CODES8 else stored.astype(np.float64)
    return values


def _pack_dense(dense: FloatArray) -> bytes:
    kind, dictionary, values = _narrow(dense.ravel())
    return _HEADER.pack(_DENSE, kind, 0, len(dictionary), dense.size) + dictionary.tobytes() + padded(values)


def _pack_csr(
    n_features: int,
    counts: npt.NDArray[Any],
    columns: npt.NDArray[Any],
    data: FloatArray,
    reference: FloatArray | None = None,
) -> bytes:
    """Encode, as compressed rows, all values that differ from the reference row or, without one, from zero."""
    kind, dictionary, values = _narrow(data)
    width = 1 if n_features < 1 << 8 else 2 if n_features < 1 << 16 else 4
    pieces = (counts.astype(_INDEX_DTYPES[width]).tobytes(), columns.astype(_INDEX_DTYPES[width]).tobytes(), values)
    header = _HEADER.pack(_CSR if reference is None else _RELATIVE, kind, width, len(dictionary), len(data))
    relative_to = b"" if reference is None else reference.astype("<f8").tobytes()
    return header + dictionary.tobytes() + relative_to + b"".join(map(padded, pieces))


def _narrow(values: FloatArray) -> tuple[int, FloatArray, bytes]:
    """Return the values' storage kind, dictionary and bytes; there are no bytes if all values are equal."""
    dictionary: FloatArray = np.unique(values[: 4 * MAX_DICTIONARY])
    codes: npt.NDArray[Any] = np.empty(0)
    if len(dictionary) <= MAX_DICTIONARY:
        dictionary, codes = np.unique(values, return_inverse=True)
    choices: list[tuple[int, int]] = [(8 * len(values), _FLOAT64)]
    with np.errstate(over="ignore"):
        if (values.astype(np.float32).astype(np.float64) == values).all():
            choices.append((4 * len(values), _FLOAT32))
    if 1 <= len(dictionary) <= 1 << 8:
        choices.append((8 * len(dictionary) + (len(values) if len(dictionary) > 1 else 0), _CODES8))
    elif 0 < len(dictionary) <= MAX_DICTIONARY:
        choices.append((8 * len(dictionary) + 2 * len(values), _CODES16))
    _, kind = min(choices)
    if kind < _CODES8:
        return kind, np.empty(0), values.astype(_VALUE_DTYPES[kind]).tobytes()
    content = codes.astype(_VALUE_DTYPES[kind]).tobytes() if len(dictionary) > 1 else b""
    return kind, dictionary, content
