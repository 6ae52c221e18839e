"""Convolutional networks with batch norm, several on the CPU, against plain loops.

The loops that a user writes run as one process a core, each training its share of the
networks one after the other on one thread. Ours is one call of ``train_many``, on one
thread too. Both count processor time, over all processes; importing, loading and a
first step, for which torch compiles convolutions and loads what its optimisers want, do
not count.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bench.progress import told
from bench.timing import Result
from theodolite.core import PreactivationBlueprint, derive
from theodolite.data import load
from theodolite.networks import build
from theodolite.training import Images, Recipe, train_many

NETWORKS, EPOCHS, ROUNDS = 4, 2, 2
PEER = "PyTorch loops, one process a core"


@dataclass(frozen=True)
class Case:
    """A grid: what is trained, and on how much."""

    layers: int
    width: int
    batch: int
    images: int

    @property
    def words(self) -> str:
        """What the table calls it."""
        return (
            f"{NETWORKS} pre-activation ResNets of {self.layers} layers, width "
            f"{self.width}, {self.images} digits of 28², batches of {self.batch}"
        )

    def network(self, seed: int) -> torch.nn.Module:
        """Build the network of a seed, in float32."""
        plan = PreactivationBlueprint(
            depth=self.layers, shortcut=2, width=self.width, channels=1, classes=10
        )
        return build(plan, seed=seed, dtype=torch.float32)

    @property
    def recipe(self) -> Recipe:
        """How it is trained: momentum of Nesterov, decay, no test on the way."""
        return Recipe(epochs=EPOCHS, batch_size=self.batch, rate=0.01, test_every=99)


CASES = (
    Case(layers=14, width=8, batch=32, images=128),
    Case(layers=20, width=16, batch=64, images=128),
)


def run() -> Iterator[Result]:
    """Compare losses of every epoch first, then costs, in turns."""
    for place, case in told((c.words, (i, c)) for i, c in enumerate(CASES)):
        warm(case)
        mine = theirs = gap = float("inf")
        for _ in range(ROUNDS):
            own = ours(case)
            other = loops(place)
            mine, theirs = min(mine, own["cpu"]), min(theirs, other["cpu"])
            gap = _gap(own["losses"], other["losses"])
            if not gap <= 1e-4:
                break
        if not gap <= 1e-4:
            yield Result(case.words, PEER, None, f"no: {gap:.1e}", "results differ")
            continue
        yield Result(case.words, PEER, theirs / mine, f"to {gap:.0e}")


def digits(case: Case) -> tuple[Tensor, Tensor]:
    """Return images as bytes, and their classes."""
    data = load("mnist5k")
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(0))
    order = order[: case.images]
    pixels = torch.tensor(data.inputs)[order].to(torch.uint8)[:, None]
    return pixels, torch.tensor(data.labels)[order].long()


def ours(case: Case) -> dict[str, Any]:
    """Train all networks by one call."""
    pixels, labels = digits(case)
    images = Images(
        pixels,
        labels,
        pixels[:1],
        labels[:1],
        torch.tensor([33.0]),
        torch.tensor([79.0]),
    )
    models = [case.network(seed) for seed in range(NETWORKS)]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        start = time.process_time()
        done = train_many(models, images, recipe=case.recipe, seeds=range(NETWORKS))
        spent = time.process_time() - start
    finally:
        torch.set_num_threads(before)
    losses = [[epoch["train_loss"] for epoch in run.history[1:]] for run in done]
    return {"cpu": spent, "losses": losses}


def loops(place: int) -> dict[str, Any]:
    """Train all networks by plain loops, a process a core, started together."""
    cores = min(len(os.sched_getaffinity(0)), NETWORKS)
    code = "from bench.training_images import work; work({}, {}, {})"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code.format(place, first, cores)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in range(cores)
    ]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()  # all is imported
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told_all = [json.loads(process.communicate()[0]) for process in started]
    losses = {int(k): v for told in told_all for k, v in told["losses"].items()}
    return {
        "cpu": sum(told["cpu"] for told in told_all),
        "losses": [losses[seed] for seed in range(NETWORKS)],
    }


def work(place: int, first: int, step: int) -> None:
    """Train every ``step``-th network when told to; called in a process of its own."""
    torch.set_num_threads(1)
    case = CASES[place]
    data = digits(case)
    networks = {seed: case.network(seed) for seed in range(first, NETWORKS, step)}
    warm(case)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.process_time()
    losses = {seed: plain(case, net, data, seed) for seed, net in networks.items()}
    print(json.dumps({"cpu": time.process_time() - start, "losses": losses}))


def warm(case: Case) -> None:
    """Take one step that does not count."""
    pixels, labels = (part[: case.batch] for part in digits(case))
    network = case.network(0)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    functional.cross_entropy(network(pixels.float()), labels).backward()
    optimizer.step()
    optimizer.zero_grad()


def plain(
    case: Case, network: torch.nn.Module, data: tuple[Tensor, Tensor], seed: int
) -> list[float]:
    """Return the mean loss of every epoch of the loop that one writes in PyTorch."""
    pixels, labels = data
    recipe = case.recipe
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=recipe.rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        nesterov=recipe.nesterov,
    )
    generator = torch.Generator().manual_seed(derive(seed, "images"))
    steps, means = len(labels) // case.batch, []
    network.train()
    for epoch in range(recipe.epochs):
        order = torch.randperm(len(labels), generator=generator)
        losses = []
        for step in range(steps):
            rate = recipe.rate_at((epoch * steps + step) / (steps * recipe.epochs))
            optimizer.param_groups[0]["lr"] = rate
            batch = order[step * case.batch : (step + 1) * case.batch]
            scores = network((pixels[batch].float() - 33) / 79)
            loss = functional.cross_entropy(scores, labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(sum(losses) / steps)
    return means


def _gap(ours: list[list[float]], theirs: list[list[float]]) -> float:
    a, b = torch.tensor(ours).double(), torch.tensor(theirs).double()
    return float((a / b - 1).abs().max())
