"""Remedies that do not change the network: rates, batches, modes, optimiser."""

from ..findings.evidence import divided, single
from ..findings.rates import several_rates
from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import Remedy

# Half of the stable rate leaves room for growing curvature: our choice.
ROOM = 0.5
WARM_UP_STEPS = 100
ENOUGH_SAMPLES = 32
# Weight decay that keeps a network from fitting single samples: our choice.
DECAY = 0.01


def _stable(survey: Survey) -> float | None:
    """Return half of the largest stable rate of the optimiser in use."""
    rate, ratio = single(survey, "rate_in_use"), single(survey, "rate_over_stable")
    if rate is None or ratio is None or not ratio.value > ratio.error:
        return None
    return ROOM * divided(rate, ratio).value


def _at_stable_rate(survey: Survey, finding: Finding) -> str | None:
    rate, used = _stable(survey), single(survey, "rate_in_use")
    if rate is None or used is None:
        return None
    if several_rates(survey):  # which keep their proportions
        return (
            "for group in optimizer.param_groups:\n"
            f'    group["lr"] *= {float(f"{rate / used.value:.2g}")!r}\n'
        )
    return (
        "for group in optimizer.param_groups:\n"
        f'    group["lr"] = {float(f"{rate:.2g}")!r}\n'
    )


def _warmed_up(survey: Survey, finding: Finding) -> str | None:
    return (
        "from torch.optim.lr_scheduler import LinearLR\n"
        "# Call scheduler.step() after each step of the optimiser.\n"
        "scheduler = LinearLR(\n"
        f"    optimizer, start_factor=0.01, total_iters={WARM_UP_STEPS}\n"
        ")\n"
    )


def _larger_batches(survey: Survey, finding: Finding) -> str | None:
    return f"batch_size = {ENOUGH_SAMPLES}  # of the loader\n"


def _four_times(survey: Survey, finding: Finding) -> str | None:
    size = survey.settings.get("batch_size")
    if not isinstance(size, int):
        return None
    return f"batch_size = {4 * size}  # of the loader\n"


def _collected_anew(survey: Survey, finding: Finding) -> str | None:
    return (
        "import torch\n"
        f"for path in {list(finding.where)!r}:\n"
        "    norm = model.get_submodule(path)\n"
        "    norm.reset_running_stats()\n"
        "    norm.momentum = None  # a plain mean of all that follows\n"
        "model.train()\n"
        "with torch.no_grad():\n"
        "    model(**inputs) if isinstance(inputs, dict) else model(inputs)\n"
    )


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


def _taken_in(survey: Survey, finding: Finding) -> str | None:
    return (
        'known = {id(p) for g in optimizer.param_groups for p in g["params"]}\n'
        "optimizer.add_param_group({\n"
        '    "params": [\n'
        "        p for p in model.parameters()\n"
        "        if p.requires_grad and id(p) not in known\n"
        "    ]\n"
        "})\n"
    )


def _thawed(survey: Survey, finding: Finding) -> str | None:
    """Train parameters that are frozen, where too few are trained."""
    rows = survey.find("tangent_smallest")
    if not any(r.get("n_rows", 0) > r.get("n_trained", 0) for r in rows):
        return None
    if all(row["n_trained"] >= survey.n_parameters for row in rows):
        return None
    return f"model.requires_grad_(True)\n{_taken_in(survey, finding)}"


def _against_fitting(survey: Survey, finding: Finding) -> str | None:
    """Raise the weight decay, if the optimiser has one."""
    return (
        "for group in optimizer.param_groups:\n"
        '    if "weight_decay" in group:\n'
        f'        group["weight_decay"] = max(group["weight_decay"], {DECAY})\n'
    )


REMEDIES = (
    Remedy(
        rules=("rate-too-large", "rate-too-small"),
        kind="rate",
        title="Take half of the largest stable rate",
        write=_at_stable_rate,
    ),
    Remedy(
        rules=("warm-up-missing",),
        kind="rate",
        title="Let the rate grow over the first steps",
        write=_warmed_up,
    ),
    Remedy(
        rules=("batch-norm-of-one", "batch-norm-of-few"),
        kind="batch_size",
        title=f"Take batches of {ENOUGH_SAMPLES}",
        write=_larger_batches,
    ),
    Remedy(
        rules=("gradient-is-noise",),
        kind="batch_size",
        title="Take four times as large batches",
        write=_four_times,
    ),
    Remedy(
        rules=("running-statistics-far",),
        kind="mode",
        title="Collect the running statistics anew",
        write=_collected_anew,
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
    Remedy(
        rules=("not-in-optimizer",),
        kind="optimizer",
        title="Give the optimiser all parameters",
        write=_taken_in,
    ),
    Remedy(
        rules=("outputs-tied",),
        kind="optimizer",
        title="Train the parameters that are frozen",
        write=_thawed,
    ),
    Remedy(
        rules=("labels-against-the-rest",),
        kind="optimizer",
        title="Let weight decay work against fitting them",
        write=_against_fitting,
    ),
)
