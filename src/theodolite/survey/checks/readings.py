"""How inputs are read: axes, casts, missing values, and places of the targets."""

import torch
from torch import Tensor

from theodolite.instruments import preserve, reseed, tensors_in

from .check import Sign, check
from .inputs import ALIKE
from .reach import listed
from .seen import Seen

# Share of numbers that a cast changes, distance of a number for missing ones from the
# rest in ranges, and share of the variance that a flip explains more: our choice.
CUT, DISTANT, MOVED = 0.5, 10.0, 0.15


@check(
    "inputs-truncated",
    "warning",
    "Inputs are cut to whole numbers or to fewer ids",
    source="values before and after: 0.9 becomes 0",
    repaired_by="Use the numbers as they are, or map them to ids before",
    kind="surgery",
    about="inputs",
)
def inputs_truncated(seen: Seen) -> Sign | None:
    """Most of what these inputs say is in their fractions, which a cast removes, or in
    ids that are merged by a clamp or a remainder.
    """
    merging = ("clamp", "clip", "clamp_max", "remainder", "fmod", "mod", "minimum")
    for call in seen.trace.named("long", "int", "to", "type", "byte", *merging):
        given, made = call.inputs[0].detach(), call.outputs[0].detach()
        if call.name in merging:
            kinds = len(given.unique()), len(made.unique())
            ids = not given.is_floating_point() and kinds[1] < CUT * kinds[0] > 4
            if ids and seen.trace.kinds(call.inputs[0], call.sources[0]) == {"input"}:
                if not call.after_model:
                    detail = f"Of {kinds[0]} different ids {kinds[1]} are left."
                    share = 1 - kinds[1] / kinds[0]
                    return Sign(share, CUT, where=call.module, detail=detail)
            continue
        if not given.is_floating_point() or made.is_floating_point():
            continue
        if made.dtype == torch.bool or call.after_model or call.inputs[0].numel() < 8:
            continue
        if seen.trace.kinds(call.inputs[0], call.sources[0]) != {"input"}:
            continue
        share = float((given != given.trunc()).double().mean())
        if share > CUT:
            detail = f"It changes {share:.0%} of the numbers."
            return Sign(share, CUT, where=call.module, detail=detail)
    return None


@check(
    "channels-last",
    "warning",
    "A convolution takes rows of images for channels",
    source="torch wants (samples, channels, height, width)",
    repaired_by="Use permute(0, 3, 1, 2) before the first layer",
    kind="surgery",
    about="inputs",
)
def channels_last(seen: Seen) -> Sign | None:
    """The inputs are of shape (samples, height, width, channels), and the layer reads
    axis 1 as the channels.
    """
    for call in seen.trace.named("conv2d"):
        shape = call.inputs[0].shape
        kinds = seen.trace.kinds(call.inputs[0], call.sources[0])
        if len(shape) != 4 or kinds - {"noise"} != {"input"}:
            continue
        if shape[3] in (1, 2, 3, 4) and shape[1] == shape[2] > 4:
            return Sign(1.0, where=call.module, detail=f"Here {tuple(shape)}.")
    return None


@check(
    "missing-as-numbers",
    "warning",
    "Missing values seem to be coded as a number",
    source="the most frequent extreme, compared with the range of the rest; ours",
    repaired_by="Replace them by the mean of the column, and add a column that says so",
    confidence="rule of thumb",
    about="inputs",
)
def missing_as_numbers(seen: Seen) -> Sign | None:
    """One number, such as -999, occurs again and again far away from all others of its
    column, and rules its mean, its deviation and the first layer.
    """
    tables = [
        t.detach().double()
        for t in seen.inputs
        if t.ndim == 2 and t.is_floating_point() and 8 < len(t) and t.shape[1] < 512
    ]
    found = dict[int, float]()
    for column, values in enumerate(tables[0].T if len(tables) == 1 else ()):
        for extreme in (values.min(), values.max()):
            odd = values == extreme
            rest = values[~odd]
            if not 2 <= int(odd.sum()) <= 0.4 * len(values):
                continue
            if len(rest.unique()) < 8 or not bool(rest.isfinite().all()):
                continue
            gap = float((rest - extreme).abs().min() / (rest.max() - rest.min()))
            if gap > DISTANT / 2:
                found[column] = float(extreme)
    if not found:
        return None
    said = listed(f"{value:g} in column {n}" for n, value in found.items())
    return Sign(len(found), detail=f"Here {said}.")


@check(
    "targets-flipped",
    "warning",
    "The targets fit the inputs better when they are flipped",
    source="linear fit of each place from the inputs around it; the level is ours",
    repaired_by="Apply flips, turns and crops to images and targets alike",
    confidence="measured",
    about="labels",
)
def targets_flipped(seen: Seen) -> Sign | None:
    """Each place of the targets is to follow from the same place of the inputs. It does
    so better from a mirrored or turned place.
    """
    target = seen.target
    given = seen.inputs[0].detach() if len(seen.inputs) == 1 else None
    if given is None or target is None or given.ndim != 4 or len(target) != len(given):
        return None
    if target.ndim not in (3, 4) or (target.ndim == 4 and target.shape[1] > 1):
        return None
    maps = target.reshape(len(target), *target.shape[-2:]).double()
    if maps.shape[1:] != given.shape[2:] or min(maps.shape[1:]) < 6:
        return None
    ways = {"as given": maps, "mirrored": maps.flip(2), "upside down": maps.flip(1)}
    if maps.shape[1] == maps.shape[2]:
        ways |= {"transposed": maps.mT, "turned by 90 degrees": maps.rot90(1, (1, 2))}
    near = torch.nn.functional.unfold(given.double(), 3, padding=1)
    rows = near.movedim(1, -1).reshape(-1, near.shape[1])
    rows = torch.cat([rows, rows.square(), torch.ones_like(rows[:, :1])], 1)
    fits = {way: _explained(rows, each.reshape(-1)) for way, each in ways.items()}
    best = max(fits, key=lambda way: fits[way])
    more = fits[best] - fits["as given"]
    if not more > MOVED or fits["as given"] > 0.5 * fits[best]:
        return None
    detail = f"{best.capitalize()} a linear fit explains {fits[best]:.0%} of them, "
    detail += f"and {fits['as given']:.0%} as given."
    return Sign(more, MOVED, detail=detail)


