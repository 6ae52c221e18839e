"""Watch the sharpness of a network in a training loop of one's own."""

import torch
from torch import nn

from theodolite.data import load
from theodolite.instruments import ExtremeEigenvalues, extreme_eigenvalues
from theodolite.training import Attached, Every, Probe, Snapshot, Watcher


def sharpness(at: Snapshot) -> ExtremeEigenvalues:
    """Measure the largest Hessian eigenvalue on the batch of the step."""
    return extreme_eigenvalues(at.problem, norm_mode="batch", ends="largest")


digits = load("digits")
x = torch.tensor(digits.flat()[:500], dtype=torch.float32)
y = torch.tensor(digits.labels[:500]).long()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
criterion = nn.CrossEntropyLoss()
optim = torch.optim.SGD(model.parameters(), lr=0.5)
watcher = Watcher([Probe("sharpness", sharpness, Every(20))])

with Attached(watcher, model, optim):  # which sees the batch and the loss
    for _ in range(61):
        optim.zero_grad()
        criterion(model(x), y).backward()
        optim.step()

for row in watcher.rows().where(quantity="theodolite/sharpness/eigenvalues"):
    print(
        f"step {row['step']}: loss {row['loss']:.3f}, sharpness {row['value']:.3f} "
        f"± {row['error']:.0e} (2/lr = 4)"
    )
