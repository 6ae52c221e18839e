"""A model with its batches and its loss, and how to make one from a live module."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import (
    ConfigError,
    NormMode,
    SubjectError,
    TheodoliteError,
    as_integer,
    error_text,
    exclusive,
)
from theodolite.instruments import (
    Batch,
    Batches,
    Loss,
    Problem,
    preserve,
    read_batches,
    run_model,
    samples_in,
    tensors_in,
)

from .hugging_face import (
    is_hugging_face,
    labels_apart,
    loss_in,
    made_up_batch,
    own_loss,
)
from .made_up import (
    check_model,
    check_room,
    drawn,
    find_inputs,
    place_of,
    run_once,
)
from .targets import Aim, aim_for, fitted, loss_for, named_aim, named_loss

BATCH_SIZE, N_BATCHES = 32, 4
# Number of batches read from a loader, whose length may be unknown.
MOST_STREAMED = 16
# Models with more parameters get a quarter of the samples by default.
_LARGE = 50_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A model, data to run it on, and its loss.

    Attributes:
        model: The model; if it is compiled, the original module.
        batches: Batches, each a pair (inputs, targets) or keyword arguments.
        loss: The loss.
        title: Name for print and pages.
        inputs: One sentence on where inputs, labels and loss come from;
            begins with "made up" if no data was given.
        labels_known: Whether targets are real, not made up.
    """

    model: nn.Module
    batches: Sequence[Batch]
    loss: Loss
    title: str
    inputs: str
    labels_known: bool

    def problem(self, *, norm_mode: NormMode | str, seed: int) -> Problem:
        """Return model, data and loss as instruments take them."""
        return Problem(
            self.model, self.batches, loss=self.loss, norm_mode=norm_mode, seed=seed
        )


@exclusive(interruptible=True)
@torch.inference_mode(False)
def make_subject(
    model: nn.Module,
    batches: Batches | None = None,
    loss: Loss | str | None = None,
    *,
    shape: Sequence[int] | None = None,
    batch_size: int | None = None,
    n_batches: int = N_BATCHES,
    seed: int = 0,
    title: str = "",
    inputs: str = "",
) -> Subject:
    """Return a model with data and a loss; missing ones are derived from the model.

    Args:
        model: Any module; not changed. If it is compiled, the original module is used.
        batches: As instruments take them; by default random, and reported as made up.
            Of a loader, the first 16.
        loss: A loss, or its name; by default the one that outputs and targets
            suggest.
        shape: Shape of one made-up sample, if the model does not define it.
        batch_size: Samples of a made-up batch; 32, or 8 for a large model.
        n_batches: Number of made-up batches.
        seed: Seed of made-up inputs and labels.
        title: Name of the model; its class by default.
        inputs: Where given batches come from.

    Raises:
        SubjectError: Inputs, labels or a loss cannot be found; says what to pass.
    """
    model = getattr(model, "_orig_mod", model)
    check_model(model)
    if isinstance(loss, str):
        named_loss(loss)  # or the sentence that names those there are
    check_sizes(batch_size, n_batches)
    check_seed(seed)
    if batches is None:
        large = sum(p.numel() for p in model.parameters()) >= _LARGE
        usual = BATCH_SIZE // 4 if large else BATCH_SIZE
        size = usual if batch_size is None else batch_size
        by_name = is_hugging_face(model) and shape is None
        make = _made_up_by_name if by_name else partial(_made_up, shape=shape)
        given, aim, what = make(model, loss, size, n_batches, seed)
        whence, known = f"made up: {what}, random labels", False
    else:
        given, aim, known = _given(model, _read(model, batches, loss), loss, seed)
        whence = inputs or "as given"
        whence = whence if known else f"inputs {whence}; labels made up"
    return Subject(
        model=model,
        batches=given,
        loss=aim.loss,
        title=title or type(model).__name__,
        inputs=f"{whence}, {aim.says}",
        labels_known=known,
    )


def _read(model: nn.Module, batches: Batches, loss: Any) -> Sequence[Batch]:
    most = None if isinstance(batches, list) else MOST_STREAMED
    if _are_several(model, batches, loss):
        batches = _kept_apart(batches)
    read = read_batches(batches, max_batches=most)
    read = _kept_apart(read) if isinstance(read, tuple) else read
    if samples_in(read[0]) == 0:
        raise SubjectError("the first batch has no samples: pass batches with some")
    if loss is None and isinstance(read[0], Mapping):
        read = read_batches(_Several(read, partial(labels_apart, model)))
    return read


