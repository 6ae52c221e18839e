"""Repairs of states, missing values and steps of sequences, by hooks.

As everywhere, the best repair is a changed line of the user's own code, and the code
does the same from outside.
"""

import re

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import RUN, remedy


@remedy("surgery", "Start each batch from a new state", "state-kept-between-batches")
def _new_state(survey: Survey, finding: Finding) -> str | None:
    """Set what a pass changes in plain attributes back before each pass."""
    return (
        "import torch\n"
        "# Better: set the hidden state to None in forward(). The same:\n"
        "before = [(m, dict(vars(m))) for m in model.modules()]\n"
        f"{RUN}"
        "kept = []\n"
        "for module, values in before:\n"
        "    for name, value in vars(module).items():\n"
        "        if not name.startswith('_') and value is not values.get(name):\n"
        "            setattr(module, name, values.get(name))\n"
        "            kept.append((module, name, values.get(name)))\n"
        "def renew(model, args):\n"
        "    for module, name, value in kept:\n"
        "        setattr(module, name, value)\n"
        "model.register_forward_pre_hook(renew)\n"
    )


@remedy("surgery", "Replace missing values by the mean", "missing-as-numbers")
def _filled_in(survey: Survey, finding: Finding) -> str | None:
    """Replace a number that stands for a missing one by the mean of its column."""
    found = re.findall(r"(-?[0-9.e+]+) in column ([0-9]+)", finding.says)
    if not found:
        return None
    pairs = [(int(column), float(value)) for value, column in found]
    return (
        "# Better: fill missing values when the data are read. The same:\n"
        "table = inputs[0] if isinstance(inputs, tuple) else inputs\n"
        "def filled(module, args):\n"
        "    x = args[0].clone()\n"
        f"    for column, value in {pairs!r}:\n"
        "        known = table[:, column][table[:, column] != value]\n"
        "        x[:, column] = x[:, column].masked_fill(\n"
        "            x[:, column] == value, known.mean().item()\n"
        "        )\n"
        "    return (x, *args[1:])\n"
        "model.register_forward_pre_hook(filled)\n"
    )


@remedy("surgery", "Use the step of the last real token", "last-step-is-padding")
def _last_real(survey: Survey, finding: Finding) -> str | None:
    """Hand the output of the last real token on to the steps of padding."""
    return (
        "import torch\n"
        "# Better: nn.utils.rnn.pack_padded_sequence(...). The same:\n"
        "given = inputs[0] if isinstance(inputs, tuple) else inputs\n"
        "padding, lengths = given[:, -1].mode().values, []\n"
        "def measure(module, args):\n"
        "    ends = (args[0] == padding).flip(1).long().cumprod(1).sum(1)\n"
        "    lengths[:] = [(args[0].shape[1] - ends).clamp(min=1)]\n"
        "def held(layer, args, outputs):\n"
        "    out = outputs[0] if layer.batch_first else outputs[0].transpose(0, 1)\n"
        "    last = out[torch.arange(len(out)), lengths[0] - 1]\n"
        "    steps = torch.arange(out.shape[1], device=out.device)\n"
        "    late = (steps[None] >= lengths[0][:, None])[..., None]\n"
        "    out = torch.where(late, last[:, None], out)\n"
        "    out = out if layer.batch_first else out.transpose(0, 1)\n"
        "    pair = isinstance(outputs[1], tuple)\n"
        "    state = last[None].expand_as(outputs[1][0] if pair else outputs[1])\n"
        "    return out, (state, *outputs[1][1:]) if pair else state\n"
        "model.register_forward_pre_hook(measure)\n"
        f"model.get_submodule({finding.where[0]!r}).register_forward_hook(held)\n"
    )
