"""The reference: one page per package, from the docstrings of its public names."""

import ast
from pathlib import Path

from handbook.gallery import TITLES
from handbook.settings import HERE, Nav

PACKAGE = HERE.parent / "src" / "theodolite"
PACKAGES = (
    "survey",
    "instruments",
    "anatomy",
    "surgery",
    "paths",
    "certificates",
    "training",
    "networks",
    "theory",
    "data",
    "runs",
    "studies",
    "figures",
    "report",
    "core",
)
# What a page begins with; the rest follows by the alphabet.
FIRST = ("survey", "compare", "watch", "summary", "Problem", *TITLES)


def write(pages: Path, nav: Nav) -> None:
    """Write the pages, which mkdocstrings fills."""
    place = pages / "reference"
    place.mkdir()
    for package in PACKAGES:
        parts = [
            f"# {package.capitalize()}\n",
            f"`theodolite.{package}`\n\n{_description(package)}\n",
        ]
        parts += [f"::: {path}\n" for path in public_names(package)]
        (place / f"{package}.md").write_text("\n".join(parts))
        nav.add("Reference", package.capitalize(), f"reference/{package}.md")


def public_names(package: str) -> list[str]:
    """Return where each public name of a package is defined, as a reader meets them."""
    folder = PACKAGE / package
    stub = folder / "__init__.pyi"
    source = stub if stub.exists() else folder / "__init__.py"
    places = {}
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = (
                node.module if not node.level else f"theodolite.{package}.{node.module}"
            )
            for name in node.names:
                if module.startswith(f"theodolite.{package}."):
                    places[name.asname or name.name] = f"{module}.{name.name}"
    order = [name for name in FIRST if name in places]
    order += sorted(places.keys() - order, key=str.lower)
    here = [places[name] for name in order]
    return [path for path in here if _is_defined(path)]


def _is_defined(path: str) -> bool:
    """Say whether a module defines a class, function or value; others pass it on."""
    module, _, name = path.rpartition(".")
    place = PACKAGE.parent.joinpath(*module.split("."))
    file = place.with_suffix(".py")
    body = ast.parse(
        (file if file.exists() else place / "__init__.py").read_text()
    ).body
    kinds = (ast.ClassDef, ast.FunctionDef)
    targets = {node.name for node in body if isinstance(node, kinds)}
    for node in body:
        if isinstance(node, ast.Assign):
            targets |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            targets.add(node.target.id)
    return name in targets


def _description(package: str) -> str:
    text = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text()))
    # What follows two colons is indented, which is code for mkdocs as well.
    return (text or "").replace("::\n", ":\n")
