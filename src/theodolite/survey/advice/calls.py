"""Repairs of calls in a forward pass, such as a softmax over a wrong axis.

The repair is one changed word of the user's forward. So that it can be tried, the code
replaces the call wherever the model runs; its first line says what to change.
"""

import re
from functools import partial
from math import prod

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import remedy
from .replacing import replacing, replacing_one

_SOFTMAX = ("softmax", "log_softmax")


def _one(better: str, names: str, wrong: str, right: str, *_: object) -> str:
    return replacing_one(better, tuple(names.split()), wrong, right)


# Rule, title, what is better; functions whose results are wrong, when, what is right.
for _rule, _title, *_words in (
    (
        "softmax-over-batch",
        "Take the softmax over the classes: dim=1",
        "softmax(dim=1)",
        "softmax log_softmax",
        "made.shape[0] > 1 and bool(((made.exp() if made.max() <= 0 else made)"
        ".sum(0) - 1).abs().max() < 1e-3)",
        "getattr(args[0], name)(1)",
    ),
    (
        "attention-axis",
        "Take the softmax over the keys: dim=-1",
        "scores.softmax(dim=-1)",
        "softmax log_softmax",
        "made.ndim > 2",
        "args[0].softmax(-1)",
    ),
    (
        "attention-one-hot",
        "Divide the scores of attention by their size",
        "scores / d**0.5, with d features per head",
        "softmax log_softmax",
        "made.ndim > 2 and made.shape[-1] > 1",
        "(args[0] / self.__dict__.setdefault(str(made.shape[1:]),"
        " max(float(args[0].std()), 1.0))).softmax(-1)",
    ),
    (
        "dropout-in-evaluation",
        "Switch dropout off in eval mode",
        "functional.dropout(x, p, training=self.training)",
        "dropout alpha_dropout feature_dropout dropout2d",
        "not model.training",
        "args[0]",
    ),
):
    remedy("surgery", _title, _rule)(partial(_one, *_words))


@remedy("surgery", "Take the softmax over the positions", "softmax-of-one")
def _over_positions(survey: Survey, finding: Finding) -> str | None:
    """Take a softmax inside the network over its longest axis, not over one entry."""
    if survey.find("check", rule="every-gradient-zero"):  # it is that of the outputs
        return None
    return replacing_one(
        "softmax over the axis of the positions",
        _SOFTMAX,
        "made.ndim > 2 and bool((made == 1).all())",
        "args[0].softmax(max(range(1, made.ndim), key=lambda a: made.shape[a]))",
    )


@remedy(
    "surgery",
    "Exchange axes by permute or transpose, not by view",
    "axes-mixed-by-view",
    "samples-mixed",
)
def _permuted(survey: Survey, finding: Finding) -> str | None:
    """Exchange axes where a view cuts the numbers into other rows."""
    shapes = re.findall(r"\(([0-9, ]+)\)", finding.says)
    if len(shapes) != 2:
        return None
    before, after = (tuple(map(int, shape.split(", "))) for shape in shapes)
    wrong = f"(tuple(args[0].shape[:1]), made.ndim) == (({before[0]},), {len(after)})"
    wrong = wrong if finding.rule == "samples-mixed" else (
        f"(args[0].ndim, made.ndim) == ({len(before)}, {len(after)})"
    )  # fmt: skip
    if len(before) < len(after):
        right = f"unflatten(-1, ({after[1]}, {after[3]})).transpose(1, 2)"
    else:
        right = f"permute{_order(before, after)}"
    if len(before) == len(after):
        wrong += " and args[0].shape != made.shape"
        wrong += " and sorted(args[0].shape) == sorted(made.shape)"
    return replacing_one(
        f"x.{right} in place of the view to {after}",
        ("view", "reshape"),
        wrong,
        f"args[0].{right}.reshape(made.shape)",
    )


