"""Labels and losses that fit the outputs of a model."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import SubjectError, unknown_name
from theodolite.instruments import HalfSquareLoss, Loss, run_model

from .made_up import real_tensors


class LogProbabilityLoss(nn.Module):
    """Negative log-likelihood of outputs that are probabilities, or their logarithms.

    Args:
        logs: Whether they are logarithms already.
    """

    def __init__(self, *, logs: bool) -> None:
        super().__init__()
        self.logs = logs

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean over samples."""
        # The smallest normal number, where a probability is rounded to zero.
        least = torch.finfo(outputs.dtype).tiny
        logs = outputs if self.logs else outputs.clamp_min(least).log()
        return functional.nll_loss(logs, targets)


class TokenLoss(nn.Module):
    """Cross-entropy of (samples, places, classes) with (samples, places)."""

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean over samples and places."""
        return functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


# Names of outputs that are not class scores.
_FEATURES = ("last_hidden_state", "hidden_states", "features", "pooler_output")
LOSSES: dict[str, Callable[[], nn.Module]] = {
    "cross-entropy": nn.CrossEntropyLoss,
    "mse": nn.MSELoss,
    "half-square": HalfSquareLoss,
    "l1": nn.L1Loss,
    "bce": nn.BCEWithLogitsLoss,
    "nll": nn.NLLLoss,
}
# Label that cross-entropy ignores, as in torch.
_IGNORED = -100
_OF_NUMBERS = ("mse", "half-square", "l1", "bce")


def named_loss(name: str) -> nn.Module:
    """Return a loss by its name."""
    if name not in LOSSES:
        raise unknown_name("loss", name, LOSSES)
    return LOSSES[name]()


def fitted(name: str, outputs: Any, targets: Tensor) -> Tensor:
    """Return targets in the form that a named loss needs, such as one-hot classes.

    Raises:
        SubjectError: They do not match the outputs.
    """
    tensor, _ = main_tensor(outputs)
    if name not in _OF_NUMBERS or targets.is_floating_point():
        return targets
    shape = (len(targets), *tensor.shape[1:])
    for axis in (1, -1):  # axis of the classes: 1, or the last
        classes = tensor.shape[axis] if tensor.ndim > 1 else 1
        rows = (*targets.shape, classes)
        moved = rows if axis == -1 else (rows[0], rows[-1], *rows[1:-1])
        if classes > 1 and moved == shape:
            _check_classes(targets, classes)
            ones = functional.one_hot(targets, classes).to(tensor.dtype)
            return ones.movedim(-1, axis)
    if targets.numel() != math.prod(shape):
        raise SubjectError(
            f"targets of shape {tuple(targets.shape)} do not go with outputs of shape "
            f"{tuple(tensor.shape)} under {name}: pass another loss"
        )
    low, high = int(targets.min()), int(targets.max())
    if name == "bce" and not 0 <= low <= high <= 1:
        raise SubjectError(
            f"labels run from {low} up to {high} and bce of one output wants 0 and 1: "
            "pass other data, or a model with one output per class"
        )
    return targets.to(tensor.dtype).reshape(shape)


@dataclass(frozen=True)
class Aim:
    """The labels and the loss that a model is measured with.

    Attributes:
        loss: A function of outputs and targets, or of model and batch.
        says: The loss and its targets, in a few words.
        draw: Draws targets for outputs with a generator; None if none are needed.
    """

    loss: Loss
    says: str
    draw: Callable[[Any, torch.Generator], Tensor] | None = None


def aim_for(outputs: Any, *, of_tokens: bool = False) -> Aim:
    """Return labels and a loss for outputs of unknown meaning.

    Labels are classes if samples or tokens have rows of scores, else real numbers.

    Args:
        outputs: Outputs of the model.
        of_tokens: Whether its inputs were token ids.
    """
    tensor, which = main_tensor(outputs)
    if tensor.ndim == 0:
        aim = _of_one(Aim(own_loss, "the model's own value"), which)
        return replace(aim, loss=own_loss)
    return _of_one(_aim_for_tensor(tensor, of_tokens and which not in _FEATURES), which)


def named_aim(name: str, outputs: Any, *, of_tokens: bool = False) -> Aim:
    """Return labels for outputs of unknown meaning and a loss given by name."""
    usual = aim_for(outputs, of_tokens=of_tokens).draw
    loss: Any = named_loss(name)
    tensor, which = main_tensor(outputs)
    if tensor.ndim == 3 and name == "cross-entropy":
        loss = TokenLoss()
    draw = usual
    if name in _OF_NUMBERS and usual is not None:
        draw = _coins
        if name != "bce":
            draw = lambda out, generator: fitted(name, out, usual(out, generator))  # noqa: E731
    return _of_one(Aim(loss, name, draw), which)


def _of_one(aim: Aim, which: str | int) -> Aim:
    """Return an aim for one of several outputs."""
    if which == "":
        return aim
    of = f" of output {which}" if isinstance(which, int) else f" of {which!r}"
    return Aim(_picked(aim.loss, which), f"{aim.says}{of}", aim.draw)


def _coins(outputs: Any, generator: torch.Generator) -> Tensor:
    tensor = main_tensor(outputs)[0]
    return torch.randint(2, tensor.shape, generator=generator, device="cpu").to(
        tensor.dtype
    )


def _aim_for_tensor(tensor: Tensor, of_tokens: bool) -> Aim:
    if tensor.ndim == 2 and tensor.shape[1] > 1:
        return Aim(*_class_loss(tensor), _labels(1))
    if tensor.ndim == 3 and tensor.shape[2] > 1 and of_tokens:
        return Aim(TokenLoss(), "cross-entropy at every place", _labels(2))
    if tensor.ndim == 4 and 1 < tensor.shape[1] <= 256 and tensor.shape[2] > 1:
        loss = nn.CrossEntropyLoss()
        return Aim(loss, "cross-entropy at every pixel", _labels(1))
    return Aim(nn.MSELoss(), "mean squared error", _numbers)


def _class_loss(tensor: Tensor) -> tuple[nn.Module, str]:
    """Return the loss for rows that are scores, or probabilities already."""
    rows = tensor.detach().double()
    ones = torch.ones_like(rows[:, 0])
    if bool((rows >= 0).all()) and torch.allclose(rows.sum(1), ones, atol=1e-4):
        return LogProbabilityLoss(logs=False), "log-likelihood of probabilities"
    if bool((rows <= 0).all()) and torch.allclose(rows.exp().sum(1), ones, atol=1e-4):
        return LogProbabilityLoss(logs=True), "log-likelihood"
    return nn.CrossEntropyLoss(), "cross-entropy"


def _labels(axis: int) -> Callable[[Any, torch.Generator], Tensor]:
    """Return what draws classes for scores along an axis."""

    def draw(outputs: Any, generator: torch.Generator) -> Tensor:
        shape = list(main_tensor(outputs)[0].shape)
        n = shape.pop(axis)
        return torch.randint(n, shape, generator=generator, device="cpu")

    return draw


def _numbers(outputs: Any, generator: torch.Generator) -> Tensor:
    tensor = main_tensor(outputs)[0]
    drawn = torch.randn(tensor.shape, generator=generator, device="cpu")
    return drawn.to(tensor.dtype)


def loss_for(outputs: Any, targets: Tensor) -> Aim:
    """Return a loss for outputs and targets that were given.

    Raises:
        SubjectError: No known loss fits them.
    """
    tensor, which = main_tensor(outputs)
    return _of_one(_loss_for_tensor(tensor, targets), which)


def _loss_for_tensor(tensor: Tensor, targets: Tensor) -> Aim:
    if targets.is_floating_point():
        if tensor.shape == targets.shape:
            return Aim(nn.MSELoss(), "mean squared error")
    elif tensor.ndim == 2 and targets.ndim == 1 and tensor.shape[1] > 1:
        _check_classes(targets, tensor.shape[1], ignored=_IGNORED)
        return Aim(*_class_loss(tensor))
    elif tensor.ndim == 3 and targets.shape == tensor.shape[:2]:
        _check_classes(targets, tensor.shape[2], ignored=_IGNORED)
        return Aim(TokenLoss(), "cross-entropy at every place")
    elif tensor.ndim == 4 and targets.ndim == 3:
        return Aim(nn.CrossEntropyLoss(), "cross-entropy at every pixel")
    raise SubjectError(
        f"outputs of shape {tuple(tensor.shape)} and {targets.dtype} targets of shape "
        f"{tuple(targets.shape)} suggest no loss: pass one, such as --loss mse, or a "
        "function of model and batch"
    )


def _check_classes(targets: Tensor, n: int, *, ignored: int = 0) -> None:
    """Refuse labels that are not classes of this many outputs."""
    wrong = targets[(targets < 0) & (targets != ignored)]
    if wrong.numel():
        raise SubjectError(
            f"labels go down to {int(wrong.min())} and classes count from 0: pass "
            "other data, or a model with one output and --loss mse"
        )
    largest = int(targets.max())
    if largest >= n:
        raise SubjectError(
            f"labels run up to {largest} and the model has {n} outputs: build it with "
            f"{largest + 1} classes, or pass other data"
        )


def main_tensor(outputs: Any) -> tuple[Tensor, str | int]:
    """Return the tensor in a model's output most like logits, and its place."""
    if isinstance(outputs, Tensor):
        return outputs, ""
    named = isinstance(outputs, Mapping)
    for name in ("logits", "out", "prediction", "predictions", "output"):
        if named and isinstance(tensor := outputs.get(name), Tensor):
            return tensor, name
    several = isinstance(outputs, list | tuple)
    parts: Any = outputs.items() if named else enumerate(outputs) if several else ()
    for place, tensor in parts:
        if isinstance(tensor, Tensor) and tensor.is_floating_point():
            if tensor.ndim or several:
                return tensor, str(place) if named else place
    tensors = real_tensors(outputs)
    if not tensors:
        raise SubjectError(
            f"the model put out a {type(outputs).__name__} without real numbers: pass "
            "loss, a function of model and batch"
        )
    return tensors[0], "first tensor"


def _picked(loss: Any, which: str | int) -> Loss:
    """Return a loss of model and batch that compares one of several outputs."""

    def loss_of_one_output(model: nn.Module, batch: Any) -> Tensor:
        outputs = run_model(model, batch)
        first = which == "first tensor"
        return loss(main_tensor(outputs)[0] if first else outputs[which], batch[1])

    return loss_of_one_output


def own_loss(model: nn.Module, batch: Any) -> Tensor:
    """Return the loss that a model returns itself."""
    return main_tensor(run_model(model, batch))[0]
