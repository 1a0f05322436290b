"""Draw the documentation's images that need no timing: ``python -m docs.figures``, from the repository root.

Errors, bounds and fractions are computed; benchmarks draw their own images (``python -m benchmarks.publish``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.charts import Chart, Lines, Points, svg

IMAGES = Path(__file__).parent / "images"


def errors_against_bounds() -> Chart:
    """Plot errors against bounds for a single expansion of degree 2, on rows that the model has not seen."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC

    import approxsvm

    X, y = load_breast_cancer(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    svc = SVC(gamma=0.05, C=10).fit(X[150:], y[150:])
    small = approxsvm.compile(svc, mode="approximate", degree=2, n_centers=1)
    rows = X[:150]
    errors = np.abs(small.decision_function(rows) - svc.decision_function(rows))
    points = list(zip(small.error_bound(rows).tolist(), errors.tolist(), strict=True))
    words = ("Errors against bounds", "bound on the error", "error of the decision value")
    return Points(*words, {"150 rows": points}, diagonal="error = bound")


def shares_certified() -> Chart:
    """Plot the fraction of unseen rows that expansions of degrees 2 and 4 certify against the number of centers."""
    from sklearn.datasets import make_moons
    from sklearn.svm import SVC

    import approxsvm

    X, y = make_moons(4000, noise=0.2, random_state=0)
    svc = SVC(gamma=2.0, C=10).fit(X[:2000], y[:2000])
    series = {
        f"degree {degree}": [
            (n, 100 * approxsvm.compile(svc, X[:2000], degree=degree, n_centers=n).certified(X[2000:]).mean())
            for n in (1, 2, 4, 8, 16, 32, 64)
        ]
        for degree in (2, 4)
    }
    words = ("Share of rows certified", "centers", "rows certified by the expansion, %")
    return Lines(*words, series, y_scale="linear")


def classified_scene(height: int = 90, width: int = 120) -> str:
    """Draw the labels of a synthetic scene twice, the second time with uncertified pixels in a dark colour."""
    from scipy.ndimage import gaussian_filter
    from sklearn.svm import SVC

    import approxsvm
    from approxsvm.analysis.report.plots import drawn_svg

    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, height, width))
    bands = np.stack([gaussian_filter(band, 7) for band in noise]) * 25 + 0.03 * rng.normal(size=(4, height, width))
    pixels = bands.reshape(4, -1).T
    svc = SVC(gamma=0.3, C=10).fit(pixels[::20], pixels[::20, :3].argmax(axis=1))
    fast = approxsvm.compile(svc, pixels[::20], degree=2, n_centers=64)
    found = approxsvm.predict_image(fast, bands, outputs=["label", "certified"])
    colors = np.array([[31, 111, 150], [168, 85, 18], [46, 125, 56]], np.uint8)[found["label"]]
    sure = np.where(found["certified"][..., np.newaxis], 128 + colors // 2, 40).astype(np.uint8)
    picture = np.concatenate([colors, np.full((height, 4, 3), 255, np.uint8), sure], axis=1)

    def draw(axes: Any) -> None:
        axes.imshow(picture, interpolation="nearest")
        axes.set_axis_off()

    share = 100 * found["certified"].mean()
    words = f"labels, and {share:.1f}% of the pixels certified by expansions"
    return drawn_svg(draw, (6.0, 2.4), {"svg.hashsalt": "approxsvm"}, {"Title": "A scene", "Description": words})


def main() -> None:
    """Write all images."""
    (IMAGES / "scene.svg").write_text(classified_scene())
    for name, chart in (("bound", errors_against_bounds()), ("centers", shares_certified())):
        (IMAGES / f"{name}.svg").write_text(svg(chart))


if __name__ == "__main__":
    main()
