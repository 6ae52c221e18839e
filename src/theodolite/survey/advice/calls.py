"""Repairs of one function call inside a model, such as a softmax over a wrong axis.

The repair is one changed word of the user's forward. So that it can be tried, the code
replaces the result of that call wherever the model runs; its first line says what to
change.
"""

import re
from math import prod

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import remedy, within

_REPLACED = """\
# Better: {better}. The same:
from theodolite.survey import CallReplacer
class Replaced(CallReplacer):
    def on_function(self, function, args, kwargs):
        made = function(*args, **kwargs)
        if function.__name__ in {names!r} and {wrong}:
            return {right}
        return made
Replaced().inside(model)
"""
# What was cut off is found again by its values.
_CONNECTED = """\
# Better: remove detach(), .data, numpy() and no_grad(), and use rsample(). The same:
import torch
from torch.utils._pytree import tree_map
from theodolite.survey import CallReplacer
class Connected(CallReplacer):
    def begin(self):
        self.cut, self.wanted = [], torch.is_grad_enabled()
    def on_function(self, function, args, kwargs):
        owner = getattr(function, "__self__", None)
        names = {function.__name__, getattr(owner, "__name__", "")}
        with torch.set_grad_enabled(self.wanted):
            if names & {"detach", "data", "numpy", "tolist", "item"}:
                self.cut += [args[0]] * args[0].requires_grad
            elif function.__name__ != "__get__":
                args = tree_map(self.whole, args)
            if names & {"normal"} and len(args) > 1:
                return args[0] + args[1] * torch.randn_like(args[0])
            return function(*args, **kwargs)
    def whole(self, part):
        if not torch.is_tensor(part) or part.requires_grad:
            return part
        same = [t for t in self.cut if t.shape == part.shape and torch.equal(t, part)]
        return same[-1] if same else part
Connected().inside(model)
"""
# In place of the second copy, the last tensor of its shape that is not the first.
_JOINED = """\
# Better: hand the other branch to cat() or to the addition. The same:
from theodolite.survey import CallReplacer
class Joined(CallReplacer):
    def begin(self):
        self.made = []
    def on_function(self, function, args, kwargs):
        name = function.__name__
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
Joined().inside(model)
"""
_CAUSAL = """\
# Better: give attention a causal mask of -inf (or is_causal=True). The same:
import torch
from theodolite.survey import CallReplacer
def later(n, like):
    return torch.ones(n, n, dtype=torch.bool, device=like.device).triu(1)
class Causal(CallReplacer):
    def on_function(self, function, args, kwargs):
        name = function.__name__
        if name == "softmax" and args[0].ndim > 2 and len(set(args[0].shape[-2:])) == 1:
            hidden = later(args[0].shape[-1], args[0])
            args = (args[0].masked_fill(hidden, float("-inf")), *args[1:])
        if name == "scaled_dot_product_attention":
            args = args[:3]
            kwargs = {"is_causal": True, "scale": kwargs.get("scale")}
        if name == "multi_head_attention_forward":
            hidden = later(len(args[0]), args[0])
            kwargs = {**kwargs, "attn_mask": hidden, "is_causal": False}
        return function(*args, **kwargs)
Causal().inside(model)
"""
_INVERTED = """\
# Better: invert the mask, ~mask. The same:
import torch
from theodolite.survey import CallReplacer
def inverted(mask):
    if mask is None or mask.dtype == torch.bool:
        return mask if mask is None else ~mask
    return torch.zeros_like(mask).masked_fill(mask > -1e3, float("-inf"))
class Inverted(CallReplacer):
    def on_function(self, function, args, kwargs):
        name = function.__name__
        if name == "masked_fill" and args[1].dtype == torch.bool:
            args = (args[0], ~args[1], *args[2:])
        if name == "scaled_dot_product_attention":
            args, mask = args[:3], kwargs.get("attn_mask", (*args, None)[3])
            kwargs = {**kwargs, "attn_mask": inverted(mask)}
        if name == "multi_head_attention_forward":
            mask = inverted(kwargs.get("key_padding_mask"))
            kwargs = {**kwargs, "key_padding_mask": mask}
        return function(*args, **kwargs)
Inverted().inside(model)
"""
_SOFTMAX = ("softmax", "log_softmax")


