"""Writes docs/reference-modules.md: every module of weakspot, with the first line of its docstring.

python docs/_sphinx/module_reference.py
"""

import ast
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
SOURCE = DOCS.parent / "src" / "weakspot"
PAGE = DOCS / "reference-modules.md"
COMMAND = "python docs/_sphinx/module_reference.py"
HEAD = f"""# Where is what in the source?

Every module with the first sentence of its docstring. This page is written by `{COMMAND}`:
do not edit it by hand. [Architecture](architecture.md) says how the parts work together.
"""


def page() -> str:
    """The whole page as Markdown: the modules that lie in no package first, then package by package."""
    folders = sorted({path.parent for path in SOURCE.rglob("*.py")})
    return "\n".join([HEAD, *(section(folder) for folder in folders)])


def section(folder: Path) -> str:
    """One package: what it is, and a table of its modules."""
    name = ".".join(folder.relative_to(SOURCE.parent).parts)
    about = sentence(folder / "__init__.py")
    rows = "".join(f"| `{path.name}` | {sentence(path)} |\n" for path in modules(folder))
    return f"## `{name}`\n\n{about}\n\n| module | what it holds |\n|---|---|\n{rows}"


def modules(folder: Path) -> Iterator[Path]:
    """The modules of a package; private ones are left out."""
    yield from (path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_"))


def sentence(path: Path) -> str:
    """The first paragraph of a module's docstring in one line, fit for the cell of a table."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|").replace("<", "\\<")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
