"""Inputs: their size, their columns, and what they give away."""

import torch
from torch import Tensor

from .check import Sign, check
from .reach import listed
from .seen import LAYERS, Seen

# Sizes of inputs, offsets in deviations, and ratios of columns: our choice.
LARGE, OFFSET, UNEVEN, SMALL = 10.0, 10.0, 1e3, 0.01
# Correlation of a column with the target that noise-free causes seldom reach.
VISIBLE = 0.9999
# Correlation of neighbouring pixels: our choice.
ALIKE = 0.08


def _columns(tensor: Tensor) -> Tensor:
    """Return one row per sample and place, one column per feature or channel."""
    axis = 1 if tensor.ndim in (4, 5) else tensor.ndim - 1
    return tensor.double().movedim(axis, -1).reshape(-1, tensor.shape[axis])


@check(
    "inputs-not-finite",
    "sick",
    "Inputs or targets are NaN or infinite",
    source="arithmetic of floating point, IEEE 754: NaN passes on",
    repaired_by="Remove or fill these samples",
    about="inputs",
)
def inputs_not_finite(seen: Seen) -> Sign | None:
    """One such number makes the loss and every weight NaN in the first step."""
    from theodolite.instruments import tensors_in

    bad = total = 0
    for place in range(min(len(seen.batches), 16)):
        for tensor in tensors_in(seen.batches[place]):
            if tensor.is_floating_point():
                bad += int((~tensor.isfinite()).sum())
                total += tensor.numel()
    if not bad:
        return None
    detail = f"Here {bad} of {total} numbers."
    return Sign(bad, detail=detail)


@check(
    "inputs-unscaled",
    "warning",
    "The inputs are not scaled",
    source="LeCun et al. (1998), Efficient backprop, section 4.3; the level is ours",
    repaired_by="Standardise the inputs",
    confidence="rule of thumb",
    about="inputs",
)
def inputs_unscaled(seen: Seen) -> Sign | None:
    """The first layer reads numbers that are not near 0 and of size 1, for which
    initialisations and rates are made. Subtract the mean of the training set and
    divide by its deviation, column by column.
    """
    read = seen.read
    if read is None or not read.is_floating_point() or read.ndim < 2:
        return None
    columns = _columns(read)
    if len(columns) < 2 or not bool(columns.isfinite().all()):
        return None
    layer = [
        t
        for c in seen.trace.calls
        if c.inputs and c.inputs[0].data_ptr() == read.data_ptr() and c.name in LAYERS
        for t in c.inputs[1:]
    ]
    if not any(t.requires_grad for t in layer):
        return None  # frozen weights, which were trained on such inputs
    size = float(columns.square().mean().sqrt())
    spread = columns.std(0)
    alive = spread[spread > 0]
    if not len(alive):
        return None
    offset = float(
        (columns.mean(0).abs() / spread.clamp(min=1e-12))[spread > 0].median()
    )
    uneven = float(alive.max() / alive.median())
    repair = "# mean, std = train.mean(0), train.std(0); x = (x - mean) / std\n"
    detail = (
        f"Their size is {size:.3g}, the usual column is {offset:.3g} deviations away "
        f"from 0, and the widest column is {uneven:.3g} times the usual one."
    )
    for value, most in ((size, LARGE), (uneven, UNEVEN)):
        if value > most:
            return Sign(value, most, detail=detail, repair=repair)
    if offset > OFFSET:
        return Sign(offset, OFFSET, detail=detail, repair=repair)
    if float(spread.max()) < SMALL:
        return Sign(size, SMALL, above=False, detail=detail, repair=repair)
    return None


@check(
    "target-in-inputs",
    "warning",
    "The inputs give the target away",
    source="correlation over all batches; the level of 0.9999 is ours",
    repaired_by="Remove the column",
    confidence="rule of thumb",
    about="labels",
)
def target_in_inputs(seen: Seen) -> Sign | None:
    """One column equals the target up to scale and offset, or one of several inputs is
    the target. The network learns to copy it, and fails where it is not known.
    """
    target = seen.target
    if target is not None and not target.is_floating_point() and len(seen.inputs) > 1:
        if target.ndim > 1 and any(torch.equal(t, target) for t in seen.inputs):
            repair = "# decoder_in = cat([start, target[:, :-1]], dim=1)\n"
            return Sign(1.0, VISIBLE, severity="sick", repair=repair)
    pairs = [seen.batches[n] for n in range(min(len(seen.batches), 16))]
    if not all(isinstance(p, tuple | list) and len(p) == 2 for p in pairs):
        return None
    if not all(isinstance(t, Tensor) for pair in pairs for t in pair):
        return None
    if pairs[0][0].ndim != 2 or pairs[0][0].shape[1] < 3:
        return None
    if seen.read is None or seen.read.shape != pairs[0][0].shape:
        return None
    inputs = torch.cat([x for x, _ in pairs]).double()
    targets = torch.cat([y.reshape(len(y), -1) for _, y in pairs]).double()
    if targets.shape[1] != 1 or len(inputs) < 32 or not inputs.is_floating_point():
        return None
    stacked = torch.cat([inputs, targets], 1)
    if not bool(stacked.isfinite().all()):
        return None
    related = torch.corrcoef(stacked.T)[-1, :-1].abs().nan_to_num()
    if float(related.max()) < VISIBLE:
        return None
    column = int(related.argmax())
    return Sign(
        float(related.max()),
        VISIBLE,
        detail=f"It is column {column}.",
        repair=f"# drop column {column} of the inputs\n",
    )


