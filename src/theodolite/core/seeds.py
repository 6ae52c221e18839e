"""One seed determines everything.

A stream is named by a root seed and labels, never by the order in which work is
scheduled, so a trial draws the same numbers alone, in a pool or on a cluster.
"""

import hashlib

import numpy as np

from theodolite.core.errors import ConfigError


def derive(seed: int, *labels: str | int) -> int:
    """Return a seed of 63 bits for the stream that the labels name.

    Example:
        >>> derive(0, "trial", 1) == derive(0, "trial", 1)
        True
        >>> derive(0, "trial", 1) == derive(0, "trial", 2)
        False
    """
    check_seed(seed)
    text = "\x1f".join([str(seed), *(f"{type(x).__name__}:{x}" for x in labels)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def stream(seed: int, *labels: str | int) -> np.random.Generator:
    """Return a generator; without labels it is ``default_rng(seed)`` itself."""
    check_seed(seed)
    return np.random.default_rng(derive(seed, *labels) if labels else seed)


def check_seed(seed: int) -> None:
    """Refuse what is not a non-negative whole number."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(
            f"seed {seed!r} is not a whole number from 0 up: pass one such as 0"
        )
