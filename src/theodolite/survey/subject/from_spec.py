"""Make a subject from a SPEC, and an optimiser from a line of text."""

from collections.abc import Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from theodolite.core import ConfigError, SubjectError, error_text, unknown_name
from theodolite.instruments import Loss, preserve_process, reseed
from theodolite.networks import (
    FORMS,
    ApprovedSpec,
    approve,
    callable_of,
    literal_arguments,
)

from .read_data import read_data
from .subject import (
    BATCH_SIZE,
    N_BATCHES,
    Subject,
    check_seed,
    check_sizes,
    make_subject,
)

_EXAMPLE = "such as sgd:lr=0.1,momentum=0.9"


def subject_of(
    spec: str | ApprovedSpec,
    *,
    data: str | None = None,
    loss: str | ApprovedSpec | Loss | None = None,
    weights: Path | str | None = None,
    shape: Sequence[int] | None = None,
    batch_size: int | None = None,
    n_batches: int = N_BATCHES,
    trust: bool = False,
    seed: int = 0,
    device: str | None = None,
) -> Subject:
    """Return the model that a SPEC names, with weights, data and a loss.

    Args:
        spec: ``package.module:callable(args)`` or ``path.py:callable(args)``; or the
            result of :func:`approve`.
        data: Name of a dataset, folder of images or ``FILE.npz``; made up by default.
        loss: A loss, its name, ``package.module:function`` or ``path.py:function``;
            by default one that fits outputs and targets.
        weights: A file of ``torch.save(model.state_dict(), path)``.
        shape: Shape of one made-up sample, if the model does not define it.
        batch_size: Samples per batch; 32 by default, or 8 if made up for a large model.
        n_batches: Number of batches.
        trust: Whether foreign code may run: Python files, and callables of modules
            other than ``torch.nn``.
        seed: Seed of the weights, and of made-up or chosen samples.
        device: Device of the model; by default the one it was made on.

    Raises:
        TheodoliteError: An argument is wrong; the message says what to pass.

    Example:
        >>> subject_of("torch.nn:Linear(64, 10)", data="digits", batch_size=8).inputs
        'digits, 1,437 samples, flattened, cross-entropy'
    """
    # All code is approved before any of it runs.
    if isinstance(spec, str):
        spec = approve(spec, trust=trust)
    if isinstance(loss, str):
        loss = approve(loss, trust=trust)
    check_sizes(batch_size, n_batches)
    check_seed(seed)
    model = _model(spec, seed)
    if weights is not None:
        _load(model, weights)
    if device is not None:
        try:
            model = model.to(device)
        except Exception as error:  # torch refuses devices in many ways
            raise ConfigError(
                f"the model cannot live on device {device!r} "
                f"({error_text(error)[:120]}): try 'cpu', or leave it out"
            ) from error
    chosen = _loss(loss) if isinstance(loss, ApprovedSpec) else loss
    made: Any = {"seed": seed, "title": spec.spec.text}
    if data is None:
        sizes = {"batch_size": batch_size, "n_batches": n_batches}
        return make_subject(model, loss=chosen, shape=shape, **sizes, **made)
    if shape is not None:
        raise ConfigError(
            "a shape of made-up samples and data were given: leave one of them out"
        )
    batches, said = read_data(
        data, model, batch_size=batch_size or BATCH_SIZE, n_batches=n_batches, seed=seed
    )
    return make_subject(model, batches, chosen, inputs=said, **made)


def _load(model: nn.Module, path: Path | str) -> None:
    """Load a state dict into a model; no code in the file is run."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(state)
    except Exception as error:  # a file that holds something else may raise anything
        lines = [line.strip() for line in str(error).splitlines()[:2]]
        why = "; ".join(lines)[:200].rstrip(". ") or type(error).__name__
        if isinstance(error, UnpicklingError):  # whose message advises to run it
            why = "it is no state dict, and code in it is not run"
        raise SubjectError(
            f"the weights {path} cannot be loaded ({why}): pass a file of "
            "torch.save(model.state_dict(), path), of this model"
        ) from error


def _model(approved: ApprovedSpec, seed: int) -> nn.Module:
    """Return the model, made with random numbers of a seed."""
    spec = approved.spec
    if spec.kind == "name":
        raise ConfigError(f"SPEC {spec.text!r} is not understood: pass {FORMS}")
    made, what = callable_of(approved), f"{spec.place}:{spec.name}"
    if not isinstance(made, nn.Module):
        if not callable(made):
            raise SubjectError(
                f"{what} is a {type(made).__name__} and cannot be called: name a class "
                "or function that returns a torch.nn.Module"
            )
        try:
            with preserve_process():
                reseed(seed)
                made = made(*spec.args, **spec.kwargs)
        except (Exception, SystemExit) as error:
            raise SubjectError(
                f"{what} could not be called ({error_text(error)}): pass the arguments "
                f"that it wants, as in {spec.name}(10, depth=4)"
            ) from error
    if not isinstance(made, nn.Module):
        raise SubjectError(
            f"{what} returned a {type(made).__name__} and a torch.nn.Module was "
            "wanted: name what makes the model"
        )
    return made


def _loss(approved: ApprovedSpec) -> str | Loss:
    """Return a loss, or the name of a built-in one; a class is instantiated."""
    spec = approved.spec
    if spec.kind == "name":
        return spec.place
    loss: Any = callable_of(approved)
    if isinstance(loss, type):
        try:
            loss = loss(*spec.args, **spec.kwargs)
        except (Exception, SystemExit) as error:
            raise SubjectError(
                f"the loss {spec.text} could not be made ({error_text(error)}): name "
                "a loss, with the arguments that it wants"
            ) from error
    elif spec.args or spec.kwargs:
        raise SubjectError(
            f"the loss {spec.text} has arguments and names no class: pass the function "
            f"alone, as in {spec.place}:{spec.name}"
        )
    if not callable(loss):
        raise SubjectError(
            f"the loss {spec.text} is a {type(loss).__name__} and cannot be called: "
            "name a function of model and batch, or of outputs and targets"
        )
    return loss  # pyright: ignore[reportReturnType]


def optimizer_of(text: str, model: nn.Module) -> Optimizer:
    """Return the torch optimiser that a text names, over all trainable parameters.

    Example:
        >>> optimizer = optimizer_of("sgd:lr=0.1,momentum=0.9", nn.Linear(1, 1))
        >>> optimizer.defaults["momentum"]
        0.9
    """
    name, _, written = text.partition(":")
    kinds = {
        one.lower(): kind
        for one, kind in vars(torch.optim).items()
        if isinstance(kind, type) and issubclass(kind, Optimizer) and one != "Optimizer"
    }
    if name.lower() not in kinds:
        raise unknown_name("optimizer", name, kinds)
    try:
        unnamed, settings = literal_arguments(written) if written.strip() else ((), {})
        if unnamed:
            raise ValueError("a value without a name")
    except ValueError as error:
        raise ConfigError(
            f"the settings {written!r} are not NAME=VALUE: write them {_EXAMPLE}"
        ) from error
    try:
        leaves = [p for p in model.parameters() if p.requires_grad]
        return kinds[name.lower()](leaves, **settings)
    except Exception as error:  # torch refuses settings in many ways
        raise ConfigError(
            f"torch does not take the optimiser {text!r} ({error}): write it {_EXAMPLE}"
        ) from error
