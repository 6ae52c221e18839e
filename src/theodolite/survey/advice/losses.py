"""Repairs of what a loss is given and of its settings.

The repair is one changed argument of the user's call. So that it can be applied from
outside, the code changes that call in model, loss and step; its first line says what
to change.
"""

import re
from functools import partial

from ..records.finding import Finding
from ..records.whole_survey import Survey
from .remedy import remedy, within
from .replacing import replacing

_OF_CLASSES = "name == 'cross_entropy' and not args[1].is_floating_point()"


def _changed(better: str, when: str, change: str, survey: Survey, *_: Finding) -> str:
    """Return code that changes calls of a loss."""
    lines = [f"    {line}\n" for line in change.strip().splitlines()]
    return replacing(better, f"if {when}:\n{''.join(lines)}") + within(survey)


# Rules, title, what is better; when a call is wrong, and what is changed.
for _rules, _title, *_words in (
    (
        "not-log-probabilities",
        "Give the loss log-probabilities",
        "cross_entropy in place of nll_loss; log_softmax before kl_div",
        "name in ('nll_loss', 'kl_div')",
        """
axis = -1 if name == 'kl_div' else 1
sums = args[0].detach().sum(axis)
shares = bool((args[0] >= 0).all() and (sums - 1).abs().max() < 1e-3)
logs = args[0].clamp_min(1e-12).log()
args = (logs if shares else args[0].log_softmax(axis), *args[1:])
""",
    ),
    (
        "loss-term-without-gradient",
        "Let the loss term send its gradient",
        "create_graph=True in grad(), and no detach() of outputs in the loss",
        "name in ('grad', 'detach')",
        """
if name == 'detach':
    return args[0]
kwargs = {**kwargs, 'create_graph': True}
""",
    ),
    (
        "addition-broadcasts",
        "Add terms of one shape: (N,) and (N,)",
        "squeeze(-1) of the term of shape (N, 1)",
        "name in ('add', 'sub', 'mul', '__add__', '__sub__', '__mul__')"
        " and all(torch.is_tensor(each) for each in args[:2])",
        """
shapes = [each.shape for each in args[:2]]
long = max(shapes, key=len)
if long == (*min(shapes, key=len), 1) and len(long) > 1:
    args = tuple(e.squeeze(-1) if e.shape == long else e for e in args[:2])
""",
    ),
):
    remedy("loss", _title, *_rules.split())(partial(_changed, *_words))


@remedy("loss", "Change the sign of the loss", "loss-below-zero")
def _other_sign(survey: Survey, finding: Finding) -> str | None:
    """Negate a loss that is minus a known one, or a log-likelihood."""
    if "loss" not in survey.settings.get("given", ()) or not finding.value < 0:
        return None
    return (
        "# Better: change this where the loss is computed. The same:\n"
        "import functools\n"
        "given = loss\n"
        "@functools.wraps(given)\n"
        "def loss(*args, **kwargs):\n"
        "    return -given(*args, **kwargs)\n"
    )


@remedy(
    "loss", "Sum the reconstruction over the entries of a sample", "prior-outweighs"
)
def _summed_over_entries(survey: Survey, finding: Finding) -> str | None:
    """Let a nat of reconstruction weigh as much as one of the prior."""
    price = re.search(r"One nat costs ([0-9.e+-]+),", finding.says)
    if price is None:
        return None
    return _changed(
        'reduction="sum" for the reconstruction as for the prior',
        "kwargs.get('reduction') == 'mean' and"
        " (name == 'mse_loss' or name.startswith('binary_cross_entropy'))",
        f"return function(*args, **kwargs) * {price[1]} * args[0][0].numel()",
        survey,
    )


@remedy("loss", "Shift the labels once", "labels-shifted-twice")
def _shifted_once(survey: Survey, finding: Finding) -> str | None:
    """Compare with the token that follows, read from the inputs of the model."""
    code = _changed(
        "shift labels in the data or in the model, not in both",
        f"{_OF_CLASSES} and tokens",
        """
length = args[1].numel() // len(tokens[0])
none = torch.full_like(tokens[0], -100)
labels = torch.cat([tokens[0][:, 1:], none], 1)[:, :length]
args = (args[0], labels.reshape(args[1].shape), *args[2:])
""",
        survey,
    )
    return (
        f"{code}"
        "tokens = []\n"
        "def keep(module, args, kwargs):\n"
        "    given = [t for t in (*args, *kwargs.values()) if torch.is_tensor(t)]\n"
        "    tokens[:] = [t for t in given if t.ndim == 2]\n"
        "model.register_forward_pre_hook(keep, with_kwargs=True)\n"
    )
