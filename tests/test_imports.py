"""Who may import whom: parses every import of the package."""

import ast
import tokenize
from functools import cache
from io import StringIO
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
    "pages": {"core"},
    "studies": BELOW_STUDIES,
    "survey": BELOW_STUDIES | {"pages"},
    "report": {"core", "pages", "runs"},
    "cli": {"core", "data", "runs", "studies", "survey", "report"},
    "__init__": set(),
    "__main__": {"cli"},
}
WITHOUT_TORCH = {
    "core",
    "theory",
    "figures",
    "pages",
    "runs",
    "report",
    "cli",
}

# The subpackages of a package, in order: each may import those before it, and itself.
SUBPACKAGES = {
    "theory": ("linear", "paths", "spin_glass", "systems", "flows"),
    "instruments": (
        "calls",
        "distributed",
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
        "optimizers",
        "loop",
        "engines",
        "grid",
        "images",
        "classifiers",
    ),
    "runs": ("folder", "progress", "executors"),
    "survey": (
        "records",
        "subject",
        "measures",
        "checks",
        "planning",
        "findings",
        "advice",
        "run",
        "comparing",
        "watching",
        "page",
    ),
}

# A survey writes its page: the import down the list, made when it is asked to.
DOWNWARD = {("survey", "records"): {"page"}}


@cache
def read(path):
    """Return a module's imports with relative ones made absolute."""
    return absolute(path.read_text(), path.relative_to(SOURCE.parent).parent.parts)


def absolute(source, package):
    """Return the imports of a source, on their lines, relative ones made absolute."""
    lines = [""] * (source.count("\n") + 1)
    for node in statements(source):
        found = node
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            module = ".".join((*above, *filter(None, [node.module])))
            found = ast.ImportFrom(module, node.names, level=0)
        lines[node.lineno - 1] += f"{ast.unparse(found)};"
    return "\n".join(lines)


def absolute_imports(source, package):
    """List the absolute imports of a source from its own package."""
    return [
        f"{node.lineno}: import from {node.module} relatively"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and not node.level
        if f"{node.module}.".startswith(f"{package}.")
    ]


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


def violations(package, source, name="module.py"):
    """List the imports that break a rule of the house."""
    found = []
    for line, target in imports(source):
        parts = target.split(".")
        if parts[0] == "torch" and package in WITHOUT_TORCH:
            found.append(f"{name}:{line} {package} must not import torch")
        elif parts[0] == "theodolite" and len(parts) > 1 and parts[1] != package:
            if parts[1] == "__version__":
                continue
            if parts[1] not in MAY_IMPORT[package]:
                found.append(f"{name}:{line} {package} must not import {parts[1]}")
            elif len(parts) > 2:
                found.append(f"{name}:{line} import from {parts[1]}, not {target}")
    return found


def inner_violations(package, inner, source, name="module.py"):
    """List the imports that go down the list of a package's subpackages."""
    order = SUBPACKAGES[package]
    if inner not in order:
        return [f"{name} is in {inner}, which is no subpackage of {package}"]
    found = []
    for line, target in inner_imports(package, source):
        if target not in order:
            found.append(f"{name}:{line} {target} is no subpackage of {package}")
        elif target in DOWNWARD.get((package, inner), ()):
            continue
        elif order.index(target) > order.index(inner):
            found.append(f"{name}:{line} {inner} must not import {target}")
    return found


def inner_imports(package, source):
    """Yield (line, subpackage) of all that a module imports from its own package."""
    for node in statements(source):
        if isinstance(node, ast.ImportFrom) and node.module == f"theodolite.{package}":
            for alias in node.names:
                yield node.lineno, alias.name
    for line, target in imports(source):
        parts = target.split(".")
        if parts[:2] == ["theodolite", package] and len(parts) > 2:
            yield line, parts[2]


def name_clashes(paths, public):
    """List the modules and packages that carry a public name of their outer package.

    Once imported, such a module would be bound to its package under that name.
    """
    names = {part.removesuffix(".py") for path in paths for part in path.parts}
    return sorted(names & set(public))


def package_of(path):
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("package", sorted({package_of(path) for path in MODULES}))
def test_modules_keep_to_their_package(package):
    assert package in MAY_IMPORT, f"{package} is no known package"
    found = [
        violation
        for path in MODULES
        if package_of(path) == package
        for violation in violations(package, read(path), path.relative_to(SOURCE))
    ]
    assert not found


@pytest.mark.parametrize("package", SUBPACKAGES)
def test_modules_keep_to_their_subpackage(package):
    found = []
    for path in sorted((SOURCE / package).glob("*/**/*.py")):
        name = path.relative_to(SOURCE)
        found += inner_violations(package, name.parts[1], read(path), name)
    assert not found


