"""Run the code of a piece of advice on a copy of the model.

Only code that this process wrote is ever run: a survey that was read from a file may
contain code of somebody else.
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from theodolite.core import ConfigError, Exclusive

from ..records.finding import Advice
from .prescribing import written_here
from .refitting import refit


@dataclass(kw_only=True)
class Treated:
    """A copy of a network to be altered and trained.

    Attributes:
        model: The copy, altered or not.
        optimizer: The optimiser of its parameters.
        batch_size: Samples per step; None keeps the size of the given batches.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batch_size: int | None = None


def copied(model: nn.Module, optimizer: torch.optim.Optimizer | None) -> Treated:
    """Return a copy in train mode, with a copy of its optimiser.

    Without an optimiser, Adam with its default rate is used. If the model is in train
    mode, its submodules keep their modes, since frozen ones may be in eval mode.

    Raises:
        ConfigError: The model cannot be copied.
    """
    try:
        with Exclusive():
            model, before = copy.deepcopy(model), model
    except (RuntimeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the model cannot be copied ({str(error).splitlines()[0]}), wanted is one "
            "that copy.deepcopy takes: leave tries=True out"
        ) from error
    if not model.training:
        model.train()
    moved = refit(optimizer, before, model)
    if moved is None:
        learned = [p for p in model.parameters() if p.requires_grad]
        moved = torch.optim.Adam(learned, lr=1e-3)
    return Treated(model=model, optimizer=moved)


def apply_advice(advice: Advice, patient: Treated, inputs: Any) -> Treated:
    """Run the code of a piece of advice on a copy; the copy may be altered.

    Args:
        advice: Advice that :func:`theodolite.survey.advise` wrote in this process.
        patient: The copy that the code runs on.
        inputs: A batch of inputs, as the model takes them.

    Raises:
        ConfigError: The code was not written here.
    """
    check_written(advice)
    names: dict[str, Any] = {
        "model": patient.model,
        "optimizer": patient.optimizer,
        "inputs": inputs,
    }
    exec(compile(advice.code, f"<advice: {advice.title}>", "exec"), names)
    return Treated(
        model=names["model"],
        optimizer=names["optimizer"],
        batch_size=names.get("batch_size"),
    )


def check_written(advice: Advice) -> None:
    """Refuse code that this process did not write."""
    if not written_here(advice.code):
        raise ConfigError(
            f"the advice {advice.title!r} was not written in this process, and code of "
            "others is not run: call theodolite.survey.advise on the survey first"
        )
