"""Run by a test in a process of its own, in which numba compiles for another processor.

Takes the dtypes of the two engines; prints the bytes of the registers that the kernels
are written for.
"""

import sys

import numpy as np

from tests.training.test_engines import WIDTH, compare, samples
from theodolite.core import ShortcutBlueprint
from theodolite.training.engines.cpu import FusedEngine, MomentsEngine
from theodolite.training.engines.kernels.vector import REGISTER

if __name__ == "__main__":
    rates = np.full(30, 0.01)
    engines = (MomentsEngine, "identity"), (FusedEngine, "relu")
    for (make, mid), dtype in zip(engines, sys.argv[1:], strict=True):
        plan = ShortcutBlueprint(width=WIDTH, depth=6, mid=mid, init="xavier")
        compare(make, plan, *samples(), rates, dtype=dtype, momentum=0.5)
    print(REGISTER)
