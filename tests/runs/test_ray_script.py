"""A person's own script on Ray: a probe that names rooms, by either kind of address."""

import socket
import subprocess
import sys
from contextlib import closing

import pytest

from tests.later import later
from tests.runs.processes import ROOT, environment

later("ray.cluster_utils", "pip install 'theodolite[ray]'")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="starts nodes"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

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


@pytest.fixture(scope="module")
def addresses():
    """A node, by its own address and by the one for clients."""
    from ray.cluster_utils import Cluster

    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    more = {"include_dashboard": False, "ray_client_server_port": port}
    cluster = Cluster(initialize_head=True, head_node_args={**node, **more})
    yield {"own": cluster.address, "client": f"ray://127.0.0.1:{port}"}
    cluster.shutdown()


@pytest.mark.parametrize("kind", ["own", "client"])
def test_a_probe_of_a_script_goes_to_ray(addresses, kind, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), addresses[kind]],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2"
