"""Check that every example in the documentation runs, that links are valid, and that figures equal the code's.

The C++ and C programs in docs/howto/cpp.md are compiled by test_cpp_programs.py and test_runtime.py in tests/cpp/, and
the one in docs/howto/serve.md by test_records.py.
"""

from __future__ import annotations

import doctest
import importlib
import math
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import REPOSITORY

import approxsvm
from approxsvm.analysis.report.findings import DISTURBED
from approxsvm.cli import main
from approxsvm.expansion import certificate, gram
from approxsvm.ir.constants import CONTRACTIONS, UNIT64

MODULES = [
    "approxsvm",
    *(m.name for m in pkgutil.walk_packages(approxsvm.__path__, "approxsvm.") if "_native" not in m.name),
]
DOCS = REPOSITORY / "docs"
PAGES = {str(p.relative_to(REPOSITORY)): p.read_text() for p in [REPOSITORY / "README.md", *sorted(DOCS.rglob("*.md"))]}
EXECUTED = ["python", "pycon", "console", "cpp", "c"]
# Languages that are shown but not executed, and why.
SHOWN = {
    "sh": "installs the package, or runs the tests (.ci/run does) or benchmarks",
    "c++": "tests/cpp/test_embedding.py compiles and runs it",
    "meson": "tests/cpp/test_runtime.py builds a project with it",
    "cmake": "tests/cpp/test_runtime.py builds a project with it",
    "matlab": "tests/frontends/test_matlab.py runs it in Octave, where that is installed",
    "r": "tests/project/test_r_package.py has the same calls, where R is installed",
    "js": "tests/cpp/test_wasm.py runs the same calls, with zig and Node.js",
    "{toctree}": "Sphinx",
    "{eval-rst}": "Sphinx",
    "{include}": "Sphinx",
    "{literalinclude}": "Sphinx, of headers that are compiled",
}
DOCTEST = doctest.ELLIPSIS
# Pages whose examples need optional packages.
NEEDED = {
    "docs/howto/score.md": ["pyarrow"],
    "docs/howto/images.md": ["rasterio", "xarray", "dask.array"],
    "docs/howto/duckdb.md": ["pyarrow", "duckdb"],
    "docs/howto/dask.md": ["pyarrow", "dask.dataframe"],
    "docs/howto/spark.md": ["pyarrow", "pyspark"],
    "docs/howto/serve.md": ["fastapi", "httpx", "onnx", "onnxruntime"],
    "docs/howto/mlflow.md": ["mlflow", "pandas"],
    "docs/howto/shap.md": ["shap"],
}


