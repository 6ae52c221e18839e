"""Remedies that re-initialise or scale weights."""

from collections.abc import Sequence
from math import isfinite

from ..findings.evidence import by_module
from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import Remedy


def _after_he(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise all layers except the last with He (Kaiming) weights."""
    bends = {name for block in survey.blocks for name in block.activations}
    gain = "tanh" if bends and all("tanh" in name for name in bends) else "relu"
    return (
        "import torch\n"
        "layers = [\n"
        "    layer for layer in model.modules()\n"
        "    if isinstance(layer, (torch.nn.Linear, torch.nn.Conv2d))\n"
        "]\n"
        "for layer in layers[:-1]:\n"
        f'    torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="{gain}")\n'
    )


def _drawn_anew(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise these layers with torch's own initialisation."""
    if not finding.where:
        return None
    return (
        f"for path in {_paths(finding.where)!r}:\n"
        "    for layer in model.get_submodule(path).modules():\n"
        '        if hasattr(layer, "reset_parameters"):\n'
        "            layer.reset_parameters()\n"
    )


def _finite_anew(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise layers with NaN or infinite weights."""
    if all(isfinite(f.value) for _, f in by_module(survey, "weight_rms")):
        return None
    return (
        "for layer in model.modules():\n"
        "    own = list(layer.parameters(recurse=False))\n"
        "    finite = all(bool(p.isfinite().all()) for p in own)\n"
        '    if not finite and hasattr(layer, "reset_parameters"):\n'
        "        layer.reset_parameters()\n"
    )


def _first_layers_anew(survey: Survey, finding: Finding) -> str | None:
    """Re-initialise branches, and set their last layers to zero."""
    drawn = _drawn_anew(survey, finding)
    if drawn is None:
        return None
    return (
        f"{drawn}"
        "from theodolite import surgery\n"
        "from theodolite.survey import refit\n"
        "before = model\n"
        'model = surgery.zero_branches(before, inputs, how="weights").model\n'
        "optimizer = refit(optimizer, before, model)\n"
    )


def _biases_zero(survey: Survey, finding: Finding) -> str | None:
    if not finding.where:
        return None
    return (
        "import torch\n"
        f"for path in {_paths(finding.where)!r}:\n"
        "    layer = model.get_submodule(path)\n"
        '    if getattr(layer, "bias", None) is not None:\n'
        "        torch.nn.init.zeros_(layer.bias)\n"
    )


def _paths(names: Sequence[str]) -> list[str]:
    """Return the modules of blocks, without repeats."""
    return list(dict.fromkeys(name.split("#")[0] for name in names))


REMEDIES = (
    Remedy(
        rules=("signal-vanishes", "gradient-vanishes"),
        kind="initialisation",
        title="Draw the weights after He",
        write=_after_he,
    ),
    Remedy(
        rules=("branches-stuck-at-zero",),
        kind="initialisation",
        title="Draw the branches anew and start their last layers at zero",
        write=_first_layers_anew,
    ),
    Remedy(
        rules=("dead-units",),
        kind="initialisation",
        title="Set the biases to zero",
        write=_biases_zero,
    ),
    Remedy(
        rules=("not-finite",),
        kind="initialisation",
        title="Draw the layers anew that are not finite",
        write=_finite_anew,
    ),
    Remedy(
        rules=("twin-units", "saturated-units", "dead-units"),
        kind="initialisation",
        title="Draw these layers anew",
        write=_drawn_anew,
    ),
)
