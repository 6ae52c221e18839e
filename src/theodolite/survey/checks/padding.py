"""Padding, masks and ignored labels: what the loss and the last step really read."""

import torch
from torch import Tensor

from .check import Sign, check
from .seen import Seen
from .sequences import RECURRENT

# Share of the labels that are padding, and of the steps of a row: our choice.
PADDED, ENDING = 0.4, 0.5
# Share of the rows in which an ignored label stands among others: our choice.
INSIDE = 0.3


def _tokens(seen: Seen) -> list[Tensor]:
    kinds = (torch.int64, torch.int32, torch.int16, torch.uint8)
    return [t for t in seen.inputs if t.ndim == 2 and t.dtype in kinds]


def _ends(tokens: Tensor) -> Tensor | None:
    """Return where rows end with one and the same token, as padding does."""
    last = tokens[:, -1].mode().values
    same = (tokens == last).flip(1).long().cumprod(1).flip(1).bool()
    lengths = same.sum(1)
    padded = float((lengths > 1).double().mean()) > 0.5
    elsewhere = float(((tokens == last) & ~same).any(1).double().mean())
    return same if padded and len(lengths.unique()) > 2 and elsewhere < 0.1 else None


@check(
    "padding-in-loss",
    "warning",
    "The loss counts the padding",
    source="labels at the end of rows, where the tokens are padding; the level is ours",
    repaired_by="Give padding the label -100, or set ignore_index to its label",
    confidence="rule of thumb",
    about="labels",
)
def padding_in_loss(seen: Seen) -> Sign | None:
    """A large part of the labels belongs to padding and is one and the same. The loss
    is low as soon as these are right, and hardly looks at the others.
    """
    target, classes = seen.target, seen.classes
    tokens = _tokens(seen)
    if target is None or classes is None or target.ndim != 2 or len(tokens) != 1:
        return None
    if tokens[0].shape != target.shape or len(classes[1]) != target.numel():
        return None
    ends = _ends(tokens[0])
    if ends is None or len(target[ends].unique()) > 1:
        return None
    share = float(ends.double().mean())
    if share < PADDED:
        return None
    label = int(target[ends][0])
    repair = f"# nn.CrossEntropyLoss(ignore_index={label})\n" if label else ""
    return Sign(
        share, PADDED, detail=f"It is {share:.0%} of the labels.", repair=repair
    )


@check(
    "last-step-is-padding",
    "warning",
    "The last step of a recurrent layer is padding",
    source="tokens at the end of rows; the level is ours",
    repaired_by="Use pack_padded_sequence, or the step of the last real token",
    kind="surgery",
    confidence="rule of thumb",
    about="inputs",
)
def last_step_is_padding(seen: Seen) -> Sign | None:
    """Rows end with padding, and the layer reads all of it before its last state is
    used, so that what the words said has faded.
    """
    tokens = _tokens(seen)
    ends = _ends(tokens[0]) if len(tokens) == 1 else None
    if ends is None or (seen.learns and not seen.stuck):
        return None
    share = float(ends.double().mean())
    for call in seen.trace.named(*RECURRENT):
        if call.outputs[0].ndim < 3 or not isinstance(call.args[-1], bool):
            continue  # a packed sequence
        steps = call.outputs[0].shape[1 if call.args[-1] else 0]
        whole = [
            c for c in seen.trace.readers(call) if c.name in ("mean", "max", "amax")
        ]
        if share > ENDING and steps == tokens[0].shape[1] and not whole:
            detail = f"Padding is {share:.0%} of the steps."
            return Sign(share, ENDING, where=call.module, detail=detail)
    return None


@check(
    "loss-mask-inverted",
    "sick",
    "The loss counts the entries that its mask should leave out",
    source="targets where the mask is set, compared with the others",
    repaired_by="Invert the mask of the loss",
    about="labels",
)
def loss_mask_inverted(seen: Seen) -> Sign | None:
    """Where the mask of the loss is set all targets are one and the same number, and
    where it is not they differ: padding is learned, and the data are left out.
    """
    target = seen.target
    if target is None or target.ndim < 2:
        return None
    for call in seen.trace.named("mul", "masked_select", "getitem"):
        pairs = zip(call.inputs, call.sources, strict=True)
        masks = [t for t, s in pairs if "weight" not in seen.trace.kinds(t, s)]
        if not call.after_model or len(call.inputs) != 2 or len(masks) != 1:
            continue
        mask = masks[0].detach().double()
        if mask.numel() != target.numel() or not bool(
            ((mask == 0) | (mask == 1)).all()
        ):
            continue
        on = mask.reshape(target.shape) == 1
        kept, left = target[on].unique(), target[~on].unique()
        if len(kept) == 1 and len(left) > 2:
            return Sign(len(left), 1.0, detail=f"They are all {float(kept[0]):g}.")
    return None


@check(
    "class-ignored",
    "sick",
    "The loss ignores a class that occurs",
    source="ignore_index and weight of cross_entropy",
    repaired_by="Leave ignore_index at -100, and give every class a weight",
    about="labels",
)
def class_ignored(seen: Seen) -> Sign | None:
    """Samples of a class do not count in the loss: ignore_index is its number, or its
    weight is 0. The network never learns it.
    """
    call, target = seen.loss_call, seen.target
    if seen.loss_name not in ("cross_entropy", "nll_loss") or call is None:
        return None
    if target is None or target.is_floating_point() or target.ndim not in (1, 2):
        return None
    ignored, weight = call.kwargs.get("ignore_index", -100), call.kwargs.get("weight")
    gone = {int(ignored)} if int(ignored) >= 0 else set()
    if target.ndim == 2 and not _stands_inside(seen, target, int(ignored)):
        gone = set[int]()
    if isinstance(weight, Tensor):
        gone |= set((weight == 0).nonzero().flatten().tolist())
    gone &= set(target.unique().tolist())
    if not gone:
        return None
    return Sign(len(gone), detail=f"Here: class {min(gone)}.")


def _stands_inside(seen: Seen, target: Tensor, label: int) -> bool:
    """Return whether a label stands between others, at words of many kinds.

    Padding stands at one end of a row, and always at the same word. Where the classes
    are the words themselves, the label marks those that are not masked.
    """
    words = [t for t in seen.inputs if t.shape == target.shape]
    tables = [c.given(1, "weight") for c in seen.trace.named("embedding")]
    kinds = seen.judged[0].shape[1] if seen.judged else 0
    if any(len(table) == kinds for table in tables):
        return False
    real = (target != label).long()
    between = (real.cumsum(1) > 0) & (real.flip(1).cumsum(1).flip(1) > 0)
    inside = float(((real == 0) & between).any(1).double().mean())
    before = float((real[:, 0] == 0).double().mean())
    return max(inside, before) > INSIDE and all(
        len(t[real == 0].unique()) > 1 for t in words
    )
