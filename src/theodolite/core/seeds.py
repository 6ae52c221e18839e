"""Seeds and random streams: one seed determines everything.

A stream is named by a root seed and labels, never by the order in which work is
scheduled, so a trial draws the same numbers alone, in a pool or on a cluster.
"""

import hashlib

import numpy as np

from .arrays import as_integer


def derive(seed: int, *labels: str | int | bool) -> int:
    """Return a 63-bit seed that depends on a seed and labels.

    A NumPy integer is the same label as the int, an enum of strings as its string.

    Example:
        >>> derive(0, "trial", 1) == derive(0, "trial", 1)
        True
        >>> derive(0, "trial", 1) == derive(0, "trial", 2)
        False
    """
    check_seed(seed)
    text = "\x1f".join([str(seed), *map(_tagged, labels)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def stream(seed: int, *labels: str | int | bool) -> np.random.Generator:
    """Return a generator; without labels it is ``default_rng(seed)`` itself."""
    check_seed(seed)
    return np.random.default_rng(derive(seed, *labels) if labels else seed)


def check_seed(seed: int) -> None:
    """Raise if a seed is not a non-negative integer."""
    as_integer("seed", seed, 0)


def _tagged(label: str | int | bool) -> str:
    # The tag keeps 1 from "1"; the escapes, a separator inside a label from one
    # between labels.
    if isinstance(label, str):
        text = str(label).replace("\x1e", "\x1e0").replace("\x1f", "\x1e1")
        return f"str:{text}"
    if isinstance(label, bool | np.bool_):
        return f"bool:{bool(label)}"
    return f"int:{int(label)}"
