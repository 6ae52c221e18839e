"""Remedies that do not change the network: rates, batches, modes, optimiser."""

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import Remedy

ENOUGH_SAMPLES = 32


def _larger_batches(survey: Survey, finding: Finding) -> str | None:
    return f"batch_size = {ENOUGH_SAMPLES}  # of the loader\n"


def _still(survey: Survey, finding: Finding) -> str | None:
    return (
        "# After every call of model.train():\n"
        f"for path in {list(finding.where)!r}:\n"
        "    model.get_submodule(path).eval()\n"
    )


def _without_decay(survey: Survey, finding: Finding) -> str | None:
    """Turn weight decay off for the weights named, group by group."""
    rows = survey.find("decays_invariant")
    names = [row["parameter"] for row in rows if "parameter" in row]
    if not names:
        return None
    return (
        f"names = {names!r}\n"
        "exempt = {id(model.get_parameter(name)) for name in names}\n"
        "for group in list(optimizer.param_groups):\n"
        '    free = [p for p in group["params"] if id(p) in exempt]\n'
        '    if free and group["weight_decay"]:\n'
        '        settings = {k: v for k, v in group.items() if k != "params"}\n'
        '        group["params"] = [\n'
        '            p for p in group["params"] if id(p) not in exempt\n'
        "        ]\n"
        "        optimizer.add_param_group(\n"
        '            {**settings, "params": free, "weight_decay": 0.0}\n'
        "        )\n"
    )


REMEDIES = (
    Remedy(
        rules=("batch-norm-of-one", "batch-norm-of-few"),
        kind="batch_size",
        title=f"Take batches of {ENOUGH_SAMPLES}",
        write=_larger_batches,
    ),
    Remedy(
        rules=("frozen-norm-follows-batches",),
        kind="mode",
        title="Put the frozen norms in eval mode",
        write=_still,
    ),
    Remedy(
        rules=("decay-on-invariant-weights",),
        kind="optimizer",
        title="Exempt these weights from the decay",
        write=_without_decay,
    ),
)
