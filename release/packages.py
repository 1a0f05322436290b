"""A library for Arduino and PlatformIO around an exported C99 header, and the R package.

    python -m release.packages dist

The library is a template for your own model: replace flowers.h and the names. Its model is a StandardScaler and an SVC
on scikit-learn's iris data; `approxsvm export --c` writes the header. The R package opens any artifact; it contains the
sources of the C library, so R CMD INSTALL needs only a C++17 compiler.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import click
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm

_HERE = Path(__file__).parent
_CPP = _HERE.parent / "cpp"
# Native sources for the R package: headers, kernels chosen at run time, and the C library.
_SOURCES = ("include/approxsvm/**/*", "dispatch/*", "runtime/*.h", "runtime/*.hpp", "runtime/*.cpp")


def write(folder: Path, contact: str = "nobody@localhost") -> None:
    """Write folder/arduino/Flowers and folder/r/approxsvm; R requires a contact."""
    write_arduino(folder / "arduino" / "Flowers")
    write_r(folder / "r" / "approxsvm", contact)


def write_arduino(library: Path) -> None:
    """Write the example library."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names[y]
    exact = make_pipeline(StandardScaler(), SVC(gamma=0.1)).fit(X.to_numpy(), names)
    fast = approxsvm.compile(exact, X.to_numpy(), mode="approximate", degree=2, n_centers=1)
    shutil.copytree(_HERE / "arduino", library, dirs_exist_ok=True)
    (library / "src").mkdir(exist_ok=True)
    fast.export_c(library / "src" / "flowers.h", name="flowers")
    shutil.copy(_HERE.parent / "LICENSE", library / "LICENSE")


def write_r(package: Path, contact: str = "nobody@localhost") -> None:
    """Write the sources of the R package, with the instruction-set flags from cpp/CMakeLists.txt."""
    shutil.copytree(_HERE / "r", package, dirs_exist_ok=True)
    for path in sorted({path for pattern in _SOURCES for path in _CPP.glob(pattern) if path.is_file()}):
        target = package / "src" / path.relative_to(_CPP)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(re.sub("#pragma GCC diagnostic.*\n", "", path.read_text()))  # R CMD check rejects them
    for name in ("configure", "cleanup"):
        shutil.copy(package / name, package / f"{name}.win")
    year, holder = re.findall(r"Copyright \(c\) (\d+), (.+)", (_HERE.parent / "LICENSE").read_text())[0]
    stub = f"YEAR: {year}\nCOPYRIGHT HOLDER: {holder}\nORGANIZATION: {holder}\n"  # R has the text of the license
    (package / "LICENSE").write_text(stub)
    description = package / "DESCRIPTION"
    description.write_text(description.read_text().replace("CONTACT", contact))
    rules = package / "src" / "Makevars.in"
    flags = dict(re.findall(r"set\(approxsvm_flags_of_(\w+) (.+)\)", (_CPP / "CMakeLists.txt").read_text()))
    rules.write_text(re.sub(r"@FLAGS_OF_(\w+)@", lambda place: flags[place[1].lower()], rules.read_text()))


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--contact", default="nobody@localhost", show_default=True, help="Maintainer of the R package.")
def main(folder: Path, contact: str) -> None:
    """Write both."""
    write(folder, contact)
    click.echo(f"wrote {folder}/arduino/Flowers and {folder}/r/approxsvm")


if __name__ == "__main__":
    main()
