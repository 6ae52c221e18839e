"""Sequences: attention, recurrent layers and embeddings."""

from typing import Any

import torch
from torch import Tensor, nn

from theodolite.instruments import preserve, reseed

from .check import Sign, check
from .seen import Seen
from .trace import Call
from .trial_steps import loss_of

RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
# Mean of the largest attention weight from which on attention is one-hot: our choice.
ONE_HOT = 0.95
# Share of the rows with padding between words: our choice.
INSIDE = 0.3
# Growth of a state over the steps of a sequence: our choice.
GROWN = 100.0
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
    "wrong-time-step",
    "warning",
    "The first time step of a recurrent layer is used, not the last",
    source="a recurrent layer has read the whole sequence at its last step",
    repaired_by="Use the last step: outputs[:, -1]",
    kind="surgery",
)
def wrong_time_step(seen: Seen) -> Sign | None:
    """The output at step 0 has seen the first element of the sequence only, or the
    index picks a sample in place of a step.
    """
    for call in seen.trace.named(*RECURRENT):
        first = bool(call.args[-1]) if isinstance(call.args[-1], bool) else True
        both = bool(call.args[-2]) if len(call.args) > 1 else False
        if call.outputs[0].ndim < 3 or call.outputs[0].shape[1 if first else 0] < 2:
            continue
        for reader in seen.trace.readers(call):
            index = reader.args[1] if reader.name == "getitem" else None
            index = index if isinstance(index, tuple) else (index,)
            index = (*index, slice(None), slice(None))
            if reader.inputs[0] is not call.outputs[0]:
                continue
            place = index[1 if first else 0]
            if isinstance(place, int) and place == 0 and not both:
                return Sign(0.0, where=call.module)
            if isinstance(index[0 if first else 1], int):
                return Sign(1.0, where=call.module, severity="sick")
    return None


@check(
    "grows-over-steps",
    "warning",
    "The state grows from step to step",
    source="sizes at the first and the last step of one module; the level is ours",
    repaired_by="Start recurrent weights orthogonal",
    kind="initialisation",
    confidence="rule of thumb",
)
def grows_over_steps(seen: Seen) -> Sign | None:
    """A module that is run again and again on its own output makes it larger at each
    step, so that gradients through many steps explode. Recurrent weights start
    orthogonal, or with a spectral radius of at most 1.
    """
    worst, where = 0.0, ""
    for call in seen.trace.named("rnn_relu", "rnn_tanh", "lstm", "gru"):
        if call.outputs[0].ndim == 3 and isinstance(call.args[-1], bool):
            states = call.outputs[0].detach().movedim(1 if call.args[-1] else 0, 0)
            ratio = _growth(states[0], states[-1])
            worst, where = max((worst, where), (ratio, call.module))
    for path, count in seen.trace.visits.items():
        outputs = [c.outputs[0].detach() for c in seen.trace.calls if c.module == path]
        if count > 3 and len(outputs) >= count and outputs[0].is_floating_point():
            per = len(outputs) // count
            ratio = _growth(outputs[per - 1], outputs[-1])
            worst, where = max((worst, where), (ratio, path))
    if worst < GROWN:
        return None
    detail = f"Here {where or 'the model'} makes it {worst:.3g} times as large."
    return Sign(worst, GROWN, where=where, detail=detail)


def _growth(first: Tensor, last: Tensor) -> float:
    """Return how much larger the last is; a state that starts at 0 may grow to 1."""
    return _rms(last) / max(_rms(first), 1.0)


def _rms(tensor: Tensor) -> float:
    return float(tensor.double().square().mean().sqrt())


