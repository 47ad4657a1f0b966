"""The bibliography as a list, and a link from every key such as [zhong2021] in a docstring or on a page."""

import re
import unicodedata
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.addnodes import pending_xref

ENTRY = re.compile(r"^@(?P<kind>\w+)\{(?P<key>\w+),(?P<fields>.*)\}$", re.MULTILINE)
FIELD = re.compile(r"(?P<name>\w+)=\{(?P<value>(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
ACCENT = re.compile(r"\\(?P<accent>[\"'`^~cv])\s*\{?\\?(?P<letter>\w)\}?")
COMBINING = {'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "c": "\u0327", "v": "\u030c"}
CITED = re.compile(r"\[([a-z]+(?:19|20)\d\d(?:, [a-z]+(?:19|20)\d\d)*)\]")
FILE = Path(__file__).parents[1] / "references.bib"


def setup(app: Any) -> dict[str, bool]:
    """Add the directive `bibliography`, and link the keys."""
    app.add_directive("bibliography", Bibliography)
    app.connect("doctree-read", link_keys)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def entries(text: str) -> dict[str, dict[str, str]]:
    r"""The fields of every work by its key.

    >>> entries(r"@book{b1999, author={B{\"o}hm, A. and C, D.}, title={The {X}}, year={1999}}")
    {'b1999': {'author': 'Böhm, A. and C, D.', 'title': 'The X', 'year': '1999'}}
    """
    return {
        entry["key"]: {field["name"]: plain(field["value"]) for field in FIELD.finditer(entry["fields"])}
        for entry in ENTRY.finditer(text)
    }


def plain(value: str) -> str:
    """A value without TeX: accents on their letters, no braces."""
    composed = ACCENT.sub(lambda found: found["letter"] + COMBINING[found["accent"]], value)
    return unicodedata.normalize("NFC", re.sub(r"[{}]|\\(?=&)", "", composed)).replace("--", "–")


def described(work: dict[str, str]) -> tuple[str, str, str]:
    """Authors, title, and where it appeared."""
    authors = [" ".join(reversed(name.split(", "))) for name in work["author"].split(" and ") if name != "others"]
    several = ", ".join(authors) + (" and others" if work["author"].endswith("and others") else "")
    where = work.get("journal") or work.get("booktitle") or work.get("publisher") or work.get("howpublished")
    volume = f" {work['volume']}" if "volume" in work else ""
    return several, work["title"], ", ".join(part for part in (where and where + volume, work["year"]) if part)


class Bibliography(Directive):
    """Every work of the bibliography, in the order of the keys."""

    def run(self) -> list[nodes.Node]:
        """One entry of a definition list per work."""
        self.state.document.settings.env.note_dependency(str(FILE))
        found = nodes.definition_list()
        for key, work in sorted(entries(FILE.read_text()).items()):
            authors, title, where = described(work)
            text = nodes.paragraph("", f"{authors}: ", nodes.emphasis(text=title), nodes.Text(f". {where}."))
            term = nodes.term("", f"[{key}]", ids=[key], names=[key])
            self.state.document.note_explicit_target(term)
            found += nodes.definition_list_item("", term, nodes.definition("", text))
        return [found]


def link_keys(app: Any, doctree: nodes.document) -> None:
    """Turn the keys in running text, between brackets or as code, into links to the bibliography."""
    known = entries(FILE.read_text())
    for code in [found for found in doctree.findall(nodes.literal) if found.astext() in known]:
        code.parent.replace(code, _links(code.astext(), app.env.docname))
    for text in list(doctree.findall(nodes.Text)):
        pieces = CITED.split(text.astext())
        if len(pieces) == 1 or isinstance(text.parent, nodes.literal | nodes.FixedTextElement | nodes.term):
            continue
        linked: list[nodes.Node] = []
        for place, piece in enumerate(pieces):
            linked.extend(_links(piece, app.env.docname) if place % 2 else [nodes.Text(piece)])
        text.parent.replace(text, linked)


def _links(keys: str, page: str) -> list[nodes.Node]:
    """The keys between brackets, each a link."""
    found: list[nodes.Node] = [nodes.Text("[")]
    for number, key in enumerate(keys.split(", ")):
        target = {"refdomain": "std", "reftype": "ref", "reftarget": key, "refexplicit": True, "refwarn": True}
        found += [nodes.Text(", ")] if number else []
        found.append(pending_xref("", nodes.inline(text=key), refdoc=page, **target))
    return [*found, nodes.Text("]")]
