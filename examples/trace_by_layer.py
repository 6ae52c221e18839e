"""Trace of the Hessian, layer by layer.

Which layers are stiff? Traces of the layers add up to that of the whole; divided by the
number of weights they compare layers of different size.
"""

# %% A residual network of four blocks
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from theodolite.data import load
from theodolite.instruments import by_block, trace


class Block(nn.Module):
    """A skip and a branch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to what came."""
        return x + self.linear(torch.relu(self.norm(x)))


digits = load("digits")
x = torch.tensor(digits.flat()[:200], dtype=torch.float64)
y = torch.tensor(digits.labels[:200]).long()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 8), *(Block(8) for _ in range(4)), nn.Linear(8, 10))
model, loss = model.double(), nn.CrossEntropyLoss()

# %% One reading a layer, each with its interval
traces = by_block(
    trace,
    model,
    (x, y),
    loss=loss,
    norm_mode="batch",
    max_matvecs=24,
    method="products",
)
sizes = {name: sum(p.numel() for p in model.get_submodule(name).parameters())
         for name in traces.blocks}  # fmt: skip
for name, each in zip(traces.blocks, traces.readings, strict=True):
    print(
        f"{name:9s} trace {each.trace:8.4f} [{each.trace_low:8.4f}, "
        f"{each.trace_high:8.4f}], a weight {each.trace / sizes[name]:.5f}"
    )
print(f"sum       trace {sum(each.trace for each in traces.readings):8.4f}")

# %% Draw it
figure = Figure(figsize=(6.4, 3.6), layout="constrained")
axes = figure.subplots()
low = [each.trace - each.trace_low for each in traces.readings]
high = [each.trace_high - each.trace for each in traces.readings]
axes.bar(list(traces.blocks), [r.trace for r in traces.readings], yerr=(low, high))
axes.set(ylabel="trace")
axes.tick_params(axis="x", rotation=45)
figure.savefig("trace_by_layer.png")
