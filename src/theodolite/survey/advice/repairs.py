"""Repairs of what the checks find: inputs, outputs, wiring.

The best repair is a changed line of the user's own code. Where hooks do the same, the
code registers them, so that it can be tried; its first line says what to change.
"""

import re

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import ANY, RUN, enlisted, remedy

# What the last layer with weights computes, in place of what follows it.
_LAST_LAYER = """\
import torch
kept = {{}}
matrices = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
for layer in model.modules():
    if isinstance(layer, matrices):
        layer.register_forward_hook(
            lambda module, args, outputs: kept.update(last=outputs)
        )
model.register_forward_hook(
    lambda module, args, outputs: kept["last"].reshape(outputs.shape){then}
)
"""
# Numbers that reach the first layer, standardised column by column.
_STANDARDISED = """\
import torch
first = model.get_submodule({path!r})
seen = []
hook = first.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
{run}hook.remove()
given = seen[0].detach()
axis = 1 if given.ndim in (4, 5) else given.ndim - 1
others = [a for a in range(given.ndim) if a != axis]
mean = given.mean(others, keepdim=True)
deviation = given.std(others, keepdim=True)
deviation = deviation.masked_fill(deviation == 0, 1.0)
first.register_forward_pre_hook(
    lambda module, args: ((args[0] - mean) / deviation, *args[1:])
)
"""
_REGISTERED = """\
import torch
for module in list(model.modules()):
    for name, value in list(vars(module).items()):
        if isinstance(value, list) and value:
            if all(isinstance(each, torch.nn.Module) for each in value):
                setattr(module, name, torch.nn.ModuleList(value))
        if isinstance(value, dict) and value and not name.startswith("_"):
            if all(isinstance(each, torch.nn.Module) for each in value.values()):
                setattr(module, name, torch.nn.ModuleDict(value))
"""
_COPIED = """\
import copy
for path in {paths!r}:
    container, met = model.get_submodule(path), []
    for name, child in list(container._modules.items()):
        if any(child is each for each in met):
            child = copy.deepcopy(child)
            for layer in child.modules():
                if hasattr(layer, "reset_parameters"):
                    layer.reset_parameters()
            container._modules[name] = child
        met.append(child)
"""
_FILLED = """\
# Better: remove or fill these samples in the data set. Until then:
model.register_forward_pre_hook(
    lambda module, args: tuple(
        each.nan_to_num(0.0, 0.0, 0.0) if hasattr(each, "nan_to_num") else each
        for each in args
    )
)
"""


@remedy("surgery", "Replace NaN and infinite inputs", "inputs-not-finite")
def _filled(survey: Survey, finding: Finding) -> str | None:
    return _FILLED


@remedy(
    "surgery",
    "Remove what follows the last layer",
    "targets-out-of-reach",
    "norm-on-outputs",
    ANY,
)
def _without_last(survey: Survey, finding: Finding) -> str | None:
    if "binary_cross" in finding.says:  # whose targets are out of reach of any network
        return None
    return _LAST_LAYER.format(then="")


@remedy("surgery", "Use a sigmoid in place of the softmax", "softmax-of-one")
def _sigmoid_of_one(survey: Survey, finding: Finding) -> str | None:
    if survey.settings.get("loss") != "BCELoss":
        return None
    return _LAST_LAYER.format(then=".sigmoid()")


@remedy(
    "surgery",
    "Remove the softmax or sigmoid before the loss, which applies it itself",
    "probabilities-as-logits",
)
def _scores(survey: Survey, finding: Finding) -> str | None:
    """Undo a softmax or sigmoid, so that the loss gets scores."""
    undone = "logit(1e-6)" if "sigmoid()" in finding.says else "clamp_min(1e-12).log()"
    return (
        "# Better: remove the last softmax or sigmoid of the model. The same:\n"
        "model.register_forward_hook(\n"
        f"    lambda module, args, outputs: outputs.{undone}\n"
        ")\n"
    )


@remedy("surgery", "Give outputs the shape of the targets", "shapes-broadcast")
def _same_shape(survey: Survey, finding: Finding) -> str | None:
    wanted = [row["repair"] for row in survey.find("check", rule=finding.rule)]
    call = "unsqueeze" if wanted and "outputs, targets" in wanted[0] else "squeeze"
    return (
        f"# Better, where the loss is computed: outputs.{call}(-1). The same:\n"
        "model.register_forward_hook(\n"
        f"    lambda module, args, outputs: outputs.{call}(-1)\n"
        ")\n"
    )


