"""A short training of a copy."""

import math

import torch

from theodolite.instruments import Loss, evaluate

from .applying import Treated
from .samples import Pool


def loss_after(
    patient: Treated, pool: Pool, loss: Loss, *, seed: int, steps: int
) -> float:
    """Train a copy and return its loss over all samples, infinite if it diverged.

    Args:
        patient: The copy; it is trained.
        pool: What it learns from.
        loss: What it minimises.
        seed: Seed of the batches and of the network's random numbers.
        steps: Updates.
    """
    with pool.seeded(seed):
        draws = pool.draws(seed, patient.batch_size)
        for _ in range(steps):
            patient.optimizer.zero_grad(set_to_none=True)
            value = evaluate(patient.model, next(draws), loss)
            if not math.isfinite(float(value.detach())):
                return math.inf
            value.backward()
            patient.optimizer.step()
            if patient.scheduler is not None:
                patient.scheduler.step()
        with torch.no_grad():
            return pool.mean_loss(patient.model, loss)
