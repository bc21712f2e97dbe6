"""How the documentation site is built; `scripts/docs` does it."""

from __future__ import annotations

import sys
from pathlib import Path

from predsession import __version__

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "predsession"
author = "The predsession maintainers"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "commandline",
    "publicnames",
]
exclude_patterns = ["extensions", "package.md"]  # the latter is what a package index shows
templates_path: list[str] = []

smartquotes = False  # it makes one dash of the two before an option, and curls the quotes of code

# Markdown. A heading's anchor is the one that a forge gives it, so that one link serves both.
myst_heading_anchors = 4

# Docstrings. Their type lines hold shapes, orders and units: words to read, which name nothing to link to.
# What can be linked stands in the signature.
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_member_order = "alphabetical"
ALIASES = ("JSON", "JSONObject", "Masks", "Polygons", "Tags", "npt.ArrayLike")
autodoc_type_aliases = {name: name.removeprefix("npt.") for name in ALIASES}
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False

# Nothing is fetched when the site is built, so other projects' names are no links here.
nitpicky = True
OTHERS = "collections|concurrent|np|npt|numpy|os|pandas|pd|PIL|pyarrow|sv|threading"
nitpick_ignore_regex = [
    ("py:.*", rf"({OTHERS})\..*|ArrayLike|Axes|PathLike"),
    ("py:class", r"inference_pb2\..*"),  # what a stream of answers is made of; users do not make one
    ("py:class", "Images|Masks|Polygons|RGB|Shown|Tags"),  # the parameters' own text says more than these
]

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"predsession {version}"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e4f", "color-brand-content": "#0b6e4f"},
    "dark_css_variables": {"color-brand-primary": "#5fd3a5", "color-brand-content": "#5fd3a5"},
}
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
copybutton_exclude = ".linenos, .gp, .go"
