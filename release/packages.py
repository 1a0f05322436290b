"""A library for Arduino and PlatformIO, and a package for R, each around one exported C99 header.

    python -m release.packages dist

They are templates for your own model: replace flowers.h and the names. The model is a StandardScaler and an SVC on
scikit-learn's iris data; `approxsvm export --c` writes the header.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm

_HERE = Path(__file__).parent


def write(folder: Path, contact: str = "nobody@localhost") -> None:
    """Write folder/arduino/Flowers and folder/r/flowers; R needs a contact."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names[y]
    exact = make_pipeline(StandardScaler(), SVC(gamma=0.1)).fit(X.to_numpy(), names)
    fast = approxsvm.compile(exact, X.to_numpy(), mode="approximate", degree=2, n_centers=1)
    for source, target in (("arduino", "arduino/Flowers"), ("r", "r/flowers")):
        shutil.copytree(_HERE / source, folder / target, dirs_exist_ok=True)
        (folder / target / "src").mkdir(exist_ok=True)
        fast.export_c(folder / target / "src" / "flowers.h", name="flowers")
        shutil.copy(_HERE.parent / "LICENSE", folder / target / "LICENSE")
    description = folder / "r" / "flowers" / "DESCRIPTION"
    description.write_text(description.read_text().replace("CONTACT", contact))


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--contact", default="nobody@localhost", show_default=True, help="Maintainer of the R package.")
def main(folder: Path, contact: str) -> None:
    """Write both."""
    write(folder, contact)
    click.echo(f"wrote {folder}/arduino/Flowers and {folder}/r/flowers")


if __name__ == "__main__":
    main()
