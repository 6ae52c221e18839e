"""Density of the Hessian's eigenvalues.

Stochastic Lanczos quadrature: no matrix is formed, so that it works for networks of
any size; the band holds at all points at once.
"""

# %% A network, trained a little
import torch
from matplotlib.figure import Figure
from torch import nn

from theodolite.data import load
from theodolite.instruments import extreme_eigenvalues, spectral_density

digits = load("digits")
x = torch.tensor(digits.flat()[:300], dtype=torch.float64)
y = torch.tensor(digits.labels[:300]).long()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)).double()
loss = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(60):
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()

# %% The density from 4 random vectors of 40 products each, and the ends exactly
shared = {"loss": loss, "norm_mode": "eval"}
density = spectral_density(
    model, (x, y), n_probes=4, steps=40, method="products", **shared
)
ends = extreme_eigenvalues(model, (x, y), method="products", **shared)
print(f"largest  {ends.eigenvalues[0]:.4f} ± {ends.errors[0]:.0e}")
print(f"smallest {ends.smallest[0]:.4f} ± {ends.smallest_errors[0]:.0e}")
half = density.cdf.searchsorted(0.5)
print(f"half of all eigenvalues are below {density.grid[half]:.1e}")

# %% Draw it
figure = Figure(figsize=(6.4, 3.6), layout="constrained")
axes = figure.subplots()
low, high = density.density_low.clip(1e-6), density.density_high.clip(1e-6)
axes.fill_between(density.grid, low, high, alpha=0.3, label="95 % band")
axes.plot(density.grid, density.density.clip(1e-6), label="density")
axes.set(xlabel="eigenvalue", ylabel="density", yscale="log")
axes.legend()
figure.savefig("hessian_density.png")
