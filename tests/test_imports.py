"""Who may import whom: the table of docs/architecture.md, enforced."""

import ast
import re
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
ROOMS = {"performance", "coverage", "robustness", "classes", "causes", "lesions"}
TORCH_FREE = {
    f"weakspot.core.{name}"
    for name in (
        "finding", "run", "errors", "digest", "files", "guarded_open", "guarded_table", "index_checks", "outputs",
        "figures", "sealed", "templates", "room", "locks", "groups", "environment",
    )
}  # fmt: skip
SHARED = {"lazy", "rooms", "formatting"}
"""Small torch-free modules that everybody may import."""
READERS = {*TORCH_FREE, "weakspot.core.options", "weakspot.data.images", "weakspot._version"}
JUDGES = {
    "lazy": set(),
    "rooms": set(),
    "formatting": set(),
    "estimates": {"statistics"},
    "upgrades": {"rooms"},
    "yaml_file": set(),
    "sharing": set(),
    "report": {"statistics"},
    "compare": {"statistics"},
    "gate": {"statistics", "compare", "yaml_file"},
    "evidence": {"gate"},
    "heat_pictures": set(),
    "viewer": {"statistics", "report", "compare", "heat_pictures"},
}
"""What reads Runs and never loads torch, with what else it may import."""
OF_DATA = {"weakspot.data.names"}
NOTHING_ELSE = {"weakspot", "weakspot._version"}


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((SOURCE / "weakspot").rglob("*.py"))}


