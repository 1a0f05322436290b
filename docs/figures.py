"""Draw the pictures of the documentation: ``python docs/figures.py``, with matplotlib of the extra [docs].

Nothing here takes times. The speed-ups are read from README's first table; errors and bounds are computed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
IMAGES = HERE / "images"
README = HERE.parent / "README.md"
# Grey and two colours that can be read on white and on black.
INK, BLUE, ORANGE = "#7d8590", "#2f81c7", "#d9822b"


def speed_ups() -> list[tuple[str, str, float]]:
    """Model, plan and times faster than scikit-learn: columns 1, 2 and the last of README's first table."""
    table = re.findall(r"^\|.*\|$", README.read_text().split("\n\n## ")[0], re.MULTILINE)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    return [(row[0], row[1], float(row[-1].replace(",", ""))) for row in rows]


def speed_up_svg() -> str:
    """Bars on a logarithmic scale, from 1 to 10,000."""
    figures, left, unit, step = speed_ups(), 250, 118, 34
    height = step * len(figures) + 54
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" font-family="sans-serif" font-size="13">',
        "<title>Times faster than scikit-learn, on a logarithmic scale</title>",
    ]
    for power in range(5):
        x = left + unit * power
        lines.append(f'<path d="M{x} 4V{height - 46}" stroke="{INK}" stroke-opacity=".35"/>')
        lines.append(f'<text x="{x}" y="{height - 29}" fill="{INK}" text-anchor="middle">{10**power:,}</text>')
    for k, (model, _, factor) in enumerate(figures):
        y, width = 8 + step * k, unit * np.log10(factor)
        lines.append(f'<text x="{left - 10}" y="{y + 17}" fill="{INK}" text-anchor="end">{model.split(" (")[0]}</text>')
        lines.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="24" rx="2" fill="{BLUE}"/>')
        lines.append(f'<text x="{left + width + 8:.1f}" y="{y + 17}" fill="{INK}">{factor:,.0f}</text>')
    middle = left + 2 * unit
    text = "times faster than scikit-learn, the same labels"
    lines.append(f'<text x="{middle}" y="{height - 7}" fill="{INK}" text-anchor="middle">{text}</text>')
    return "\n".join([*lines, "</svg>", ""])


def errors_and_bounds() -> tuple[Any, Any]:
    """Of a single expansion of degree 2, on rows that the model has not seen."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC

    import approxsvm

    X, y = load_breast_cancer(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    svc = SVC(gamma=0.05, C=10).fit(X[150:], y[150:])
    small = approxsvm.compile(svc, mode="approximate", degree=2, n_centers=1)
    rows = X[:150]
    return np.abs(small.decision_function(rows) - svc.decision_function(rows)), small.error_bound(rows)


def shares_certified() -> tuple[list[int], list[list[float]]]:
    """Numbers of centers; for the degrees 2 and 4, the share of unseen rows that the expansions certify."""
    from sklearn.datasets import make_moons
    from sklearn.svm import SVC

    import approxsvm

    X, y = make_moons(4000, noise=0.2, random_state=0)
    svc = SVC(gamma=2.0, C=10).fit(X[:2000], y[:2000])
    numbers = [1, 2, 4, 8, 16, 32, 64]
    shares = [
        [
            float(approxsvm.compile(svc, X[:2000], degree=degree, n_centers=n).certified(X[2000:]).mean())
            for n in numbers
        ]
        for degree in (2, 4)
    ]
    return numbers, shares


def _axes(pyplot: Any) -> Any:
    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    for spine in axes.spines.values():
        spine.set_color(INK)
    axes.tick_params(colors=INK, which="both")
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    return figure, axes


def main() -> None:
    """Write every picture."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "approxsvm"
    from matplotlib import pyplot

    (IMAGES / "speed_up.svg").write_text(speed_up_svg())
    like = {"transparent": True, "metadata": {"Date": None}}

    error, bound = errors_and_bounds()
    figure, axes = _axes(pyplot)
    axes.loglog(error, bound, "o", markersize=4, color=BLUE, alpha=0.7)
    ends = [error.min() / 2, bound.max() * 2]
    axes.plot(ends, ends, color=ORANGE, label="bound = error")
    axes.set(xlabel="error of the decision value", ylabel="its bound")
    axes.legend(frameon=False, labelcolor=INK)
    figure.savefig(IMAGES / "bound.svg", **like)

    numbers, shares = shares_certified()
    figure, axes = _axes(pyplot)
    for degree, share, color in zip((2, 4), shares, (BLUE, ORANGE), strict=True):
        axes.semilogx(numbers, np.multiply(share, 100), "o-", base=2, color=color, label=f"degree {degree}")
    axes.set(xlabel="centers", ylabel="rows certified by the expansion, %", xticks=numbers, xticklabels=numbers)
    axes.legend(frameon=False, labelcolor=INK)
    figure.savefig(IMAGES / "centers.svg", **like)
    print("bound / error, median:", np.median(bound / error), "violations:", int((error > bound).sum()))
    print("certified:", numbers, shares)


if __name__ == "__main__":
    main()
