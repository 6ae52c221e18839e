"""What the parts of a study may import, so that theory and measurement stay apart.

A study is a folder: ``config``, ``predict``, ``measure``, ``combine``,
``claims`` and ``figure``, each of which may be cut into ``part_name`` files, and an
``__init__`` that gathers them. What several studies of a paper use is in ``shared``.
"""

import ast
from functools import cache

import pytest

from tests.test_imports import SOURCE, imports, read, statements

STUDIES = SOURCE.parent / "theodolite_papers"
PREFIX = "theodolite_papers."
MODULE = "theodolite.studies"
PACKAGES = ("core", "theory", "data", "networks", "instruments", "surgery", "training",
         "certificates", "runs", "figures")  # fmt: skip
# What each part may import of other packages, and of the other parts of its study.
MAY_IMPORT = {
    "config": ({"core", "data"}, {"config"}),
    "predict": ({"core", "theory", "data"}, {"config", "predict"}),
    "measure": (
        {"core", "data", "networks", "instruments", "surgery", "training", "runs"},
        {"config", "measure"},
    ),
    "combine": (
        set(PACKAGES) - {"figures"},
        {"config", "predict", "measure", "combine"},
    ),
    "tables": ({"core"}, {"config", "tables"}),
    "claims": ({"core"}, {"config", "tables", "figure", "claims"}),
    "figure": ({"core", "figures"}, {"config", "tables", "figure"}),
}
# What studies and papers may take from `theodolite.studies`.
MECHANISM = {"Chapter", "Committed", "CommittedRun", "Drawing", "Exhibit", "Explorer",
             "Finding", "Paper", "Study", "StudyConfig", "gather_study"}  # fmt: skip
# Of core, a function that draws needs rows alone.
DRAWN = {"Row", "Rows"}


def part_of(stem):
    """Return the part of a study that a module belongs to, or None."""
    return next((p for p in MAY_IMPORT if stem == p or stem.startswith(f"{p}_")), None)


def part_violations(paper, study, stem, source):
    """List the imports of a study's module that break a rule of the house."""
    part = part_of(stem)
    if stem == "__init__":
        return _foreign_imports(paper, study, source)
    if part is None:
        return [f"{stem} is no part of a study: {', '.join(MAY_IMPORT)}"]
    packages, siblings = MAY_IMPORT[part]
    found = _foreign_imports(paper, study, source)
    for line, target in imports(source):
        pieces = target.split(".")
        if (
            pieces[0] == "theodolite"
            and pieces[1] in PACKAGES
            and pieces[1] not in packages
        ):
            found.append(f"{stem}:{line} {part} must not import {pieces[1]}")
        if target.startswith(f"{PREFIX}{paper}.{study}."):
            other = part_of(pieces[3])
            if other not in siblings:
                found.append(f"{stem}:{line} {part} must not import {other}")
    return found + (_computing(stem, source) if part == "figure" else [])


def _computing(stem, source):
    """List what functions that draw use of NumPy and its like, or of core.

    Tables, which stand in the same file, may compute; what draws them calls none.
    """
    computing = set()
    for node in statements(source):
        names = {(one.asname or one.name).split(".")[0] for one in node.names}
        module = getattr(node, "module", None) or node.names[0].name
        if module.split(".")[0] in {"numpy", "scipy", "math", "statistics"}:
            computing |= names
        elif module == "theodolite.core":
            computing |= names - DRAWN
    functions = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
    uses = {function.name: _names_used(function) for function in functions}
    waiting = [name for name in uses if name.lstrip("_").startswith("draw")]
    seen = set()
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += uses[name] & set(uses)
    return [
        f"{stem}: {name} draws and computes nothing: {one}"
        for name in sorted(seen)
        for one in sorted(uses[name] & computing)
    ]


def _names_used(function):
    """Return the names that a function reads and does not bind itself."""
    walked = list(ast.walk(function))
    bound = {one.arg for one in walked if isinstance(one, ast.arg)}
    names = [one for one in walked if isinstance(one, ast.Name)]
    bound |= {one.id for one in names if isinstance(one.ctx, ast.Store)}
    return {one.id for one in names} - bound


def _foreign_imports(paper, study, source):
    """List imports of other papers, and of other studies of the paper."""
    found = []
    for line, target in imports(source):
        if not target.startswith(PREFIX):
            continue
        first, *rest = target.removeprefix(PREFIX).split(".")
        if first == paper:
            if rest and rest[0] not in {study, "shared"}:
                found.append(f"{line}: {study} must not import {rest[0]}")
        elif paper != "beyond" or rest[:1] != ["shared"]:
            found.append(f"{line}: {paper} must not import {first}")
    return found + _of_the_mechanism(source)


def _of_the_mechanism(source):
    """List what a study takes of the mechanism besides what declares it."""
    found = []
    for node in statements(source):
        if isinstance(node, ast.ImportFrom) and node.module.startswith(f"{MODULE}."):
            found.append(f"{node.lineno}: import from {MODULE}, not {node.module}")
        if isinstance(node, ast.ImportFrom) and node.module == MODULE:
            names = {alias.name for alias in node.names} - MECHANISM
            found += [f"{node.lineno}: studies do not need {name}" for name in names]
    return found


