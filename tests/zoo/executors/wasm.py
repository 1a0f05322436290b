"""approxsvm.wasm in Node.js, if zig and Node.js are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from wasm_runtime import Door, RefusedError, build, missing

from zoo import specimens
from zoo.executors import Executor
from zoo.executors.native import EXACT, SETTLED, Array, InMemory
from zoo.specimens import Specimen

_KINDS = ("promised", "settled", "exact")
_NAMES = {"probability_bounds": "probabilityBounds"}


class Wasm(InMemory):
    """The module, called through approxsvm.mjs; one process serves all models."""

    interface = "wasm"
    folder: Path

    def prepare(self, built: Callable[[str, Callable[[Path], None]], Path]) -> None:
        """Build the module, if its tools are installed."""
        if not missing() and not hasattr(Wasm, "folder"):
            Wasm.folder = built("wasm", build) / "web"

    def why_not(self, specimen: Specimen) -> str:
        """Name the missing tools."""
        return f"not installed: {', '.join(missing())}" if missing() else ""

    def code(self, specimen: Specimen, column: int, text: str | None) -> float:
        """Return the code of a string in a row, which callers, such as web pages, look up themselves."""
        texts = specimen.artifact.texts.get(column)
        return 0.0 if texts is None else texts.null if text is None else texts.code(text)

    def _ask(self, specimen: Specimen, rows: Array, names: tuple[str, ...], kind: int) -> Mapping[str, Array]:
        size = self._call_size or max(len(rows), 1)
        parts = [self._call(specimen, rows[i : i + size], names, kind) for i in range(0, max(len(rows), 1), size)]
        return {name: np.concatenate([part[name] for part in parts]) for name in names}

    def _call(self, specimen: Specimen, rows: Array, names: tuple[str, ...], kind: int) -> dict[str, Array]:
        asked = [_NAMES.get(name, name) for name in names]
        try:
            found = _door(Wasm.folder).evaluate(specimen.path.read_bytes(), rows, *asked, kind=_KINDS[kind])
        except RefusedError as error:
            raise specimens.RefusedError(str(error)) from error
        if "labels" in found:
            expected = specimen.labels.tolist()
            texts = list(map(str, expected))  # strings if a label is outside int64, as in C
            places = {label: k for labels in (texts, expected) for k, label in enumerate(labels)}
            labels = [int(x["integer"]) if isinstance(x, dict) else x for x in found["labels"]]
            found["labels"] = np.array([places[label] for label in labels], np.uint32)
        return {name: np.asarray(found[key]).reshape(len(rows), -1) for name, key in zip(names, asked, strict=True)}


@cache
def _door(folder: Path) -> Door:
    return Door(folder)


WASM: tuple[Executor, ...] = (
    Wasm(),
    Wasm("float32", call_size=1, kind=SETTLED),
    Wasm(call_size=3, kind=EXACT),
)
