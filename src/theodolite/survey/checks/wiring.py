"""Wiring: how the parts of a network are connected."""

import math

import torch
from torch import Tensor, nn

from theodolite.instruments import preserve, reseed, run_model

from ..measures.site import logits_in
from .check import Sign, check
from .reach import listed
from .seen import RESHAPING, Seen
from .trace import Call

_MATRICES = ("linear", "conv1d", "conv2d", "conv3d", "matmul", "bmm", "addmm", "mm")
_BENDS = frozenset(
    "relu relu6 gelu silu mish tanh sigmoid softmax leaky_relu elu selu celu prelu "
    "softplus hardswish hardtanh hardsigmoid sin cos exp abs pow square sqrt log "
    "layer_norm group_norm rms_norm normalize max maximum minimum max_pool2d glu "
    "max_pool1d adaptive_max_pool2d lstm gru rnn_tanh rnn_relu lstm_cell gru_cell "
    "logsigmoid rrelu softsign hardshrink rnn_tanh_cell max_pool2d_with_indices "
    "scaled_dot_product_attention multi_head_attention_forward amax clamp where "
    "threshold tanhshrink div rsqrt reciprocal sign erf log1p expm1 logsumexp "
    "transformer_encoder_layer_fwd instance_norm logaddexp relu_ einsum cumsum "
    "log_softmax topk cdist norm atan bilinear true_divide logcumsumexp".split()
)
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
# Mean of the largest attention weight from which on attention is one-hot: our choice.
ONE_HOT = 0.98
# Growth of a state over the steps of a sequence: our choice.
GROWN = 100.0
# Correlation of the targets with the mean of a sample: our choice.
RELATED = 0.7


@check(
    "no-activation",
    "sick",
    "There is no activation between linear layers",
    source="a product of matrices is a matrix",
    repaired_by="Put an activation between the layers",
    kind="surgery",
)
def no_activation(seen: Seen) -> Sign | None:
    """Linear layers one after the other compute one linear map, whatever their number,
    so that nothing but a linear function can be learned.
    """
    calls = [c for c in seen.trace.calls if not c.after_model]
    layers = [c for c in calls if c.name in _MATRICES]
    if len(layers) < 2 or any(c.name == "mul" and _both(seen, c) for c in calls):
        return _adjacent(seen)
    if any(
        c.name in _BENDS and "weight" in seen.trace.origins(c)
        for c in calls
        if c is not seen.output_call
        or c.name not in ("softmax", "sigmoid", "log_softmax")
    ):
        return _adjacent(seen)
    if any(_hand_made(c) for c in calls):
        return None
    chained = [c for c in layers if _above(seen, c) & {o.index for o in layers}]
    if not chained:
        return None
    names = dict.fromkeys(c.module for c in layers)
    return Sign(
        value=0.0,
        above=False,
        threshold=1.0,
        where=tuple(names),
        detail=f"Here none of {listed(names)} is followed by one.",
    )


def _above(seen: Seen, call: Call) -> set[int]:
    """Return the calls that a call depends on."""
    found, waiting = set[int](), [s for s in call.sources if s >= 0]
    while waiting:
        index = waiting.pop()
        if index not in found:
            found.add(index)
            waiting += [s for s in seen.trace.calls[index].sources if s >= 0]
    return found


def _both(seen: Seen, call: Call) -> bool:
    """Return whether a product is of two signals."""
    kinds = [
        seen.trace.kinds(t, s) for t, s in zip(call.inputs, call.sources, strict=True)
    ]
    return len(kinds) > 1 and all("input" in kind for kind in kinds)


def _hand_made(call: Call) -> bool:
    """Return whether a function may bend: it is none that is known to be linear."""
    linear = {
        "add",
        "sub",
        "mul",
        "neg",
        "cat",
        "stack",
        "mean",
        "sum",
        "dropout",
        "batch_norm",
        "embedding",
        "chunk",
        "split",
        "expand",
        "avg_pool2d",
        "adaptive_avg_pool2d",
        "unbind",
        "repeat",
        "pad",
        "rsub",
        "avg_pool1d",
        "adaptive_avg_pool1d",
        "iadd",
        "type",
        "size",
        "t",
        "select",
        "narrow",
        "feature_dropout",
        "isub",
    }
    return call.name not in linear | RESHAPING | set(_MATRICES) | {"zeros_like"}


