"""Every room has the same parts under the same names (docs/architecture.md), and a class name means one thing."""

import ast
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


def test_how_public_classes_are_found():
    assert public_classes("class A: ...\nclass _B: ...\ndef f():\n    class C: ...") == ["A"]
