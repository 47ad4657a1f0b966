"""The graph in an archive of `torch.export`, rewritten from what is known to be harmless.

torch turns much of a graph's text into Python: names of nodes, inputs and weights go into source code that is
compiled, sizes are evaluated, operators are looked up by any name below `torch`, the types of inputs and outputs
import modules. So each text is checked by the rule for its key, and a key without a rule may hold no text.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from weakspot.models.operators import check_operator
from weakspot.models.size_expressions import rewritten_expression

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,500}")
_PATH = re.compile(r"[\w.@:+/ -]{0,500}")
_MODULE_STACK = re.compile(r"[\w.@:;,+/<>()\[\] -]*")
_BY_NAME = frozenset(
    "tensor_values sym_int_values sym_float_values sym_bool_values range_constraints opset_version".split()
)
"""Keys under which names, not further keys, stand."""
_LEFT_OUT: dict[str, Any] = {"guards_code": [], "treespec_namedtuple_fields": {}}
"""What torch would compile or look up, and what running the graph does not need."""
_SEQUENCES, _MAPPINGS = ("builtins.tuple", "builtins.list"), ("builtins.dict", "collections.OrderedDict")


def checked_graph(content: Any) -> dict[str, Any]:
    """The graph with all its texts checked; a ValueError, or an UnknownOperator, where one is not harmless."""
    if not isinstance(content, dict):
        raise ValueError("its graph is no mapping")
    return {key: _checked(key, value) for key, value in content.items()}


def checked_path(text: str) -> str:
    """The dotted name of a module or weight: nothing that could end the quotes it is put between."""
    if not _PATH.fullmatch(text) or any(part.startswith("__") for part in text.split(".")):
        raise ValueError(f"it names a module or weight {text[:60]!r}")
    return text


def _checked(key: str, value: Any) -> Any:
    if key in _LEFT_OUT:
        return _LEFT_OUT[key]
    if key == "metadata":
        return _module_stack(value)
    if isinstance(value, dict):
        if key in _BY_NAME:
            return {_name(key, name): _checked("", part) for name, part in value.items()}
        return {inner: _checked(inner, part) for inner, part in value.items()}
    if isinstance(value, list):
        return [_checked(key, part) for part in value]
    if isinstance(value, str):
        if key not in _RULES:
            raise ValueError(f"it holds text under {key[:60]!r}: {value[:60]!r}")
        return _RULES[key](value)
    return value


def _name(key: str, name: str) -> str:
    if key == "range_constraints":
        _size(name)  # torch finds the limits of a size by its own spelling
        return name
    return _identifier(name)


def _module_stack(metadata: Any) -> dict[str, str]:
    """Of all that is noted of a node, the modules that it belongs to."""
    stack = metadata.get("nn_module_stack") if isinstance(metadata, dict) else None
    if stack is None:
        return {}
    if not isinstance(stack, str) or not _MODULE_STACK.fullmatch(stack):
        raise ValueError(f"it names modules {str(stack)[:60]!r}")
    return {"nn_module_stack": stack}


def _identifier(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError(f"it names a value {text[:60]!r}")
    return text


def _argument(text: str) -> str:
    return _identifier(text) if text else text


def _operator(text: str) -> str:
    check_operator(text)
    return text


def _size(text: str) -> str:
    try:
        return rewritten_expression(text)
    except ValueError as error:
        raise ValueError(f"it computes a size as {text[:60]!r}: {error}") from error


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def rule(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"it names {what} {text[:60]!r}")
        return text

    return rule


def _input_tree(text: str) -> str:
    return json.dumps([1, _tree(_tree_in(text), _IDENTIFIER)])


def _output_tree(text: str) -> str:
    return json.dumps([1, _tree(_tree_in(text), _PATH)])


def _tree_in(text: str) -> Any:
    content = json.loads(text)
    if not isinstance(content, list) or len(content) != 2 or content[0] != 1:
        raise ValueError(f"it describes inputs or outputs as {text[:60]!r}")
    return content[1]


def _tree(spec: Any, keys: re.Pattern[str]) -> dict[str, Any]:
    """Tuples, lists and dicts of tensors. An output class of a library, a dict with attributes, becomes a dict."""
    if not isinstance(spec, dict) or not isinstance(spec.get("children_spec"), list):
        raise ValueError(f"it describes inputs or outputs as {str(spec)[:60]!r}")
    kind, context, children = spec.get("type"), spec.get("context"), spec["children_spec"]
    if kind is None and context is None and not children:
        return {"type": None, "context": None, "children_spec": []}
    inner = [_tree(child, keys) for child in children]
    if kind in _SEQUENCES:
        return {"type": kind, "context": "null", "children_spec": inner}
    names = _names(context)
    if names is None or len(names) != len(inner) or not all(keys.fullmatch(name) for name in names):
        raise ValueError(f"it takes or gives {str(kind)[:60]!r}, and not tensors in tuples, lists or dicts")
    return {
        "type": kind if kind in _MAPPINGS else "builtins.dict",
        "context": json.dumps(names),
        "children_spec": inner,
    }


def _names(context: Any) -> list[str] | None:
    try:
        names = json.loads(context) if isinstance(context, str) else None
    except ValueError:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return names if len(set(names)) == len(names) else None


_RULES: dict[str, Callable[[str], str]] = {
    "target": _operator,
    "expr_str": _size,
    "name": _argument,
    "in_spec": _input_tree,
    "out_spec": _output_tree,
    "type": _matching(r"[a-z]{1,20}", "a device"),
    "verifiers": _matching(r"[A-Z_]{0,40}", "a verifier"),
    "torch_version": _matching(r"[\w.+<=-]{0,60}", "a version of torch"),
    **dict.fromkeys(("as_name", "user_input_name", "forward_arg_names"), _identifier),
    **dict.fromkeys(("fqn", "parameter_name", "buffer_name", "tensor_constant_name"), checked_path),
    **dict.fromkeys(("as_string", "as_strings"), _matching(r"[ -~\n]{0,10000}", "an option")),
    **dict.fromkeys(("as_float", "as_floats", "as_float_lists"), _matching(r"-?Infinity|NaN", "a number")),
}
"""How the text under each key is checked, and what torch gets instead of it."""