def blocks(page: str, *languages: str) -> list[tuple[str, str]]:
    """Return the language and text of a page's fenced blocks, in order."""
    found = re.findall(r"^```(\S+)[^\n]*\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)
    return [(language, text) for language, text in found if not languages or language in languages]


def pages_with(*languages: str) -> list[str]:
    return [page for page in PAGES if blocks(page, *languages)]


@pytest.fixture
def models_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(REPOSITORY / "models", tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except approxsvm.MissingPackageError as error:
        pytest.skip(str(error))
    if name == "approxsvm.integrations.scoring.dataset":  # it imports pyarrow on use
        pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
    assert doctest.testmod(module).failed == 0


def skip_without_what_it_needs(page: str) -> None:
    if "mlflow" in NEEDED.get(page, []) and find_spec("mlflow"):
        return  # the page imports it, in a separate process
    for module in NEEDED.get(page, []):
        pytest.importorskip(module, reason=f"{module} is not installed; {page} says how")
    if "pyspark" in NEEDED.get(page, []) and shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark needs")


@pytest.mark.filterwarnings("ignore:.*pandas >= 3.0.0:FutureWarning")  # from PySpark
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # also from PySpark
@pytest.mark.filterwarnings("ignore:Using `httpx` with")  # from Starlette, if httpx2 is not installed
@pytest.mark.parametrize("page", pages_with("python", "pycon"))
def test_python(page: str, models_here: Path) -> None:
    """Each page is one program; its output must equal the text below its `>>> ` lines."""
    skip_without_what_it_needs(page)
    if page == "docs/howto/mlflow.md":  # mlflow issues warnings, and takes over logging
        program = "".join(text for _, text in blocks(page, "python"))
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return
    namespace: dict[str, object] = {}
    for language, text in blocks(page, "python", "pycon"):
        if language == "python":
            exec(compile(text, page, "exec"), namespace)
            continue
        example = doctest.DocTestParser().get_doctest(text, namespace, page, page, 0)
        runner = doctest.DocTestRunner(optionflags=DOCTEST)
        runner.run(example, clear_globs=False)
        assert runner.summarize(verbose=False).failed == 0
        namespace.update(example.globs)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("console"))
def test_shell(page: str, models_here: Path) -> None:
    """The commands after `$ ` work as printed, in order, and print the text below them."""
    skip_without_what_it_needs(page)
    if page == "docs/howto/images.md":
        test_python(page, models_here)  # it writes the files
    path = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]
    shown = "".join(text for _, text in blocks(page, "console"))
    for line, output in re.findall(r"^\$ (?:pip install \. && )?(.*)\n((?:(?!\$ ).*\n)*)", shown, re.MULTILINE):
        command, *arguments = shlex.split(line)
        if command == "approxsvm":  # in this process, because a new one takes a second
            outcome = CliRunner().invoke(main, arguments)
            assert outcome.exit_code == 0, (line, outcome.output, outcome.exception)
            assert not output or without_figures(outcome.stdout) == without_figures(output)
            continue
        result = subprocess.run(line, shell=True, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        assert result.returncode == 0, (line, result.stderr)


def without_figures(text: str) -> str:
    """Return the text without numbers, time units and line breaks, which depend on the machine."""
    text = " ".join(re.sub(r"[\d.,]*\d( [nµm]?s\b)?", "N", text).split())
    return text.replace(DISTURBED, "")  # printed on a busy machine


def test_nothing_is_shown_that_nobody_executes() -> None:
    assert {language for page in PAGES for language, _ in blocks(page)} <= {*EXECUTED, *SHOWN}


def test_the_program_in_the_readme_is_the_first_of_the_guide() -> None:
    assert blocks("README.md", "c++") == blocks("docs/howto/cpp.md", "c++")[:1]
    assert sum(len(blocks(page, "c++")) for page in PAGES) == 4  # otherwise, one would not be compiled
    assert sum(len(blocks(page, "cpp")) for page in PAGES) == 1
    assert sum(len(blocks(page, "c")) for page in PAGES) == 2


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub and MyST make for headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: str) -> Iterator[str]:
    yield from re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL))


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    """Check links; links to other sites are not fetched."""
    for link in links(page):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (REPOSITORY / page).parent / name if name else REPOSITORY / page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def test_every_public_name_is_in_the_reference() -> None:
    reference = "".join(text for page, text in PAGES.items() if page.startswith("docs/api/"))
    named = set(re.findall(r"auto(?:function|class):: approxsvm\.(\w+)$", reference, re.MULTILINE))
    of_errors = {name for name in approxsvm.__all__ if getattr(approxsvm, name).__module__ == "approxsvm.errors"}
    assert "automodule:: approxsvm.errors" in reference
    assert named | of_errors == set(approxsvm.__all__)


# --- constants of docs/derivation.md


def constants() -> dict[str, list[float]]:
    table = PAGES["docs/derivation.md"].split("## Constants")[1]
    rows = re.findall(r"^\| .* \| ([\d., e-]+) \| `(.+)` \|$", table, re.MULTILINE)
    return {re.sub(r"approxsvm\.\w+\.", "", code): [float(x) for x in value.split(", ")] for value, code in rows}


def test_constants_of_the_derivation() -> None:
    kappa, u64 = certificate._kappa, UNIT64
    assert constants() == {
        "constants.UNIT64": [u64],
        "certificate.MAX_FEATURES_SHARPENED": [certificate.MAX_FEATURES_SHARPENED],
        "gram.LAST_DEGREE": [gram.LAST_DEGREE],
        "gram.DIRECTION_CONTRACTION": [gram.DIRECTION_CONTRACTION],
        "constants.CONTRACTIONS": list(CONTRACTIONS),
        "_kappa(0, 0, 0, 1.0) / UNIT64": [kappa(0, 0, 0, 1.0) / u64],
        "_kappa(3, 10, 5, 2.0) / UNIT64": [kappa(3, 10, 5, 2.0) / u64],
        "_kappa(0, 0, 0, 1e9) / UNIT64": [kappa(0, 0, 0, 1e9) / u64],
    }


