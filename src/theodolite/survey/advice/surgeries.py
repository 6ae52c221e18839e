"""Remedies that change what the network computes."""

from ..findings.evidence import by_block
from ..records.finding import Finding
from ..records.whole_survey import Block, Survey
from .remedy import operated, refitted, remedy


@remedy(
    "surgery",
    "Add skips to the plain blocks and scale their weights",
    "gradient-vanishes",
    "gradient-explodes",
)
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
        f"{refitted(survey)}"
    )


def _around(block: Block) -> str:
    """Return the modules that a skip goes around: a layer with its norm."""
    container = block.name.rpartition(".")[0]
    return container if block.norms and container else block.name


@remedy(
    "initialisation",
    "Start every branch at zero",
    "branches-drown-skips",
    "signal-explodes",
)
def _zeroed(survey: Survey, finding: Finding) -> str | None:
    if not _residual(survey):
        return None
    return operated(survey, 'zero_branches(before, inputs, how="weights")')


@remedy("surgery", "Move the norms to the start of the branches", "norm-after-addition")
def _moved(survey: Survey, finding: Finding) -> str | None:
    return operated(survey, 'move_norms(before, inputs, to="pre")')


@remedy(
    "surgery",
    "Normalise groups of channels instead of the batch",
    "batch-norm-of-one",
    "batch-norm-of-few",
)
def _in_groups(survey: Survey, finding: Finding) -> str | None:
    if not any(n.startswith("batch") for b in survey.blocks for n in b.norms):
        return None
    code = operated(survey, 'change_norms(before, inputs, to="group", groups=4)')
    if finding.rule != "batch-norm-of-one":
        return code
    return (
        f"model.eval()  # in train mode one sample does not pass\n{code}model.train()\n"
    )


def _residual(survey: Survey) -> bool:
    return any(b.kind == "residual" for b in survey.blocks)
