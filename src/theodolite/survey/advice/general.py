"""Sound changes of any training, tried where no advice for a cause is known to help.

They answer whole families of faults: a rate, an optimiser, inputs or weights that do
not suit. Only what clearly helps in trials is shown. Changes that answer some rules,
too, are declared beside these.
"""

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from ..records.finding import Advice, Finding
from ..records.whole_survey import Survey
from .prescribing import advise
from .remedy import ANY, remedy, trained
from .settings import times
from .trials import try_advice

# How many changes are tried for longer, the steps of the first and of the longer
# trials, seeds, and how often the effort may be spent: our choice.
FINALISTS, FIRST_STEPS, STEPS, TWO, TIMES = 2, 10, 120, 2, 2.0

for _factor, _words in (10.0, "ten times"), (0.1, "a tenth of"):
    remedy("rate", f"Use {_words} the learning rate", ANY)(partial(times, _factor))


@remedy("optimizer", "Use Adam at a rate of 0.001", ANY)
def _adam(survey: Survey, finding: Finding) -> str | None:
    if not survey.settings.get("optimizer"):
        return None
    return (
        "import torch\n"
        'held = [p for group in optimizer.param_groups for p in group["params"]]\n'
        "optimizer = torch.optim.Adam(held, lr=0.001)\n"
    )


@remedy("rate", "Clip gradients at a length of 1", ANY)
def _clipped(survey: Survey, finding: Finding) -> str | None:
    if not survey.settings.get("optimizer"):
        return None
    return (
        "import torch\n"
        "def clip(optimizer, args, kwargs):\n"
        '    held = [p for group in optimizer.param_groups for p in group["params"]]\n'
        "    torch.nn.utils.clip_grad_norm_(held, 1.0)\n"
        "optimizer.register_step_pre_hook(clip)\n"
    )


@remedy("surgery", "Normalise the inputs of hidden layers", ANY)
def _normalised(survey: Survey, finding: Finding) -> str | None:
    """Standardise what hidden matrices get, sample by sample."""
    return (
        "import torch\n"
        "# Better: put nn.LayerNorm between the layers. The same:\n"
        "def normalised(module, args):\n"
        "    axes = tuple(range(1, args[0].ndim)) if args[0].ndim > 3 else (-1,)\n"
        "    mean = args[0].mean(axes, keepdim=True)\n"
        "    deviation = args[0].std(axes, keepdim=True)\n"
        "    return ((args[0] - mean) / (deviation + 1e-5), *args[1:])\n"
        f"layers = [model.get_submodule(path) for path in {list(finding.where)!r}]\n"
        "matrices = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)\n"
        "for layer in [each for each in layers if isinstance(each, matrices)][1:]:\n"
        "    layer.register_forward_pre_hook(normalised)\n"
    )


@remedy("mode", "Use dropout of 0.1 at most", ANY)
def _less_dropout(survey: Survey, finding: Finding) -> str | None:
    return (
        "for module in model.modules():\n"
        '    if isinstance(getattr(module, "p", None), float):\n'
        "        module.p = min(module.p, 0.1)\n"
    )


def general_advice(
    survey: Survey, subject: Any, others: Sequence[Advice] = ()
) -> Sequence[Advice]:
    """Return general changes, and repairs of notes, that clearly help, the best first.

    All are tried for a few steps, and the best of them for more.

    Args:
        survey: The survey.
        subject: As :func:`theodolite.survey.try_advice` takes it.
        others: Advice to be tried with them.
    """
    any_fault = Finding(
        rule=ANY,
        severity="warning",
        title="",
        says="",
        quantity="",
        above=True,
        where=tuple(trained(survey)),
    )
    notes = [each for each in survey.findings if each.severity == "note"]
    every = (*others, *advise(survey, [*notes, any_fault]))
    effort = TIMES * survey.effort
    first = try_advice(every, subject, seeds=TWO, steps=FIRST_STEPS, effort=effort)
    gains = [(a.trial.difference, a) for a in first if a.trial and a.trial.n_seeds]
    best = [a for gain, a in sorted(gains, key=itemgetter(0)) if gain < 0][:FINALISTS]
    last = try_advice(best, subject, seeds=TWO, steps=STEPS, effort=effort)
    return [each for each in last if each.trial and each.trial.helped == "yes"]
