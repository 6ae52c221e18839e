"""Remedies that re-initialise or scale weights, of trained layers alone."""

from math import isfinite

from ..findings.evidence import by_module
from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import ANY, remedy, trained


@remedy(
    "initialisation",
    "Re-initialise with He (Kaiming) weights and zero biases",
    "signal-vanishes",
    "gradient-vanishes",
    "signal-explodes",
)
def _after_he(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise all layers with He (Kaiming) weights; keep the last if it is fine.

    What follows exploding signals starts with torch's own weights again.
    """
    bends = {name for block in survey.blocks for name in block.activations}
    gain = "tanh" if bends and all("tanh" in name for name in bends) else "relu"
    code = _drawn(survey, f'kaiming_normal_(layer.weight, nonlinearity="{gain}")')
    if code is None or finding.rule != "signal-explodes":
        return code
    if any(block.kind == "residual" for block in survey.blocks):
        return None  # whose branches add up
    return f"{code}layers[-1].reset_parameters()\n"


def _drawn(survey: Survey, call: str) -> str | None:
    """Return code that draws all trained matrices except the last one."""
    paths = trained(survey)
    if not paths:
        return None
    return (
        "import torch\n"
        f"layers = [model.get_submodule(path) for path in {paths!r}]\n"
        "matrices = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)\n"
        "layers = [layer for layer in layers if isinstance(layer, matrices)]\n"
        "for layer in layers[:-1]:\n"
        f"    torch.nn.init.{call}\n"
        "    if layer.bias is not None:\n"
        "        torch.nn.init.zeros_(layer.bias)\n"
    )


@remedy("initialisation", "Re-initialise the trained layers", "every-gradient-zero")
def _all_drawn_again(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise what is trained; parameters without a layer that are all zero."""
    if "derivative 0" in finding.says:  # which no weights change
        return None
    paths = trained(survey) or [r["module"] for r in survey.find("weight_rms")]
    return (
        "import torch\n"
        f"for path in {paths!r}:\n"
        "    layer = model.get_submodule(path)\n"
        "    own = [p for p in layer.parameters(recurse=False) if p.requires_grad]\n"
        '    if own and hasattr(layer, "reset_parameters"):\n'
        "        layer.reset_parameters()\n"
        "    zero = [p for p in own if p.ndim > 1 and not p.any()]\n"
        "    for parameter in zero[:1]:  # a second factor may stay at zero\n"
        "        torch.nn.init.kaiming_uniform_(parameter, a=5**0.5)\n"
    )


@remedy("initialisation", "Start only the last of these layers at zero", "no-gradient")
def _first_not_zero(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise all weights in series that are zero, except the last."""
    if "are all zero" not in finding.says:
        return None
    return (
        "import torch\n"
        "zero = [\n"
        "    parameter\n"
        f"    for path in {list(finding.where)!r}\n"
        "    for parameter in model.get_submodule(path).parameters(recurse=False)\n"
        "    if parameter.ndim > 1 and not parameter.any()\n"
        "]\n"
        "for parameter in zero[:-1] or zero:\n"
        "    torch.nn.init.kaiming_uniform_(parameter, a=5**0.5)\n"
    )


@remedy("initialisation", "Re-initialise the layers that are not finite", "not-finite")
def _finite_again(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise layers with NaN or infinite weights."""
    bad = [n for n, f in by_module(survey, "weight_rms") if not isfinite(f.value)]
    paths = [name for name in trained(survey) or bad if name in bad]
    if not paths:
        return None
    return f"for path in {paths!r}:\n    model.get_submodule(path).reset_parameters()\n"


@remedy("initialisation", "Set the biases of these layers to zero", "dead-units")
def _biases_zero(survey: Survey, finding: Finding) -> str | None:
    if not (paths := trained(survey, finding.where)):
        return None
    return (
        "import torch\n"
        f"for path in {paths!r}:\n"
        "    layer = model.get_submodule(path)\n"
        '    if getattr(layer, "bias", None) is not None:\n'
        "        torch.nn.init.zeros_(layer.bias)\n"
    )


@remedy(
    "initialisation",
    "Re-initialise these layers",
    "saturated-units",
    "dead-units",
    "signal-explodes",
    ANY,
)
def _drawn_again(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise these layers with torch's own initialisation."""
    paths = trained(survey, finding.where)
    if not paths:
        return None
    return (
        f"for path in {paths!r}:\n"
        "    layer = model.get_submodule(path)\n"
        '    if hasattr(layer, "reset_parameters"):\n'
        "        layer.reset_parameters()\n"
    )


@remedy(
    "initialisation",
    "Divide the weights of hidden layers by the factor inside the sine",
    "sine-wraps-around",
)
def _slower_sines(survey: Survey, finding: Finding) -> str | None:
    """Divide hidden matrices by the size of what the sines get."""
    return (
        "import torch\n"
        f"layers = [model.get_submodule(path) for path in {trained(survey)!r}]\n"
        "layers = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]\n"
        "with torch.no_grad():\n"
        "    for layer in layers[1:-1]:\n"
        f"        layer.weight.div_({finding.value:.3g})\n"
    )
