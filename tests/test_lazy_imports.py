"""Packages that load their modules when one of their names is used."""

import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_imports import OPEN_SUBPACKAGES

SOURCE = Path(__file__).parents[1] / "src" / "theodolite"
PACKAGES = sorted(stub.parent.name for stub in SOURCE.glob("*/__init__.pyi"))


def printed(program):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    )
    return done.stdout.strip()


def test_packages_that_need_torch_or_matplotlib_are_lazy():
    assert {"data", "figures", "instruments", "networks", "report"} <= set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_of_a_package_is_there(name):
    package = import_module(f"theodolite.{name}")
    assert package.__all__ == dir(package) == sorted(package.__all__)
    for public in package.__all__:
        module = isinstance(getattr(package, public), ModuleType)
        assert module == ((name, public) in OPEN_SUBPACKAGES), public
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018


def test_completion_finds_every_package_before_it_is_imported():
    program = """
        import sys
        import theodolite
        names = [name for name in dir(theodolite) if not name.startswith("_")]
        assert "torch" not in sys.modules
        packages = [getattr(theodolite, name) for name in names]
        print(*[one.__name__ for one in packages if hasattr(one, "__path__")])
    """
    inside = {"cli", "pages"}  # the command line, and what the report is made of
    public = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - inside
    assert set(printed(program).split()) == {f"theodolite.{name}" for name in public}


def test_the_packages_and_core_import_nothing_heavy():
    program = f"""
        import sys
        import theodolite.core
        for package in {PACKAGES}:
            __import__("theodolite." + package)
        heavy = "torch scipy.stats matplotlib jinja2 pandas xarray sklearn".split()
        print(sorted(set(heavy) & set(sys.modules)))
    """
    assert printed(program) == "[]"


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_is_pickled_by_reference(name):
    """A function sent to another process names the package, and finds it there."""
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    package = import_module(f"theodolite.{name}")
    assert isinstance(package, ModuleType)
    sent = cloudpickle.dumps(lambda: package)
    assert len(sent) < 2000
    assert cloudpickle.loads(sent)() is package
