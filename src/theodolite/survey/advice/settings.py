"""Remedies that do not change the network: rates, batches, modes."""

import re
from functools import partial

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import RUN, remedy

ENOUGH_SAMPLES = 32


@remedy(
    "batch_size",
    f"Take batches of {ENOUGH_SAMPLES}",
    "batch-norm-of-one",
    "batch-norm-of-few",
)
def _larger_batches(survey: Survey, finding: Finding) -> str | None:
    return f"batch_size = {ENOUGH_SAMPLES}  # of the loader\n"


@remedy("batch_size", "Shuffle the samples in each epoch", "batches-sorted")
def _shuffled(survey: Survey, finding: Finding) -> str | None:
    size = survey.settings["batch_size"]
    return f"batch_size = {size}  # of DataLoader(dataset, {size}, shuffle=True)\n"


@remedy("mode", "Put the frozen norms in eval mode", "frozen-norm-follows-batches")
def _still(survey: Survey, finding: Finding) -> str | None:
    return (
        "# After every call of model.train():\n"
        f"for path in {list(finding.where)!r}:\n"
        "    model.get_submodule(path).eval()\n"
    )


def times(factor: float, survey: Survey, finding: Finding) -> str | None:
    """Multiply the rate, and the rate that a schedule starts from."""
    if not survey.settings.get("optimizer"):
        return None
    return (
        "for group in optimizer.param_groups:\n"
        '    for name in ("lr", "initial_lr"):\n'
        "        if name in group:\n"
        f"            group[name] *= {factor}\n"
    )


for _factor, _words in (0.1, "a tenth"), (0.01, "a hundredth"):
    remedy(
        "rate",
        f"Use {_words} of the learning rate",
        "rate-too-large",
        "not-finite-in-training",
    )(partial(times, _factor))


@remedy("rate", "Use a much larger learning rate", "nothing-moves", "rate-too-small")
def _larger(survey: Survey, finding: Finding) -> str | None:
    best = re.search(r"([0-9]+) times the rate", finding.says)
    return times(float(best[1]) if best else 10.0, survey, finding)


@remedy(
    "mode",
    "Collect the running statistics of all norms again",
    "running-statistics-far",
)
def _collected(survey: Survey, finding: Finding) -> str | None:
    """Collect all running statistics again, and name the setting that spoilt them."""
    odd = [row["says"] for row in survey.find("check", rule="odd-norm-setting")]
    cause = odd[0].rpartition("Here: ")[2] if odd else "norms in eval mode keep theirs"
    return (
        "import torch\n"
        f"# Change what caused it, too: {' '.join(cause.split())}\n"
        "norms = [\n"
        "    module for module in model.modules()\n"
        '    if getattr(module, "running_var", None) is not None\n'
        "]\n"
        "found = [(norm.training, norm.momentum) for norm in norms]\n"
        "for norm in norms:\n"
        "    norm.reset_running_stats()\n"
        "    norm.momentum = None  # the mean over all batches that pass\n"
        "    norm.train()\n"
        f"{RUN}"
        "for norm, (mode, momentum) in zip(norms, found):\n"
        "    norm.train(mode)\n"
        "    norm.momentum = momentum\n"
    )


@remedy(
    "optimizer", "Call optimizer.zero_grad() before backward()", "gradients-not-cleared"
)
def _cleared(survey: Survey, finding: Finding) -> str | None:
    return (
        "# Better: in your step, before backward(). The same:\n"
        "before_clearing = step\n"
        "def step(batch):\n"
        "    optimizer.zero_grad()\n"
        "    return before_clearing(batch)\n"
    )


@remedy(
    "optimizer",
    "Clear gradients after each update, and nowhere else",
    "gradients-discarded",
)
def _cleared_after(survey: Survey, finding: Finding) -> str | None:
    return (
        "# Better: call zero_grad() in your step right after step(). The same:\n"
        "clear = optimizer.zero_grad\n"
        "optimizer.zero_grad = model.zero_grad = lambda *args, **kwargs: None\n"
        "optimizer.register_step_post_hook(lambda *args: clear())\n"
    )


@remedy(
    "rate",
    "Step the schedule once per epoch, or over more steps",
    "schedule-ends-training",
)
def _rate_kept(survey: Survey, finding: Finding) -> str | None:
    return (
        "# Until the schedule is right, keep the rate that it starts from:\n"
        "rates = [g.get('initial_lr') or g['lr'] for g in optimizer.param_groups]\n"
        "with_schedule = step\n"
        "def step(batch):\n"
        "    for group, rate in zip(optimizer.param_groups, rates):\n"
        "        group['lr'] = rate\n"
        "    return with_schedule(batch)\n"
    )


@remedy(
    "step",
    "Use a plain step, and add other parts to it one at a time",
    "step-learns-less",
    "step-in-eval-mode",
)
def _plain_step(survey: Survey, finding: Finding) -> str | None:
    """Clear gradients, go backward and update, in the mode of training."""
    if not {"loss", "optimizer"} <= set(survey.settings.get("given", ())):
        return None
    mode = "    model.train()\n" if finding.rule == "step-in-eval-mode" else ""
    return (
        "from theodolite.survey import loss_of\n"
        f"def step(batch):\n{mode}"
        "    optimizer.zero_grad()\n"
        "    loss_of(model, batch, loss).backward()\n"
        "    optimizer.step()\n"
    )
