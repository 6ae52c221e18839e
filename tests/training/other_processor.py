"""Run by a test in a process of its own, in which numba compiles for another processor.

Prints the bytes of the registers that the kernels are written for.
"""

import numpy as np

from tests.training.test_engines import WIDTH, compare, samples
from theodolite.core import ShortcutBlueprint
from theodolite.training.engines.fused import FusedEngine
from theodolite.training.engines.kernels.vector import REGISTER
from theodolite.training.engines.moments import MomentsEngine

if __name__ == "__main__":
    rates = np.full(30, 0.01)
    for make, mid in ((MomentsEngine, "identity"), (FusedEngine, "relu")):
        for dtype in ("float64", "float32"):
            plan = ShortcutBlueprint(width=WIDTH, depth=6, mid=mid, init="xavier")
            compare(make, True, plan, *samples(), rates, dtype=dtype, momentum=0.5)
    print(REGISTER)