def _given(
    model: nn.Module, given: Sequence[Batch], loss: Loss | str | None, seed: int
) -> tuple[Sequence[Batch], Aim, bool]:
    """Return batches with targets, the aim, and whether the targets were given."""
    if loss is not None and not isinstance(loss, str):
        return given, Aim(loss, "loss as given"), True
    if not _has_targets(given[0]):
        return *_labelled(model, given, loss, seed), False
    if loss is None:
        return given, _aim_of(model, given[0]), True
    if isinstance(given[0], Mapping):
        raise SubjectError(
            f"the loss {loss!r} wants pairs of inputs and targets and batches are "
            "keyword arguments: pass a function of model and batch, or no loss"
        )
    outputs = _outputs(model, given[0])
    aim = named_aim(loss, outputs)
    return [(x, fitted(loss, outputs, y)) for x, y in given], aim, True


def check_seed(seed: int) -> None:
    """Refuse a seed that torch and NumPy cannot use."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**62:
        raise ConfigError(
            f"the seed is {seed!r}: pass a whole number from 0 to below 2**62"
        )


def check_sizes(batch_size: int | None, n_batches: int) -> None:
    """Refuse invalid numbers of samples and batches."""
    batch_size = BATCH_SIZE if batch_size is None else batch_size
    for name, size in (("batch size", batch_size), ("number of batches", n_batches)):
        as_integer(name, size, 1)


def _made_up(
    model: nn.Module,
    loss: Loss | str | None,
    size: int,
    n_batches: int,
    seed: int,
    shape: Sequence[int] | None,
) -> tuple[Sequence[Batch], Aim, str]:
    inputs = find_inputs(model, tuple(shape) if shape else None, seed=seed)
    wanted = inputs.wanted
    aim = _aimed(loss, inputs.outputs, bool(wanted.ids))
    check_room(drawn(wanted, 1, model, seed).nbytes, size * n_batches)
    generator = torch.Generator().manual_seed(seed + 1)
    made: list[Batch] = []
    for place in range(n_batches):
        x = drawn(wanted, size, model, seed + 2 + place)
        if aim.draw is None:  # since the model returns its loss
            made.append({inputs.name: x} if inputs.name else x)
        else:  # two samples show the shape of the outputs
            y = _targets(aim, run_once(model, x[:2]), size, generator)
            made.append((x, y.to(place_of(model)[0])))
    because = wanted.because and f" ({wanted.because})"
    return _kept_apart(made), aim, f"{wanted}{because}"


def _targets(
    aim: Aim, outputs: Any, samples: int, generator: torch.Generator
) -> Tensor:
    """Return random targets, given the outputs of two samples."""
    parts = [aim.draw(outputs, generator) for _ in range((samples + 1) // 2)]  # pyright: ignore
    return torch.cat(parts)[:samples]


def _aimed(loss: Loss | str | None, outputs: Any, of_tokens: bool) -> Aim:
    """Return the loss that was given, or one that fits the outputs."""
    if isinstance(loss, str):
        return named_aim(loss, outputs, of_tokens=of_tokens)
    aim = aim_for(outputs, of_tokens=of_tokens)
    return aim if loss is None else Aim(loss, "loss as given", aim.draw)


def _made_up_by_name(
    model: nn.Module, loss: Loss | str | None, size: int, n_batches: int, seed: int
) -> tuple[Sequence[Batch], Aim, str]:
    """Return batches for a transformers model, with its own inputs and loss."""
    generator = torch.Generator().manual_seed(seed)
    one, _, _ = made_up_batch(model, 1, torch.Generator().manual_seed(seed))
    check_room(sum(part.nbytes for part in one.values()), size * n_batches)
    made = [made_up_batch(model, size, generator) for _ in range(n_batches)]
    inputs, labels, said = made[0]
    few = {name: tensor[:2] for name, tensor in inputs.items()}
    try:
        outputs = run_once(model, few)
        own = labels is not None and _computes(model, few, labels[:2])
    except Exception as error:
        raise SubjectError(
            f"{type(model).__name__} does not take made-up inputs ({said}: "
            f"{error_text(error)[:200]}): pass batches of its inputs by name, "
            "from Python"
        ) from error
    batches: list[Batch] = [x for x, *_ in made]
    if loss is None and own:
        aim = Aim(own_loss, "the model's own loss")
        batches = [(x, y) for x, y, _ in made]
    elif loss is not None and not isinstance(loss, str):
        aim = Aim(loss, "loss as given")
        batches = [x if y is None else {**x, "labels": y} for x, y, _ in made]
    else:
        aim = _aimed(loss, outputs, "input_ids" in inputs)
        if aim.draw is not None:
            device = next(iter(inputs.values())).device
            batches = [
                (x, _targets(aim, outputs, size, generator).to(device)) for x in batches
            ]
    return batches, aim, said


def _computes(model: nn.Module, inputs: Mapping[str, Tensor], labels: Any) -> bool:
    """Return whether a model computes a loss from labels."""
    try:
        outputs = run_once(model, {**inputs, "labels": labels})
    except Exception:
        return False
    return isinstance(loss_in(outputs), Tensor)


def _has_targets(batch: Batch) -> bool:
    if isinstance(batch, Mapping):
        return "labels" in batch
    return isinstance(batch, tuple | list) and len(batch) == 2


def _aim_of(model: nn.Module, batch: Batch) -> Aim:
    """Choose the loss for a batch with targets."""
    if isinstance(batch[0], Mapping) and _computes(model, batch[0], batch[1]):
        return Aim(own_loss, "the model's own loss")
    outputs = _outputs(model, batch)
    targets = batch[1]
    if not isinstance(targets, Tensor):
        raise SubjectError(
            f"targets are a {type(targets).__name__} and suggest no loss: pass loss, a "
            "function of model and batch"
        )
    return loss_for(outputs, targets)


def _labelled(
    model: nn.Module, given: Sequence[Batch], loss: str | None, seed: int
) -> tuple[Sequence[Batch], Aim]:
    """Return inputs with made-up labels."""
    generator = torch.Generator().manual_seed(seed)
    aim: Aim | None = None
    made: list[Batch] = []
    for batch in given:
        outputs = _outputs(model, batch)
        ids = not any(t.is_floating_point() for t in tensors_in(batch))
        aim = aim or _aimed(loss, outputs, ids)
        if aim.draw is None:
            made.append(batch)
            continue
        device = tensors_in(batch)[0].device
        made.append((batch, aim.draw(outputs, generator).to(device)))
    if aim is None:
        raise SubjectError("there are no batches: pass at least one")
    return _kept_apart(made), aim


def _outputs(model: nn.Module, batch: Batch) -> Any:
    try:
        with preserve(model), torch.no_grad():
            model.eval()
            return run_model(model, batch)
    except TheodoliteError:
        raise
    except Exception as error:
        raise SubjectError(
            f"{type(model).__name__} does not run on the batches given "
            f"({error_text(error)[:200]}): pass what its forward takes"
        ) from error


class _Several:
    """Batches that are read again and again, each changed by a function.

    A list of tensors would count as one batch.
    """

    def __init__(
        self, batches: Sequence[Batch], change: Callable[[Batch], Any]
    ) -> None:
        self._batches, self._change = batches, change

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Any]:
        return map(self._change, self._batches)


def _kept_apart(batches: Sequence[Batch]) -> Sequence[Batch]:
    """Return batches as what is read as several, which lists of tensors are not."""
    if not isinstance(batches[0], Tensor):
        return list(batches)
    return read_batches(_Several(batches, lambda batch: batch))


def _are_several(model: nn.Module, batches: Any, loss: Loss | str | None) -> bool:
    """Return whether a list of tensors is several batches: the model takes one of them.

    A list of tensors is read as one batch elsewhere, with several inputs.
    """
    if not isinstance(batches, list) or not batches:
        return False
    if not all(isinstance(t, Tensor) and t.ndim > 1 for t in batches):
        return False
    # Two of different kinds are inputs and targets, also where they do not fit.
    if len(batches) == 2 and len({(t.dtype, t.shape[1:]) for t in batches}) > 1:
        return False

    def runs(batch: Any) -> bool:
        try:
            with preserve(model), torch.no_grad():
                if loss is None or isinstance(loss, str):
                    run_model(model, batch)
                else:
                    loss(model, batch)
        except Exception:  # of foreign code
            return False
        return True

    return not runs(batches) and runs(batches[0])
