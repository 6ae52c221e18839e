"""Who may import whom: parses every import of the package."""

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "theodolite"

BELOW_STUDIES = {
    "core",
    "theory",
    "data",
    "networks",
    "instruments",
    "anatomy",
    "paths",
    "certificates",
    "surgery",
    "training",
    "runs",
    "figures",
}
MAY_IMPORT = {
    "core": set(),
    "theory": {"core"},
    "data": {"core"},
    "networks": {"core"},
    "instruments": {"core"},
    "anatomy": {"core", "instruments"},
    "paths": {"core", "instruments", "anatomy"},
    "surgery": {"core", "instruments", "anatomy", "networks"},
    "certificates": {"core", "theory", "networks", "instruments"},
    "training": {"core", "networks", "instruments", "runs"},
    "runs": {"core"},
    "figures": {"core"},
    "studies": BELOW_STUDIES,
    "survey": BELOW_STUDIES,
    "report": {"core", "figures", "runs"},
    "cli": {
        "core",
        "data",
        "runs",
        "studies",
        "survey",
        "report",
        "cli_options",
        "cli_output",
        "cli_run",
        "cli_streams",
        "cli_studies",
        "cli_survey",
        "cli_trust",
    },
    "cli_options": {"core"},
    "cli_run": {
        "core",
        "runs",
        "studies",
        "cli_options",
        "cli_output",
        "cli_streams",
        "cli_studies",
    },
    "cli_survey": {"core", "survey", "cli_output", "cli_streams", "cli_trust"},
    "cli_studies": {
        "core",
        "runs",
        "studies",
        "cli_output",
        "cli_streams",
        "cli_trust",
    },
    "cli_trust": {"core"},
    "cli_output": {"core", "cli_streams"},
    "cli_streams": set(),
    "__init__": set(),
    "__main__": {"cli"},
}
WITHOUT_TORCH = {"core", "theory", "figures", "runs", "report", "cli", "cli_output"}

# The inner rooms of a room, in order: each may import those before it, and itself.
INNER = {
    "instruments": (
        "team",
        "differentiate",
        "model",
        "norms",
        "passes",
        "operators",
        "solvers",
        "curvature",
        "singular",
        "tangents",
        "spheres",
        "classifiers",
    ),
    "training": (
        "probes",
        "loop",
        "optimisers",
        "engines",
        "grid",
        "images",
        "classifiers",
    ),
    "runs": ("folder", "telling", "executors"),
    "survey": (
        "records",
        "subjects",
        "measures",
        "planning",
        "findings",
        "advising",
        "whole",
        "sickbay",
        "comparing",
        "watching",
        "page",
    ),
}

# Surveys, comparisons and watches draw themselves: the imports down the list, made
# when they are asked to.
DOWNWARD = {
    ("survey", "records"): {"page"},
    ("survey", "comparing"): {"page"},
    ("survey", "watching"): {"page"},
}


@cache
def statements(source):
    """Return the import statements of a source, which is parsed once for all rules."""
    walked = ast.walk(ast.parse(source))
    return tuple(n for n in walked if isinstance(n, ast.Import | ast.ImportFrom))


