"""Settings of Sphinx: ``sphinx-build -W docs build/docs`` builds the site, without a network."""

from __future__ import annotations

from importlib.metadata import version as version_of

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "approxsvm"
version = release = version_of("approxsvm")
copyright = "the approxsvm developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_theme = "furo"
html_title = f"approxsvm {release}"
html_static_path: list[str] = []
html_show_sourcelink = False
html_copy_source = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

default_role = "code"  # what numpydoc puts into single backquotes
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["pyspark", "dask", "duckdb"]  # the site is built without them
autodoc_typehints = "none"  # the docstrings say shapes, which types do not
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False  # else words of shapes, such as n_features, become links
napoleon_custom_sections = [("Attributes", "params_style")]  # members are documented by themselves
exclude_patterns: list[str] = []
html_math_renderer = "mathml"

# Wide formulas scroll on narrow screens; the theme's own class of formulas is for scripts that set them.
_FORMULA = "padding: 0.2em 0; overflow-x: auto; overflow-y: hidden"


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div style="{_FORMULA}">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Set formulas as MathML, which browsers read by themselves: no script, no fonts from elsewhere."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
