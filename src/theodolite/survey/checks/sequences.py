"""Sequences: attention, masks and recurrent layers."""

from typing import Any

import torch
from torch import Tensor, nn

from theodolite.instruments import preserve, reseed

from .check import Sign, check
from .seen import Seen
from .trace import Call
from .trial_steps import loss_of

# Mean of the largest attention weight from which on attention is one-hot: our choice.
ONE_HOT = 0.95
# Factor per time step by which the gradient may shrink or grow: our choice. Gates that
# start half open halve it, and networks with such gates learn.
SHRUNK, EXPLODED = 0.25, 2.0


@check(
    "attention-axis",
    "sick",
    "Attention is normalised over another axis than it sums over",
    source="weights of attention sum to one over the keys",
    repaired_by="Take the softmax over the keys: dim=-1",
    kind="surgery",
)
def attention_axis(seen: Seen) -> Sign | None:
    """The softmax runs over one axis and the product with the values sums over
    another, so that the weights of a query do not sum to one.
    """
    for call in seen.trace.named("softmax"):
        axis, tensor = call.given(1, "dim"), call.inputs[0]
        if (
            not isinstance(axis, int)
            or tensor.ndim < 3
            or axis in (-1, tensor.ndim - 1)
        ):
            continue
        for reader in seen.trace.readers(call):
            reader = _through_dropout(seen, reader)
            if reader.name in ("matmul", "bmm") and reader.sources[0] >= 0:
                if reader.inputs[0].shape == call.outputs[0].shape:
                    detail = f"Here it runs over axis {axis} of {tuple(tensor.shape)}."
                    return Sign(axis, where=call.module, detail=detail)
    return None


def _through_dropout(seen: Seen, call: Call) -> Call:
    readers = seen.trace.readers(call) if call.name == "dropout" else []
    return readers[0] if readers else call


@check(
    "attention-one-hot",
    "warning",
    "Attention looks at one position only",
    source="Vaswani et al. (2017), section 3.2.1: scores are divided by sqrt(d)",
    repaired_by="Divide the scores by the root of the head's width",
    kind="surgery",
    confidence="rule of thumb",
)
def attention_one_hot(seen: Seen) -> Sign | None:
    """The softmax of the scores is one at one position and zero at all others, where it
    passes no gradient: scores are not divided by sqrt(d), or weights are too large.
    """
    for call in seen.trace.named("softmax"):
        axis, tensor = call.given(1, "dim"), call.outputs[0].detach()
        if call is seen.output_call or not isinstance(axis, int) or tensor.ndim < 3:
            continue
        if tensor.shape[axis] < 4 or "weight" not in seen.trace.origins(call):
            continue
        most = float(tensor.amax(axis).double().mean())
        if most > ONE_HOT:
            return Sign(most, ONE_HOT, where=call.module)
    return None


@check(
    "mask-inverted",
    "sick",
    "A mask hides the words and shows the padding",
    source="tokens where the mask is set, compared with the others",
    repaired_by="Invert the mask",
    kind="surgery",
    about="inputs",
)
def mask_inverted(seen: Seen) -> Sign | None:
    """Where attention may look there is one and the same token everywhere, and the
    tokens that differ are hidden: masks of torch mean opposite things in its functions.
    """
    tokens = [t for t in seen.inputs if t.ndim == 2 and not t.is_floating_point()]
    for call in seen.trace.named(
        "masked_fill", "scaled_dot_product_attention", "multi_head_attention_forward"
    ):
        hidden = _hidden(call)
        for each in tokens:
            if hidden is None or hidden.numel() != each.numel():
                continue
            off = hidden.reshape(each.shape)
            shown, away = each[~off].unique(), each[off].unique()
            if len(shown) == 1 and len(away) > 1:
                return Sign(len(away), 1.0, where=call.module)
    return None


def _hidden(call: Call) -> Tensor | None:
    """Return where attention must not look, if there is a mask."""
    if call.name == "masked_fill":
        mask, value = call.given(1, "mask"), call.given(2, "value", 0.0)
        low = float(value) < -1e3 and isinstance(mask, Tensor)
        return mask if low and mask.dtype == torch.bool else None
    heads = call.name == "multi_head_attention_forward"
    mask = call.kwargs.get("key_padding_mask") if heads else call.given(3, "attn_mask")
    if not isinstance(mask, Tensor):
        return None
    if mask.dtype == torch.bool:
        return mask if heads else ~mask
    return mask < -1e3


@check(
    "gradient-lost-in-time",
    "warning",
    "The gradient vanishes or explodes along the time steps",
    source="Pascanu et al. (2013), section 2; the levels are ours",
    repaired_by="Use an LSTM or GRU, or start recurrent weights orthogonal",
    kind="initialisation",
    confidence="rule of thumb",
)
def gradient_lost_in_time(seen: Seen) -> Sign | None:
    """The gradient by the first time step is many orders smaller or larger than by the
    last, so that early inputs teach nothing, or all is noise.
    """
    for name, sizes in _time_gradients(seen).items():
        first, last = float(sizes[0]), float(sizes[-1])
        if not last or len(sizes) < 4:
            continue
        factor = (first / last) ** (1 / (len(sizes) - 1))
        if SHRUNK < factor < EXPLODED or (factor < 1 and seen.learns):
            continue
        detail = f"In {name} the first is {first / last:.2g} times the last."
        above, limit = factor > 1, EXPLODED if factor > 1 else SHRUNK
        return Sign(factor, limit, above=above, where=name, detail=detail)
    return None


def _time_gradients(seen: Seen) -> dict[str, Tensor]:
    """Return the size of the gradient by each time step of each recurrent layer."""
    layers = {n: m for n, m in seen.model.named_modules() if isinstance(m, nn.RNNBase)}
    read: dict[str, tuple[Tensor, int]] = {}

    def listen(name: str) -> Any:
        def hook(module: nn.RNNBase, args: Any) -> Any:
            if not isinstance(args[0], Tensor) or args[0].ndim != 3 or name in read:
                return None
            given = args[0] if args[0].requires_grad else args[0].detach()
            given = given.requires_grad_()
            read[name] = given, 1 if module.batch_first else 0
            return given, *args[1:]

        return hook

    if not layers:
        return {}
    with preserve(seen.model), torch.enable_grad():
        handles = [m.register_forward_pre_hook(listen(n)) for n, m in layers.items()]
        reseed(seen.seed)
        value = loss_of(seen.model, seen.batch, seen.loss)
        for handle in handles:
            handle.remove()
        given = [tensor for tensor, _ in read.values()]
        grads = torch.autograd.grad(value, given, allow_unused=True) if given else []
    sizes: dict[str, Tensor] = {}
    for (name, (_, axis)), grad in zip(read.items(), grads, strict=True):
        if grad is not None:
            rows = grad.detach().double().movedim(axis, 0).flatten(1)
            sizes[name] = rows.square().mean(1).sqrt()
    return sizes
