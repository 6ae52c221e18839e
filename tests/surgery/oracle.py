"""What an altered network must compute, by changing single operators of the original.

Operators are changed below autograd, by number, as anatomy counts them; nothing here
knows of modules, functions or how surgery goes about it.
"""

import torch

from theodolite.anatomy import Recorder, anatomy, unfused
from theodolite.instruments import run_model


def operands(model, batch, role):
    """List (call, position) of every skip or branch, in order."""
    result = anatomy(model, batch).additions
    spans = [a.skip for a in result] if role == "skip" else [
        b for a in result for b in a.branches
    ]  # fmt: skip
    return [(span.into, span.position) for span in spans]


def run_with_factors(model, batch, factors):
    """Run a model with factors on operands of calls, by (call, position)."""

    def act(index, operator, args, kwargs):
        given = list(args)
        for (call, place), factor in factors.items():
            if call == index and operator._schema.is_mutable and place == 0:
                given[0].mul_(factor)
            elif call == index:
                given[place] = given[place] * factor
        return operator(*given, **kwargs)

    with unfused(model), Recorder(model, act=act):
        return run_model(model, batch).detach().clone()


def run_plain(model, batch):
    """Run a model as it is, and leave it as found."""
    with unfused(model):
        return run_model(model, batch).detach().clone()


def bits(model):
    """Return all that a copy must agree on: names, numbers, classes, hooks, modes."""
    return (
        {name: (t.dtype, t.clone()) for name, t in model.state_dict().items()},
        [
            (
                name,
                type(m),
                m.training,
                len(m._forward_hooks),
                len(m._forward_pre_hooks),
                sorted(vars(m)),
            )
            for name, m in model.named_modules()
        ],
        [(name, p.requires_grad) for name, p in model.named_parameters()],
    )


def same_bits(one, other):
    """Tell whether two models agree in all of it."""
    (a, left, flags), (b, right, others) = one, other
    return (
        list(a) == list(b)
        and all(a[k][0] == b[k][0] and torch.equal(a[k][1], b[k][1]) for k in a)
        and left == right
        and flags == others
    )