@pytest.mark.parametrize("package", SUBPACKAGES)
def test_a_package_with_subpackages_has_no_other_modules(package):
    modules = {p.stem for p in (SOURCE / package).glob("*.py")}
    packages = {p.parent.name for p in (SOURCE / package).glob("*/__init__.py")}
    assert modules == {"__init__"}
    assert packages == set(SUBPACKAGES[package])


# Inner packages with names of their own, which people import: `training.probes.trace`.
OPEN_SUBPACKAGES = {("training", "probes")}


@pytest.mark.parametrize("package", SUBPACKAGES)
def test_a_subpackage_is_a_map_and_imports_nothing(package):
    for inner in SUBPACKAGES[package]:
        init = SOURCE / package / inner / "__init__.py"
        tree = ast.parse(init.read_text())
        assert ast.get_docstring(tree), f"{package}/{inner} has no map"
        # One that is open has its names listed, and attaches them when they are used.
        opened = init.with_suffix(".pyi").exists()
        assert opened == ((package, inner) in OPEN_SUBPACKAGES)
        assert len(tree.body) == (3 if opened else 1), f"{init} holds code"
        assert {name for _, name in imports(init.read_text())} <= {"theodolite.core"}


def test_only_listeners_are_torch_modes_or_hooks_on_all_modules():
    names = ("TorchFunctionMode", "TorchDispatchMode", "register_module_")
    papers = (SOURCE.parent / "theodolite_papers").rglob("*.py")
    files = [path for path in (*MODULES, *papers) if path.stem != "listening"]
    assert not [p for p in files for name in names if name in p.read_text()]


STUBS = sorted(SOURCE.rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda p: p.parent.name)
def test_no_module_carries_a_public_name_of_its_package(stub):
    outer = stub.parent
    paths = [p.relative_to(outer) for p in outer.rglob("*.py")]
    opened = {inner for package, inner in OPEN_SUBPACKAGES if package == outer.name}
    assert not set(name_clashes(paths, public_names(stub.read_text()))) - opened


def public_names(stub):
    """Return the names that a package's stub lists."""
    return [
        alias.asname or alias.name
        for node in ast.walk(ast.parse(stub))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("theory", "from theodolite.networks import build"),
        ("theory", "import torch.nn"),
        ("networks", "from theodolite import theory"),
        ("instruments", "def f():\n    import theodolite.networks"),
        ("report", "from theodolite.studies import catalogue"),
        ("studies", "from theodolite.core.rows import Rows"),
        ("runs", absolute("from ..studies import find", ("theodolite", "runs"))),
    ],
)
def test_a_forbidden_import_is_seen(package, source):
    assert violations(package, source)


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
def test_an_import_down_the_subpackages_is_seen(inner, source):
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
def test_an_import_up_the_subpackages_passes(source):
    assert not inner_violations("instruments", "solvers", source)


@pytest.mark.parametrize(
    "path", ["trace.py", "curvature/trace.py", "trace/dense.py", "trace/__init__.py"]
)
def test_a_module_with_a_public_name_is_seen(path):
    stub = "from .curvature.traces import trace as trace"
    assert name_clashes([Path(path)], public_names(stub)) == ["trace"]
    assert not name_clashes([Path("curvature/traces.py")], public_names(stub))


def test_imports_inside_a_package_are_relative():
    found = []
    for path in sorted(SOURCE.parent.rglob("*.py")):
        source, parts = path.read_text(), path.relative_to(SOURCE.parent).parts
        package = ".".join(parts[:2])
        if len(parts) > 2 and package in source:  # else there is nothing to parse for
            found += [(path, one) for one in absolute_imports(source, package)]
    assert not found


def test_relative_imports_are_resolved_and_absolute_ones_seen():
    source = "from ..rows import Rows\nfrom . import claims"
    package = ("theodolite", "core", "verdicts")
    resolved = absolute(source, package)
    assert list(imports(resolved)) == [
        (1, "theodolite.core.rows"),
        (2, "theodolite.core.verdicts"),
    ]
    down = absolute("from ...theory import moments", package)
    assert violations("core", down)
    assert absolute_imports("from theodolite.core.rows import Rows", "theodolite.core")
    assert not absolute_imports("from theodolite.core import Rows", "theodolite.data")


def test_names_are_spelt_as_torch_spells_them():
    wrong = [
        (str(path.relative_to(SOURCE.parent)), token.string)
        for path in SOURCE.parent.rglob("*.py*")
        if path.suffix in (".py", ".pyi") and "optimiser" in path.read_text().lower()
        for token in tokenize.generate_tokens(StringIO(path.read_text()).readline)
        if token.type == tokenize.NAME and "optimiser" in token.string.lower()
    ]
    assert not wrong
