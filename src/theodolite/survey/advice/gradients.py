"""Repairs of gradients that are cut, and of results and inputs that nothing reads."""

import re

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import remedy
from .replacing import replacing

_BENDS = "relu gelu silu tanh sigmoid elu leaky_relu dropout layer_norm batch_norm"
_NUMERIC = "__floordiv__ floor_divide __mod__ remainder div float double to mul __mul__"


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


@remedy("surgery", "Use a soft-argmax", "no-gradient", "choice-without-gradient")
def _soft_argmax(survey: Survey, finding: Finding) -> str | None:
    """Take the mean of positions, weighted by the softmax of the scores."""
    if "argmax()" not in finding.says:
        return None
    return replacing(
        "a soft-argmax, scores.softmax(-1) @ positions",
        f"""\
made = function(*args, **kwargs)
if name == "argmax" and args[0].requires_grad:
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    if axis is not None:
        self.picked.append((made, args[0].movedim(axis, -1).softmax(-1)))
for place, shares in self.picked:
    if name == "__getitem__" and args[1] is place:
        return shares @ args[0].to(shares)
    if name in {_NUMERIC.split()!r} and args[0] is place:
        places = torch.arange(shares.shape[-1], device=shares.device)
        return shares @ function(places, *args[1:], **kwargs).to(shares)
return made
""",
        "self.picked = []",
    )


@remedy("surgery", "Copy the gradient past the choice", "choice-without-gradient")
def _past_choice(survey: Survey, finding: Finding) -> str | None:
    """Give layers what is picked with the gradient of what it was picked for.

    Other calls, such as the losses of codes, get it as it is.
    """
    return replacing(
        "give the decoder z + (code - z).detach()",
        """\
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
""",
        "self.given, self.chosen, self.pairs = [], False, {}",
    )


@remedy("surgery", "Use what these layers return", "no-gradient")
def _returned(survey: Survey, finding: Finding) -> str | None:
    """Replace what enters layers without effect by what they return."""
    if "Without effect" not in finding.says or "gradient stops" in finding.says:
        return None
    code = replacing(
        "keep what the layer returns, h = layer(h)",
        f"""\
args, kwargs = tree_map(self.newest, args), tree_map(self.newest, kwargs)
made = function(*args, **kwargs)
for key, (old, new) in list(self.news.items()):
    if name in {_BENDS.split()!r} and args[:1] and args[0] is new:
        self.news[key] = old, made
return made
""",
        """\
self.news = {}
def newest(self, part):
    return self.news.get(id(part), (part, part))[1]
def left(self, module, args, outputs):
    if torch.is_tensor(outputs) and args[0].shape == outputs.shape:
        self.news[id(args[0])] = args[0], outputs""",
    )
    return (
        f"{code}"
        f"idle = set({list(finding.where)!r})\n"
        "owners = [n for n, m in model.named_modules() if [*m.parameters(False)]]\n"
        "def lost(name):\n"
        '    below = [n for n in owners if name and f"{n}.".startswith(f"{name}.")]\n'
        "    kinds = (torch.nn.ModuleList, torch.nn.ModuleDict)\n"
        "    listed = isinstance(model.get_submodule(name), kinds)\n"
        "    return bool(below) and not listed and idle.issuperset(below)\n"
        "for name, module in model.named_modules():\n"
        '    if lost(name) and not lost(name.rpartition(".")[0]):\n'
        "        module.register_forward_hook(calls.left)\n"
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
