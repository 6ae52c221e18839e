"""Array shapes as types.

With jaxtyping installed (as in the tests, where beartype checks every call) these
are checked shapes; without it they are plain arrays, so it is not a dependency.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    Samples = np.ndarray
    Square = np.ndarray
else:
    try:
        from jaxtyping import Float

        Samples = Float[np.ndarray, "samples width"]
        Square = Float[np.ndarray, "width width"]
    except ImportError:
        Samples = Square = np.ndarray
