"""Seeds of weights and samples, and the same networks drawn anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_DRAW: ContextVar[int] = ContextVar("draw", default=0)
# Between the seeds of two draws, above any that networks of the bay name.
_APART = 1000


def seed_of(seed: int) -> int:
    """Return a seed of the present draw."""
    return seed + _APART * _DRAW.get()


@contextmanager
def redrawn(draw: int) -> Iterator[None]:
    """Make patients inside from other weights and samples.

    Args:
        draw: Which; 0 is the one that all pages and tests use.
    """
    token = _DRAW.set(draw)
    try:
        yield
    finally:
        _DRAW.reset(token)