@remedy("surgery", "Standardise the inputs", "inputs-unscaled", ANY)
def _standardised(survey: Survey, finding: Finding) -> str | None:
    if not survey.blocks:
        return None
    path = survey.blocks[0].name.split("#")[0]
    return "# Better: scale the data. The same:\n" + _STANDARDISED.format(
        path=path, run=RUN
    )


@remedy("surgery", "Use permute in place of the view", "channels-cut-by-view")
def _channels_moved(survey: Survey, finding: Finding) -> str | None:
    return (
        "# Better: where the data are read, x.permute(0, 3, 1, 2). The same:\n"
        "def moved(module, args):\n"
        "    n, channels, high, wide = args[0].shape\n"
        "    images = args[0].reshape(n, high, wide, channels)\n"
        "    return (images.permute(0, 3, 1, 2), *args[1:])\n"
        "model.register_forward_pre_hook(moved)\n"
    )


@remedy(
    "surgery",
    "Remove this norm, or let it run over the features",
    "norm-removes-signal",
    "norm-over-wrong-axis",
)
def _without_norm(survey: Survey, finding: Finding) -> str | None:
    if not finding.where:
        return None
    return (
        "import torch\n"
        f"for path in {list(finding.where)!r}:\n"
        '    if "Norm" in type(model.get_submodule(path)).__name__:\n'
        "        model.set_submodule(path, torch.nn.Identity())\n"
    )


@remedy("surgery", "Standardise the targets", "targets-unscaled")
def _scaled_outputs(survey: Survey, finding: Finding) -> str | None:
    """Scale outputs to the size of the targets."""
    size = re.search(r"Their size is ([0-9.e+-]+[0-9])", finding.says)
    factor = float(size[1]) if size else 10.0
    return (
        "# Better: where the loss is computed. The same:\n"
        "model.register_forward_hook(\n"
        f"    lambda module, args, outputs: outputs * {factor:g}\n"
        ")\n"
    )


@remedy("surgery", "Set batch_first=True", "samples-mixed")
def _batch_first(survey: Survey, finding: Finding) -> str | None:
    return (
        "for layer in model.modules():\n"
        '    if getattr(layer, "batch_first", None) is False:\n'
        "        layer.batch_first = True\n"
    )


@remedy("surgery", "Put a ReLU between the layers", "no-activation")
def _bent(survey: Survey, finding: Finding) -> str | None:
    """Put a rectifier before each layer that follows another one directly."""
    every = "none of" in finding.says  # then the first layer is among them
    paths = list(finding.where)[1 if every else 0 :]
    if not paths or not all(paths):
        return None
    return (
        "import torch\n"
        "# Better: put nn.ReLU() between the layers of the model. The same:\n"
        f"for path in {paths!r}:\n"
        "    layer = model.get_submodule(path)\n"
        "    bent = torch.nn.Sequential(torch.nn.ReLU(), layer)\n"
        "    model.set_submodule(path, bent)\n"
    )


@remedy("surgery", "Add learned positions to the tokens", "order-ignored")
def _positions(survey: Survey, finding: Finding) -> str | None:
    """Add a vector for each position to what the first embedding returns."""
    return (
        "import torch\n"
        "# Better: add nn.Embedding(length, width)(positions). The same:\n"
        "words = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)][0]\n"
        "tokens = next(iter(inputs.values())) if isinstance(inputs, dict) else inputs\n"
        "tokens = tokens[0] if isinstance(tokens, tuple) else tokens\n"
        "size = 0.5 * words.weight.detach().std()\n"
        "start = size * torch.randn(tokens.shape[1], words.embedding_dim)\n"
        "words.positions = torch.nn.Parameter(start.to(words.weight))\n"
        "words.register_forward_hook(\n"
        "    lambda module, args, made: made + module.positions[: made.shape[1]]\n"
        ")\n"
    ) + enlisted(survey)


@remedy("surgery", "Keep the layers in nn.ModuleList", "not-registered")
def _registered(survey: Survey, finding: Finding) -> str | None:
    return _REGISTERED + enlisted(survey)


@remedy("surgery", "Make a new module for each place", "one-module-for-several")
def _one_each(survey: Survey, finding: Finding) -> str | None:
    paths = ["" if path == "the model" else path for path in finding.where]
    return _COPIED.format(paths=paths) + enlisted(survey)
