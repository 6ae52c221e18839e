"""Fixtures of the tests of closed forms."""

import jaxtyping
import pytest


@pytest.fixture
def untyped():
    """Call functions as they run outside of tests, where types are not checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
