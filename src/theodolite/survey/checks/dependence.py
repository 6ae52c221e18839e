"""What the outputs depend on: later tokens, other samples, the order of tokens."""

import math

import torch
from torch import Tensor, nn

from theodolite.instruments import tensors_in

from .check import Sign, check
from .relation import targets_unrelated
from .seen import Seen

_BatchNorm = nn.modules.batchnorm._BatchNorm


@check(
    "sees-the-future",
    "sick",
    "Predictions of the next token see that token",
    source="outputs were compared before and after a change of the last token",
    repaired_by="Mask attention to later positions: is_causal=True",
    kind="surgery",
)
def sees_the_future(seen: Seen) -> Sign | None:
    """The targets are the inputs moved by one position, and outputs at earlier
    positions change with the last token. The network learns to copy it.
    """
    target, given = seen.target, seen.inputs[0] if seen.inputs else None
    if target is None or given is None or given.ndim != target.ndim or given.ndim < 2:
        return None
    if given.shape != target.shape or given.shape[1] < 4:
        return None
    if not torch.equal(given[:, 1:].double(), target[:, :-1].double()):
        return None
    other = given.detach().clone()
    other[:, -1] = given[:, -1].roll(1, 0) if len(given) > 1 else given[:, 0]
    outputs = [seen.evaluated(tensor) for tensor in (given, other)]
    if any(o is None or o.ndim < 2 for o in outputs):
        return None
    if seen.classes is not None and seen.judged[0].shape == outputs[0].shape:  # pyright: ignore
        outputs = [o.movedim(1, -1) for o in outputs]  # pyright: ignore
    first, second = outputs
    if first.shape[:2] != given.shape[:2]:  # pyright: ignore
        return None  # outputs do not belong to positions
    changed = (first - second)[:, :-1].abs().max()  # pyright: ignore
    value = float(changed / first.abs().max().clamp(min=1e-12))  # pyright: ignore
    return Sign(value, 1e-4) if value > 1e-4 else None


@check(
    "samples-mixed",
    "sick",
    "The output of a sample depends on the other samples",
    source="outputs compared before and after a change of one sample, in eval mode",
    repaired_by="Keep samples on axis 0: batch_first=True, softmax over dim=-1",
    kind="surgery",
)
def samples_mixed(seen: Seen) -> Sign | None:
    """Somewhere the axis of samples is taken for another one: positions of a sequence
    (batch_first), a softmax, an attention or a reshape over the wrong axis.
    """
    given = seen.inputs[0] if len(seen.inputs) == 1 else None
    if given is None or len(given) < 4 or given.ndim < 2 or seen.targets == []:
        return None
    if len(seen.targets[0]) != len(given) or not seen.loss_name:
        return None
    norms = [m for m in seen.model.modules() if isinstance(m, _BatchNorm)]
    if any(m.running_mean is None for m in norms) or _of_one_graph(seen):
        return None  # which has a check of its own, or is meant to mix
    other = given.detach().clone()
    other[0] = given[-1] if not torch.equal(given[0], given[-1]) else given[1]
    outputs = [seen.evaluated(tensor) for tensor in (given, other)]
    if any(o is None or len(o) != len(given) or o.ndim < 1 for o in outputs):
        return None
    first, second = (o.reshape(len(given), -1) for o in outputs)  # pyright: ignore
    if not bool(first.isfinite().all()) or torch.equal(first, second):
        return None
    value = float((first - second)[1:].abs().max() / first.abs().max().clamp(min=1e-12))
    if value <= 1e-3:
        return None
    for call in seen.trace.named("view", "reshape"):
        before, after = tuple(call.inputs[0].shape), tuple(call.outputs[0].shape)
        if len(after) > 1 and after[0] == len(given) and len(given) in before[1:]:
            if before[0] % len(given):
                detail = f"Here {before} is viewed as {after}."
                return Sign(value, 1e-3, where=call.module, detail=detail)
    return Sign(value, 1e-3)


def _of_one_graph(seen: Seen) -> bool:
    """Return whether a kept matrix or indices join the samples, as edges join nodes."""
    n = seen.samples
    kept = {id(t): t for t in (*seen.model.buffers(), *_attributes(seen.model))}
    read = [t for c in seen.trace.calls for t in c.inputs if id(t) in kept]
    sums = seen.trace.named(
        "index_add", "scatter_add", "scatter_reduce", "index_reduce"
    )
    return any(t.shape[-2:] == (n, n) for t in read) or any(
        len(call.outputs[0]) == n for call in sums
    )


