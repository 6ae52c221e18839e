"""What a person may write: a probe of their own, in a script, on Ray."""

# Defined in a script, the probe travels by value, with the rooms that it names.
SCRIPT = """
import sys
import numpy as np
from theodolite import instruments, runs, training
from theodolite.core import ShortcutBlueprint

def sharpness(snapshot):
    inputs, targets = snapshot.data
    found = instruments.trace(
        snapshot.model, [(inputs, targets)], loss=snapshot.criterion, norm_mode="eval"
    )
    return float(found.trace)

x, y = np.random.default_rng(0).normal(size=(2, 20, 2))
probe = training.Probe("trace", sharpness, training.Every(2))
nets = {"linear": ShortcutBlueprint(width=2, depth=2)}
axes, given = {"seed": [0], "lr": [0.1]}, dict(steps=2, probes=[probe])
with runs.RayCluster(sys.argv[1]) as pool:
    there = training.train_grid(nets, (x, y), axes, pool=pool, **given)
here = training.train_grid(nets, (x, y), axes, jobs=0, **given)
assert there.rows == here.rows
print(len(there.probed("trace")))
"""
