"""Wiring: how the parts of a network are connected."""

import torch
from torch import nn

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
_LINEAR = frozenset(
    "add sub mul neg cat stack mean sum dropout batch_norm embedding chunk split "
    "expand avg_pool2d adaptive_avg_pool2d unbind repeat pad rsub avg_pool1d "
    "adaptive_avg_pool1d iadd type size t select narrow feature_dropout isub "
    "zeros_like".split()
)
# Sigmoids in a row, and the gradient that the first weights get over that of the last:
# our choice.
ROW, FADED = 4, 0.02
_SQUASHED = """\
from torch import nn
for path in {paths!r}:
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, nn.ReLU())
"""
# Size of the arguments of a sine in a hidden layer: our choice.
TURNS = 10.0
# Units of a softmax from which on it is no choice between a few: our choice.
WIDE = 8


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
    if not chained or (seen.copies_inputs and seen.learns):  # principal components
        return None
    names = dict.fromkeys(c.module for c in layers)
    return Sign(
        0.0,
        1.0,
        above=False,
        where=names,
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
    return call.name not in _LINEAR | RESHAPING | set(_MATRICES)


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
        len(found),
        where=found,
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
    "sigmoids-in-a-row",
    "sick",
    "Many sigmoids one after the other shrink the gradient",
    source="the derivative of a sigmoid is at most 1/4; the levels are ours",
    repaired_by="Use ReLU or GELU in hidden layers",
    kind="surgery",
)
def sigmoids_in_a_row(seen: Seen) -> Sign | None:
    """Each of them multiplies the gradient by a quarter at most, and what differs
    between samples shrinks likewise, so that the first layers do not learn.
    """
    calls, depth = seen.trace.calls, dict[int, int]()
    squashing = ("sigmoid", "hardsigmoid", "softmax")
    for call in calls:
        deepest = [depth[s] for s in call.sources if s >= 0]
        alone = call.name in ("add", "mul") or "norm" in call.name
        more = call.name in squashing and "weight" in seen.trace.origins(call)
        depth[call.index] = 0 if alone else max(deepest, default=0) + more
    most = max(depth.values(), default=0)
    grads = [g for g in seen.gradients.values() if g is not None and g.ndim > 1]
    if most < ROW or len(grads) < 2 or (seen.learns and not seen.stuck):
        return None
    sizes = [float(g.double().square().mean().sqrt()) for g in (grads[0], grads[-1])]
    if not sizes[0] < FADED * sizes[1]:
        return None
    modules = dict(seen.model.named_modules())
    where = [c.module for c in calls if c.name in squashing and c.module]
    where = [n for n in dict.fromkeys(where) if isinstance(modules[n], nn.Sigmoid)]
    repair = _SQUASHED.format(paths=where) if len(where) >= ROW else ""
    detail = f"Here {most} follow each other, and the first weights get "
    detail += f"{sizes[0] / sizes[1]:.2g} of the gradient of the last."
    return Sign(most, ROW - 1, where=where, detail=detail, repair=repair)


@check(
    "softmax-between-layers",
    "warning",
    "A softmax is used as an activation between layers",
    source="its outputs sum to one, so that each is near one over the width",
    repaired_by="Use ReLU or GELU in hidden layers",
    kind="surgery",
    confidence="rule of thumb",
)
def softmax_between_layers(seen: Seen) -> Sign | None:
    """A layer reads the softmax of what another made. Its units compete for a sum of
    one, and what the next layer gets is small and nearly constant.
    """
    for call in seen.trace.named("softmax"):
        before = seen.before(call, frozenset({"dropout"}))
        readers = [c for c in seen.trace.readers(call) if c.name == "linear"]
        wide = call.outputs[0].ndim == 2 and call.outputs[0].shape[1] >= WIDE
        if wide and readers and before is not None and before.name == "linear":
            if readers[0].inputs[0] is call.outputs[0]:
                width = call.outputs[0].shape[1]
                return Sign(width, WIDE - 1, where=call.module)
    return None


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
        crossed = one.ndim < two.ndim and one.ndim and len(one) == len(two) > 1
        crossed = crossed and len(one) == seen.samples
        if (column or crossed) and one.numel() > 1:
            if call.outputs[0].numel() > max(one.numel(), two.numel() - column):
                shapes = f"{tuple(one.shape)} and {tuple(two.shape)}"
                made = tuple(call.outputs[0].shape)
                return Sign(
                    1.0, where=call.module, detail=f"Here {shapes} become {made}."
                )
    return None


