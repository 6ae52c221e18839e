"""Make a subject from a SPEC."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from theodolite.core import ConfigError, SubjectError, unknown_name
from theodolite.instruments import Loss

from .approval import approve
from .hugging_face import model_from_config
from .imported import callable_of, error_text, model_of
from .read_data import read_data
from .specs import ApprovedSpec
from .subject import (
    BATCH_SIZE,
    N_BATCHES,
    Subject,
    check_seed,
    check_sizes,
    make_subject,
)
from .targets import LOSSES
from .weights import load_weights
from .zoo import inhabitant


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
        spec: A zoo name, ``package.module:callable(args)``, ``path.py:callable(args)``
            or ``hf:CONFIG.json``; or the result of :func:`approve`.
        data: Name of a dataset, folder of images or ``FILE.npz``; made up by default.
        loss: A loss, its name, ``package.module:function`` or ``path.py:function``;
            by default one that fits outputs and targets.
        weights: A safetensors file, or a checkpoint that holds only tensors.
        shape: Shape of one made-up sample, if the model does not define it.
        batch_size: Samples per batch; 32 by default, or 8 if made up for a large model.
        n_batches: Number of batches.
        trust: Whether foreign code may run, which is no model of a known library:
            Python files, and callables of other modules.
        seed: Seed of the weights, and of made-up or chosen samples.
        device: Device of the model; by default the one it was made on.

    Raises:
        TheodoliteError: An argument is wrong; the message says what to pass.

    Example:
        >>> subject_of("mnist-chain", data="mnist5k", batch_size=8).inputs
        'mnist5k, 5,000 samples, cross-entropy'
    """
    # All code is approved before any of it runs.
    if isinstance(spec, str):
        spec = approve(spec, trust=trust)
    if isinstance(loss, str):
        loss = approve(loss, trust=trust)
    check_sizes(batch_size, n_batches)
    check_seed(seed)
    model, known, code = _model(spec, seed)
    if weights is not None:
        load_weights(model, weights)
        code += f"\n# weights: {weights}"
    model = _on(model, device)
    chosen = _loss(loss) if isinstance(loss, ApprovedSpec) else loss
    understood = spec.spec
    title = type(model).__name__ if understood.kind == "hf" else understood.text
    made: Any = {"seed": seed, "title": title, "code": code}
    if data is None:
        sizes = {"batch_size": batch_size, "n_batches": n_batches}
        return make_subject(
            model, loss=chosen, shape=shape or known or None, **sizes, **made
        )
    if shape is not None:
        raise ConfigError(
            "a shape of made-up samples and data were given: leave one of them out"
        )
    batches, said = read_data(
        data,
        model,
        batch_size=batch_size or BATCH_SIZE,
        n_batches=n_batches,
        seed=seed,
    )
    return make_subject(model, batches, chosen, inputs=said, **made)


def _on(model: nn.Module, device: str | None) -> nn.Module:
    if device is None:
        return model
    try:
        return model.to(device)
    except Exception as error:  # torch refuses devices in many ways
        raise ConfigError(
            f"the model cannot live on device {device!r} ({error_text(error)[:120]}): "
            "try 'cpu', or leave it out"
        ) from error


def _model(approved: ApprovedSpec, seed: int) -> tuple[nn.Module, tuple[int, ...], str]:
    """Return the model, the shape of a sample if known, and code that makes it."""
    spec = approved.spec
    code = f"model = theodolite.survey.subject_of({spec.text!r}, seed={seed}).model"
    if spec.kind == "zoo":
        known = inhabitant(spec.place)
        return known.make(seed), known.shape, code
    if spec.kind == "hf":
        return model_from_config(spec.place, seed=seed), (), code
    model = model_of(approved, seed=seed)
    parts = [repr(one) for one in spec.args]
    parts += [f"{name}={value!r}" for name, value in spec.kwargs.items()]
    called = f"{spec.name}({', '.join(parts)})"
    if spec.kind == "module":
        return (
            model,
            (),
            f"from {spec.place} import {spec.name.split('.')[0]}\nmodel = {called}",
        )
    return model, (), f"# in {shlex.quote(spec.place)}\nmodel = {called}"


def _loss(approved: ApprovedSpec) -> str | Loss:
    """Return a loss, or the name of a built-in one; a class is instantiated."""
    spec = approved.spec
    if spec.kind == "zoo":
        return spec.place
    if spec.kind == "hf":
        raise unknown_name("loss", spec.text, LOSSES)
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