def reaches(start, edges, goal):
    """Whether a module imports another, directly or through modules of studies."""
    seen, waiting = set(), [start]
    while waiting:
        module = waiting.pop()
        if module.startswith(goal):
            return True
        if module not in seen:
            seen.add(module)
            waiting += edges.get(module, [])
    return False


def _edges(sources):
    return {
        name: [target for _, target in _deep(source)]
        for name, source in sources.items()
    }


def _deep(source):
    """Yield imports with the imported names as possible modules."""
    yield from imports(source)
    for node in statements(source):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PREFIX):
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


PAPERS = sorted(p.parent for p in STUDIES.glob("*/__init__.py"))


def parts(paper):
    """Return the modules of a paper's studies."""
    found = sorted(paper.glob("*/*.py"))
    return [path for path in found if path.parent.name != "shared"]


def module_name(path):
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


@cache
def edges():
    """Return what each module of studies imports."""
    return _edges({module_name(p): read(p) for p in STUDIES.rglob("*.py")})


def test_a_paper_has_folders_only():
    for paper in PAPERS:
        assert {p.stem for p in paper.glob("*.py")} <= {"__init__", "story"}


@pytest.mark.parametrize("paper", PAPERS, ids=lambda p: p.name)
def test_parts_import_only_what_they_may(paper):
    found = [
        f"{path.parent.name}/{violation}"
        for path in parts(paper)
        for violation in part_violations(
            paper.name, path.parent.name, path.stem, read(path)
        )
    ]
    assert not found


@pytest.mark.parametrize("paper", PAPERS, ids=lambda p: p.name)
def test_theory_and_measurement_do_not_meet_in_shared_modules(paper):
    far = {"measure": ["theodolite.theory"],
           "predict": ["theodolite.networks", "theodolite.instruments",
                       "theodolite.training"]}  # fmt: skip
    found = [
        f"{path} reaches {goal}"
        for path in parts(paper)
        for goal in far.get(part_of(path.stem) or "", [])
        if reaches(module_name(path), edges(), goal)
    ]
    assert not found


@pytest.mark.parametrize("paper", PAPERS, ids=lambda p: p.name)
def test_what_is_shared_knows_no_study(paper):
    for path in paper.glob("shared/**/*.py"):
        assert not _foreign_imports(paper.name, "shared", read(path)), path


LI = f"{PREFIX}li2016demystifying"


@pytest.mark.parametrize(
    ("stem", "source"),
    [
        ("predict", "from theodolite import networks"),
        ("predict", f"from {LI}.some.measure import measure"),
        ("measure", "from theodolite.theory import moments"),
        ("measure_states", "def f():\n    from theodolite import theory"),
        ("measure", f"from {LI}.some.combine import combine"),
        ("combine", "from theodolite import figures"),
        ("combine", f"from {LI}.some.claims import CLAIMS"),
        ("tables", "from theodolite.theory import moments"),
        ("claims", "from theodolite import instruments"),
        ("figure", "import numpy as np\ndef draw(table):\n    return np.mean(table)"),
        (
            "figure",
            "from theodolite.core import mean\ndef draw(t):\n    return mean(t)",
        ),
        (
            "figure",
            "from math import exp\ndef draw(t):\n    return _y(t)\n"
            "def _y(t):\n    return exp(t)",
        ),
        ("figure", f"from {LI}.some.claims import deepest"),
        ("figure", "from theodolite.theory import moments"),
        ("config", "from theodolite import theory"),
        ("drawer", ""),
        ("claims", f"from {LI}.other.claims import CLAIMS"),
        ("claims", f"from {PREFIX}littwin2016loss.shared import anything"),
        ("__init__", f"from {PREFIX}littwin2016loss import PAPER"),
        ("measure", "from theodolite.studies import run_study"),
        ("measure", "from theodolite.studies.judging import run_study"),
    ],
)
def test_a_forbidden_import_is_seen(stem, source):
    assert part_violations("li2016demystifying", "some", stem, source)


@pytest.mark.parametrize(
    ("stem", "source"),
    [
        ("predict", "from theodolite.theory import moments"),
        ("measure", "from theodolite import networks, instruments"),
        (
            "combine",
            f"from {LI}.some.measure import built\nfrom theodolite import theory",
        ),
        ("figure", "from theodolite import figures\nfrom theodolite.core import Rows"),
        ("claims_index", f"from {LI}.shared.levels import levels"),
        ("__init__", f"from {LI}.some.claims import CLAIMS"),
    ],
)
def test_what_is_allowed_passes(stem, source):
    assert not part_violations("li2016demystifying", "some", stem, source)


def test_a_detour_through_what_is_shared_is_seen():
    sources = {
        f"{LI}.some.measure": f"from {LI}.shared.detour import way",
        f"{LI}.shared.detour": "from theodolite.theory import moments",
    }
    assert reaches(f"{LI}.some.measure", _edges(sources), "theodolite.theory")
