"""Repairs of one function call inside a model, such as a softmax over a wrong axis.

The repair is one changed word of the user's forward. So that it can be tried, the code
replaces the result of that call wherever the model runs; its first line says what to
change.
"""

import re

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import remedy

_REPLACED = """\
# Better: {better}. The same:
from theodolite.instruments import Listener
class Replaced(Listener):
    def on_function(self, function, args, kwargs):
        made = function(*args, **kwargs)
        if function.__name__ in {names!r} and {wrong}:
            return {right}
        return made
calls = Replaced()
model.register_forward_pre_hook(lambda module, args: calls.__enter__() and None)
model.register_forward_hook(
    lambda module, args, outputs: calls.__exit__(None, None, None), always_call=True
)
"""
_SOFTMAX = ("softmax", "log_softmax")


@remedy("surgery", "Take the softmax over the classes: dim=1", "softmax-over-batch")
def _over_classes(survey: Survey, finding: Finding) -> str | None:
    return _REPLACED.format(
        better="softmax(dim=1)",
        names=_SOFTMAX,
        wrong="made.shape[0] > 1 and bool(((made.exp() if made.max() <= 0 else made)"
        ".sum(0) - 1).abs().max() < 1e-3)",
        right="getattr(args[0], function.__name__)(1)",
    )


@remedy("surgery", "Take the softmax over the keys: dim=-1", "attention-axis")
def _over_keys(survey: Survey, finding: Finding) -> str | None:
    return _REPLACED.format(
        better="scores.softmax(dim=-1)",
        names=_SOFTMAX,
        wrong="made.ndim > 2",
        right="args[0].softmax(-1)",
    )


@remedy("surgery", "Take the softmax over the positions", "softmax-of-one")
def _over_positions(survey: Survey, finding: Finding) -> str | None:
    """Take a softmax inside the network over its longest axis, not over one entry."""
    if survey.find("check", rule="every-gradient-zero"):  # it is that of the outputs
        return None
    return _REPLACED.format(
        better="softmax over the axis of the positions",
        names=_SOFTMAX,
        wrong="made.ndim > 2 and bool((made == 1).all())",
        right="args[0].softmax(max(range(1, made.ndim), key=lambda a: made.shape[a]))",
    )


@remedy(
    "surgery",
    "Exchange axes by permute or transpose, not by view",
    "axes-mixed-by-view",
)
def _permuted(survey: Survey, finding: Finding) -> str | None:
    """Exchange axes where a view cuts the numbers into other rows."""
    shapes = re.findall(r"\(([0-9, ]+)\)", finding.says)
    if len(shapes) != 2:
        return None
    before, after = (tuple(map(int, shape.split(", "))) for shape in shapes)
    wrong = f"(args[0].ndim, made.ndim) == ({len(before)}, {len(after)})"
    if len(before) == len(after):
        left = list(range(len(before)))
        order = [left.pop(next(i for i, n in enumerate(left) if before[n] == size))
                 for size in after]  # fmt: skip
        right = f"permute{tuple(order)}"
        wrong += " and args[0].shape != made.shape"
        wrong += " and sorted(args[0].shape) == sorted(made.shape)"
    elif len(before) < len(after):
        right = f"unflatten(-1, ({after[1]}, {after[3]})).transpose(1, 2)"
    else:
        right = "transpose(1, 2).flatten(2)"
    return _REPLACED.format(
        better=f"x.{right} in place of the view to {after}",
        names=("view", "reshape"),
        wrong=wrong,
        right=f"args[0].{right}.contiguous()",
    )
