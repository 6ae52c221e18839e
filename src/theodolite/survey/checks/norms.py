"""Norm layers: their settings, axes and statistics."""

import torch
from torch import nn

from .check import Sign, check
from .reach import listed
from .seen import Seen

_BatchNorm = nn.modules.batchnorm._BatchNorm
_NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)
# An eps that hardly any recipe goes beyond: our choice.
EPSILON = 5e-3
# Momenta of running statistics: our choice.
SLOWEST, FASTEST = 2e-3, 0.9
# Values behind a statistic, and distances of statistics in deviations: our choice.
FEW, FAR = 5, 3.0
_FUNCTIONS = "layer_norm group_norm batch_norm instance_norm rms_norm normalize".split()
_POOLS = ("mean", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool2d")


@check(
    "odd-norm-setting",
    "warning",
    "A norm layer has a setting that disables it",
    source="defaults of torch are eps 1e-5 and momentum 0.1; the levels are ours",
    repaired_by="Set the defaults of torch",
    kind="mode",
    confidence="rule of thumb",
)
def odd_norm_setting(seen: Seen) -> Sign | None:
    """With a large eps the norm divides by eps in place of the spread of its inputs.
    The momentum is the weight of the newest batch, one minus that of Keras: near 0
    running statistics stay those of a new layer, near 1 they are those of the last
    batch, so that evaluation differs from training. Without running statistics the
    answer for a sample depends on the others of its batch in evaluation too.
    """
    odd: dict[str, str] = {}
    for name, module in seen.model.named_modules():
        if not isinstance(module, _NORMS) or name not in seen.trace.visits:
            continue
        if module.eps > EPSILON:
            odd[name] = f"eps {module.eps:g}"
        momentum = getattr(module, "momentum", None)
        tracked = getattr(module, "running_mean", None) is not None and module.training
        if tracked and momentum is not None and not SLOWEST <= momentum <= FASTEST:
            odd[name] = f"momentum {momentum:g}"
        if isinstance(module, _BatchNorm) and module.running_mean is None:
            odd[name] = "track_running_stats=False"
    if not odd:
        return None
    repair = (
        f"for path in {list(odd)!r}:\n"
        "    norm = model.get_submodule(path)\n"
        "    norm.eps = 1e-5\n"
        '    if hasattr(norm, "momentum"):\n        norm.momentum = 0.1\n'
        '    if "BatchNorm" in type(norm).__name__ and norm.running_mean is None:\n'
        "        norm.track_running_stats = True\n"
        "        new = type(norm)(norm.num_features, device=inputs.device)\n"
        "        for name, buffer in new.named_buffers():\n"
        "            norm.register_buffer(name, buffer)\n"
    )
    detail = f"Here: {listed(f'{n} has {said}' for n, said in odd.items())}."
    return Sign(len(odd), where=odd, detail=detail, repair=repair)


@check(
    "batch-norm-of-few",
    "warning",
    "Batch norms take statistics over too few values",
    source="relative error of the variance of n normal numbers: sqrt(2/(n − 1))",
    repaired_by="Use larger batches, or group norm",
    kind="batch_size",
)
def batch_norm_of_few(seen: Seen) -> Sign | None:
    """Of two values a batch norm leaves nothing but which is larger, and its running
    statistics do not match. Use larger batches or a norm of single samples.
    """
    few: dict[str, int] = {}
    for call in seen.trace.named("batch_norm"):
        shape = call.inputs[0].shape
        count = call.inputs[0].numel() // max(shape[1], 1)
        if call.kwargs.get("training", call.given(5, "training", True)) and count < FEW:
            few[call.module] = count
    if not few:
        return None
    least = min(few.values())
    detail = f"Here they are over {least} values."
    severity = "note" if least > 2 and seen.learns else None
    return Sign(least, FEW, above=False, where=few, detail=detail, severity=severity)


@check(
    "running-statistics-far",
    "warning",
    "Running statistics of batch norms do not fit the data",
    source="compared with the statistics of the batch; the levels are ours",
    repaired_by="Collect the statistics again in train mode",
    kind="mode",
)
def running_statistics_far(seen: Seen) -> Sign | None:
    """They subtract a mean and divide by a deviation that their inputs do not have, so
    that what leaves them is far from 0 or nearly constant.
    """
    for call in seen.trace.named("batch_norm"):
        mean, variance = call.given(1, "running_mean"), call.given(2, "running_var")
        if call.given(5, "training", False) or mean is None or variance is None:
            continue
        columns = call.inputs[0].detach().double().movedim(1, -1).flatten(0, -2)
        if len(columns) < FEW:
            continue
        spread = columns.std(0).clamp(min=1e-12)
        off = float(((columns.mean(0) - mean) / spread).abs().median())
        ratio = float((variance.double() / spread.square()).log().abs().median())
        if len(columns) > 8 and (off > FAR or ratio > 2 * FAR):
            detail = (
                f"Their means are {off:.3g} deviations away from those of the batch."
            )
            return Sign(max(off, ratio), FAR, detail=detail, where=call.module)
    return None


@check(
    "norm-removes-signal",
    "sick",
    "A norm layer gives the same output for every sample",
    source="a norm over one number returns 0: (x − x)/σ",
    repaired_by="Remove the norm, or let it run over the features of a layer",
    kind="surgery",
)
def norm_removes_signal(seen: Seen) -> Sign | None:
    """What it gets differs between samples, what it returns does not: the norm is
    taken over one number, or over an axis along which nothing differs.
    """
    for call in seen.trace.named(
        "layer_norm",
        "group_norm",
        "batch_norm",
        "instance_norm",
        "rms_norm",
        "normalize",
    ):
        inputs, outputs = call.inputs[0].detach(), call.outputs[0].detach()
        if len(inputs) < 2 or inputs.ndim < 2 or not outputs.isfinite().all():
            continue
        weight = call.kwargs.get("weight", call.given(2, "weight"))
        weight = (
            weight if isinstance(weight, torch.Tensor) else torch.ones(1, device="cpu")
        )
        if not (size := _size(weight.detach())):
            continue  # a norm that starts at zero
        pooled = [c for c in seen.trace.readers(call) if c.name in _POOLS]
        for each in (call, *pooled):  # the mean of what a norm has centred is 0
            made = each.outputs[0].detach()
            if made.ndim < 2 or len(made) != len(inputs):
                continue
            before, after = _varies(inputs), _varies(made, max(size, _size(made)))
            if before > 1e-3 and after < 1e-4:
                then = f", followed by {each.name}()" * (each is not call)
                shape = tuple(inputs.shape)
                return Sign(
                    after,
                    1e-4,
                    above=False,
                    detail=f"Here it is {call.name} of shape {shape}{then}.",
                    where=call.module,
                )
    return None


def _size(tensor: torch.Tensor) -> float:
    return float(tensor.double().square().mean().sqrt())


def _varies(tensor: torch.Tensor, size: float = 0.0) -> float:
    """Return the spread over samples, relative to the size of the numbers."""
    size = size or _size(tensor)
    return _size(tensor.double().std(0)) / size if size else 0.0


@check(
    "norm-over-wrong-axis",
    "warning",
    "A norm layer normalises along another axis than that of the features",
    source="linear layers have features on the last axis, convolutions on axis 1",
    repaired_by="Move the features to the axis that the norm looks at",
    kind="surgery",
)
def norm_over_wrong_axis(seen: Seen) -> Sign | None:
    """A batch norm gets what a linear layer made and treats positions as channels, or
    a layer norm gets what a convolution made and normalises each channel by itself.
    Transpose before and after.
    """
    for call in seen.trace.named("normalize"):
        tensor, axis = call.inputs[0], call.given(2, "dim", 1)
        source = seen.before(call)
        made = source.name if source is not None else ""
        over = axis == 0 and tensor.ndim == 2 and len(tensor) == seen.samples
        over |= axis == 1 and tensor.ndim == 3 and made in ("linear", "layer_norm")
        if over and "weight" in seen.trace.origins(call) and made:
            detail = f"Here normalize() runs over axis {axis} of {tuple(tensor.shape)}."
            return Sign(1.0, where=call.module, detail=detail)
    for call in seen.trace.named("batch_norm", "layer_norm"):
        source = seen.before(call)
        if source is None or call.inputs[0].ndim < 3:
            continue
        shape = tuple(call.inputs[0].shape)
        turned = source.name in ("transpose", "permute", "T", "mT", "movedim")
        behind = seen.before(source) if turned else None
        if call.name == "batch_norm":
            readers = [c for c in seen.trace.readers(call) if c.name == "linear"]
            made = source.name in ("linear", "embedding", "lstm", "gru") or readers
            wrong = bool(made) and len(shape) == 3 and shape[2] > 1
        else:
            over = len(call.given(1, "normalized_shape", ()))
            wrong = source.name.startswith("conv") and over < len(shape) - 1
            last = behind is not None and behind.name in ("embedding", "lstm", "gru")
            wrong |= last and over == 1
        if wrong:
            detail = f"Here {source.name} is followed by {call.name} of shape {shape}."
            return Sign(1.0, where=call.module, detail=detail)
    return None


@check(
    "norm-on-outputs",
    "warning",
    "A norm layer acts on what the loss reads",
    source="normalised outputs have a fixed mean and size",
    repaired_by="Remove the norm behind the last layer",
    kind="surgery",
)
def norm_on_outputs(seen: Seen) -> Sign | None:
    """The loss reads outputs whose mean and size are fixed by a norm, over the batch or
    over the outputs of a sample, so that it cannot reach the targets.
    """
    call = seen.output_call
    if call is None or call.name not in _FUNCTIONS[:4]:
        return None
    outputs = call.outputs[0]
    if outputs.ndim > 2 or not seen.loss_name:
        return None
    return Sign(1.0, where=call.module, detail=f"Here it is {call.name}.")
