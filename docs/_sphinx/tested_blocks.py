"""Code blocks that tests follow to the letter, as a reader wants to see them."""

import re
from typing import Any

TITLED = re.compile(r"^```(?P<language>\w+) title=(?P<title>\S+)$", re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    """Let every page be read so."""
    app.connect("source-read", shown)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def shown(app: Any, page: str, source: list[str]) -> None:
    """Replace the text of a page, as Sphinx asks for."""
    source[0] = for_readers(source[0])


def for_readers(text: str) -> str:
    """The name of a file stands above its block; an empty line of output is empty.

    >>> print(for_readers("```yaml title=policy.yaml"))
    ```{code-block} yaml
    :caption: policy.yaml
    """
    return TITLED.sub(r"```{code-block} \g<language>\n:caption: \g<title>", text).replace("\n<BLANKLINE>\n", "\n\n")