def _explained(rows: Tensor, wanted: Tensor) -> float:
    """Return the share of the variance that a linear fit explains."""
    wanted = wanted - wanted.mean()
    size = float(wanted.square().sum())
    kernel = rows.T @ rows
    kernel.diagonal().add_(1e-6 * kernel.diagonal().mean())
    made = rows @ torch.linalg.solve(kernel, rows.T @ wanted)
    return 1 - float((wanted - made).square().sum()) / size if size else 0.0


@check(
    "steps-on-axis-of-features",
    "warning",
    "Sequences are given with time steps and features exchanged",
    source="likeness of neighbours along both axes; the level is ours",
    repaired_by="Exchange the axes: x.transpose(1, 2)",
    kind="surgery",
    confidence="rule of thumb",
    about="inputs",
)
def steps_on_axis_of_features(seen: Seen) -> Sign | None:
    """Neighbours are alike along the axis that the layer takes for features, and not
    along the one that it takes for time.
    """
    names = {"conv1d": 2, "lstm": 1, "gru": 1, "rnn_tanh": 1}
    for call in seen.trace.named(*names):
        given = call.inputs[0].detach()
        kinds = seen.trace.kinds(call.inputs[0], call.sources[0])
        if given.ndim != 3 or kinds - {"noise"} != {"input"}:
            continue
        time = names[call.name]
        if call.name != "conv1d" and not (call.args and call.args[-1] is True):
            continue
        if min(given.shape[1:]) < 4:
            continue
        along = {axis: _smooth(given.movedim(axis, -1)) for axis in (1, 2)}
        if along[3 - time] > 0.5 and along[time] < ALIKE:
            return Sign(along[3 - time], 0.5, where=call.module)
    return None


def _smooth(rows: Tensor) -> float:
    """Return the correlation of neighbours on the last axis."""
    rows = rows.double() - rows.double().mean(-1, keepdim=True)
    size = float(rows.square().mean())
    return float((rows[..., 1:] * rows[..., :-1]).mean()) / size if size else 0.0


@check(
    "inputs-cut-off",
    "warning",
    "Most of the inputs have no effect on the outputs",
    source="the derivative of the outputs by the inputs is exactly zero; level ours",
    repaired_by="Look at which slice of the inputs the forward pass uses",
    kind="surgery",
    about="inputs",
)
def inputs_cut_off(seen: Seen) -> Sign | None:
    """The outputs do not depend on these columns, pixels or steps for any sample of the
    batch, although they differ between samples: a slice or an index leaves them out.
    """
    given = seen.inputs[0].detach() if len(seen.inputs) == 1 else None
    if given is None or not given.is_floating_point() or given.ndim < 2:
        return None
    if len(given) < 16 or len(seen.reached) < 2:
        return None
    effect = _effect(seen, given)
    if effect is None or not effect.any():
        return None
    varies = (given != given[:1]).any(0)
    idle = varies & (effect == 0).all(0)
    share = float(idle.sum() / varies.sum().clamp(min=1))
    if not share > CUT:
        return None
    return Sign(share, CUT, detail=f"They are {share:.0%} of the inputs.")


def _effect(seen: Seen, given: Tensor) -> Tensor | None:
    """Return the derivative of the outputs, in random directions, by the inputs."""
    given = given.detach().clone().requires_grad_()
    try:
        with preserve(seen.model), torch.enable_grad():
            reseed(seen.seed)
            parts = [t for t in tensors_in(seen.call(given)) if t.requires_grad]
            value = torch.stack([(t * torch.randn_like(t)).sum() for t in parts]).sum()
            return torch.autograd.grad(value, given)[0]
    except Exception:  # of the user's own code
        return None


@check(
    "batches-repeated",
    "warning",
    "All batches hold the same samples",
    source="compared number by number",
    repaired_by="Draw other samples for each batch",
    about="inputs",
)
def batches_repeated(seen: Seen) -> Sign | None:
    """Batch after batch is the same, in other tensors: the network sees a few samples
    again and again.
    """
    parts = [tensors_in(seen.batches[n]) for n in range(min(len(seen.batches), 8))]
    if len(parts) < 4 or not parts[0] or any(len(p) != len(parts[0]) for p in parts):
        return None
    for others in parts[1:]:
        for one, two in zip(parts[0], others, strict=True):
            if one.data_ptr() == two.data_ptr() or one.shape != two.shape:
                return None
            if not torch.equal(one, two):
                return None
    return Sign(len(parts), 1.0)
