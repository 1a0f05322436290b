"""Write the artifacts in inst/extdata, which the R package's tests and vignette open; needs R with e1071.

python release/r/tools/extdata.py
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import approxsvm

TOOLS = Path(__file__).parent
EXTDATA = TOOLS.parent / "inst" / "extdata"


def scene() -> None:
    """Write the vignette's model, from the files written for the e1071 model."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["Rscript", TOOLS / "extdata.R", TOOLS.parent], cwd=folder, check=True)
        model = approxsvm.with_range_file(Path(folder) / "scene.svm", Path(folder) / "scene.svm.scale")
        approxsvm.compile(model).save(EXTDATA / "scene.asvm")


def loans() -> None:
    """Write a pipeline with names, categories, an imputer for one column, and a column that rejects NaN."""
    rng = np.random.default_rng(0)
    job = rng.choice(["baker", "größer", "smith"], 200)
    frame = pd.DataFrame({"age": rng.normal(40.0, 9.0, 200), "job": job, "debt": rng.normal(0.0, 1.0, 200)})
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (OneHotEncoder(), ["job"]),
        (StandardScaler(), ["debt"]),
    )
    labels = np.where(frame.age / 40.0 + (job == "smith") + frame.debt > 1.3, "pays", "does not")
    exact = make_pipeline(steps, SVC()).fit(frame, labels)
    approxsvm.compile(exact, frame).save(EXTDATA / "loans.asvm")


if __name__ == "__main__":
    scene()
    loans()
