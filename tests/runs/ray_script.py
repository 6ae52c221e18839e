"""What a person may write for Ray: scripts of their own, or the code of a page."""

import re
import shutil

from tests.runs.processes import ROOT

# Defined in a script, the probe travels by value, with the packages that it names.
SCRIPT = """
import sys
import numpy as np
from theodolite import instruments, runs, training
from theodolite.core import ShortcutBlueprint

def sharpness(snapshot):
    inputs, targets = snapshot.data
    reading = instruments.trace(
        snapshot.model, [(inputs, targets)], loss=snapshot.criterion, norm_mode="eval"
    )
    return float(reading.trace)

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
# Prints which version of the package computes, given a folder and an address.
VERSIONS = """
import sys
from tests.runs.ray_work import version
from tests.runs.work import CELLS, spec
from theodolite.runs import RayCluster, RunFolder, execute
folder = RunFolder.create(sys.argv[1], spec(width=8))
with RayCluster(sys.argv[2]) as cluster:
    execute(folder, CELLS[:4], version, pool=cluster)
print({row['text'] for row in folder.rows()})
"""


def copied_package(place, version):
    """Copy the sources to a folder and let the package there tell another version."""
    shutil.copytree(ROOT / "src", place)
    with (place / "theodolite/__init__.py").open("a") as file:
        file.write(f'\n__version__ = "{version}"\n')
    return place


def names_by_page(page, word, swaps, **given):
    """Run the code of a page that holds a word, with some of it swapped.

    Returns:
        The names that it leaves, among them those given.
    """
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (code,) = [b for b in blocks if word in b and not b.startswith(">>>")]
    for old, new in swaps.items():
        assert old in code
        code = code.replace(old, new)
    exec(compile(code, page, "exec"), given)
    return given
