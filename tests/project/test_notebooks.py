"""Each notebook runs from the first cell to the last, as one program without a kernel."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == "microcontroller" and not shutil.which("cc"):
        pytest.skip("no C compiler here")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "outputs are left out: they would differ from machine to machine"
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), namespace)


def test_there_is_one_for_each_place() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["browser", "microcontroller", "server"]
