"""How the site is built: `make docs`, offline, with warnings as errors."""

import os
import re
import sys
import tomllib
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import inventories  # noqa: E402
import pictures  # noqa: E402
import versions  # noqa: E402

import belief  # noqa: E402

project, author, copyright = "belief-fs", "the authors of belief-fs", "the authors of belief-fs"
version = release = belief.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
    "source_pages",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
templates_path = ["_templates"]
exclude_patterns = ["_templates"]
rst_epilog = ".. |C| replace:: \\|C\\|\n.. |Δy| replace:: \\|Δy\\|\n"  # in docstrings these are sizes
nitpicky = False
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold functions

# the pages install from a clone; once there is a release, set this to "belief-fs"
INSTALLED_FROM = "."


def _set_install_name(app, docname, source):
    """Replace `.` (a clone) in the install commands of a page by the name that users install."""
    source[0] = re.sub(r"pip install '?\.(\[[\w,]+\])?'?(?=[\s`]|$)", _install_command, source[0])


def _install_command(command):
    return f"pip install '{INSTALLED_FROM}{command[1]}'" if command[1] else f"pip install {INSTALLED_FROM}"


def setup(app):
    """Connect to the events of Sphinx."""
    app.connect("source-read", _set_install_name)
    app.connect("build-finished", pictures.write_report)
    app.connect("build-finished", versions.write_list)


# --- the pages that can be read on a git host too ---
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4  # links such as method.md#6c-statistical-significance
myst_url_schemes = {"http": None, "https": None, "mailto": None, "source": "{{path}}{{params}}#{{fragment}}"}

# --- the reference ---
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says them
numpydoc_show_class_members = False
numpydoc_use_plots = True
plot_formats = [("svg", 100)]
plot_html_show_formats = plot_html_show_source_link = False
plot_include_source = True
plot_rcparams = {"svg.fonttype": "none", "text.parse_math": False}
plot_apply_rcparams = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# links to other libraries; inventories.py has the few names that our pages use, so that a build needs no network
intersphinx_mapping = {name: (url, inventories.write(name)) for name, url in inventories.SITES.items()}
if os.environ.get("BELIEF_DOCS_ONLINE"):  # check the names against the inventories of the libraries
    intersphinx_mapping = {name: (url, None) for name, url in inventories.SITES.items()}
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {
    "DataFrame": "pandas.DataFrame", "Axes": "matplotlib.axes.Axes", "RandomState": "numpy.random.RandomState",
    "Generator": "numpy.random.Generator", "Result": "belief.Result", "Comparison": "belief.Comparison",
}  # fmt: skip
numpydoc_xref_ignore = "all"  # other words of types are no links

# --- the gallery ---
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # Spark's own
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_\d+_\w+\.py",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/backreferences",  # "examples using this" in the reference
    "doc_module": ("belief",),
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),  # tables, but not the objects that matplotlib returns
    "matplotlib_animations": False,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # its page would load scripts from the net
    "remove_config_comments": True,
    "plot_gallery": True,
}

# --- how it looks ---
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "belief-fs"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static", "pictures"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
html_context = {"versions": versions.list_versions(version)}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "belief-fs", "alt_text": ""},
    "navbar_end": ["versions", "theme-switcher", "navbar-icon-links"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "search_as_you_type": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if repository := tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["urls"].get("Repository"):
    html_theme_options["icon_links"] = [{"name": "Repository", "url": repository, "icon": "fa-brands fa-git-alt"}]
# the tables of these pages need the width of the page
WIDE = ["benchmarks", "reproduction", *(f"experiments/{page.stem}" for page in HERE.glob("experiments/*.md"))]
html_theme_options["secondary_sidebar_items"] = {"**": ["page-toc"], **{page: [] for page in WIDE}}
html_sidebars = {page: [] for page in ("install", "start", "changelog", "method", "gallery/*", *WIDE)}