def _order(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return axes so that those of one size stand where that size is wanted."""
    left, order = list(range(len(before))), list[int]()
    for size in after:
        same = [axis for axis in left if before[axis] == size]
        made, taken = 1, same[:1]
        while not same and made < size and len(taken) < len(left):
            taken = left[: len(taken) + 1]
            made = prod(before[axis] for axis in taken)
        order += taken
        left = [axis for axis in left if axis not in taken]
    return (*order, *left)


@remedy(
    "surgery",
    "Pass the gradient straight through the rounding",
    "every-gradient-zero",
    "no-gradient",
)
def _straight(survey: Survey, finding: Finding) -> str | None:
    """Use the derivative 1 for a function that has 0 (Bengio et al., 2013)."""
    flat = re.search(
        r"(round|sign|floor|ceil|trunc)\(\) has derivative 0", finding.says
    )
    if flat is None:
        return None
    return replacing_one(
        f"remove {flat[1]}(), or made.detach() + x - x.detach()",
        (flat[1],),
        "args[0].requires_grad",
        "made.detach() + args[0] - args[0].detach()",
    )


@remedy("mode", "Use dropout of 0.2", "dropout-too-strong")
def _less_dropout(survey: Survey, finding: Finding) -> str | None:
    """Change calls of the function, where no module drops."""
    if any(row["repair"] for row in survey.find("check", rule=finding.rule)):
        return None
    return replacing_one(
        "functional.dropout(x, 0.2, training=self.training)",
        ("dropout",),
        "kwargs.get('training', True)",
        "function(*args[:1], p=0.2)",
    )


@remedy("surgery", "Mask attention to later positions", "sees-the-future")
def _masked(survey: Survey, finding: Finding) -> str | None:
    """Mask scores of later positions before each softmax over positions."""
    return replacing(
        "give attention a causal mask of -inf (or is_causal=True)",
        """\
def later(n):
    return torch.ones(n, n, dtype=torch.bool, device=args[0].device).triu(1)
if name == "softmax" and args[0].ndim > 2 and len(set(args[0].shape[-2:])) == 1:
    hidden = args[0].masked_fill(later(args[0].shape[-1]), float("-inf"))
    args = (hidden, *args[1:])
if name == "scaled_dot_product_attention":
    args = args[:3]
    kwargs = {"is_causal": True, "scale": kwargs.get("scale")}
if name == "multi_head_attention_forward":
    kwargs = {**kwargs, "attn_mask": later(len(args[0])), "is_causal": False}
""",
    )


@remedy("surgery", "Invert the mask", "mask-inverted")
def _mask_inverted(survey: Survey, finding: Finding) -> str | None:
    return replacing(
        "invert the mask, ~mask",
        """\
def inverted(mask):
    if mask is None or mask.dtype == torch.bool:
        return mask if mask is None else ~mask
    return torch.zeros_like(mask).masked_fill(mask > -1e3, float("-inf"))
if name == "masked_fill" and args[1].dtype == torch.bool:
    args = (args[0], ~args[1], *args[2:])
if name == "scaled_dot_product_attention":
    args, mask = args[:3], kwargs.get("attn_mask", (*args, None)[3])
    kwargs = {**kwargs, "attn_mask": inverted(mask)}
if name == "multi_head_attention_forward":
    mask = inverted(kwargs.get("key_padding_mask"))
    kwargs = {**kwargs, "key_padding_mask": mask}
""",
    )


@remedy(
    "surgery",
    "Keep the gradient: remove detach(), numpy(), sample() and no_grad()",
    "no-gradient",
    "loss-without-gradient",
    "sampled-without-gradient",
)
def _connected(survey: Survey, finding: Finding) -> str | None:
    """Hand on what was cut off, found by its values, and run with gradients."""
    cut = any(word in finding.says for word in ("gradient stops", "under no_grad"))
    if finding.rule != "sampled-without-gradient" and not cut:
        return None
    if "in the loss" in finding.says:
        return None
    return replacing(
        "remove detach(), .data, numpy() and no_grad(), and use rsample()",
        """\
names = {name, getattr(getattr(function, "__self__", None), "__name__", "")}
with torch.set_grad_enabled(self.wanted):
    if names & {"detach", "data", "numpy", "tolist", "item"}:
        self.cut += [args[0]] * args[0].requires_grad
    elif name != "__get__":
        args = tree_map(self.whole, args)
    if names & {"normal"} and len(args) > 1:
        return args[0] + args[1] * torch.randn_like(args[0])
    return function(*args, **kwargs)
""",
        """\
self.cut, self.wanted = [], torch.is_grad_enabled()
def whole(self, part):
    if not torch.is_tensor(part) or part.requires_grad:
        return part
    same = [t for t in self.cut if t.shape == part.shape and torch.equal(t, part)]
    return same[-1] if same else part""",
    )


@remedy("surgery", "Join it with the other branch of that shape", "joined-with-itself")
def _other_branch(survey: Survey, finding: Finding) -> str | None:
    """Put the last other tensor of its shape in place of the second copy."""
    return replacing(
        "hand the other branch to cat() or to the addition",
        """\
parts = args[0] if "cat" in name else args[:2]
if "cat" in name or name in ("add", "__add__"):
    if len(parts) == 2 and parts[0] is parts[1]:
        other = [t for t in self.made if t.shape == parts[0].shape]
        other = [t for t in other if t.data_ptr() != parts[0].data_ptr()]
        pair = [*other[-1:], parts[0]][:2]
        pair = pair[::-1] if len(pair) > 1 else parts
        args = (pair, *args[1:]) if "cat" in name else (*pair, *args[2:])
made = function(*args, **kwargs)
self.made += [made] if hasattr(made, "data_ptr") else []
return made
""",
        "self.made = []",
    )
