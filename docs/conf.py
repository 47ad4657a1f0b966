"""How Sphinx makes the documentation: `make docs` writes it to build/docs."""

import sys
from pathlib import Path

from weakspot import __version__

sys.path.insert(0, str(Path(__file__).parent / "_sphinx"))

project = "weakspot"
author = "the weakspot authors"
copyright = "the weakspot authors, Apache-2.0"  # noqa: A001  # Sphinx's own name
version = release = __version__
language = "en-GB"

extensions = ["myst_parser", "sphinx.ext.autodoc", "plain_docstrings", "bibliography", "public_names", "tested_blocks"]
exclude_patterns = ["_sphinx"]
suppress_warnings = ["ref.python"]  # the type `range` in a signature is none of the properties of that name

myst_heading_anchors = 3
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "weakspot"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["weakspot.css"]
html_sidebars = {"index": [], "tutorial": []}  # they have no pages below them
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
}