def _adjacent(seen: Seen) -> Sign | None:
    """Return layers that follow each other in a Sequential without an activation."""
    between = (nn.Dropout, nn.modules.batchnorm._BatchNorm, nn.Identity)
    plain = (nn.Linear, nn.Conv1d, nn.Conv2d)
    found: list[str] = []
    for path, module in seen.model.named_modules():
        if not isinstance(module, nn.Sequential):
            continue
        last: nn.Module | None = None
        for name, child in module.named_children():
            if isinstance(child, plain):
                if last is not None and _merges(last, child):
                    found.append(f"{path}.{name}".lstrip("."))
                last = child
            elif not isinstance(child, between):
                last = None
    if not found:
        return None
    return Sign(
        value=float(len(found)),
        where=tuple(found),
        severity="warning",
        detail=f"Here before {listed(found)}.",
    )


def _merges(first: nn.Module, second: nn.Module) -> bool:
    """Return whether two layers could be one of no more weights."""
    if isinstance(first, nn.Linear) and isinstance(second, nn.Linear):
        inner, outer = first.out_features, (first.in_features, second.out_features)
        return inner >= min(outer) and outer[1] > 1 and inner > 2
    if type(first) is type(second) and isinstance(first, nn.Conv1d | nn.Conv2d):
        one = first.kernel_size[0] == 1 or second.kernel_size[0] == 1  # pyright: ignore
        grouped = first.groups > 1 or second.groups > 1  # pyright: ignore
        return not one and not grouped and first.out_channels >= first.in_channels
    return False


@check(
    "addition-broadcasts",
    "sick",
    "An addition combines each sample with all others",
    source="broadcasting: (N,) + (N, 1) gives (N, N)",
    repaired_by="Give both terms the same shape",
    kind="surgery",
)
def addition_broadcasts(seen: Seen) -> Sign | None:
    """The two terms have different shapes and the sum is larger than both, so that
    entries are combined that do not belong together.
    """
    for call in seen.trace.named("add", "sub", "mul", "iadd"):
        if len(call.inputs) < 2 or "weight" not in seen.trace.origins(call):
            continue
        one, two = sorted(call.inputs[:2], key=lambda tensor: tensor.ndim)
        column = two.ndim == one.ndim + 1 > 1 and two.shape == (*one.shape, 1)
        if column and one.numel() > 1:
            if call.outputs[0].numel() > one.numel():
                shapes = f"{tuple(one.shape)} and {tuple(two.shape)}"
                made = tuple(call.outputs[0].shape)
                return Sign(
                    value=1.0,
                    where=(call.module,),
                    detail=f"Here {shapes} become {made}.",
                )
    return None


@check(
    "one-module-for-several",
    "warning",
    "One module stands in several places",
    source="counted: [layer] * n repeats a reference",
    repaired_by="Make a new module for each place",
    kind="surgery",
)
def one_module_for_several(seen: Seen) -> Sign | None:
    """The same weights are used where a list suggests several layers, or one batch norm
    normalises the outputs of different layers, whose statistics it mixes.
    """
    found: list[str] = []
    for path, module in seen.model.named_modules():
        if isinstance(module, nn.Sequential | nn.ModuleList):
            own = [
                id(m)
                for m in module._modules.values()
                if m and len(list(m.parameters()))
            ]
            if len(set(own)) < len(own):
                found.append(path or "the model")
    for name in dict.fromkeys(c.module for c in seen.trace.named("batch_norm")):
        calls = [c for c in seen.trace.named("batch_norm") if c.module == name]
        before = {s.module for c in calls if (s := seen.before(c)) is not None}
        if len(calls) > 1 and len(before) == len(calls):
            found.append(name)
    if not found:
        return None
    repair = "# [make_layer() for _ in range(n)] in place of [layer] * n\n"
    return Sign(value=float(len(found)), where=tuple(found), repair=repair)


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
    outputs = [_outputs(seen, tensor) for tensor in (given, other)]
    if all(o is not None and o.ndim == 3 for o in outputs):
        places = given.shape[1]
        outputs = [o if o.shape[1] == places else o.mT for o in outputs]  # pyright: ignore
    if any(o is None or o.ndim < 2 or o.shape[:2] != given.shape[:2] for o in outputs):
        return None
    changed = (outputs[0] - outputs[1])[:, :-1].abs().max()  # pyright: ignore
    value = float(changed / outputs[0].abs().max().clamp(min=1e-12))  # pyright: ignore
    return Sign(value=value, threshold=1e-4) if value > 1e-4 else None


