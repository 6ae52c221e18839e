"""A name of theory with the arrays that it is handed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.dtypes import numbers


@dataclass(frozen=True)
class Case:
    """How to call a name: arrays to pass, by name and shape, or unit vectors."""

    call: Any
    arrays: tuple[tuple[str, tuple[int, ...]], ...] = ()
    units: tuple[tuple[str, Any], ...] = ()

    def given(self, dtype):
        drawn = {
            name: numbers(dtype, *shape, seed=place)
            for place, (name, shape) in enumerate(self.arrays)
        }
        return drawn | {
            name: np.eye(4)[rows].astype(dtype) for name, rows in self.units
        }