@check(
    "columns-idle",
    "note",
    "Columns of the inputs are constant or repeated",
    source="counted",
    repaired_by="Remove these columns",
    about="inputs",
)
def columns_idle(seen: Seen) -> Sign | None:
    """They carry nothing that the other columns do not."""
    if not seen.inputs or seen.inputs[0].ndim != 2 or seen.samples < 8:
        return None
    table = seen.inputs[0].detach()
    if not table.is_floating_point() or table.shape[1] > 512:
        return None
    still = [
        n for n in range(table.shape[1]) if bool((table[:, n] == table[0, n]).all())
    ]
    twice = table.shape[1] - len(table.unique(dim=1).T)
    if not still and not twice:
        return None
    detail = (
        f"Constant: {listed(map(str, still))}." if still else f"{twice} repeat others."
    )
    return Sign(float(max(len(still), twice)), detail=detail)


@check(
    "channels-cut-by-view",
    "warning",
    "Images look as if view() had turned channels-last into channels-first",
    source="likeness of neighbouring pixels, compared in both readings; the level ours",
    repaired_by="Use permute(0, 3, 1, 2) in place of a view",
    kind="surgery",
    confidence="rule of thumb",
    about="inputs",
)
def channels_cut_by_view(seen: Seen) -> Sign | None:
    """Read as height, width, channels in memory order, neighbouring pixels are alike;
    as they are given they are not. A view does not move the channels, permute does.
    """
    given = seen.inputs[0].detach() if seen.inputs else None
    if given is None or given.ndim != 4 or not given.is_floating_point():
        return None
    n, channels, high, wide = given.shape
    if not 2 <= channels <= 4 or min(high, wide) < 6:
        return None
    other = given.reshape(n, high, wide, channels).permute(0, 3, 1, 2)
    as_given, as_viewed = _alike(given), _alike(other)
    if not as_viewed > 2 * max(as_given, 0.0) + ALIKE:
        return None
    detail = f"Their correlation is {as_viewed:.2f} so, and {as_given:.2f} as given."
    return Sign(as_viewed, ALIKE, detail=detail)


def _alike(images: Tensor) -> float:
    """Return the correlation of pixels with their right neighbours."""
    images = images.double() - images.double().mean((2, 3), keepdim=True)
    size = float(images.square().mean())
    return float((images[..., 1:] * images[..., :-1]).mean()) / size if size else 0.0


@check(
    "axes-mixed-by-view",
    "sick",
    "A reshape is used where axes should be exchanged",
    source="view and reshape keep the order of numbers in memory",
    repaired_by="Use permute or transpose",
    kind="surgery",
)
def axes_mixed_by_view(seen: Seen) -> Sign | None:
    """A view to exchanged sizes does not exchange the axes: it cuts the numbers in
    memory order into other rows, and mixes pixels, positions or samples.
    """
    for call in seen.trace.named("view", "reshape"):
        if not call.outputs or (
            "weight" not in seen.trace.origins(call) and (call.after_model)
        ):
            continue
        before, after = tuple(call.inputs[0].shape), tuple(call.outputs[0].shape)
        heads = not call.after_model and _heads_first(before, after)
        if _exchanged(before, after) or heads:
            detail = f"Here {before} is viewed as {after}."
            return Sign(1.0, where=call.module, detail=detail)
    return None


def _exchanged(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Return whether two shapes hold the same sizes in another order."""
    large = [n for n in before if n > 1]
    moved = [n for n in after if n > 1]
    return (
        len(before) == len(after) > 2
        and len(large) > 1
        and large != moved
        and sorted(large) == sorted(moved)
    )


def _heads_first(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Return whether heads are split off to the wrong place, or joined from there."""
    if len(before) > len(after):
        before, after = after, before
    if len(before) != 3 or len(after) != 4 or before[0] != after[0]:
        return False
    places, width = before[1:]
    heads, positions, each = after[1:]
    return positions == places != heads > 1 and heads * each == width and places > 1
