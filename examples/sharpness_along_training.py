"""Sharpness along training.

Descent is stable along a direction whose curvature is below 2 / rate: where is the
largest? The probe starts each time from the eigenvector that it found last, so that it
costs a few products.
"""

# %% A batch-normalised network and its data
import torch
from matplotlib.figure import Figure
from torch import nn

from theodolite.data import load
from theodolite.instruments import sharpness_along

digits = load("digits")
x = torch.tensor(digits.flat()[:200], dtype=torch.float64)
y = torch.tensor(digits.labels[:200]).long()
torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(64, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 10)
).double()
loss, rate = nn.CrossEntropyLoss(), 1.0
optimizer = torch.optim.SGD(model.parameters(), lr=rate)

# %% Train as always; the probe is called with the step, and looks at every tenth
probe = sharpness_along(model, (x, y), loss=loss, norm_mode="batch", every=10)
for step in range(101):
    probe(step)
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()

# %% Read it: values, errors, products spent
reading = probe.reading()
for step, value, error in zip(
    reading.steps[::2], reading.eigenvalues[::2, 0], reading.errors[::2, 0], strict=True
):
    print(f"step {int(step):3d}: sharpness {value:.3f} ± {error:.1e}")
print(f"2 / rate = {2 / rate:.3f}; {int(reading.products.sum())} products in all")

# %% Draw it
figure = Figure(figsize=(6.4, 3.6), layout="constrained")
axes = figure.subplots()
axes.plot(reading.steps, reading.eigenvalues[:, 0], "o-", label="sharpness")
axes.axhline(2 / rate, color="grey", linestyle="--", label="2 / rate")
axes.set(xlabel="step", ylabel="largest eigenvalue")
axes.legend()
figure.savefig("sharpness_along_training.png")
