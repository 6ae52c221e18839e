"""Work for cells on a Ray cluster, and a driver that is a process of its own."""

import json
import os
import sys
import time

import numpy as np

from tests.runs.processes import until
from tests.runs.work import CELLS, Logged, initialise, spec
from tests.studies import tiny
from theodolite.core import derive
from theodolite.data import load, pack_dataset
from theodolite.runs import RayCluster, RunFolder, execute
from theodolite.studies.planning import StudyWork

prepared = []


def prepare():
    """Count how often this process was prepared."""
    prepared.append(1)
    initialise()


class OnNode:
    """Sleep, long on one node, then draw numbers; log where the cell was begun."""

    def __init__(self, log, seconds, slow_node=None):
        self.log = str(log)
        self.seconds = seconds
        self.slow_node = slow_node

    def __call__(self, cell):
        node = "home"
        if "ray" in sys.modules:
            import ray

            node = ray.get_runtime_context().get_node_id()
        with open(self.log, "a") as file:
            file.write(json.dumps({**cell, "node": node}) + "\n")
        if node == self.slow_node:
            time.sleep(600)  # until the node is lost
        time.sleep(self.seconds)
        generator = np.random.default_rng(derive(0, cell["kind"], cell["trial"]))
        yield {"quantity": "x", "value": generator.normal()}


def begun(log):
    """Return what was begun where, in order."""
    try:
        with open(log) as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def meet(place, count=2):
    """Wait until that many processes are at work, however slowly they start."""
    os.makedirs(place, exist_ok=True)
    open(os.path.join(place, str(os.getpid())), "a").close()
    until(lambda: len(os.listdir(place)) >= count)


class Circumstances:
    """Where and how a cell is computed."""

    def __init__(self, place):
        self.place = str(place)

    def __call__(self, cell):
        from threadpoolctl import threadpool_info

        meet(self.place)
        threads = max(library["num_threads"] for library in threadpool_info())
        seen = {
            "prepared": len(prepared),
            "omp": int(os.environ["OMP_NUM_THREADS"]),
            "blas": threads,
            "initialised": float("initialised" in sys.modules),
            "pid": os.getpid(),
        }
        for name, value in seen.items():
            yield {"quantity": name, "value": value}


def visible(cell):
    """The GPUs that Ray shows to this process, and the node."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    yield {"quantity": "gpus", "value": 1.0, "node": node, "seen": seen}


def weight_norm(snapshot):
    """Measure a network where it is trained."""
    weights = (p.detach() for p in snapshot.model.parameters())
    return sum(float(w.square().sum()) for w in weights) ** 0.5


def version(cell):
    """The version of the package that computes."""
    import theodolite

    yield {"quantity": "version", "value": 0.0, "text": theodolite.__version__}


class Shared:
    """Work that packs an array and says where it got it from."""

    def __init__(self, n, place):
        self.n, self.place = n, str(place)
        self.received = None

    def pack(self):
        return {"array": np.arange(self.n, dtype=np.float64)}

    def unpack(self, fetch):
        self.received = fetch("array")
        self.again = fetch("array")

    def __call__(self, cell):
        meet(self.place)
        array = self.received
        same = array.ctypes.data == self.again.ctypes.data
        yield {"quantity": "sum", "value": float(array.sum())}
        yield {"quantity": "shared", "value": float(same and not array.flags.writeable)}
        yield {"quantity": "pid", "value": os.getpid()}


class Stumbling:
    """Work that cannot get ready in a worker."""

    def pack(self):
        return {}

    def unpack(self, fetch):
        raise OSError("no such disk")

    def __call__(self, cell):
        return []


def one_row(cell):
    """The number of the cell."""
    return [{"quantity": "x", "value": float(cell["trial"])}]


class CountedLocks:
    """Count the cells in flight, which are locked, whenever one is done."""

    def __init__(self, folder):
        self.place = folder.path / "locks"
        self.counts = []

    def start(self, total, done, label):
        pass

    def finish(self):
        pass

    def advance(self, cell, cost):
        self.counts.append(len(list(self.place.iterdir())))


class DataSum:
    """The sum of a dataset's pixels, wherever the data come from."""

    def __init__(self, name, checksum):
        self.travelling = StudyWork(tiny.PAPER, "line", {}, {name: checksum})
        self.name = name

    def pack(self):
        return {self.name: pack_dataset(load(self.name, verify=False))}

    def unpack(self, fetch):
        self.travelling.unpack(fetch)

    def __call__(self, cell):
        total = np.asarray(load(self.name).inputs).sum()
        return [{"quantity": "sum", "value": float(total)}]


def total_of_cifar(cell):
    """The sum of pixels that no node has."""
    return [{"quantity": "sum", "value": float(load("cifar10").inputs.sum())}]


if __name__ == "__main__":
    root, log, address, longest, last = sys.argv[1:]
    folder = RunFolder.create(root, spec(width=8))
    with RayCluster(address) as cluster:
        print("ready", flush=True)
        done = execute(
            folder, CELLS, Logged(log, float(longest), float(last)), pool=cluster
        )
    print(done.n_done_before, done.n_computed, done.n_elsewhere)