def type_checking(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(tree, *, lazy=True):
    """Every module that is imported, with those of `from package import module`; hints for type checkers left out."""
    for node in ast.iter_child_nodes(tree):
        if type_checking(node):
            continue
        if not lazy and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
            yield from (f"{node.module}.{a.name}" for a in node.names if f"{node.module}.{a.name}" in MODULES)
        else:
            yield from imports(node, lazy=lazy)


def imported(name, **options):
    return set(imports(ast.parse(MODULES[name].read_text(encoding="utf-8")), **options))


def top(module):
    return module.partition(".")[0]


def package(module):
    """The folder below weakspot, or the module where it lies directly there."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def own(names):
    """Those of weakspot's own modules, packages along the way left out."""
    return {name for name in names if top(name) == "weakspot" and name not in NOTHING_ELSE}


def foreign(names):
    """What neither weakspot nor the standard library offers."""
    return {top(name) for name in names} - {"weakspot"} - set(sys.stdlib_module_names)


def may_import(module):
    """Which packages of weakspot a module may import; None for all."""
    room = package(module)
    if room == "core" or room == "":
        statistics = ["statistics"] if module == "weakspot.core.grouping" else []
        return {"core", "kernels", *statistics} if room else set(SHARED)
    if room == "kernels":
        return {"kernels"}
    if room == "statistics":
        return {"statistics"}
    if room == "slices":
        return {"slices", "statistics"}
    if room in ("relevance", "looks", "data", "models", "engines"):
        return {"core", room, "lazy", *(["heat_pictures"] if room == "relevance" else [])}
    if room == "attacks":
        return {"core", "relevance", "statistics", "estimates", room}
    if room == "repair":
        return {"core", "statistics", "estimates", "lazy", room}
    if room in ROOMS:
        below = {"core", "relevance", "looks", "data", "attacks", "repair", "statistics", "estimates", "slices"}
        above = ("viewer", "report") if module.endswith("pages") else ()
        return {*below, *SHARED, "heat_pictures", "kernels", room, *above}
    if room == "integrations":
        below = {"core", "data", "relevance", "looks", "statistics", "estimates", "asking", "registry"}
        return {*below, *SHARED, "report", "compare", "gate", room}
    if room in JUDGES:
        return {room, *JUDGES[room], *(SHARED if room not in SHARED else ())}
    return None


@pytest.mark.parametrize("module", MODULES)
def test_weakspots_own_imports_keep_to_the_table(module):
    allowed = may_import(module)
    errors = {"weakspot.core.errors"}
    own_extra = {"statistics": errors, "slices": errors, "viewer": READERS | OF_DATA}
    extra = {**dict.fromkeys(JUDGES, READERS), **own_extra}.get(package(module), set())
    for name in own(imported(module)):
        assert package(name) != "cli" or package(module) == "cli", f"{module} imports {name}: nobody imports cli"
        if allowed is not None and name not in extra:
            parents = {f"weakspot.{part}" for part in ("core", "data")} if package(module) in JUDGES else set()
            assert package(name) in allowed or name in parents, f"{module} must not import {name}"


def written_table():
    """What docs/architecture.md lets each package import: by package, the names in its row; None for all."""
    rows, same = {}, set()
    section = (
        (SOURCE.parent / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Who may import whom")[1]
    )
    for line in section.split("## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 2 or "`" not in line:
            continue
        packages, named = (set(re.findall(r"`([\w.]+)`", cell)) for cell in cells)
        if cells[1].startswith("the same"):
            named |= same
        else:
            same = named
        for name in packages - {"outputs", "pages"}:
            rows[name] = None if cells[1].startswith("every") else named
    return rows


def test_the_table_of_the_architecture_says_the_same():
    rows, packages = written_table(), {package(name) for name in MODULES} - {"", "_version"}
    assert packages <= rows.keys()
    for name in packages - SHARED:
        allowed = may_import(f"weakspot.{name}.some" if name not in JUDGES else f"weakspot.{name}")
        assert (rows[name] is None) == (allowed is None), name
        missing = (allowed or set()) - {name} - SHARED - (rows[name] or set())
        assert not missing, f"the table does not let {name} import {missing}"
        wrong = {package(f"weakspot.{one}") for one in rows[name] or ()} & packages - (allowed or set())
        assert wrong <= {"core", "data"}, f"the table lets {name} import {wrong}"


def test_registry_laws_and_asking_may_import_everything_but_cli():
    for module in MODULES:
        if package(module) in ("registry", "laws", "asking"):
            assert not {name for name in own(imported(module)) if package(name) == "cli"}


@pytest.mark.parametrize("module", sorted(TORCH_FREE))
def test_what_reads_a_run_needs_numpy_and_pyarrow_only(module):
    names = imported(module)
    assert foreign(names) <= {"numpy", "pyarrow"}
    assert own(names) <= TORCH_FREE


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_what_a_room_declares_needs_no_torch(room):
    for part in [name for name in MODULES if name.startswith(f"weakspot.{room}.") and name.endswith("outputs")]:
        for name in reachable(part):
            assert "torch" not in foreign(imported(name)), f"{part} reaches {name}, which imports torch"
    pages = f"weakspot.{room}.pages"
    assert all(pages not in imported(name) for name in MODULES), "pages are found by name, so that nobody needs fastapi"


def test_readers_know_no_finding_by_name():
    """Report, viewer, compare and gate read declarations: a room's Findings are named in the room alone."""
    from weakspot.rooms import rooms

    names = [name for room in rooms().values() for name in room.findings]
    assert len(names) > 30
    for module, path in MODULES.items():
        if package(module) in ("report", "viewer", "compare", "gate"):
            text = path.read_text(encoding="utf-8")
            assert not [name for name in names if f'"{name}' in text], module


@pytest.mark.parametrize("module", [name for name in MODULES if package(name) == "core"])
def test_the_core_needs_torch_numpy_and_pyarrow_only(module):
    assert foreign(imported(module)) <= {"numpy", "pyarrow", "torch"}


def test_only_the_engines_know_of_ray():
    asked_for = re.compile(r"""import ray\b|from ray\b|import_module\("ray""")
    knowing = {name for name, path in MODULES.items() if asked_for.search(path.read_text(encoding="utf-8"))}
    assert {package(name) for name in knowing} == {"engines"}


def test_only_the_kernels_know_of_triton():
    assert {package(name) for name in MODULES if "triton" in foreign(imported(name))} == {"kernels"}


@pytest.mark.parametrize("module", [name for name in MODULES if package(name) == "statistics"])
def test_statistics_need_numpy_and_scipy_only(module):
    assert foreign(imported(module)) <= {"numpy", "scipy"}


def reachable(module, seen=None):
    """Everything that importing a module, or calling anything in it, loads of weakspot."""
    seen = set() if seen is None else seen
    for name in own(imported(module)) & MODULES.keys():
        if name not in seen:
            seen.add(name)
            reachable(name, seen)
    return seen | {module}


@pytest.mark.parametrize("module", [*(name for name in MODULES if package(name) in JUDGES), "weakspot.asking.answers"])
def test_what_judges_a_run_never_loads_torch(module):
    for name in reachable(module):
        assert "torch" not in foreign(imported(name)), f"{module} reaches {name}, which imports torch"


@pytest.mark.parametrize("module", ["weakspot", "weakspot.cli.main", "weakspot.registry"])
def test_nothing_heavy_is_loaded_before_it_is_needed(module):
    loaded = {module} | {name for name in own(imported(module, lazy=False)) if name in MODULES}
    for name in loaded:
        assert not foreign(imported(name, lazy=False)) & {"torch", "pyarrow", "numpy", "scipy", "sklearn"}, name


def test_the_walk_sees_what_there_is():
    """A walk that finds nothing would forbid nothing."""
    assert {"weakspot.core.taps", "weakspot.cli.main", "weakspot.robustness.probes"} <= MODULES.keys()
    assert "weakspot.looks" in imported("weakspot.robustness.probes")
    assert "weakspot.core.run" in imported("weakspot.cli.main")
    assert "weakspot.core.run" not in imported("weakspot.cli.main", lazy=False)
    assert foreign(imported("weakspot.core.taps")) == {"numpy", "torch"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b, c", {"a.b", "c"}),
        ("from a.b import c", {"a.b"}),
        ("def f():\n    try:\n        import a\n    except ImportError:\n        import b", {"a", "b"}),
        ("if TYPE_CHECKING:\n    import a", set()),
        ("from weakspot import registry", {"weakspot", "weakspot.registry"}),
    ],
)
def test_how_imports_are_found(text, expected):
    assert set(imports(ast.parse(text))) == expected


@pytest.mark.parametrize("module", [name for name in MODULES if package(name) == "integrations"])
def test_adapters_import_other_tools_only_where_they_are_needed(module):
    assert foreign(imported(module)) <= {"numpy", "torch", "pyarrow", "PIL"}
    others = [name for name in MODULES if package(name) != "integrations"]
    assert not [name for name in others if module in imported(name)]