@remedy("surgery", "Take the softmax over the classes: dim=1", "softmax-over-batch")
def _over_classes(survey: Survey, finding: Finding) -> str | None:
    return _REPLACED.format(
        better="softmax(dim=1)",
        names=_SOFTMAX,
        wrong="made.shape[0] > 1 and bool(((made.exp() if made.max() <= 0 else made)"
        ".sum(0) - 1).abs().max() < 1e-3)",
        right="getattr(args[0], function.__name__)(1)",
    )


@remedy("surgery", "Take the softmax over the keys: dim=-1", "attention-axis")
def _over_keys(survey: Survey, finding: Finding) -> str | None:
    return _REPLACED.format(
        better="scores.softmax(dim=-1)",
        names=_SOFTMAX,
        wrong="made.ndim > 2",
        right="args[0].softmax(-1)",
    )


@remedy("surgery", "Take the softmax over the positions", "softmax-of-one")
def _over_positions(survey: Survey, finding: Finding) -> str | None:
    """Take a softmax inside the network over its longest axis, not over one entry."""
    if survey.find("check", rule="every-gradient-zero"):  # it is that of the outputs
        return None
    return _REPLACED.format(
        better="softmax over the axis of the positions",
        names=_SOFTMAX,
        wrong="made.ndim > 2 and bool((made == 1).all())",
        right="args[0].softmax(max(range(1, made.ndim), key=lambda a: made.shape[a]))",
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
    return _REPLACED.format(
        better=f"x.{right} in place of the view to {after}",
        names=("view", "reshape"),
        wrong=wrong,
        right=f"args[0].{right}.reshape(made.shape)",
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
    "Keep the gradient: remove detach(), numpy(), sample() and no_grad()",
    "no-gradient",
    "loss-without-gradient",
    "sampled-without-gradient",
)
def _connected(survey: Survey, finding: Finding) -> str | None:
    """Hand on what was cut off, and run the model with gradients."""
    cut = any(word in finding.says for word in ("gradient stops", "under no_grad"))
    if finding.rule != "sampled-without-gradient" and not cut:
        return None
    return None if "in the loss" in finding.says else _CONNECTED


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
    return _REPLACED.format(
        better=f"remove {flat[1]}(), or made.detach() + x - x.detach()",
        names=(flat[1],),
        wrong="args[0].requires_grad",
        right="made.detach() + args[0] - args[0].detach()",
    )


@remedy("surgery", "Join it with the other branch of that shape", "joined-with-itself")
def _other_branch(survey: Survey, finding: Finding) -> str | None:
    return _JOINED


@remedy("surgery", "Mask attention to later positions", "sees-the-future")
def _masked(survey: Survey, finding: Finding) -> str | None:
    """Mask scores of later positions before each softmax over positions."""
    return _CAUSAL


@remedy("surgery", "Take the softmax before topk()", "softmax-of-one")
def _before_topk(survey: Survey, finding: Finding) -> str | None:
    if survey.find("check", rule="every-gradient-zero"):
        return None
    return _REPLACED.format(
        better="scores.softmax(-1).topk(k)",
        names=("topk", "softmax"),
        wrong="(function.__name__ == 'topk' or made.shape[-1] == 1)",
        right="(args[0].softmax(-1).topk(*args[1:], **kwargs)"
        " if function.__name__ == 'topk' else args[0])",
    )


@remedy("surgery", "Invert the mask", "mask-inverted")
def _mask_inverted(survey: Survey, finding: Finding) -> str | None:
    return _INVERTED


@remedy("surgery", "Divide the scores of attention by their size", "attention-one-hot")
def _smaller_scores(survey: Survey, finding: Finding) -> str | None:
    """Divide scores by the size that they had when they were met first."""
    return _REPLACED.format(
        better="scores / d**0.5, with d features per head",
        names=_SOFTMAX,
        wrong="made.ndim > 2 and made.shape[-1] > 1",
        right="(args[0] / self.__dict__.setdefault(str(made.shape[1:]),"
        " max(float(args[0].std()), 1.0))).softmax(-1)",
    )


# A weighted mean of positions, by the softmax of the scores, in place of the largest.
_SOFT = """\
# Better: a soft-argmax, scores.softmax(-1) @ positions. The same:
import torch
from theodolite.survey import CallReplacer
class Soft(CallReplacer):
    def begin(self):
        self.picked = []
    def on_function(self, function, args, kwargs):
        made, name = function(*args, **kwargs), function.__name__
        if name == "argmax" and args[0].requires_grad:
            axis = args[1] if len(args) > 1 else kwargs.get("dim")
            if axis is not None:
                self.picked.append((made, args[0].movedim(axis, -1).softmax(-1)))
        for place, shares in self.picked:
            last = shares.shape[-1]
            if name == "__getitem__" and args[1] is place:
                return shares @ args[0].to(shares)
            if name in {numeric!r} and args[0] is place:
                places = torch.arange(last, device=shares.device)
                return shares @ function(places, *args[1:], **kwargs).to(shares)
        return made
Soft().inside(model)
"""
_BENDS = "relu gelu silu tanh sigmoid elu leaky_relu dropout layer_norm batch_norm"
_NUMERIC = "__floordiv__ floor_divide __mod__ remainder div float double to mul __mul__"
# What enters a layer is replaced by what it returns wherever it is read afterwards.
_RETURNED = """\
# Better: keep what the layer returns, h = layer(h). The same:
import torch
from torch.utils._pytree import tree_map
from theodolite.survey import CallReplacer
class Returned(CallReplacer):
    def begin(self):
        self.news = {{}}
    def on_function(self, function, args, kwargs):
        args, kwargs = tree_map(self.newest, args), tree_map(self.newest, kwargs)
        made = function(*args, **kwargs)
        for key, (old, new) in list(self.news.items()):
            if function.__name__ in {bends!r} and args[:1] and args[0] is new:
                self.news[key] = old, made
        return made
    def newest(self, part):
        return self.news.get(id(part), (part, part))[1]
    def left(self, module, args, outputs):
        if torch.is_tensor(outputs) and args[0].shape == outputs.shape:
            self.news[id(args[0])] = args[0], outputs
calls, idle = Returned(), set({paths!r})
owners = [n for n, m in model.named_modules() if list(m.parameters(recurse=False))]
def lost(name):
    below = [n for n in owners if name and f"{{n}}.".startswith(f"{{name}}.")]
    kinds = (torch.nn.ModuleList, torch.nn.ModuleDict)
    listed = isinstance(model.get_submodule(name), kinds)
    return bool(below) and not listed and idle.issuperset(below)
for name, module in model.named_modules():
    if lost(name) and not lost(name.rpartition(".")[0]):
        module.register_forward_hook(calls.left)
calls.inside(model)
"""
# Layers get what is picked with the gradient of what it was picked for; other calls,
# such as the losses of codes, get it as it is.
_COPIED = """\
# Better: give the decoder z + (code - z).detach(). The same:
import torch
from theodolite.survey import CallReplacer
class Copied(CallReplacer):
    def begin(self):
        self.given, self.chosen, self.pairs = [], False, {}
    def on_function(self, function, args, kwargs):
        name = function.__name__
        code, z = self.pairs.get(id(args[0]) if args else None, (None, None))
        if code is not None and name.startswith(("conv", "linear")):
            return function(z + (code - z).detach(), *args[1:], **kwargs)
        made = function(*args, **kwargs)
        if code is not None and name in ("view", "reshape", "permute", "transpose"):
            self.pairs[id(made)] = made, function(z, *args[1:], **kwargs)
        self.chosen |= name in ("argmin", "argmax", "min", "max")
        if name in ("cdist", "matmul", "__matmul__", "mm", "sub", "__sub__", "pow"):
            self.given += [args[0]] * (not self.chosen and args[0].requires_grad)
        reads = ("embedding", "__getitem__", "index_select", "matmul")
        if self.chosen and name in reads and torch.is_tensor(made):
            for z in self.given:
                if z.numel() == made.numel() and z.shape[-1] == made.shape[-1]:
                    self.pairs[id(made)] = made, z.reshape(made.shape)
        return made
Copied().inside(model)
"""
_EDGES = """\
# Better: x[edges[0]] for what is sent, edges[1] for where it is added. The same:
from theodolite.survey import CallReplacer
class BothEnds(CallReplacer):
    def begin(self):
        self.reads = 0
    def on_function(self, function, args, kwargs):
        if function.__name__ in ("__getitem__", "select") and args[0].ndim == 2:
            if len(args[0]) == 2 and args[0].dtype.is_signed and args[0].shape[1] > 7:
                if not args[0].is_floating_point():
                    self.reads += 1
                    return args[0].unbind()[(self.reads - 1) % 2]
        return function(*args, **kwargs)
BothEnds().inside(model)
"""


@remedy("surgery", "Use a soft-argmax", "no-gradient", "choice-without-gradient")
def _soft_argmax(survey: Survey, finding: Finding) -> str | None:
    if "argmax()" not in finding.says:
        return None
    return _SOFT.format(numeric=_NUMERIC.split())


@remedy("surgery", "Use what these layers return", "no-gradient")
def _returned(survey: Survey, finding: Finding) -> str | None:
    """Replace what enters a layer by what it returns, for layers without effect."""
    if "Without effect" not in finding.says or "gradient stops" in finding.says:
        return None
    return _RETURNED.format(paths=list(finding.where), bends=_BENDS.split())


@remedy("surgery", "Copy the gradient past the choice", "choice-without-gradient")
def _past_choice(survey: Survey, finding: Finding) -> str | None:
    return _COPIED


@remedy("surgery", "Use both ends of the edges", "edges-half-used")
def _both_ends(survey: Survey, finding: Finding) -> str | None:
    return _EDGES


@remedy("mode", "Switch dropout off in eval mode", "dropout-in-evaluation")
def _quiet(survey: Survey, finding: Finding) -> str | None:
    return _REPLACED.format(
        better="functional.dropout(x, p, training=self.training)",
        names=("dropout", "alpha_dropout", "feature_dropout", "dropout2d"),
        wrong="not model.training",
        right="args[0]",
    )


@remedy("mode", "Use dropout of 0.2", "dropout-too-strong")
def _less_dropout(survey: Survey, finding: Finding) -> str | None:
    """Change calls of the function, where no module drops."""
    if any(row["repair"] for row in survey.find("check", rule=finding.rule)):
        return None
    return _REPLACED.format(
        better="functional.dropout(x, 0.2, training=self.training)",
        names=("dropout",),
        wrong="kwargs.get('training', True)",
        right="function(*args[:1], p=0.2)",
    )


@remedy("surgery", "Remove the first of the two", "squashed-twice")
def _squashed_once(survey: Survey, finding: Finding) -> str | None:
    """Give the second what the first was given."""
    return (
        "# Better: remove one of the two. The same:\n"
        "from theodolite.survey import CallReplacer\n"
        "class Once(CallReplacer):\n"
        "    def begin(self):\n"
        "        self.shares = []\n"
        "    def on_function(self, function, args, kwargs):\n"
        "        squashed = ('softmax', 'sigmoid', 'log_softmax')\n"
        "        if function.__name__ not in squashed:\n"
        "            return function(*args, **kwargs)\n"
        "        given = [before for p, before in self.shares if p is args[0]]\n"
        "        made = function(*(given or args[:1]), *args[1:], **kwargs)\n"
        "        self.shares.append((made, args[0]))\n"
        "        return made\n"
        "calls = Once()\n"
        f"{within(survey)}"
    )


@remedy("surgery", "Give the branch the input that is not used", "input-unused")
def _other_input(survey: Survey, finding: Finding) -> str | None:
    """Hand the unused input to a module that is run twice on another one."""
    place = re.search(r"It is input (\d+)", finding.says)
    if place is None:
        return None
    return (
        "# Better: pass each branch its own input. The same:\n"
        "given, met = [], []\n"
        "def enter(module, args):\n"
        "    given[:] = args\n"
        "    met.clear()\n"
        "def swap(module, args):\n"
        "    if not any(each is part for each in given for part in args[:1]):\n"
        "        return None\n"
        "    met.append(module)\n"
        f"    other = given[{place[1]}]\n"
        "    if met.count(module) > 1 and args[0].shape == other.shape:\n"
        "        return (other, *args[1:])\n"
        "model.register_forward_pre_hook(enter)\n"
        "model.register_forward_hook(lambda *ended: given.clear(), always_call=True)\n"
        "for module in list(model.modules())[1:]:\n"
        "    module.register_forward_pre_hook(swap)\n"
    )
