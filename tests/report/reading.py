"""A page as a tree, read with the standard library's parser."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "link", "input"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    children: list["Node | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(c if isinstance(c, str) else f" {c.text} " for c in self.children).split())

    def walk(self) -> Iterator["Node"]:
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag: str, **attributes: str) -> list["Node"]:
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [n for n in self.walk() if n.tag == tag and wanted.items() <= n.attributes.items()]

    def one(self, tag: str, **attributes: str) -> "Node":
        (found,) = self.all(tag, **attributes)
        return found


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Node("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), f"an attribute is given twice in <{tag}>"
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Node:
    """The page's tree; every element must be closed where it was opened."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"never closed: {[node.tag for node in reader.open[1:]]}"
    return reader.root