@check(
    "one-module-for-several",
    "warning",
    "One module is used in several places",
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
    return Sign(len(found), where=found)


@check(
    "joined-with-itself",
    "warning",
    "A signal is joined with itself",
    source="the second copy adds nothing that the first does not have",
    repaired_by="Join it with the other branch that was meant",
    kind="surgery",
)
def joined_with_itself(seen: Seen) -> Sign | None:
    """A concatenation or an addition gets the same tensor twice, where two branches
    meet: one of them was overwritten, or never handed over.
    """
    for call in seen.trace.named("cat", "concat", "concatenate", "add"):
        parts = call.inputs[:2] if call.name == "add" else call.inputs
        axis = call.given(1, "dim", 0) if call.name != "add" else 1
        if len(parts) != 2 or parts[0] is not parts[1] or axis == 0:
            continue
        if call.after_model or seen.trace.origins(call) < {"input", "weight"}:
            continue
        shape = tuple(parts[0].shape)
        detail = f"Here {call.name}() gets the same tensor of shape {shape} twice."
        return Sign(2.0, 1.0, where=call.module, detail=detail)
    return None


@check(
    "sine-wraps-around",
    "warning",
    "The argument of a sine spans many periods",
    source="Sitzmann et al. (2020), section 3.2: of size 1; the level is ours",
    repaired_by="Divide the weights of hidden layers by the factor inside the sine",
    kind="initialisation",
    confidence="rule of thumb",
)
def sine_wraps_around(seen: Seen) -> Sign | None:
    """A small change of a hidden signal moves the sine through many periods, so that
    its outputs and gradients are noise.
    """
    bent: set[int] = set()
    for call in seen.trace.named("sin", "cos"):
        if "weight" not in seen.trace.origins(call):
            continue
        size = float(call.inputs[0].detach().double().square().mean().sqrt())
        if size > TURNS and _above(seen, call) & bent:
            detail = f"Their size is {size:.3g}."
            return Sign(size, TURNS, where=call.module, detail=detail)
        bent.add(call.index)
    return None


@check(
    "edges-half-used",
    "warning",
    "Only one end of the edges of a graph is used",
    source="calls that read a list of edges, which has a row for each end",
    repaired_by="Gather from one row of the edges, and add to the nodes of the other",
    kind="surgery",
)
def edges_half_used(seen: Seen) -> Sign | None:
    """Of two rows of indices the network reads one alone, so that each node gets its
    own signal back in place of those of its neighbours.
    """
    rows = dict[int, set[int]]()
    for call in seen.trace.calls:
        for tensor, source in zip(call.inputs, call.sources, strict=True):
            if source >= 0 or tensor.ndim != 2 or tensor.is_floating_point():
                continue
            if len(tensor) != 2 or tensor.shape[1] < 8 or tensor.dtype == torch.bool:
                continue
            index = call.given(1, "index") if call.name in ("getitem", "select") else 0
            index = index[0] if isinstance(index, tuple) and index else index
            one = call.name in ("getitem", "select") and isinstance(index, int)
            read = {int(index) % 2} if one else {0, 1}  # pyright: ignore
            rows.setdefault(id(tensor), set()).update(read)
    alone = [used for used in rows.values() if len(used) == 1]
    if not alone:
        return None
    return Sign(1.0, 2.0, above=False, detail=f"It is row {min(alone[0])}.")
