"""Remedies that change what the network computes."""

from ..findings.evidence import by_block, middle
from ..records.block import Block
from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import Remedy, operated

# Ratio of branch to skip at which paths of many lengths matter: our choice.
FAIR_GAIN = 0.5


def _skips_around(survey: Survey, finding: Finding) -> str | None:
    r"""Put skips around all plain blocks except the first, and shrink their weights.

    Branches of size $1/\sqrt L$ add up to the size of the skip.
    """
    kept = {b.name for b, f in by_block(survey, "keeps_shape") if f.value}
    blocks = [b for b in survey.blocks if b.kind == "plain" and "#" not in b.name]
    names = [_around(block) for block in blocks[1:] if block.name in kept]
    if len(names) < 2 or len(set(names)) < len(names):
        return None
    factor = len(names) ** -0.5
    return (
        "import torch\n"
        "from theodolite import surgery\n"
        "from theodolite.survey import refit\n"
        f"paths = {names!r}\n"
        "before = model\n"
        "model = surgery.insert_skips(\n"
        "    before, inputs, around=paths, scale=1.0, learnable=False\n"
        ").model\n"
        "for path in paths:\n"
        "    layers = model.get_submodule(path).modules()\n"
        '    sized = [m for m in layers if getattr(m, "weight", None) is not None]\n'
        "    with torch.no_grad():\n"
        f"        sized[-1].weight.mul_({factor:.3g})\n"
        "optimizer = refit(optimizer, before, model)\n"
    )


def _around(block: Block) -> str:
    """Return the modules that a skip goes around: a layer with its norm."""
    container = block.name.rpartition(".")[0]
    return container if block.norms and container else block.name


def _scaled_by_depth(survey: Survey, finding: Finding) -> str | None:
    if not _residual(survey):
        return None
    return operated('scale_branches(before, inputs, by="sqrt_depth")')


def _fixed_up(survey: Survey, finding: Finding) -> str | None:
    if not _residual(survey) or any(b.norms for b in survey.blocks):
        return None
    return operated("fixup(before, inputs, seed=0)")


def _scaled_to_fair(survey: Survey, finding: Finding) -> str | None:
    """Scale branches so that the median one is half the size of its skip."""
    gains = [f for _, f in by_block(survey, "branch_gain") if f.value > 0]
    if not gains:
        return None
    factor = FAIR_GAIN / middle(gains).value
    return operated(f"scale_branches(before, inputs, by={factor:.3g})")


def _zeroed(survey: Survey, finding: Finding) -> str | None:
    if not _residual(survey):
        return None
    return operated('zero_branches(before, inputs, how="weights")')


def _moved(survey: Survey, finding: Finding) -> str | None:
    return operated('move_norms(before, inputs, to="pre")')


def _with_identity(survey: Survey, finding: Finding) -> str | None:
    return operated("add_identity(before, inputs, isometry=True)")


def _in_groups(survey: Survey, finding: Finding) -> str | None:
    if not any(n.startswith("batch") for b in survey.blocks for n in b.norms):
        return None
    code = operated('change_norms(before, inputs, to="group", groups=4)')
    if finding.rule != "batch-norm-of-one":
        return code
    return (
        f"model.eval()  # in train mode one sample does not pass\n{code}model.train()\n"
    )


def _logarithms(survey: Survey, finding: Finding) -> str | None:
    """Give the loss log-probabilities in place of probabilities."""
    return (
        "# Better: take the softmax out of the model. Until then:\n"
        "model.register_forward_hook(\n"
        "    lambda module, inputs, outputs: outputs.clamp_min(1e-12).log()\n"
        ")\n"
    )


def _standardised(survey: Survey, finding: Finding) -> str | None:
    """Standardise every feature by the statistics of these samples."""
    return _scaled_by(
        survey,
        "axis = 1 if inputs.ndim in (4, 5) else inputs.ndim - 1\n"
        "others = [a for a in range(inputs.ndim) if a != axis]\n"
        "mean = inputs.mean(others, keepdim=True)\n"
        "deviation = inputs.std(others, keepdim=True)\n"
        "deviation = deviation.masked_fill(deviation == 0, 1.0)\n",
    )


def _scaled_by(survey: Survey, statistics: str) -> str | None:
    """Standardise the input of the first block by a mean and a deviation."""
    if not survey.blocks:
        return None
    return (
        "# Better: scale the data. Until then:\n"
        f"{statistics}"
        f"model.get_submodule({survey.blocks[0].name!r}).register_forward_pre_hook(\n"
        "    lambda module, args: ((args[0] - mean) / deviation, *args[1:])\n"
        ")\n"
    )


def _residual(survey: Survey) -> bool:
    return any(b.kind == "residual" for b in survey.blocks)


REMEDIES = (
    Remedy(
        rules=("gradient-vanishes", "gradient-explodes"),
        kind="surgery",
        title="Put skips around the plain blocks and shrink what they hold",
        write=_skips_around,
    ),
    Remedy(
        rules=("signal-explodes",),
        kind="surgery",
        title="Scale the branches by one over the root of their number",
        write=_scaled_by_depth,
    ),
    Remedy(
        rules=("signal-explodes",),
        kind="initialisation",
        title="Draw the weights by depth (Fixup)",
        write=_fixed_up,
    ),
    Remedy(
        rules=("branches-drown-skips", "branches-asleep", "shallow-ensemble"),
        kind="surgery",
        title="Scale the branches to half the size of their skips",
        write=_scaled_to_fair,
    ),
    Remedy(
        rules=("branches-drown-skips", "signal-explodes"),
        kind="initialisation",
        title="Start every branch at zero",
        write=_zeroed,
    ),
    Remedy(
        rules=("norm-after-addition",),
        kind="surgery",
        title="Move the norms to the heads of the branches",
        write=_moved,
    ),
    Remedy(
        rules=("projection-loses-directions",),
        kind="surgery",
        title="Add an isometry to the projections",
        write=_with_identity,
    ),
    Remedy(
        rules=("batch-norm-of-one", "batch-norm-of-few"),
        kind="surgery",
        title="Normalise groups of channels instead of the batch",
        write=_in_groups,
    ),
    Remedy(
        rules=("probabilities-as-logits",),
        kind="surgery",
        title="Give the loss logarithms of the probabilities",
        write=_logarithms,
    ),
    Remedy(
        rules=("inputs-unscaled",),
        kind="surgery",
        title="Standardise the inputs",
        write=_standardised,
    ),
)
