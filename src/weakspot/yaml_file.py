"""A YAML file whose values know the line they stand on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.guarded_open import read_plain
from weakspot.core.options import OptionError

MOST_BYTES = 1 << 20
"""Of a file: PyYAML takes a second or two for as much."""
_MOST_VALUES = 100_000
_MOST_DIGITS = 400
"""Of a number: PyYAML takes minutes for one of very many."""


@dataclass(frozen=True)
class Places:
    """Where each value of a file stands."""

    name: str
    root: Node

    def of(self, *path: Any) -> str:
        """The file and line of the value under these keys, or of the last one of them that is there."""
        node, line = self.root, self.root.start_mark.line
        for part in path:
            child = _child(node, part)
            if child is None:
                break
            node, line = child[1], child[0].start_mark.line
        return f"{self.name}:{line + 1}"

    def of_option(self, option: str, *path: Any) -> str:
        """The file and line of the first option of this name below these keys, or of the keys themselves."""
        node: Node | None = self.root
        for part in path:
            child = None if node is None else _child(node, part)
            node = None if child is None else child[1]
        keys = [] if node is None else [key for key, _ in _pairs(node) if key.value == option]
        return f"{self.name}:{keys[0].start_mark.line + 1}" if keys else self.of(*path)

    @contextmanager
    def named(self, *path: Any) -> Iterator[None]:
        """Put the file and line before what an error says."""
        try:
            yield
        except WeakspotError as error:
            option = error.option if isinstance(error, OptionError) else None
            where = self.of(*path) if option is None else self.of_option(option, *path)
            if not str(error).startswith(f"{self.name}:"):
                error.args = (f"{where}: {error}",)
            raise


def read_yaml(path: Path) -> tuple[Any, Places]:
    """What a file holds, and where."""
    try:
        text = read_plain(path, most=MOST_BYTES).decode("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text ({error.reason} at byte {error.start})") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str, *, expected: str = "the keys subject, data and ask") -> tuple[Any, Places]:
    """What a text holds, and where; a key that is there twice and a value that holds itself are refused."""
    try:
        loader = _Loader(text, name)
        root = loader.get_single_node()
        if root is None:
            raise ConfigError(f"{name} is empty: expected {expected}")
        _check(root, name, (), {})
        return loader.construct_document(root), Places(name, root)
    except yaml.YAMLError as error:
        raise ConfigError(_no_yaml(error, name)) from error
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"{name} holds a value that cannot be: {str(error)[:200]}") from error
    except RecursionError:
        raise ConfigError(f"{name} is nested too deeply") from None


class _Loader(yaml.SafeLoader):
    """Stops at more values than any file needs, before it has read them all."""

    def __init__(self, text: str, name: str):
        super().__init__(text)
        self._file, self._values = name, 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """One value, with all that it holds."""
        self._values += 1
        if self._values > _MOST_VALUES:
            raise ConfigError(f"{self._file} holds more than {_MOST_VALUES:,} values: put long lists into files")
        return super().compose_node(parent, index)


def _no_yaml(error: yaml.YAMLError, name: str) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = name if mark is None else f"{name}:{mark.line + 1}"
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return f"{where}: this is not valid YAML: {reason}"


def _check(node: Node, name: str, above: tuple[int, ...], sizes: dict[int, int]) -> int:
    """How many values a node expands to; one that holds itself, or too much by repetition, is refused."""
    where = f"{name}:{node.start_mark.line + 1}"
    if id(node) in above:
        raise ConfigError(f"{where}: this value holds itself")
    if isinstance(node, ScalarNode):
        _check_scalar(node, where)
    if id(node) not in sizes:
        if isinstance(node, MappingNode):
            _check_keys(node, name)
        sizes[id(node)] = 1 + sum(_check(child, name, (*above, id(node)), sizes) for child in _children(node))
        if sizes[id(node)] > _MOST_VALUES:
            raise ConfigError(f"{where}: this expands to more than {_MOST_VALUES:,} values")
    return sizes[id(node)]


def _check_scalar(node: ScalarNode, where: str) -> None:
    if node.tag.endswith((":int", ":float")) and len(node.value) > _MOST_DIGITS:
        raise ConfigError(f"{where}: {node.value[:20]}… is a number of {len(node.value):,} digits: write a smaller one")
    try:
        node.value.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{where}: {node.value!a} holds half of a surrogate pair, which is not text") from error


def _check_keys(node: MappingNode, name: str) -> None:
    seen: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        written = (key.tag, str(key.value))
        if written in seen and key.tag != "tag:yaml.org,2002:merge":
            raise ConfigError(
                f"{name}:{key.start_mark.line + 1}: {key.value!r} stands here twice, first on line {seen[written] + 1}"
            )
        seen[written] = key.start_mark.line


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield from (key, value)
    elif isinstance(node, SequenceNode):
        yield from node.value


def _child(node: Node, part: Any) -> tuple[Node, Node] | None:
    """What stands under a key, with the key; or at a place of a list."""
    if isinstance(node, MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _pairs(node: Node) -> Iterator[tuple[Node, Node]]:
    """All keys and values at any depth, from top to bottom."""
    pairs: Sequence[tuple[Node, Node]] = node.value if isinstance(node, MappingNode) else ()
    yield from pairs
    for child in _children(node):
        yield from _pairs(child)
