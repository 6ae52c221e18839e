"""Who may import whom: parses every import of the package."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "theodolite"

BELOW_STUDIES = {
    "core",
    "theory",
    "data",
    "networks",
    "instruments",
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
    "surgery": {"core"},
    "training": {"core", "networks", "instruments", "runs"},
    "runs": {"core"},
    "figures": {"core"},
    "studies": BELOW_STUDIES,
    "survey": BELOW_STUDIES,
    "report": {"core", "figures", "runs"},
    "cli": {"core", "data", "runs", "studies", "survey", "report", "cli_output"},
    "cli_output": {"core"},
    "__init__": set(),
    "__main__": {"cli"},
}
WITHOUT_TORCH = {"core", "theory", "figures", "runs", "report", "cli", "cli_output"}


def imports(tree):
    """Yield (line, dotted name) of everything a module imports, wherever it does."""
    for node in ast.walk(tree):
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
    for line, target in imports(ast.parse(source)):
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


def room_of(path):
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_module_keeps_to_its_room(path):
    assert room_of(path) in MAY_IMPORT, f"{path} is in no known room"
    assert not violations(room_of(path), path.read_text(), path.name)


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
