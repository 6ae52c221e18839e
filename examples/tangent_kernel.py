"""Tangent kernel of a batch.

How fast can the loss fall? The smallest eigenvalue of the kernel says how fast it must,
the leading eigenvectors say what is learnt first.
"""

# %% A network as it starts, and forty digits
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from theodolite.data import load
from theodolite.instruments import tangent_kernel

digits = load("digits")
x = torch.tensor(digits.flat()[:40], dtype=torch.float64)
labels = digits.labels[:40]
smallest = {}
for width in (8, 32, 128):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    smallest[width] = tangent_kernel(
        model.double(), x, norm_mode="eval", trace_outputs=True
    )
    kernel = smallest[width]
    print(
        f"width {width:3d}: smallest {kernel.smallest:9.3e} "
        f"± {kernel.eigenvalue_error:.0e}, largest {kernel.largest:9.3e}, "
        f"condition {kernel.condition:.0f}"
    )

# %% Draw the widest, samples sorted by class, beside all spectra
figure = Figure(figsize=(8.0, 3.6), layout="constrained")
left, right = figure.subplots(1, 2)
order = np.argsort(labels, kind="stable")
left.imshow(smallest[128].matrix[np.ix_(order, order)], cmap="viridis")
left.set(xlabel="sample, by class", ylabel="sample")
for width, kernel in smallest.items():
    values = np.linalg.eigvalsh(kernel.matrix)[::-1]
    right.plot(values / values[0], label=f"width {width}")
right.set(xlabel="rank", ylabel="eigenvalue over the largest", yscale="log")
right.legend()
figure.savefig("tangent_kernel.png")
