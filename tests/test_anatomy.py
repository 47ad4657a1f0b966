"""Every room has the same parts under the same names (docs/architecture.md), and a class name means one thing."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

from weakspot.core.outputs import Outputs
from weakspot.core.room import Room
from weakspot.registry import BUILT_IN, STEPS
from weakspot.rooms import QUESTIONS, rooms

SOURCE = Path(__file__).resolve().parent.parent / "src"
PROBES = [(package, name) for package, names in BUILT_IN.items() for name in names.split()]


@pytest.mark.parametrize(("package", "name"), PROBES, ids=lambda part: part)
def test_packages_export_their_probes(package, name):
    from weakspot.core.probe import Probe

    exported = getattr(import_module(package), name)
    assert issubclass(exported, Probe)
    assert exported.outputs != Outputs(), f"{name} declares no outputs"


@pytest.mark.parametrize("room", QUESTIONS)
def test_a_room_has_its_parts(room):
    assert callable(import_module(f"weakspot.{room}.room").steps)
    assert STEPS[room] == f"weakspot.{room}.room:steps"
    declared = import_module(f"weakspot.{room}.outputs").ROOM
    assert isinstance(declared, Room)
    assert declared.name == room
    assert declared.findings
    assert all(name.startswith(f"{room}.") for name in declared.findings)
    assert rooms()[room] is declared


PURE = {"causes": ("distances", "tree", "knees", "stability", "landmarks")}
"""Pure functions of a room that are not in `metrics` modules: they are named by what they hold."""


@pytest.mark.parametrize("room", QUESTIONS)
def test_a_room_names_its_files_by_their_role(room):
    files = {path.stem: path for path in (SOURCE / "weakspot" / room).glob("*.py")}
    assert {"room", "outputs"} <= files.keys()
    assert ("pages" in files) == bool(rooms()[room].pages)
    metrics = [name for name in files if name == "metrics" or name.startswith("metrics_")]
    assert metrics or room in PURE
    for name in [*metrics, *PURE.get(room, ())]:
        assert "weakspot.core.probe" not in files[name].read_text(encoding="utf-8"), f"{name} is to be pure"


@pytest.mark.parametrize(("package", "name"), PROBES, ids=lambda part: part)
def test_probes_are_in_files_called_so(package, name):
    if package.removeprefix("weakspot.") in QUESTIONS:
        module = getattr(import_module(package), name).__module__.rpartition(".")[2]
        assert module == "probes" or module.endswith("_probes")


@pytest.mark.parametrize("room", QUESTIONS)
def test_a_room_with_pages_has_routes(room):
    from fastapi import APIRouter

    if rooms()[room].pages:
        router = import_module(f"weakspot.{room}.pages").router
        assert isinstance(router, APIRouter)
        assert router.routes
        assert (SOURCE / "weakspot/viewer/static" / f"{rooms()[room].pages[0].name}.js").exists()


def test_what_rooms_declare_is_read_without_torch():
    modules = [f"weakspot.{room}.outputs" for room in QUESTIONS]
    code = f"import sys\nfor name in {modules}:\n    __import__(name)\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "False"


def public_classes(text):
    """The names of a module's own public classes."""
    body = ast.parse(text).body
    return [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def test_no_two_public_classes_share_a_name():
    modules = defaultdict(list)
    for path in sorted((SOURCE / "weakspot").rglob("*.py")):
        for name in public_classes(path.read_text(encoding="utf-8")):
            modules[name].append(path.relative_to(SOURCE / "weakspot").as_posix())
    assert len(modules) > 200
    assert {name: files for name, files in modules.items() if len(files) > 1} == {}


MOST_PARAMETERS = 8
PAPERS = {"bim", "carlini_wagner", "pgd", "snow"}
"""Attacks and corruptions with the parameters that their papers give them."""
AS_IN_TORCH = {"convolution", "convolution_transposed", "_adapted", "batch_normalised", "instance_normalised"}
"""They stand for functions of torch, and are called with the same arguments."""


def parameters(function):
    """Names of a function's parameters, without `self`; of a constructor, those that may be given by position."""
    given = function.args
    several = [given.vararg, given.kwarg]
    by_name = [] if function.name == "__init__" else [*given.kwonlyargs, *filter(None, several)]
    return [one.arg for one in (*given.posonlyargs, *given.args, *by_name) if one.arg not in ("self", "cls")]


def called_from_outside(function):
    """Whether parameters are flags of a command, values of an address, or arguments of a GPU kernel."""
    decorators = [ast.unparse(one) for one in function.decorator_list]
    return any(one.startswith(("app.", "router.", "triton.")) or ".command" in one for one in decorators)


def functions(text):
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_functions_have_few_parameters():
    """Options of a constructor are given by name, as fields of a dataclass are, and do not count."""
    many, seen = set(), 0
    for path in (SOURCE / "weakspot").rglob("*.py"):
        for function in functions(path.read_text(encoding="utf-8")):
            seen += 1
            if len(parameters(function)) > MOST_PARAMETERS and not called_from_outside(function):
                many.add(function.name)
    assert seen > 3000
    assert many == PAPERS | AS_IN_TORCH | {"retrain", "ask", "bootstrap_distance"}, (
        "bundle what belongs together in a dataclass"
    )


def test_how_parameters_are_counted():
    plain, method, made = functions(
        "def f(a, /, b, *c, d=1, **e): ...\nclass A:\n  def g(self, x): ...\n  def __init__(self, x, *, y): ..."
    )
    assert [parameters(one) for one in (plain, method, made)] == [["a", "b", "d", "c", "e"], ["x"], ["x"]]
    command, route = functions("@app.command()\ndef f(): ...\n@router.get('/x')\nasync def g(): ...")
    assert called_from_outside(command) and called_from_outside(route) and not called_from_outside(plain)


OPTION = re.compile(r"[a-z_]\w*(, [a-z_]\w*)*: \S")


def options_in_running_text(node):
    """Lines of a docstring that describe options otherwise than in a line `name: text` for each."""
    own = {one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}
    makers = [node] if isinstance(node, ast.FunctionDef) else [one for one in node.body if is_constructor(one)]
    names = own.union(*(parameters(one) + [two.arg for two in one.args.kwonlyargs] for one in makers))
    name = "|".join(sorted(names)) or "-"
    for paragraph in (ast.get_docstring(node) or "").split("\n\n")[1:]:
        lines = paragraph.split("\n")
        if lines[0] in ("Args:", "Returns:", "Parameters") or re.match(
            f"`?({name})`? (is|are|says|chooses) ", lines[0]
        ):
            yield lines[0]
        if re.match(rf"`?({name})`?(, \w+)*: ", lines[0]):
            yield from (line for line in lines if re.match(r"[`a-z]", line) and not OPTION.match(line))
            yield from (line for line in lines if re.search(rf"[.;] `?({name})`?: ", line))


def is_constructor(node):
    return isinstance(node, ast.FunctionDef) and node.name == "__init__"


def test_docstrings_describe_options_in_one_way():
    for path in sorted((SOURCE / "weakspot").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert list(options_in_running_text(node)) == [], f"{path}: {node.name}"


@pytest.mark.parametrize(
    "text",
    ["`a` is one.", "Args:\n    a: one.", "a: one. b: two.", "a: one\nor two.", "`a`: one."],
)
def test_other_ways_to_describe_options_are_found(text):
    wrong, right = (ast.parse(f'def f(a, b):\n  """Adds.\n\n{doc}"""').body[0] for doc in (text, "a: one.\nb: two."))
    assert list(options_in_running_text(wrong))
    assert not list(options_in_running_text(right))


def test_how_public_classes_are_found():
    assert public_classes("class A: ...\nclass _B: ...\ndef f():\n    class C: ...") == ["A"]
