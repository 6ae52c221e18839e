"""Studies of the papers run once at SMOKE, as those of the tests of studies do."""

from tests.studies.conftest import _figures_are_looked_at, smoke_root

__all__ = ["_figures_are_looked_at", "smoke_root"]


def pytest_generate_tests(metafunc):
    """Parametrise the tests of a study over its counterfactuals, named by claims."""
    cases = getattr(metafunc.cls, "cases", None)
    if cases is not None and "case" in metafunc.fixturenames:
        names = [f"{case[0]}-{i}" for i, case in enumerate(cases)]
        metafunc.parametrize("case", cases, ids=names)
