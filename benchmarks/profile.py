"""Cost profile for another machine, fitted to the output of benchmarks.costs there, saved as text or JSON.

The cost model is linear in its constants, which are fitted by non-negative least squares on the relative errors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls

# Terms in which costs are linear: for rows in blocks, and for single rows
BLOCKS = ("multiply-add", "row", "loaded", "direction", "degrees", "routing", "kernel")
ALONE = ("call", "coefficient", "product", "row", "routing", "kernel")

Tables = dict[str, list[dict[str, Any]]]


def fit(tables: Tables) -> list[dict[str, Any]]:
    """Fit the constants of `plans` and `alone`; add `fitted` to their rows, and convert `today` to microseconds.

    `factor` is the exponential of the root mean square of log(fitted time / measured time).
    """
    found: list[dict[str, Any]] = []
    multiply_add = 0.0
    for table, names in (("plans", BLOCKS), ("alone", ALONE)):
        plans = tables[table]
        times = np.array([plan["microseconds"] for plan in plans])
        terms = np.array([[plan[name] for name in names] for plan in plans])
        if table == "alone":  # refining a single row costs as much as its first stage
            terms[:, names.index("row")] += [plan["direction"] + plan["degrees"] for plan in tables["plans"]]
        today = np.array([[float(table == "alone"), plan["today"]] for plan in plans])
        solution, of_today = (nnls(each / times[:, np.newaxis], np.ones(len(times)))[0] for each in (terms, today))
        multiply_add = multiply_add or float(solution[0])
        for name, value in zip(names, solution.tolist(), strict=True):
            in_multiply_adds = value / multiply_add if multiply_add > 0.0 else None
            found.append({"rows": table, "term": name, "microseconds": value, "multiply_adds": in_multiply_adds})
        for name, values in {"today": today @ of_today, "fitted": terms @ solution}.items():
            found.append({"rows": table, "term": f"factor of {name}", "microseconds": _factor(values, times)})
            for plan, value in zip(plans, values.tolist(), strict=True):
                plan[name] = value
    return [{"multiply_adds": None, **row} for row in found]


def _factor(predicted: npt.NDArray[np.float64], times: npt.NDArray[np.float64]) -> float:
    return float(np.exp(np.sqrt(np.mean(np.log(predicted / times) ** 2))))


def read(path: Path) -> Tables:
    """Read the tables from a record, or from the text printed by benchmarks.costs."""
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("{"):
        return dict(json.loads(text)["tables"])
    tables: Tables = {}
    name, head = "", [""]
    for line in map(str.strip, text.splitlines()):
        if line.startswith("costs: "):
            name = line.removeprefix("costs: ")
        elif line.startswith("┃"):
            head = [cell.strip() for cell in line.strip("┃").split("┃")]
        elif line.startswith("│"):
            cells = (cell.strip() for cell in line.strip("│").split("│"))
            tables.setdefault(name, []).append(dict(zip(head, map(_number, cells), strict=True)))
    return tables


def _number(cell: str) -> float | str:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return cell


@click.command(help=__doc__)
@click.argument("report", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(report: Path) -> None:
    """Print the fitted profile."""
    table = Table("rows", "term", "microseconds", "multiply-adds")
    for row in fit(read(report)):
        last = "" if row["multiply_adds"] is None else f"{row['multiply_adds']:,.4g}"
        table.add_row(row["rows"], row["term"], f"{row['microseconds']:.4g}", last)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