def _attributes(model: nn.Module) -> list[Tensor]:
    values = [v for module in model.modules() for v in vars(module).values()]
    return [v for v in values if isinstance(v, Tensor)]


@check(
    "inputs-without-effect",
    "sick",
    "The outputs do not depend on the inputs",
    source="spread of the outputs over samples, before and after the trial steps",
    repaired_by="Find where the forward pass loses the inputs",
    kind="surgery",
)
def inputs_without_effect(seen: Seen) -> Sign | None:
    """Every sample gets the same output, also after the trial steps: the signal of the
    inputs is lost on the way, or overwritten.
    """
    spread = seen.repeated.spread
    if not seen.data_known or seen.samples < 4 or spread is None or seen.learns:
        return None
    if spread > 1e-4 or not math.isfinite(seen.value):
        return None
    return Sign(spread, 1e-4, above=False)


@check(
    "input-unused",
    "warning",
    "An input has no effect on the outputs",
    source="the recorded graph: no path leads from it to the loss",
    repaired_by="Find where the forward pass loses this input",
    kind="surgery",
)
def input_unused(seen: Seen) -> Sign | None:
    """The model is given several inputs, and one of them, which differs between
    samples, reaches neither the outputs nor the loss.
    """
    batch = seen.batch
    given = batch[0] if isinstance(batch, tuple | list) and len(batch) == 2 else None
    given = tuple(batch.values()) if isinstance(batch, dict) else given
    last, calls = seen.value_call, seen.trace.calls
    if not isinstance(given, tuple | list) or last is None:
        return None
    if seen.trace.named("numpy", "tolist", "item"):
        return None  # which hide the way
    entered = {id(t) for path, _, args in seen.trace.entered if not path
               for t in tensors_in(args)}  # fmt: skip
    lost: list[int] = []
    for place, tensor in enumerate(given):
        if not isinstance(tensor, Tensor) or tensor.ndim < 1:
            continue
        if len(tensor) != seen.samples or seen.samples < 2:
            continue
        if isinstance(batch, dict) and id(tensor) not in entered:
            continue  # which the model is not given
        if not bool((tensor != tensor[:1]).any()):
            continue
        readers = [c for c in calls if any(t is tensor for t in c.inputs)]
        if not any(last in (c, *seen.trace.after(c)) for c in readers):
            lost.append(place)
    if not lost or len(lost) == len(given):
        return None
    detail = f"It is input {lost[0]}, of shape {tuple(given[lost[0]].shape)}."
    return Sign(len(lost), detail=detail)


@check(
    "order-ignored",
    "warning",
    "Attention over tokens does not know their order",
    source="outputs compared before and after the tokens are shuffled",
    repaired_by="Add position embeddings to the token embeddings",
    kind="surgery",
    confidence="rule of thumb",
)
def order_ignored(seen: Seen) -> Sign | None:
    """The same tokens in another order give the same outputs: attention treats them as
    a bag, since positions are not part of their embeddings.
    """
    tokens = [t for t in seen.inputs if t.ndim == 2 and not t.is_floating_point()]
    names = ("scaled_dot_product_attention", "multi_head_attention_forward")
    attends = seen.trace.named(*names) or [
        c for c in seen.trace.named("softmax") if c.outputs[0].ndim > 2
    ]
    if len(tokens) != 1 or tokens[0] is not seen.inputs[0] or not attends:
        return None
    if tokens[0].shape[1] < 4 or len(tokens[0]) != seen.samples:
        return None
    order = torch.randperm(
        tokens[0].shape[1],
        generator=torch.Generator().manual_seed(seen.seed),
        device="cpu",
    )
    first, second = (seen.evaluated(t) for t in (tokens[0], tokens[0][:, order]))
    if first is None or second is None or first.ndim < 2 or first.shape != second.shape:
        return None
    if first.ndim == 3 and first.shape[1] == tokens[0].shape[1]:
        first = first[:, order]
    moved, spread = float((first - second).abs().max()), float(first.std())
    if not spread or not moved <= 1e-4 * spread:
        return None
    # A bag of words may be meant.
    bag = seen.learns and not seen.stuck and targets_unrelated(seen) is None
    severity = "note" if bag else None
    return Sign(moved, 1e-4, above=False, severity=severity)