def imports(source):
    """Yield (line, dotted name) of everything a module imports, wherever it does."""
    for node in statements(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            if base == "theodolite":
                for alias in node.names:
                    yield node.lineno, f"theodolite.{alias.name}"
            else:
                yield node.lineno, base


def violations(room, source, name="module.py"):
    """List the imports that break a rule of the house."""
    found = []
    for line, target in imports(source):
        parts = target.split(".")
        if target.startswith("."):
            found.append(f"{name}:{line} relative import {target}")
        elif parts[0] == "torch" and room in WITHOUT_TORCH:
            found.append(f"{name}:{line} {room} must not import torch")
        elif parts[0] == "theodolite" and len(parts) > 1 and parts[1] != room:
            if parts[1] == "__version__":
                continue
            if parts[1] not in MAY_IMPORT[room]:
                found.append(f"{name}:{line} {room} must not import {parts[1]}")
            elif len(parts) > 2:
                found.append(f"{name}:{line} import from {parts[1]}, not {target}")
    return found


def inner_violations(room, inner, source, name="module.py"):
    """List the imports that go down the list of a room's inner rooms."""
    order = INNER[room]
    if inner not in order:
        return [f"{name} is in {inner}, which is no inner room of {room}"]
    found = []
    for line, target in inner_imports(room, source):
        if target not in order:
            found.append(f"{name}:{line} {target} is no inner room of {room}")
        elif target in DOWNWARD.get((room, inner), ()):
            continue
        elif order.index(target) > order.index(inner):
            found.append(f"{name}:{line} {inner} must not import {target}")
    return found


def inner_imports(room, source):
    """Yield (line, inner room) of all that a module imports from its own room."""
    for node in statements(source):
        if isinstance(node, ast.ImportFrom) and node.module == f"theodolite.{room}":
            for alias in node.names:
                yield node.lineno, alias.name
    for line, target in imports(source):
        parts = target.split(".")
        if parts[:2] == ["theodolite", room] and len(parts) > 2:
            yield line, parts[2]


def homonyms(paths, public):
    """List the modules and packages that carry a public name of their outer room.

    Once imported, such a module would be bound to its package under that name.
    """
    names = {part.removesuffix(".py") for path in paths for part in path.parts}
    return sorted(names & set(public))


def room_of(path):
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("room", sorted({room_of(path) for path in MODULES}))
def test_modules_keep_to_their_room(room):
    assert room in MAY_IMPORT, f"{room} is no known room"
    found = [
        violation
        for path in MODULES
        if room_of(path) == room
        for violation in violations(room, path.read_text(), path.relative_to(SOURCE))
    ]
    assert not found


@pytest.mark.parametrize("room", INNER)
def test_modules_keep_to_their_inner_room(room):
    found = []
    for path in sorted((SOURCE / room).glob("*/**/*.py")):
        name = path.relative_to(SOURCE)
        found += inner_violations(room, name.parts[1], path.read_text(), name)
    assert not found


@pytest.mark.parametrize("room", INNER)
def test_a_room_with_inner_rooms_has_no_other_modules(room):
    modules = {p.stem for p in (SOURCE / room).glob("*.py")}
    packages = {p.parent.name for p in (SOURCE / room).glob("*/__init__.py")}
    assert modules == {"__init__"}
    assert packages == set(INNER[room])


# Inner rooms with names of their own, which people import: `training.probes.trace`.
OPEN_INNER = {("training", "probes")}


@pytest.mark.parametrize("room", INNER)
def test_an_inner_room_is_a_map_and_imports_nothing(room):
    for inner in INNER[room]:
        init = SOURCE / room / inner / "__init__.py"
        tree = ast.parse(init.read_text())
        assert ast.get_docstring(tree), f"{room}/{inner} has no map"
        # One that is open has its names listed, and attaches them when they are used.
        opened = init.with_suffix(".pyi").exists()
        assert opened == ((room, inner) in OPEN_INNER)
        assert len(tree.body) == (3 if opened else 1), f"{init} holds code"
        assert {name for _, name in imports(init.read_text())} <= {"lazy_loader"}


STUBS = sorted(SOURCE.rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda p: p.parent.name)
def test_no_module_carries_a_public_name_of_its_room(stub):
    outer = stub.parent
    paths = [p.relative_to(outer) for p in outer.rglob("*.py")]
    opened = {inner for room, inner in OPEN_INNER if room == outer.name}
    assert not set(homonyms(paths, public_names(stub.read_text()))) - opened


def public_names(stub):
    """Return the names that a room's stub lists."""
    return [
        alias.asname or alias.name
        for node in ast.walk(ast.parse(stub))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("theory", "from theodolite.networks import build"),
        ("theory", "import torch.nn"),
        ("networks", "from theodolite import theory"),
        ("instruments", "def f():\n    import theodolite.networks"),
        ("report", "from theodolite.studies import catalogue"),
        ("studies", "from theodolite.core.rows import Rows"),
        ("runs", "from . import folder"),
    ],
)
def test_a_forbidden_import_is_seen(room, source):
    assert violations(room, source)


def test_what_is_allowed_passes():
    source = "from theodolite.core import Rows\nfrom theodolite.theory import moments"
    assert not violations("studies", source)


@pytest.mark.parametrize(
    ("inner", "source"),
    [
        ("model", "from theodolite.instruments.passes.batches import Batches"),
        ("solvers", "def f():\n    import theodolite.instruments.curvature.traces"),
        ("differentiate", "from theodolite.instruments import norms"),
        ("differentiate", "from theodolite.instruments.model import objective"),
        ("curvature", "from theodolite.instruments import Hessian"),
        ("curvature", "from theodolite.instruments.attic import Hessian"),
        ("attic", ""),
    ],
)
def test_an_import_down_the_inner_rooms_is_seen(inner, source):
    assert inner_violations("instruments", inner, source)


@pytest.mark.parametrize(
    "source",
    [
        "from theodolite.instruments.differentiate.derivatives import Curve",
        "from theodolite.instruments.passes import forecast",
        "from theodolite.instruments.solvers.lanczos import Krylov",
        "from theodolite.core import Status",
    ],
)
def test_an_import_up_the_inner_rooms_passes(source):
    assert not inner_violations("instruments", "solvers", source)


@pytest.mark.parametrize(
    "path", ["trace.py", "curvature/trace.py", "trace/dense.py", "trace/__init__.py"]
)
def test_a_module_with_a_public_name_is_seen(path):
    stub = "from .curvature.traces import trace as trace"
    assert homonyms([Path(path)], public_names(stub)) == ["trace"]
    assert not homonyms([Path("curvature/traces.py")], public_names(stub))
