"""The README for the package index: links and pictures that lie in the repository get their whole address."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(\]\(|src=\")(?!https?://|#)([^)\"\s]+)")
_PICTURES = (".png", ".svg")


class Readme(MetadataHookInterface):
    """Sets `readme` from README.md; the index knows no other file of the repository."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the text."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, metadata["urls"]["Source"])}


def absolute(text: str, source: str) -> str:
    """Markdown whose relative links lead into the repository at `source`."""

    def whole(link: re.Match[str]) -> str:
        view = "raw" if link[2].partition("#")[0].endswith(_PICTURES) else "blob"
        return f"{link[1]}{source}/{view}/main/{link[2]}"

    return _LINK.sub(whole, text)
