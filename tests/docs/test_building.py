"""The documentation builds without a warning, needs no network, and leaves out nothing that may be imported."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from weakspot.registry import offered

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXPORTING = (
    "attacks causes classes compare coverage data engines evidence integrations laws lesions looks models performance "
    "relevance "
    "repair report robustness slices statistics"
)
WITHOUT_EXPORTS = ["core", "gate", "viewer"]
SPHINX = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
"""As `python -m sphinx`, without the seconds that Python looks for garbage in the trees of all pages."""
ELSEWHERE = re.compile(r"""(?:src=|<link[^>]*href=|url\(|@import\s+)["']?(?:https?:)?//""")


def test_documentation(tmp_path):
    """One build for all that is to be seen of it, as it takes some twenty seconds."""
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-d", tmp_path / "doctrees"]
    done = subprocess.run(
        [sys.executable, "-c", SPHINX, *options, DOCS, tmp_path / "site"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    site = tmp_path / "site"
    every_page_is_there(site)
    nothing_lies_elsewhere(site)
    every_public_name_is_told(site)
    options_are_lists(site)
    citations_are_links(site)


def every_page_is_there(site):
    pages = [page.relative_to(DOCS).with_suffix(".html") for page in [*DOCS.glob("*.md"), *DOCS.glob("api/*.rst")]]
    assert len(pages) > 40
    assert [page for page in pages if not (site / page).exists()] == []
    assert 'images/report.png"' in (site / "index.html").read_text()


def nothing_lies_elsewhere(site):
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert [file.name for file in files if ELSEWHERE.search(file.read_text())] == []


def every_public_name_is_told(site):
    told = {name for page in site.glob("api/*.html") for name in re.findall(r'id="(weakspot[\w.]*)"', page.read_text())}
    assert {f"weakspot.{name}" for name in import_module("weakspot").__all__ if name != "__version__"} <= told
    for package in EXPORTING.split():
        names = {f"weakspot.{package}.{name}" for name in import_module(f"weakspot.{package}").__all__}
        assert names <= told, names - told
    probes = [reference.replace(":", ".") for reference in offered().values()]
    assert [name for name in probes if not {name, shortest(name)} & told] == []


def shortest(name):
    """The name by which the package exports a probe."""
    package, own = name.rsplit(".", 2)[0], name.rsplit(".", 1)[1]
    return f"{package}.{own}"


def options_are_lists(site):
    """From lines `name: text` of docstrings."""
    for page, name in [("robustness", "threshold"), ("causes", "most_clusters"), ("classes", "directions")]:
        assert f"<strong>{name}</strong> – " in (site / f"api/{page}.html").read_text()


def citations_are_links(site):
    keys = re.findall(r"^@\w+\{(\w+),", (DOCS / "references.bib").read_text(), re.MULTILINE)
    listed = re.findall(r'<dt id="(\w+)">', (site / "bibliography.html").read_text())
    assert listed == sorted(keys)
    for page in ("howto-causes.html", "api/causes.html"):
        assert "bibliography.html#fahmy2021" in (site / page).read_text()


def test_every_package_has_a_page():
    found = {folder.parent.name for folder in (DOCS.parent / "src/weakspot").glob("*/__init__.py")}
    packages = found - {"cli", "kernels", "asking"}  # nobody else calls what is in them; weakspot has asking's names
    assert packages == {*EXPORTING.split(), *WITHOUT_EXPORTS}
    assert packages == {page.stem for page in DOCS.glob("api/*.rst")}
    begun = [name for name in WITHOUT_EXPORTS if hasattr(import_module(f"weakspot.{name}"), "__all__")]
    assert begun == []  # a package that begins to export belongs to the others
