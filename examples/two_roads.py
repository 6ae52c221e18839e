"""Predict the condition number of a 2-shortcut network at zero, then measure it."""

import torch

from theodolite.core import ShortcutBlueprint
from theodolite.data import load, whiten
from theodolite.instruments import HalfSquareLoss, condition
from theodolite.networks import build
from theodolite.theory import conditioning_at_zero

digits = load("mnist5k")
x = whiten(digits.flat(), k=10).apply(digits.flat())
y = digits.one_hot()

for depth in (2, 4):
    plan = ShortcutBlueprint(width=10, depth=depth, init="zero")
    predicted = conditioning_at_zero(plan, x, y).ratio
    measured = condition(
        build(plan, seed=0),
        (torch.as_tensor(x), torch.as_tensor(y)),
        loss=HalfSquareLoss(),
        norm_mode="eval",
    )
    print(
        f"depth {depth}: predicted {predicted:.10f}, "
        f"measured {measured.ratio:.10f} ± {measured.ratio_error:.0e}"
    )
