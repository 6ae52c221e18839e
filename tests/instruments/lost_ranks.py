"""Ranks of a team that are killed, stopped, fail or end, and what the others say."""

import ctypes
import os
import signal
import time
from contextlib import suppress

import torch
import torch.distributed as dist

from tests.instruments.ranks import KILLED, LOSS, begin, data, network, sentence
from tests.runs.processes import until
from theodolite.core import DistributedError
from theodolite.instruments import Hessian, Team, share_of
from theodolite.instruments.distributed import heartbeat


def met_by_port(rank, size, port):
    """Return the team of all ranks, whose first holds the store."""
    torch.set_num_threads(1)
    meeting = f"tcp://localhost:{port}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size)
    return Team(True)


def lose(rank, size, place, how):
    """Multiply again and again until the last rank is gone."""
    begin(rank, size, f"{place}/store")
    team = Team(True)
    operator = Hessian(
        network(), share_of(data(), team), loss=LOSS, norm_mode="full", team=team
    )
    vector = torch.ones(operator.shape[1], dtype=torch.float64)
    for _ in range(3):
        operator @ vector
    if rank == size - 1:
        os.kill(os.getpid(), how)
    begun = time.monotonic()
    try:
        while True:
            operator @ vector
    except DistributedError as error:
        with open(f"{place}/said-{rank}", "w") as file:
            file.write(f"{time.monotonic() - begun} {error}")
    os._exit(0)  # with connections open, of which the dead hold one end


def leave_at_once(rank, size, place, port, gone):
    """Lose a rank between the start and the first call that all make."""
    team = met_by_port(rank, size, port)
    open(f"{place}/there-{rank}", "w").close()
    until(lambda: all(os.path.exists(f"{place}/there-{r}") for r in range(size)))
    if rank == gone:
        os.kill(os.getpid(), KILLED)
    begun = time.monotonic()
    try:
        team.sum(torch.ones(1))
    except DistributedError as error:
        with open(f"{place}/left-{rank}", "w") as file:
            file.write(f"{time.monotonic() - begun} {error}")
    os._exit(0)


def stay_away(rank, size, place, how):
    """Have the last of two ranks come no more, when the first waits for it."""
    begin(rank, size, f"{place}/store")
    team = Team(True)
    team.sum(torch.ones(1))
    heartbeat._STAY_S = 60.0  # to be heard beside other work; it is sooner
    if rank == 0:
        begun = time.monotonic()
        said = sentence(lambda: team.sum(torch.ones(1)))
        torch.save((said, time.monotonic() - begun), f"{place}/away")
    elif how == "raises":
        raise ValueError("out of luck")
    elif how == "catches":
        with team.reporting_errors(), suppress(ValueError), team.reporting_errors():
            raise ValueError("out of luck")
        until(lambda: os.path.exists(f"{place}/away"))
    elif how == "lives on":
        # As the interpreter runs a script; it would wait for threads after it.
        ctypes.pythonapi.PyRun_SimpleString(b"raise ValueError('out of luck')")
        until(lambda: os.path.exists(f"{place}/away"))


# A rank that fails, and whose process a thread of its own keeps alive.
FAILING = """
import sys, threading, time
import torch
import torch.distributed as dist
from theodolite.instruments import Team

dist.init_process_group("gloo")
team = Team(True)
team.sum(torch.ones(1))
if team.rank == 0:
    threading.Thread(target=time.sleep, args=(600,)).start()
    raise ValueError("out of luck")
team.sum(torch.ones(1))
"""


def end_the_host(rank, size, place, port):
    """End the process that holds what all share, as a script does at its last line."""
    team = met_by_port(rank, size, port)
    team.sum(torch.ones(1))
    heartbeat._STAY_S = 60.0
    if rank > 0:
        said = sentence(lambda: team.sum(torch.ones(1)))
        torch.save(said, f"{place}/ended-{rank}")
        os._exit(0)


def stop_the_host(rank, size, place, port):
    """Stop the process that holds what all share, for good and without a word."""
    team = met_by_port(rank, size, port)
    host = int(team.broadcast(torch.tensor(os.getpid())))
    team.sum(torch.ones(1))
    heartbeat.PATIENCE_S = 2.0
    if rank == 0:
        os.kill(host, signal.SIGSTOP)
    begun = time.monotonic()
    said = sentence(lambda: team.sum(torch.ones(1)))
    torch.save((said, time.monotonic() - begun), f"{place}/stopped-{rank}")
    os.kill(host, KILLED)
    os._exit(0)
