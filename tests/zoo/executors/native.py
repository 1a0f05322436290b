"""The C library, and the C++ headers alone, with exactly sized buffers under sanitizers; dense and sparse rows."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import struct
import subprocess
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from native_build import REPOSITORY, run
from runtime_library import LIB, LIBRARY, Error, Runtime, RuntimeLibraryError, pointer
from scipy.sparse import csr_array

from approxsvm import _native
from approxsvm.frames.text_columns import NONE, is_nan
from zoo.executors import Executor
from zoo.specimens import Answers, RefusedError, Specimen, as_dense, as_float64
from zoo.tables import Table

Array = np.ndarray[Any, Any]
# Value kinds, numbered as in approxsvm.h and model_view.hpp.
PROMISED, SETTLED, EXACT = range(3)
_TYPES = {"labels": np.uint32, "certified": np.uint8} | dict.fromkeys(
    ("values", "bounds", "probabilities", "probability_bounds"), np.float64
)
_DENSE_NUMBERS = 1 << 20  # larger tables are passed only as sparse rows


class InMemory(Executor):
    """An interface for rows in memory, which requests outputs by name."""

    def __init__(
        self,
        dtype: str = "float64",
        index: str = "",
        call_size: int = 0,
        kind: int = PROMISED,
        words: str = "",
        share: float = 0.25,
    ) -> None:
        form = f"sparse {dtype} rows, {index} indices" if index else f"{dtype} rows"
        calls = f", calls of {call_size}" if call_size else ""
        kinds = ("", ", values as settled", ", exact values")
        self.name = f"{self.interface}{words}, {form}{calls}{kinds[kind]}"
        self.float32, self.share = dtype == "float32", share
        self._dtype, self._index, self._call_size, self._kind = np.dtype(dtype), index, call_size, kind

    interface: str
    names_row = False  # a refusal gives the row's index within the call
    refuses_itself = False

    def seen(self, specimen: Specimen, table: Table) -> Table:
        """Return float64 rows, or float32 rows converted to float64, because these interfaces accept no other types."""
        found = super().seen(specimen, table) if self.float32 else as_float64(table)
        return found if self._index else as_dense(found)

    def may_answer(self, specimen: Specimen, row: Table) -> bool:
        return is_unused_alone(specimen, self.seen(specimen, row))

    def takes(self, specimen: Specimen, table: Table) -> bool:
        """Return whether the source can answer the same values as float64."""
        if table.container == "texts":
            return bool(self._index) and not self.float32
        return table.family == specimen.table.family and (bool(self._index) or table.values.size <= _DENSE_NUMBERS)

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        """Ask for labels alone, for certificates, and for values and probabilities with their bounds."""
        artifact = specimen.artifact
        rows = self._rows(specimen, self.seen(specimen, table))
        kind = PROMISED if self._kind == EXACT and artifact.mode != "exact" else self._kind
        asked: list[tuple[tuple[str, ...], int]] = []
        if artifact.task != "regression":
            asked += [(("labels",), PROMISED), (("certified",), SETTLED)]
        if artifact.n_decisions:
            asked.append((("values", "bounds"), kind))
        if artifact.has_class_probabilities:
            asked.append((("probabilities", "probability_bounds"), PROMISED))
        found: dict[str, Array] = {}
        for names, values_kind in asked:
            found |= self._ask(specimen, rows, names, values_kind)
        for name in ("labels", "certified"):
            if name in found and not artifact.of_targets:
                found[name] = found[name].ravel()
        if "labels" in found:
            found |= {"labels": specimen.labels[found["labels"]], "certified": found["certified"].astype(bool)}
        return Answers(**found)

    def _rows(self, specimen: Specimen, table: Table) -> Any:
        if table.container == "texts":
            rows = specimen.fast._rows(table.make())
        else:
            rows = in_codes(specimen, table, lambda column, text: self.code(specimen, column, text))
        rows = rows.astype(self._dtype)
        if self._index:
            rows = csr_array(rows)
            rows.sort_indices()
            rows.indices, rows.indptr = (x.astype(self._index) for x in (rows.indices, rows.indptr))
        return rows

    @abstractmethod
    def code(self, specimen: Specimen, column: int, text: str | None) -> float:
        """Return the code of a string in a row."""

    @abstractmethod
    def _ask(self, specimen: Specimen, rows: Any, names: tuple[str, ...], kind: int) -> Mapping[str, Array]:
        """Return arrays of shape (n_rows, n_outputs)."""


# --- rows


def in_codes(specimen: Specimen, table: Table, code: Callable[[int, str | None], float]) -> Array:
    """Return numeric rows, with codes in place of strings."""
    if len(table.numeric) == len(table.kinds):
        return table.values.astype(np.float64)
    rows = np.zeros(table.values.shape)  # unused string columns stay 0
    for j, column in enumerate(table.values.T):
        if j in table.numeric:
            rows[:, j] = column.astype(np.float64)
        elif j in specimen.artifact.texts:
            known = specimen.artifact.texts[j]
            codes = {text: code(j, text) for text in set(column) if isinstance(text, str)}
            rows[:, j] = [codes[x] if isinstance(x, str) else known.code(x) for x in column]
            missing = [x is None if known.null == NONE else is_nan(x) for x in column]
            if any(missing):
                rows[missing, j] = code(j, None)
    return rows


def is_unused_alone(specimen: Specimen, row: Table) -> bool:
    """Return whether a row has NaN or infinity only in unused columns, where only Python rejects them."""
    unused = sorted(set(row.numeric) - set(specimen.artifact.raw_columns.used.tolist()))
    return not np.isfinite(row.values[:, unused].astype(np.float64)).all()


# --- the C library


@lru_cache(maxsize=2)
def _opened(specimen: Specimen, target: str) -> Runtime:
    with _forced(target):
        model = Runtime(specimen.path)
    n = model.count("labels")  # 0 for regressions
    *labels, beyond = [model.label(k) for k in range(n + 1)]
    expected = specimen.labels.tolist()[:n]
    assert labels in (expected, list(map(str, expected))), labels  # strings if a label is outside int64
    assert beyond is None
    return model


@contextlib.contextmanager
def _forced(target: str) -> Iterator[None]:
    before = os.environ.get("APPROXSVM_TARGET")
    if target:
        os.environ["APPROXSVM_TARGET"] = target
    try:
        yield
    finally:
        if target:
            os.environ.pop("APPROXSVM_TARGET")
            if before is not None:
                os.environ["APPROXSVM_TARGET"] = before


class CLibrary(InMemory):
    """approxsvm.h, called through ctypes."""

    interface = "C library"

    def __init__(self, *arguments: Any, target: str = "", n_threads: int = 1, **options: Any) -> None:
        words = (f", {target}" if target else "") + (f", {n_threads} threads" if n_threads > 1 else "")
        super().__init__(*arguments, words=words, **options)
        self._target, self._n_threads = target, n_threads

    def code(self, specimen: Specimen, column: int, text: str | None) -> float:
        """Return the code of a string in a row."""
        model = _opened(specimen, self._target)
        return model.category_code(column, text) if LIB.approxsvm_n_categories(model.handle, column) else 0.0

    def _ask(self, specimen: Specimen, rows: Any, names: tuple[str, ...], kind: int) -> Mapping[str, Array]:
        model = _opened(specimen, self._target)
        size = self._call_size or max(rows.shape[0], 1)
        try:
            parts = [
                [_predicted(model, rows[i : i + size])]
                if names == ("labels",) and not self._index and self._n_threads == 1
                else model.evaluate(rows[i : i + size], *names, values_kind=kind, n_threads=self._n_threads)
                for i in range(0, max(rows.shape[0], 1), size)
            ]
        except RuntimeLibraryError as error:
            raise RefusedError(str(error)) from error
        return dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))


def _predicted(model: Runtime, rows: Array) -> Array:
    """Return labels from the function that returns nothing else."""
    labels, error = np.full((len(rows), model.count("targets")), 77, np.uint32), Error()
    suffix, real = ("f32", ctypes.c_float) if rows.dtype == np.float32 else ("f64", ctypes.c_double)
    rows = np.ascontiguousarray(rows)
    code = getattr(LIB, f"approxsvm_predict_{suffix}")(
        model.handle, pointer(rows, real), rows.size, pointer(labels, ctypes.c_uint32), labels.size, error
    )
    if code:
        raise RuntimeLibraryError(code, error)
    return labels


# --- the C++ headers


class Headers(InMemory):
    """The C++ headers in a separate program, headers.cpp, with exactly sized buffers.

    In a second build, the compiler contracts: it fuses products and sums wherever it can. (The library's CMake target
    disables contraction.)
    """

    interface = "C++ headers"
    programs: ClassVar[dict[str, Path]] = {}

    def __init__(self, *arguments: Any, contracted: bool = False, **options: Any) -> None:
        self._build = "contracted" if contracted else "sanitized"
        super().__init__(*arguments, words=", contracted" if contracted else "", **options)

    def prepare(self, built: Callable[[str, Callable[[Path], None]], Path]) -> None:
        """Compile the program."""
        if self._build not in Headers.programs:
            flags = _contracted() if self._build == "contracted" else _sanitized()
            Headers.programs[self._build] = built(f"headers_{self._build}", partial(_compile, flags)) / "headers"

    def why_not(self, specimen: Specimen) -> str:
        """Name the missing tool."""
        return "" if self._build in Headers.programs else "no C++ compiler"

    def code(self, specimen: Specimen, column: int, text: str | None) -> float:
        """Return the code of a string in a row."""
        return _process(Headers.programs[self._build]).code(specimen.path, column, text)

    def _ask(self, specimen: Specimen, rows: Any, names: tuple[str, ...], kind: int) -> Mapping[str, Array]:
        process = _process(Headers.programs[self._build])
        found = process.evaluate(specimen.path, rows, names, kind, self._call_size)
        return {name: found[name].reshape(rows.shape[0], -1) for name in names}


def _compile(flags: list[str], folder: Path) -> None:
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-march=native"]
    source = Path(__file__).with_name("headers.cpp")
    run(*flags, *strict, f"-I{REPOSITORY}/cpp/include", "-o", folder / "headers", source)


def _contracted() -> list[str]:
    """Return a compiler command with contraction, which GCC performs at -O2 or with its expensive optimizations."""
    is_clang = "clang" in run("c++", "--version")
    return ["c++", "-O1", "-ffp-contract=fast", *([] if is_clang else ["-fexpensive-optimizations"])]


def _sanitized() -> list[str]:
    """Return Clang with the address and undefined-behavior sanitizers, or a slower compiler with only the former.

    Addresses are checked by function calls and debug information is omitted, which makes compiling a third faster;
    reports still name functions, and the lines of undefined behavior.
    """
    if shutil.which("clang++"):
        sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize=null,object-size", "-fno-sanitize-recover=all"]
        return ["clang++", "-O0", *sanitizers, "-mllvm", "-asan-instrumentation-with-call-threshold=0"]
    return ["c++", "-O0", "-fsanitize=address", "--param=asan-instrumentation-with-call-threshold=0"]


@lru_cache(maxsize=2)
def _process(program: Path) -> HeadersProcess:
    return HeadersProcess(program)


class HeadersProcess:
    """A process that runs the program and serves all models."""

    def __init__(self, program: Path) -> None:
        pipe = subprocess.PIPE
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        self._process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        self._path: Path | None = None
        self.sizes: dict[str, int] = {}
        self.labels: list[str] = []

    def open(self, path: Path) -> None:
        """Open a model, unless it is already open."""
        if path == self._path:
            return
        self._path = None
        self._send(struct.pack("=I", 0) + _array(str(path).encode()))
        self._check_status()
        self._path = path
        names = ("features", "decisions", "probabilities", "targets", "labels")
        self.sizes = {name: self._number("Q") for name in names}
        *self.labels, beyond = [
            self._receive_array(np.uint8).tobytes().decode() for _ in range(self.sizes["labels"] + 1)
        ]
        assert not beyond

    def evaluate(
        self, path: Path, rows: Any, names: tuple[str, ...], kind: int, call_size: int = 0
    ) -> dict[str, Array]:
        """Return one-dimensional arrays by output name."""
        self.open(path)
        if isinstance(rows, np.ndarray):
            form, parts = 10 * rows.itemsize, [np.ascontiguousarray(rows)]
        else:
            form, parts = 10 * rows.data.itemsize + rows.indices.itemsize, [rows.data, rows.indices, rows.indptr]
        wanted = sum(1 << k for k, name in enumerate(_TYPES) if name in names)
        n = rows.shape[0]
        head = struct.pack("=4I2Q", 1, wanted, kind, form, n, call_size or max(n, 1))
        self._send(head + b"".join(map(_array, parts)))
        self._check_status()
        return {name: self._receive_array(number) for name, number in _TYPES.items()}

    def code(self, path: Path, column: int, text: str | None) -> float:
        """Return the code of a string in a row, or 0 in a column without strings."""
        self.open(path)
        self._send(struct.pack("=IQI", 2, column, text is None) + _array((text or "").encode()))
        code = self._number("d")
        self._number("Q")
        return float(code)

    def _send(self, request: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._fail()

    def _receive(self, n_bytes: int) -> bytes:
        assert self._process.stdout is not None
        received = self._process.stdout.read(n_bytes)
        if len(received) != n_bytes:
            self._fail()
        return received

    def _fail(self) -> None:
        """Raise an error with the sanitizer's report; the next request starts a new process."""
        _process.cache_clear()
        said = self._process.communicate()[1].decode(errors="replace")
        raise AssertionError(f"the program of the C++ headers ended, asked about {self._path}: {said[:4000]}")

    def _number(self, kind: str) -> Any:
        return struct.unpack(f"={kind}", self._receive(struct.calcsize(f"={kind}")))[0]

    def _receive_array(self, number: Any) -> Array:
        n = self._number("Q")
        return np.frombuffer(self._receive(n * np.dtype(number).itemsize), number)

    def _check_status(self) -> None:
        if self._number("I"):
            text, row = self._receive_array(np.uint8).tobytes().decode(), self._number("Q")
            raise RefusedError(f"row {row}: {text}")


def _array(numbers: Any) -> bytes:
    return struct.pack("=Q", len(numbers) if isinstance(numbers, bytes) else numbers.size) + bytes(numbers)


C_LIBRARY = (
    []
    if not LIBRARY.exists()
    else [
        CLibrary(share=1.0),
        CLibrary("float32", call_size=3),
        CLibrary("float64", "int64", n_threads=3, kind=SETTLED),
        CLibrary("float32", "int32", call_size=1),
        *(CLibrary(call_size=70, kind=EXACT, target=target) for target in _native.runnable_targets()[1:]),
    ]
)
HEADERS = [
    Headers(share=0.5),
    Headers("float32", kind=SETTLED),
    Headers("float64", "int32", call_size=4, kind=EXACT),
    Headers("float32", "int64", call_size=1),
    Headers(call_size=5),
    Headers(kind=EXACT, contracted=True),
    Headers("float32", call_size=3, contracted=True),
]
NATIVE = [*C_LIBRARY, *HEADERS]