def test_kappa_as_the_derivation_sets_it() -> None:
    """Evaluating the page's formula gives the code's values."""
    (formula,) = re.findall(r"^  \$\$\\kappa = (.+)$", PAGES["docs/derivation.md"], re.MULTILINE)
    text = formula.removesuffix("$$").replace(r"\, u_{64}", " * u64")
    text = re.sub(r"(\d) ([kg])", r"\1 * \2", text).replace(")(", ") * (")
    for degree, path, d, radius_sq in [(0, 0, 1, 0.5), (2, 100, 30, 3.0), (8, 7, 2000, 1e6)]:
        g = max(1.0, min(750.0, radius_sq))
        value = eval(text, {}, {"P": path, "k": degree, "g": g, "d": d, "u64": UNIT64})
        assert value == pytest.approx(certificate._kappa(degree, path, d, radius_sq), rel=1e-14)


def test_constants_of_cosines_are_those_of_the_headers() -> None:
    page, headers = " ".join(PAGES["docs/derivation.md"].split()), DOCS.parent / "cpp" / "include" / "approxsvm"
    sums, kernel = ((headers / name).read_text() for name in ("exact/cosine_sums.hpp", "simd/cosine.hpp"))
    (units,) = re.findall(r"cosine_error_units = ([\d.]+);", kernel)
    (more_depth,) = re.findall(r"of_slope_ = \(depth \+ ([\d.]+)\) \* norm;", sums)
    (of_moduli,) = re.findall(r"1\.001 \* u \* ([\d.]+) \+ of_moduli_", sums)
    (defined,) = re.findall(r"([\d.]+) \* unit64 \* a1 \+ unit64 \* std::fabs", sums)
    assert 8 * math.pi + float(units) < float(of_moduli)
    assert f"${float(units):g} u$" in page
    assert rf"(P + {float(more_depth):g}) S \lVert z \rVert + {float(of_moduli):g} A_1" in page
    assert rf"${float(defined):g}\, u_{{64}} A_1$" in page


def test_constants_of_sigmoids_are_those_of_the_headers() -> None:
    page, headers = " ".join(PAGES["docs/derivation.md"].split()), DOCS.parent / "cpp" / "include" / "approxsvm"
    kernel, tanh = ((headers / name).read_text() for name in ("exact/polynomial_kernel.hpp", "simd/tanh.hpp"))
    (units,) = re.findall(r"tanh_error_units = ([\d.]+);", tanh)
    (more_depth,) = re.findall(r"of_arguments = 1.02 \* unit64 \* \(depth.roundings \+ ([\d.]+)\)", kernel)
    (more_terms,) = re.findall(r"\(n_sv \+ ([\d.]+) \+ \(is_bounded \? tanh_error_units", kernel)
    assert f"${float(units):g} u$" in page
    assert rf"(P + {float(more_depth):g})\, u\, M + (n + {float(more_terms) + float(units):g})\, u\, A_1" in page


# --- the site


@pytest.mark.slow
def test_site(tmp_path: Path) -> None:
    """The site builds with warnings as errors, and no page makes requests to another site."""
    for package in ("sphinx", "furo", "myst_parser", "latex2mathml", "pyarrow"):
        pytest.importorskip(package, reason=f"{package} is not installed; it is part of the docs extra")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    pages = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*.html")}
    assert {page[5:-3] + ".html" for page in PAGES if page.startswith("docs/")} <= set(pages)
    for name, page in pages.items():
        fetched = re.findall(r'<(?:script|img|link)\b[^>]*\b(?:src|href)="([^"]+)"', page)
        assert not [url for url in fetched if "//" in url], name
    assert pages["derivation.html"].count("<math") > 60
    assert "merror" not in pages["derivation.html"]
    radicals = re.findall(r"<msqrt>.*?</msqrt>", pages["derivation.html"], re.DOTALL)
    # Without a mathematical font, radicals are only one line high.
    assert not [text for text in radicals if re.search("<m(frac|under)", text)]
