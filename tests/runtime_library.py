"""The interface declared in approxsvm.h, through ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import approxsvm

LIBRARY_FOLDER = Path(approxsvm.get_cmake_dir()).parent.parent
LIBRARY = LIBRARY_FOLDER / "libapproxsvm.so"


class Error(ctypes.Structure):
    _fields_ = [
        ("status", c_int32),
        ("row", c_int64),
        ("found", c_double),
        ("expected", c_double),
        ("message", c_char * 240),
    ]


class Label(ctypes.Structure):
    _fields_ = [
        ("kind", c_int32),
        ("integer", c_int64),
        ("real", c_double),
        ("text", c_void_p),
        ("text_size", c_size_t),
    ]


ANSWERS = {
    "labels": c_uint32,
    "values": c_double,
    "bounds": c_double,
    "probabilities": c_double,
    "probability_bounds": c_double,
    "certified": c_uint8,
}


class Request(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("values_kind", c_int32),
        ("n_threads", c_int32),
        *[field for name, number in ANSWERS.items() for field in ((name, POINTER(number)), (f"{name}_size", c_size_t))],
    ]


class Field(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("name_size", c_size_t),
        ("kind", c_int32),
        ("number", c_double),
        ("text", c_char_p),
        ("text_size", c_size_t),
    ]


STRUCTS = {
    "approxsvm_error": Error,
    "approxsvm_field": Field,
    "approxsvm_label": Label,
    "approxsvm_request": Request,
}

_INDICES = {np.dtype(np.int32): ("", c_int32), np.dtype(np.int64): ("_i64", c_int64)}
_REALS = {np.dtype(np.float32): ("f32", ctypes.c_float), np.dtype(np.float64): ("f64", c_double)}


def declared() -> ctypes.CDLL:
    """Return the library with its function types."""
    library = ctypes.CDLL(str(LIBRARY))
    error = POINTER(Error)
    library.approxsvm_open_file.argtypes = [c_char_p, POINTER(c_void_p), error]
    library.approxsvm_open_bytes.argtypes = [c_void_p, c_size_t, POINTER(c_void_p), error]
    library.approxsvm_close.argtypes = [c_void_p]
    library.approxsvm_close.restype = None
    for name in ("n_features", "n_labels", "n_targets", "n_decisions", "n_probabilities"):
        getattr(library, f"approxsvm_{name}").argtypes = [c_void_p]
        getattr(library, f"approxsvm_{name}").restype = c_size_t
    for name in ("task", "mode"):
        getattr(library, f"approxsvm_{name}").argtypes = [c_void_p]
    library.approxsvm_target.argtypes = [c_void_p]
    library.approxsvm_label_at.argtypes = [c_void_p, c_size_t, POINTER(Label)]
    library.approxsvm_label_at.restype = None
    library.approxsvm_label_text.argtypes = [c_void_p, c_size_t, c_char_p, c_size_t]
    library.approxsvm_label_text.restype = c_size_t
    library.approxsvm_category_code.argtypes = [c_void_p, c_size_t, c_char_p, c_size_t]
    library.approxsvm_category_code.restype = c_double
    library.approxsvm_category_text.argtypes = [c_void_p, c_size_t, c_size_t, c_char_p, c_size_t]
    library.approxsvm_category_text.restype = c_size_t
    library.approxsvm_feature_name.argtypes = [c_void_p, c_size_t, c_char_p, c_size_t]
    library.approxsvm_feature_name.restype = c_size_t
    library.approxsvm_row_of_record.argtypes = [
        *(c_void_p, POINTER(Field), c_size_t, POINTER(c_double), c_size_t, error)
    ]
    library.approxsvm_n_categories.argtypes = [c_void_p, c_size_t]
    library.approxsvm_n_categories.restype = c_size_t
    for name in ("version", "status_text", "target"):
        getattr(library, f"approxsvm_{name}").restype = c_char_p
    library.approxsvm_abi_version.restype = c_uint32
    for suffix, real in _REALS.values():
        rows = [c_void_p, POINTER(real), c_size_t]
        getattr(library, f"approxsvm_evaluate_{suffix}").argtypes = [*rows, POINTER(Request), error]
        getattr(library, f"approxsvm_predict_{suffix}").argtypes = [*rows, POINTER(c_uint32), c_size_t, error]
        for index_suffix, index in _INDICES.values():
            sparse = [c_void_p, POINTER(real), POINTER(index), c_size_t, POINTER(index), c_size_t]
            function = getattr(library, f"approxsvm_evaluate_csr_{suffix}{index_suffix}")
            function.argtypes = [*sparse, POINTER(Request), error]
    return library


LIB = declared()


class RuntimeLibraryError(Exception):
    """Raised for a nonzero status code; contains the fields of the C error."""

    def __init__(self, code: int, error: Error) -> None:
        super().__init__(error.message.decode())
        self.code, self.row = code, error.row
        self.found, self.expected = error.found, error.expected
        assert error.status == code


def pointer(array: npt.NDArray[Any], number: Any) -> Any:
    return array.ctypes.data_as(POINTER(number))


def _field(name: str | None, value: Any) -> Field:
    own = None if name is None else name.encode()
    text = value.encode() if isinstance(value, str) else None
    kind = 0 if value is None else 1 if text is None else 2
    return Field(own, len(own or b""), kind, value if kind == 1 else 0.0, text, len(text or b""))


class Runtime:
    """A model opened through the C interface."""

    def __init__(self, source: Path | bytes) -> None:
        self.handle = c_void_p()
        error = Error()
        if isinstance(source, bytes):
            code = LIB.approxsvm_open_bytes(source, len(source), byref(self.handle), byref(error))
        else:
            code = LIB.approxsvm_open_file(str(source).encode(), byref(self.handle), byref(error))
        if code:
            assert not self.handle
            raise RuntimeLibraryError(code, error)

    def __del__(self) -> None:
        LIB.approxsvm_close(self.handle)

    def count(self, what: str) -> int:
        return int(getattr(LIB, f"approxsvm_n_{what}")(self.handle))

    def per_row(self, answer: str) -> int:
        n = {"values": "decisions", "bounds": "decisions", "probabilities": "probabilities"}
        n |= {"probability_bounds": "probabilities", "labels": "targets", "certified": "targets"}
        return self.count(n[answer]) if answer in n else 1

    def evaluate(self, rows: Any, *wanted: str, values_kind: int = 0, n_threads: int = 1) -> list[npt.NDArray[Any]]:
        """Return the requested answers for an ndarray or csr_array."""
        request = Request(ctypes.sizeof(Request), values_kind, n_threads)
        arrays = []
        for name in wanted:
            array = np.full((rows.shape[0], self.per_row(name)), 77, np.dtype(ANSWERS[name]))
            arrays.append(array)
            setattr(request, name, pointer(array, ANSWERS[name]))
            setattr(request, f"{name}_size", array.size)
        error = Error()
        if isinstance(rows, np.ndarray):
            suffix, real = _REALS[rows.dtype]
            given = np.ascontiguousarray(rows)
            function = getattr(LIB, f"approxsvm_evaluate_{suffix}")
            code = function(self.handle, pointer(given, real), given.size, byref(request), byref(error))
        else:
            suffix, real = _REALS[rows.dtype]
            index_suffix, index = _INDICES[rows.indices.dtype]
            code = getattr(LIB, f"approxsvm_evaluate_csr_{suffix}{index_suffix}")(
                self.handle,
                pointer(rows.data, real),
                pointer(rows.indices, index),
                len(rows.data),
                pointer(rows.indptr, index),
                rows.shape[0],
                byref(request),
                byref(error),
            )
        if code:
            raise RuntimeLibraryError(code, error)
        assert (error.status, error.row, error.message) == (0, -1, b"")
        return arrays

    def row_of_record(self, fields: list[tuple[str | None, Any]]) -> npt.NDArray[np.float64]:
        """Return the row of shape (1, n_features) for names and values, where values are numbers, strings or None."""
        array = (Field * len(fields))(*(_field(name, value) for name, value in fields))
        row, error = np.empty((1, self.count("features"))), Error()
        code = LIB.approxsvm_row_of_record(
            self.handle, array, len(fields), pointer(row, c_double), row.size, byref(error)
        )
        if code:
            raise RuntimeLibraryError(code, error)
        return row

    def feature_name(self, column: int) -> str:
        room = ctypes.create_string_buffer(64)
        LIB.approxsvm_feature_name(self.handle, column, room, len(room))
        return room.value.decode()

    def label_text(self, position: int) -> str:
        room = ctypes.create_string_buffer(64)
        size = LIB.approxsvm_label_text(self.handle, position, room, len(room))
        assert size == len(room.value)
        return room.value.decode()

    def category_code(self, column: int, text: str | None) -> float:
        given = None if text is None else text.encode()
        return float(LIB.approxsvm_category_code(self.handle, column, given, len(given or b"")))

    def categories(self, column: int) -> list[str]:
        texts = []
        for code in range(LIB.approxsvm_n_categories(self.handle, column)):
            room = ctypes.create_string_buffer(64)
            size = LIB.approxsvm_category_text(self.handle, column, code, room, len(room))
            texts.append(room.raw[:size].decode())
        return texts

    def label(self, position: int) -> Any:
        label = Label()
        LIB.approxsvm_label_at(self.handle, position, byref(label))
        text = ctypes.string_at(label.text, label.text_size).decode() if label.text else None
        return {0: None, 1: label.integer, 2: label.real, 3: text}[label.kind]


def built(command: list[Any], **options: Any) -> None:
    """Run a compiler."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, result.stderr[-4000:]
