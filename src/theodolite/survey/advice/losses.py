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

_TORCH_LOSS = "(name.endswith('_loss') or 'entropy' in name)"
_OF_CLASSES = "name == 'cross_entropy' and not args[1].is_floating_point()"


def _changed(better: str, when: str, change: str, survey: Survey, *_: Finding) -> str:
    """Return code that changes calls of a loss."""
    lines = [f"    {line}\n" for line in change.strip().splitlines()]
    return replacing(better, f"if {when}:\n{''.join(lines)}") + within(survey)


# Rules, title, what is better; when a call is wrong, and what is changed.
for _rules, _title, *_words in (
    (
        "class-ignored labels-ignored",
        "Let every class that occurs count",
        "leave out ignore_index and weight",
        "'ignore_index' in kwargs",
        """
kwargs = {**kwargs, 'ignore_index': -100}
weight = kwargs.get('weight')
if weight is not None and not weight.all():
    kwargs['weight'] = None
""",
    ),
    (
        "class-weights-inverted",
        "Invert the weights of the classes",
        "weight=1 / weight",
        "kwargs.get('weight') is not None",
        "kwargs = {**kwargs, 'weight': 1 / kwargs['weight']}",
    ),
    (
        "one-class-dominates",
        "Weight the classes against their frequency",
        "weight=1 / counts of the classes",
        _OF_CLASSES,
        """
classes = args[0].shape[1]
known = args[1][args[1] >= 0].reshape(-1)
counts = torch.bincount(known, minlength=classes)[:classes]
self.counts = getattr(self, 'counts', 1) + counts
weight = 1 / self.counts.to(args[0].dtype)
kwargs = {**kwargs, 'weight': weight / weight.mean()}
""",
    ),
    (
        "labels-smoothed-away",
        "Use a label smoothing of 0.1",
        "label_smoothing=0.1",
        "kwargs.get('label_smoothing')",
        "kwargs = {**kwargs, 'label_smoothing': 0.1}",
    ),
    (
        "targets-want-signs",
        "Make targets of 0 and 1 targets of -1 and 1",
        "2 * targets - 1",
        "name in ('soft_margin_loss', 'hinge_embedding_loss',"
        " 'cosine_embedding_loss', 'margin_ranking_loss')",
        """
place = 1 if name in ('soft_margin_loss', 'hinge_embedding_loss') else 2
args = (*args[:place], 2 * args[place] - 1, *args[place + 1:])
""",
    ),
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
        "distances-as-scores",
        "Give the loss minus the distances",
        "cross_entropy(-distances, labels)",
        "name == 'cross_entropy'",
        "args = (-args[0], *args[1:])",
    ),
    (
        "targets-no-distribution",
        "Use binary cross-entropy with logits",
        "nn.BCEWithLogitsLoss()",
        "name == 'cross_entropy'",
        """
function = torch.nn.functional.binary_cross_entropy_with_logits
return function(args[0], args[1].to(args[0].dtype))
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
    (
        "exponential-twice",
        "Pass log_input=False",
        "PoissonNLLLoss(log_input=False)",
        "name == 'poisson_nll_loss'",
        "kwargs = {**kwargs, 'log_input': False}",
    ),
    (
        "loss-arguments-swapped",
        "Exchange outputs and targets",
        "loss(outputs, targets)",
        f"({_TORCH_LOSS} or name == 'kl_div')"
        " and args[1].requires_grad and not args[0].requires_grad",
        "args = (args[1], args[0], *args[2:])",
    ),
    (
        "copies-its-input",
        "Predict the next token: shift the labels",
        "cross_entropy(scores[:, :-1], tokens[:, 1:])",
        _OF_CLASSES,
        """
tokens = next(iter(inputs.values())) if isinstance(inputs, dict) else inputs
tokens = tokens[0] if isinstance(tokens, tuple) else tokens
scores, labels = args[0].movedim(1, -1), args[1].reshape(-1, tokens.shape[1])
scores = scores.reshape(*labels.shape, scores.shape[-1])
args = (scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), *args[2:])
""",
    ),
):
    remedy("loss", _title, *_rules.split())(partial(_changed, *_words))


@remedy("loss", "Change the sign of the loss", "loss-below-zero")
def _other_sign(survey: Survey, finding: Finding) -> str | None:
    """Negate a loss that is minus a known one, or a log-likelihood."""
    return _wrapped(survey, "-given(*args, **kwargs)") if finding.value < 0 else None


def _wrapped(survey: Survey, value: str) -> str | None:
    """Return code that computes something of the loss that was given."""
    if "loss" not in survey.settings.get("given", ()):
        return None
    return (
        "# Better: change this where the loss is computed. The same:\n"
        "import functools\n"
        "given = loss\n"
        "@functools.wraps(given)\n"
        "def loss(*args, **kwargs):\n"
        f"    return {value}\n"
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


@remedy("loss", "Leave padding out of the loss", "padding-in-loss")
def _without_padding(survey: Survey, finding: Finding) -> str | None:
    rows = survey.find("check", rule=finding.rule)
    label = re.search(r"ignore_index=([0-9]+)", rows[0]["repair"] if rows else "")
    if label is None:
        return None
    change = f"kwargs = {{**kwargs, 'ignore_index': {label[1]}}}"
    return _changed(f"ignore_index={label[1]}", _OF_CLASSES, change, survey)


@remedy("loss", "Invert the mask of the loss", "loss-mask-inverted")
def _mask_turned(survey: Survey, finding: Finding) -> str | None:
    """Invert what is 0 or 1 everywhere where the loss multiplies by it or selects."""
    code = _changed(
        "~mask, or 1 - mask",
        "name in ('mul', '__mul__', '__rmul__', 'masked_select', '__getitem__')",
        """
def turned(part):
    if not torch.is_tensor(part) or part.requires_grad or part.ndim < 2:
        return part
    mask = bool(((part == 0) | (part == 1)).all())
    return part.logical_not().to(part.dtype) if mask else part
args = (*map(turned, args[:2]), *args[2:])
""",
        survey,
    )
    return code.replace("calls.inside(model)\n", "")


@remedy("loss", "Turn the targets as the inputs", "targets-flipped")
def _turned_back(survey: Survey, finding: Finding) -> str | None:
    ways = {
        "Mirrored": "flip(-1)",
        "Upside down": "flip(-2)",
        "Transposed": "transpose(-1, -2)",
        "Turned": "rot90(1, (-2, -1))",
    }
    way = [call for word, call in ways.items() if f"{word} " in finding.says]
    if not way:
        return None
    return _changed(
        "apply flips to images and targets alike",
        f"{_TORCH_LOSS} and args[1].ndim > 2",
        f"args = (args[0], args[1].{way[0]}, *args[2:])",
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
