"""What one set-up of the collection is, and how it is verified by training."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn


@dataclass
class Setup:
    """One training set-up, as a person would have it in a script.

    Attributes:
        model: Any module, in the mode in which the person trains it.
        batches: Training mini-batches, each (inputs, targets) or a mapping; these are
            repeated for as many steps as needed.
        loss: A torch loss, or a function of (outputs, targets), or of (model, batch).
        optimizer: The person's optimizer, or None if there is none to speak of.
        score: Quality of a model on held-out data, larger is better (accuracy, minus
            the error, ...). It must not depend on the loss that the person uses.
        steps: Updates after which a sound network has clearly learnt.
        step: Replaces the plain update where the person does something else (clipping,
            accumulation, two optimizers): ``step(setup, batch)``.
    """

    model: nn.Module
    batches: Sequence[Any]
    loss: Callable[..., torch.Tensor]
    optimizer: torch.optim.Optimizer | None
    score: Callable[[nn.Module], float]
    steps: int = 200
    step: Callable[[Setup, Any], None] | None = None


@dataclass(frozen=True)
class Fault:
    """A broken set-up beside its repaired twin; they differ in the fault alone.

    Attributes:
        name: Short, unique, says nothing of the fault (a reader scores blind).
        area: One of AREAS.
        broken: ``broken(seed) -> Setup``.
        repaired: ``repaired(seed) -> Setup``: the same with the smallest true repair.
        cause: The fault in one sentence, as an expert would tell the person.
        accepted: Other wordings or causes that an expert would accept as right.
        related: Statements that point to the place but not to the cause.
        source: Where faults like this come from (address of a question or report, or
            "own"): facts only, never their text or code.
    """

    name: str
    area: str
    broken: Callable[[int], Setup]
    repaired: Callable[[int], Setup]
    cause: str
    accepted: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    source: str = "own"


@dataclass(frozen=True)
class Sound:
    """A set-up in which nothing is wrong: it learns when trained.

    Attributes:
        name: Short and unique.
        family: The kind of network.
        make: ``make(seed) -> Setup``.
        source: The model family's paper or library, or "own".
    """

    name: str
    family: str
    make: Callable[[int], Setup]
    source: str = "own"


AREAS = (
    "gradient reach", "modes and settings", "targets and outputs", "inputs", "wiring",
    "learning rate and optimizer", "initialisation and signals", "normalisation",
)  # fmt: skip


def train(setup: Setup, steps: int | None = None) -> dict[str, float]:
    """Train as the person does; return the score before and after, and the losses."""
    model, losses = setup.model, []
    before = setup.score(model)
    for number in range(steps or setup.steps):
        batch = setup.batches[number % len(setup.batches)]
        try:
            if setup.step is not None:
                setup.step(setup, batch)
                continue
            setup.optimizer.zero_grad()
            value = loss_of(setup, batch)
            value.backward()
            setup.optimizer.step()
            losses.append(float(value))
        except Exception as error:  # a fault that stops training
            return {"before": before, "after": before, "error": repr(error)[:200]}
    after = setup.score(model)
    ends = {"first_loss": losses[0], "last_loss": losses[-1]} if losses else {}
    return {"before": before, "after": after if math.isfinite(after) else -1e9, **ends}


def loss_of(setup: Setup, batch: Any) -> torch.Tensor:
    """Evaluate the loss the way it is written: of outputs and targets, or of model."""
    if isinstance(batch, (tuple, list)) and not getattr(setup.loss, "of_model", False):
        inputs, targets = batch
        outputs = (
            setup.model(*inputs) if isinstance(inputs, tuple) else setup.model(inputs)
        )
        return setup.loss(outputs, targets)
    return setup.loss(setup.model, batch)


def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Verify the faults and sound set-ups of a file: two seeds each, one JSON line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    module = load(asked.file)
    for entry in [*getattr(module, "FAULTS", []), *getattr(module, "SOUND", [])]:
        if asked.only not in entry.name:
            continue
        start = time.process_time()
        row: dict[str, Any] = {"name": entry.name}
        for key in ("broken", "repaired", "make"):
            if build := getattr(entry, key, None):
                runs = []
                for seed in range(asked.seeds):
                    torch.manual_seed(seed)
                    runs.append(train(build(seed)))
                row[key] = runs
        row["cpu_s"] = round(time.process_time() - start, 1)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
