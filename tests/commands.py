"""The commands' parameters, taken from click, and valid arguments for each command, for tests of all commands."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result
from conftest import GOLDEN

from approxsvm.cli import main

# Required arguments of each command, by parameter name; files are in the folder filled by `make_files`.
NEEDED: dict[str, dict[str, Any]] = {
    "demo": {},
    "sources": {},
    "convert-model": {"source": "m.model", "output": "out.asvm", "data": "rows.t"},
    "inspect": {"artifact": "m.asvm"},
    "report": {"artifact": "m.asvm", "against": "m.model", "data": "rows.t"},
    "verify": {"artifact": "m.asvm", "against": "m.model", "data": "rows.t"},
    "export": {"artifact": "m.asvm", "c_header": "out.h"},
    "score": {"files": ["m.asvm", "rows.svm"], "output": "out.csv"},
    "gamma-max": {"data": "rows.t"},
    "cross-validate": {"data": "rows.t"},
}


def parameters() -> list[tuple[str, click.Parameter]]:
    """Return every parameter of every command, with the command's name."""
    return [(name, parameter) for name, command in main.commands.items() for parameter in command.params]


def make_files(folder: Path) -> None:
    """Write the files in `NEEDED` that commands read."""
    for name in ("m.model", "m.asvm"):
        shutil.copy(GOLDEN / name.replace("m.", "iris_centers."), folder / name)
    for name in ("rows.t", "rows.svm"):
        shutil.copy(GOLDEN / "iris_centers.t", folder / name)


def needed_values(command: str, folder: Path) -> dict[str, Any]:
    """Return a command's required arguments, in a folder filled by `make_files`."""
    return {
        name: [folder / each for each in value] if isinstance(value, list) else folder / value
        for name, value in NEEDED[command].items()
    }


def run(name: str, values: dict[str, Any]) -> Result:
    """Run a command with these parameter values."""
    arguments, words = [], []
    for parameter in main.commands[name].params:
        if parameter.name not in values:
            continue
        value = values[parameter.name]
        if isinstance(parameter, click.Argument):
            arguments += value if isinstance(value, list) else [value]
        else:
            words += [longest_option(parameter), value]
    return CliRunner().invoke(main, [name, *map(str, words), "--", *map(str, arguments)])


def longest_option(parameter: click.Parameter) -> str:
    """Return the option name used in messages."""
    return max(parameter.opts, key=len)
