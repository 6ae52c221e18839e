"""What a forward pass does besides computing outputs: it writes, or it remembers."""

import torch

from theodolite.instruments import preserve, reseed, tensors_in

from .check import Sign, check
from .reach import listed
from .seen import Seen

# Change of the outputs between two equal calls, relative to their size: our choice.
OTHER = 1e-3


@check(
    "forward-draws-weights",
    "sick",
    "The forward pass draws its weights again",
    source="weights compared before and after two calls of the model",
    repaired_by="Initialise weights once, in __init__",
    kind="surgery",
)
def forward_draws_weights(seen: Seen) -> Sign | None:
    """Each call of the model replaces trained weights by new ones, so that what a step
    learned is lost at the next.
    """
    if seen.trace.called is None:
        return None  # the loss calls parts of the model
    trained = {n: p for n, p in seen.model.named_parameters() if p.requires_grad}
    states = list[dict[str, torch.Tensor]]()
    with preserve(seen.model), torch.no_grad():
        for number in range(3):
            states.append({n: p.detach().clone() for n, p in trained.items()})
            reseed(seen.seed + number)
            seen.call()
    first, second, third = states
    drawn = [
        n for n in trained
        if not torch.equal(first[n], second[n]) and not torch.equal(second[n], third[n])
    ]  # fmt: skip
    if not drawn:
        return None
    return Sign(len(drawn), where=drawn, detail=f"Here: {listed(drawn)}.")


@check(
    "state-kept-between-batches",
    "warning",
    "The model remembers the batch before",
    source="outputs of two equal calls one after the other, in eval mode",
    repaired_by="Start each batch from a new state: set the hidden state to None",
    kind="surgery",
)
def state_kept_between_batches(seen: Seen) -> Sign | None:
    """The same inputs give other outputs at the second call, with equal random numbers:
    the state of one batch, which holds other samples, is the start of the next.
    """
    if seen.trace.called is None:
        return None  # the loss calls parts of the model
    with preserve(seen.model), torch.no_grad():
        seen.model.eval()
        outputs = list[torch.Tensor]()
        for _ in range(2):
            reseed(seen.seed)
            made = tensors_in(seen.call())
            outputs += [t.double() for t in made if t.is_floating_point() and t.ndim][
                :1
            ]
    if len(outputs) != 2:
        return None
    first, second = outputs
    if first.shape != second.shape or not bool(first.isfinite().all()):
        return None
    if len(seen.batches) > 1 and seen.target is not None and seen.inputs:
        following = tensors_in(seen.batches[1])[0]
        both = min(seen.target.ndim, following.ndim) > 1
        if both and torch.equal(seen.target[:, -1], following[:, 0]):
            return None  # batches that continue each other
    spread = float(first.std(0).square().mean().sqrt()) if len(first) > 1 else 0.0
    moved = float((first - second).square().mean().sqrt())
    if not spread or not moved > OTHER * spread:
        return None
    return Sign(moved / spread, OTHER)
