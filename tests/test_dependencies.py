"""What the package imports, it declares."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from theodolite.core import Rows, TheodoliteError

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def normal(requirement):
    """Return the name in a requirement, as indices spell it."""
    name = re.match(r"[\w.-]+", requirement)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def imported():
    """Yield each top-level package that a source imports, and where."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                ("import_module", "library")
            ):
                names = [one.value for one in node.args[:1] if text(one)]
            else:
                continue
            yield from ((name.split(".")[0], path) for name in names)


def text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_all_imports_are_declared():
    extras = PROJECT["optional-dependencies"]
    lists = [PROJECT["dependencies"]]
    lists += [given for name, given in extras.items() if name not in ("dev", "docs")]
    declared = {normal(one) for given in lists for one in given}
    homes = packages_distributions()
    # Shapes are checked where jaxtyping is installed; without it they are not.
    own = {*sys.stdlib_module_names, "theodolite", "theodolite_papers", "jaxtyping"}
    missing = {
        (name, str(path.relative_to(ROOT)))
        for name, path in imported()
        if name not in own
        and not declared & {normal(one) for one in homes.get(name, [name])}
    }
    assert not missing


def test_an_extra_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TheodoliteError, match=r"pip install 'theodolite\[tables\]'"):
        Rows([{"quantity": "loss", "value": 1.0}]).to_pandas()
    assert "tables" in PROJECT["optional-dependencies"]