def _outputs(seen: Seen, inputs: Tensor) -> Tensor | None:
    """Return outputs in eval mode for other inputs in place of the first ones."""
    batch = seen.batch
    if isinstance(batch, tuple | list) and isinstance(batch[0], Tensor):
        batch = inputs, *batch[1:]
    elif isinstance(batch, dict):
        key = next(k for k, v in batch.items() if v is seen.inputs[0])
        batch = {**batch, key: inputs}
    else:
        return None
    try:
        with preserve(seen.model), torch.no_grad():
            seen.model.eval()
            reseed(seen.seed)
            return logits_in(run_model(seen.model, batch)).double()
    except Exception:  # of the user's own code
        return None


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
    other = given.detach().clone()
    other[0] = given[-1] if not torch.equal(given[0], given[-1]) else given[1]
    outputs = [_outputs(seen, tensor) for tensor in (given, other)]
    if any(o is None or len(o) != len(given) or o.ndim < 1 for o in outputs):
        return None
    first, second = (o.reshape(len(given), -1) for o in outputs)  # pyright: ignore
    if not bool(first.isfinite().all()) or torch.equal(first, second):
        return None
    value = float((first - second)[1:].abs().max() / first.abs().max().clamp(min=1e-12))
    return Sign(value=value, threshold=1e-3) if value > 1e-3 else None


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
                    return Sign(
                        value=float(axis),
                        where=(call.module,),
                        detail=f"Here it runs over axis {axis} of "
                        f"{tuple(tensor.shape)}.",
                        repair="# scores.softmax(dim=-1)\n",
                    )
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
            return Sign(value=most, threshold=ONE_HOT, where=(call.module,))
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
    for call in seen.trace.named(*_RECURRENT):
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
                return Sign(value=0.0, where=(call.module,))
            if isinstance(index[0 if first else 1], int):
                return Sign(value=1.0, where=(call.module,), severity="sick")
    return None


@check(
    "inputs-without-effect",
    "sick",
    "The outputs do not depend on the inputs",
    source="spread of the outputs over samples, before and after the trial steps",
    repaired_by="Follow the inputs through the forward pass",
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
    return Sign(value=spread, threshold=1e-4, above=False)


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
    return Sign(value=worst, threshold=GROWN, where=(where,), detail=detail)


def _growth(first: Tensor, last: Tensor) -> float:
    """Return how much larger the last is; a state that starts at 0 may grow to 1."""
    return _rms(last) / max(_rms(first), 1.0)


def _rms(tensor: Tensor) -> float:
    return float(tensor.double().square().mean().sqrt())


@check(
    "embedding-too-large",
    "warning",
    "Embeddings are far larger than 1",
    source="nn.Embedding draws from N(0, 1); the level of 10 is ours",
    repaired_by="Draw the embeddings with deviation 0.02 to 1",
    kind="initialisation",
    confidence="rule of thumb",
)
def embedding_too_large(seen: Seen) -> Sign | None:
    """The layers behind an embedding are made for numbers near 1; larger ones saturate
    gates, tanh and attention.
    """
    for call in seen.trace.named("embedding"):
        if (size := _rms(call.outputs[0].detach())) > 10:
            repair = (
                f"torch.nn.init.normal_(model.get_submodule({call.module!r}).weight)\n"
            )
            return Sign(
                value=size,
                threshold=10.0,
                where=(call.module,),
                detail=f"Here their size is {size:.3g}.",
                repair=f"import torch\n{repair}",
            )
    return None


@check(
    "level-removed",
    "warning",
    "A norm of the inputs removes what the targets depend on",
    source="outputs were compared before and after a shift; the level is ours",
    repaired_by="Scale all samples alike, or add the level to the outputs again",
    kind="surgery",
    confidence="rule of thumb",
    about="labels",
)
def level_removed(seen: Seen) -> Sign | None:
    """Targets follow the mean of a sample, and outputs do not change when the sample
    is shifted: each sample is normalised by itself, and its level is never seen.
    """
    target = seen.target
    given = seen.inputs[0].detach() if len(seen.inputs) == 1 else None
    if given is None or target is None or not given.is_floating_point():
        return None
    if len(target) != len(given) or len(given) < 16 or given.ndim < 2:
        return None
    level = given.double().reshape(len(given), -1).mean(1)
    wanted = target.double().reshape(len(target), -1).mean(1)
    related = float(torch.corrcoef(torch.stack([level, wanted]))[0, 1].abs())
    if not related > RELATED:
        return None
    outputs = [_outputs(seen, given + shift) for shift in (0.0, float(given.std()))]
    if any(o is None or not o.isfinite().all() for o in outputs):
        return None
    moved = float((outputs[0] - outputs[1]).abs().max())  # pyright: ignore
    scale = float(outputs[0].std())  # pyright: ignore
    if moved > 1e-2 * scale or not scale:
        return None
    return Sign(value=related, threshold=RELATED)