@check(
    "padding-inside",
    "warning",
    "The token of padding_idx is used between other tokens",
    source="nn.Embedding: the row of padding_idx is 0 and gets no gradient",
    repaired_by="Use a padding_idx that is no word",
    kind="initialisation",
    confidence="rule of thumb",
    about="inputs",
)
def padding_inside(seen: Seen) -> Sign | None:
    """Padding stands before or after the words. This token stands between them, so that
    it is a word: its vector is 0 and never learned.
    """
    for call in seen.trace.named("embedding"):
        tokens, padding = call.given(0, "input"), call.given(2, "padding_idx")
        if padding is None or padding < 0 or tokens.ndim != 2 or not call.module:
            continue
        real = (tokens != padding).long()
        inside = (
            (real == 0) & (real.cumsum(1) > 0) & (real.flip(1).cumsum(1).flip(1) > 0)
        )
        share = float(inside.any(1).double().mean())
        if share > INSIDE:
            repair = (
                f"layer = model.get_submodule({call.module!r})\n"
                f"layer.weight.data[{padding}].normal_(std=layer.weight.std().item())\n"
                "layer.padding_idx = None\n"
            )
            return Sign(share, INSIDE, where=call.module, repair=repair)
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
    "mask-without-effect",
    "sick",
    "A mask of zeros and ones is added to scores, or multiplies them",
    source="exp(1) is 2.7 times exp(0): only -inf hides a score from a softmax",
    repaired_by="Use masked_fill(mask, -inf) before the softmax, or a mask of bool",
    kind="surgery",
)
def mask_without_effect(seen: Seen) -> Sign | None:
    """A softmax gives scores that are moved by 1, or set to 0, about the same weight as
    the others, so that nothing is hidden.
    """
    masks = list[tuple[Call, Any]]()
    for call in seen.trace.named("softmax"):
        made = seen.through(call.sources[0]) if call.sources else None
        if made is not None and made.name in ("add", "mul", "iadd", "imul"):
            if "weight" in seen.trace.origins(made) and call.outputs[0].ndim > 2:
                pairs = zip(made.inputs, made.sources, strict=True)
                plain = [t for t, s in pairs if "weight" not in seen.trace.kinds(t, s)]
                masks += [(call, tensor) for tensor in plain]
    for call in seen.trace.named("scaled_dot_product_attention"):
        masks.append((call, call.given(3, "attn_mask")))
    for call in seen.trace.named("multi_head_attention_forward"):
        masks += [(call, call.kwargs.get(k)) for k in ("key_padding_mask", "attn_mask")]
    for call, mask in masks:
        if not isinstance(mask, Tensor) or mask.numel() < 4 or mask.dtype == torch.bool:
            continue
        values = set(mask.detach().unique().tolist()) if mask.ndim else set()
        if len(values) == 2 and 0.0 in values and max(map(abs, values)) == 1.0:
            return Sign(1.0, where=call.module)
    return None


@check(
    "embedding-too-large",
    "warning",
    "Embeddings are far larger than 1",
    source="nn.Embedding draws from N(0, 1); the level of 10 is ours",
    repaired_by="Initialise the embeddings with a standard deviation of 0.02 to 1",
    kind="initialisation",
    confidence="rule of thumb",
)
def embedding_too_large(seen: Seen) -> Sign | None:
    """The layers behind an embedding are made for numbers near 1; larger ones saturate
    gates, tanh and attention.
    """
    for call in seen.trace.named("add"):
        made = [seen.trace.calls[s].name for s in call.sources[:2] if s >= 0]
        if len(call.inputs) < 2 or "embedding" not in made:
            continue
        sizes = [_rms(t.detach()) for t in call.inputs[:2]]
        if max(sizes) > 10:
            detail = f"Here sizes of {sizes[0]:.3g} and {sizes[1]:.3g} are added."
            where, most = (call.module,), max(sizes)
            return Sign(most, 10.0, where=where, detail=detail)
    for call in seen.trace.named("embedding"):
        if (size := _rms(call.outputs[0].detach())) > 10:
            repair = (
                f"torch.nn.init.normal_(model.get_submodule({call.module!r}).weight)\n"
            )
            return Sign(
                size,
                10.0,
                where=call.module,
                detail=f"Here their size is {size:.3g}.",
                repair=f"import torch\n{repair}",
            )
    return None


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
