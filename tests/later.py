"""Libraries that take seconds to load, and are not needed to find the tests."""

from importlib import import_module
from importlib.util import find_spec

import pytest


class Later:
    """A module that is loaded when something of it is first used."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        # Asked by pytest of everything in a file when it looks for tests.
        if attribute.startswith(("_", "pytest_")):
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


def later(name, reason):
    """Return a library to be loaded on use; skip the tests of a file without it."""
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip(reason, allow_module_level=True)
    return Later(name)
