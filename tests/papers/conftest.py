"""Studies of the papers run once at SMOKE, as those of the tests of studies do."""

from tests.studies.conftest import _figures_are_looked_at, smoke_root

__all__ = ["_figures_are_looked_at", "smoke_root"]
