"""Sphinx settings: ``sphinx-build -W docs build/docs`` builds the site, without a network."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.append(str(Path(__file__).parent.parent))  # the folder docs is not part of the package

from docs import executed

project = "approxsvm"
version = release = version_of("approxsvm")
copyright = "the approxsvm developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_theme = "furo"
html_title = f"approxsvm {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False

source_suffix = {".md": "markdown", ".ipynb": "markdown"}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

default_role = "code"  # numpydoc writes names in single backquotes
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["pyspark", "dask", "duckdb"]  # the site is built without these packages
autodoc_typehints = "none"  # docstrings state shapes, which type annotations do not
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False  # otherwise, words in shapes, such as n_features, would become links
napoleon_custom_sections = [("Attributes", "params_style")]  # members are documented separately
exclude_patterns: list[str] = []
html_math_renderer = "mathml"


def _mathml(node: nodes.math | nodes.math_block, **options: str) -> str:
    formula: str = convert(node.astext(), **options)
    if ">\\" in formula:  # the converter copies commands it does not know to its output
        raise ValueError(f"a command of this formula is not known to latex2mathml: {node.astext()}")
    return formula


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_mathml(node))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{_mathml(node, display="block")}</div>')
    raise nodes.SkipNode


def _execute(app: Sphinx, docname: str, source: list[str]) -> None:
    if app.env.doc2path(docname).suffix == ".ipynb":
        source[0] = executed.page(source[0])


def setup(app: Sphinx) -> None:
    """Render formulas as MathML, which needs no script and no external fonts, and execute notebooks."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("source-read", _execute)
