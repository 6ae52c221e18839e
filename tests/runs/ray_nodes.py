"""A Ray cluster of several nodes on this machine, some of which are made to die."""

import os
import socket
import threading
from contextlib import closing, contextmanager

import pytest

from tests.runs.processes import until
from theodolite.core import RunError

MARKS = [
    # Sockets and processes that Ray leaves to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}
# A node that was killed refuses connections and is given up after three seconds; one
# that is only slow to answer, or to start its agents, has minutes. Workers count as
# much as other processes: with the niceness of 15 that Ray gives them, the tests beside
# them would leave them hardly any time.
SYSTEM = {
    "worker_niceness": 0,
    "scheduler_avoid_gpu_nodes": False,
    "health_check_initial_delay_ms": 2000,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 6,
    "health_check_timeout_ms": 120_000,
    "agent_register_timeout_ms": 300_000,
    "worker_register_timeout_seconds": 300,
}


def free_port():
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def two_nodes():
    """Start a head and a node that tells of a GPU; none knows a data folder."""
    from ray.cluster_utils import Cluster

    given = os.environ.pop("THEODOLITE_DATA", None)
    head = {**NODE, "include_dashboard": False, "_system_config": SYSTEM}
    for_clients = {"ray_client_server_port": free_port()}
    cluster = Cluster(initialize_head=True, head_node_args={**head, **for_clients})
    cluster.with_gpu = cluster.add_node(**NODE, num_gpus=1)
    cluster.client_address = f"ray://127.0.0.1:{for_clients['ray_client_server_port']}"
    yield cluster
    cluster.shutdown()
    if given is not None:
        os.environ["THEODOLITE_DATA"] = given


@contextmanager
def lost_once(nodes, node, condition):
    """Kill a node when a condition comes true, beside what is done meanwhile."""

    def kill():
        until(condition)
        nodes.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join()


def jobs(executor):
    """Return how many cells fit at once: none where no node has room."""
    try:
        return executor.jobs
    except RunError:
        return 0
