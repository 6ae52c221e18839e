"""Networks of every kind of layer, and a search for what leaves its enclosure."""

import torch
from torch import nn
from torch.nn import functional

from theodolite.certificates.bends import weighed
from theodolite.certificates.enclosure import prepare
from theodolite.instruments import HalfSquareLoss, Problem

FEATURES, CLASSES = 6, 3


def chain(*between, width=8):
    return nn.Sequential(
        nn.Linear(FEATURES, width), *between, nn.Linear(width, CLASSES)
    )


class Applied(nn.Module):
    """A layer of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Residual(nn.Module):
    """Blocks written by hand: sums, a concatenation, slices and products."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Linear(FEATURES, 8), nn.LayerNorm(8)
        self.branch = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.gate, self.head = nn.Linear(8, 8), nn.Linear(12, CLASSES)

    def forward(self, x):
        skip = self.stem(x)
        x = self.branch(self.norm(skip))
        x *= 0.5
        x += skip
        x = x * torch.sigmoid(self.gate(x)) / 2 - x.mean(1, keepdim=True)
        return self.head(torch.cat([x, x[:, :4].square()], dim=1))


class Attention(nn.Module):
    """Attention of four tokens, in elementary operators."""

    def __init__(self):
        super().__init__()
        self.inward, self.mix = nn.Linear(FEATURES, 16), nn.Linear(4, 12)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        tokens = self.inward(x).reshape(len(x), 4, 4)
        q, k, v = self.mix(tokens).chunk(3, dim=-1)
        weights = (q @ k.transpose(1, 2) / 2).softmax(-1)
        return self.head((tokens + weights @ v).flatten(1))


class Encoder(nn.Module):
    """An encoder layer of torch on four tokens, with its fused attention."""

    def __init__(self):
        super().__init__()
        self.inward, self.head = nn.Linear(FEATURES, 16), nn.Linear(16, CLASSES)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)

    def forward(self, x):
        tokens = self.layer(self.inward(x).reshape(len(x), 4, 4))
        return self.head(tokens.flatten(1))


class Convolutional(nn.Module):
    """Convolutions on images of 6 by 6, with a pool and a norm."""

    def __init__(self, pool, norm, bias=True):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1, bias=bias)
        self.norm, self.pool = norm, pool
        self.down = nn.Conv2d(4, 4, 3, stride=2, padding=1, groups=2)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x):
        x = functional.relu(self.norm(self.stem(x.reshape(len(x), 1, 2, 3))))
        x = self.pool(functional.pad(x, (1, 1, 1, 1)))
        return self.head(functional.leaky_relu(self.down(x), 0.1).mean((2, 3)))


NETWORKS = {
    "linear": lambda: chain(),
    "tanh": lambda: chain(nn.Tanh(), nn.Linear(8, 8), nn.Tanh()),
    "gelu_tanh": lambda: chain(nn.GELU(approximate="tanh")),
    "softplus": lambda: chain(nn.Softplus(threshold=40)),
    **{
        kind.__name__: lambda kind=kind: chain(kind())
        for kind in (nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LogSigmoid, nn.Hardswish,
                     nn.Hardtanh)
    },
    "relu": lambda: chain(nn.ReLU(inplace=True), nn.Linear(8, 8), nn.ReLU()),
    "relu6": lambda: chain(nn.ReLU6(), nn.Dropout(0.0)),
    "batch_norm": lambda: chain(nn.BatchNorm1d(8), nn.ReLU()),
    "layer_norm": lambda: chain(nn.LayerNorm(8), nn.Tanh()),
    "group_norm": lambda: chain(nn.GroupNorm(2, 8), nn.Tanh()),
    "weight_norm": lambda: nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(FEATURES, CLASSES))
    ),
    "residual": Residual,
    "attention": Attention,
    "encoder": Encoder,
    "max_pool": lambda: Convolutional(nn.MaxPool2d(2, 1), nn.BatchNorm2d(4)),
    "mean_pool": lambda: Convolutional(nn.AvgPool2d(2), nn.GroupNorm(2, 4)),
    "plain_pool": lambda: Convolutional(nn.MaxPool2d(3, 2, 1), nn.Identity(), False),
}  # fmt: skip
LOSSES = {
    "cross_entropy": nn.CrossEntropyLoss(),
    "weighted": nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5])),
    "square": HalfSquareLoss(),
    "mse": nn.MSELoss(),
    "logistic": nn.BCEWithLogitsLoss(),
}


def problem(network, loss="cross_entropy", *, seed=0, scale=1.0, dtype=torch.float64):
    """Return a problem with weights and data of a seed."""
    torch.manual_seed(seed)
    model = NETWORKS[network]()
    with torch.no_grad():
        for one in model.parameters():
            one.mul_(scale)
    x, y = torch.randn(7, FEATURES), torch.arange(7) % CLASSES
    if not loss.startswith(("cross", "weighted")):
        y = functional.one_hot(y, CLASSES).to(dtype)
    model, data = model.to(dtype), (x.to(dtype), y)
    criterion = LOSSES[loss]
    return Problem(model, data, loss=criterion, norm_mode="batch")


def direction(ready, kind, seed=0):
    """Return the negative gradient, random numbers, or those of one tensor alone."""
    if kind == "gradient":
        return [-part for part in ready.gradient()]
    generator = torch.Generator().manual_seed(seed)
    drawn = [
        torch.randn(one.shape, generator=generator, dtype=torch.float64)
        for one in ready.parameters
    ]
    if kind == "one":
        keep = seed % len(drawn)
        drawn = [one * (place == keep) for place, one in enumerate(drawn)]
    return drawn


def outside(given, length, kind="gradient", seed=0, points=9, start=0.0):
    """Return what leaves its bounds between two points: the loss, by way, and layers.

    The loss is a function of one number there; its highest and lowest points are
    searched on a grid, which is then refined around the largest excess.
    """
    ready = prepare(given)
    along = direction(ready, kind, seed)
    loss, layers = ready.enclose(along, start, start + length, exact=seed % 2 == 1)
    below, above, slip = weighed(loss)
    layers = {**layers, "loss": loss}

    def excesses(s):
        value, outputs = ready.run(along, start + s * length)
        share = 4 * s * (1 - s)
        for name, tube in layers.items():
            truth = torch.as_tensor(outputs.get(name, value), dtype=torch.float64)
            away = truth - ((1 - s) * tube.a + s * tube.b)
            slack = 1e-11 * (1 + float(truth.abs().max()))
            gap = share * min(tube.gap, 1e300)
            yield name, float(away.norm()) - gap - tube.slip - slack
        low, high = share * max(below, -1e300), share * min(above, 1e300)
        yield "bends", max(low - float(away), float(away) - high) - slip - slack

    found = {}
    for s in (k / points for k in range(points + 1)):
        for name, gap in excesses(s):
            if name not in found or gap > found[name][0]:
                found[name] = gap, s
    s, step = found["bends"][1], 1 / points
    for _ in range(6):
        step /= 2
        near = [min(max(s + side * step, 0.0), 1.0) for side in (-1, 1)]
        s = max([s, *near], key=lambda at: dict(excesses(at))["bends"])
    found["bends"] = max(found["bends"], (dict(excesses(s))["bends"], s))
    return {name for name, (gap, _) in found.items() if not gap <= 0}
