"""From a SPEC to a subject."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from theodolite.core import ConfigError, SubjectError, unknown_name
from theodolite.instruments import Loss
from theodolite.survey.subjects.clothed import Subject
from theodolite.survey.subjects.dressing import (
    BATCH_SIZE,
    N_BATCHES,
    check_seed,
    check_sizes,
    dress,
)
from theodolite.survey.subjects.hugging_face import model_from_config
from theodolite.survey.subjects.imported import (
    attribute,
    model_of,
    module_in_file,
    told,
)
from theodolite.survey.subjects.read_data import read_data
from theodolite.survey.subjects.specs import Spec, parse_spec
from theodolite.survey.subjects.targets import LOSSES
from theodolite.survey.subjects.weights import load_weights
from theodolite.survey.subjects.zoo import inhabitant


def subject_of(
    spec: str,
    *,
    data: str | None = None,
    loss: str | Loss | None = None,
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
            or ``hf:CONFIG.json``.
        data: Name of a dataset, folder of images or ``FILE.npz``; made up by default.
        loss: A loss, its name, ``package.module:function`` or ``path.py:function``;
            what outputs and targets suggest by default.
        weights: safetensors, or a checkpoint of tensors alone.
        shape: Of one made-up sample, where the model does not tell.
        batch_size: Samples a batch; 32 by default, 8 made-up ones of a large model.
        n_batches: Number of batches.
        trust: Whether Python files that are named may be run.
        seed: Of the weights, and of made-up or chosen samples.
        device: Where the model lives; where it was made by default.

    Raises:
        TheodoliteError: In one sentence, what is wrong and what to pass.

    Example:
        >>> subject_of("mnist-chain", data="mnist5k", batch_size=8).inputs
        'mnist5k, 5,000 samples, cross-entropy'
    """
    understood = parse_spec(spec)
    check_sizes(batch_size, n_batches)
    check_seed(seed)
    model, known, code = _model(understood, spec, seed, trust)
    if weights is not None:
        load_weights(model, weights)
        code += f"\n# weights: {weights}"
    model = _on(model, device)
    chosen = _loss(loss, trust)
    title = type(model).__name__ if understood.kind == "hf" else spec
    made: Any = {"seed": seed, "title": title, "code": code}
    if data is None:
        sizes = {"batch_size": batch_size, "n_batches": n_batches}
        return dress(model, loss=chosen, shape=shape or known or None, **sizes, **made)
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
    return dress(model, batches, chosen, inputs=said, **made)


def _on(model: nn.Module, device: str | None) -> nn.Module:
    if device is None:
        return model
    try:
        return model.to(device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            f"the model cannot live on device {device!r} ({told(error)[:120]}): try "
            "'cpu', or leave it out"
        ) from error


def _model(
    spec: Spec, text: str, seed: int, trust: bool
) -> tuple[nn.Module, tuple[int, ...], str]:
    """Return the model, the shape of a sample where it is known, and code for it."""
    if spec.kind == "zoo":
        found = inhabitant(spec.place)
        code = f"model = theodolite.survey.subject_of({text!r}, seed={seed}).model"
        return found.make(seed), found.shape, code
    if spec.kind == "hf":
        code = f"model = theodolite.survey.subject_of({text!r}, seed={seed}).model"
        return model_from_config(spec.place, seed=seed), (), code
    model = model_of(spec, seed=seed, trust=trust)
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


def _loss(loss: str | Loss | None, trust: bool) -> str | Loss | None:
    """Return a loss, or the name of one of ours."""
    if not isinstance(loss, str):
        return loss
    if ":" not in loss:
        return loss
    spec = parse_spec(loss)
    if spec.kind == "file":
        home: Any = module_in_file(spec.place, trust)
    elif spec.kind == "module":
        from importlib import import_module

        try:
            home = import_module(spec.place)
        except Exception as error:
            raise SubjectError(
                f"the loss {loss!r} cannot be imported ({error}): pass one of "
                f"{', '.join(LOSSES)}, or package.module:function"
            ) from error
    else:
        raise unknown_name("loss", loss, LOSSES)
    return _callable(attribute(home, spec.name, spec.place), spec, loss)


def _callable(found: Any, spec: Spec, text: str) -> Any:
    """Return a loss that can be called; a class is made one of by its arguments."""
    if isinstance(found, type):
        found = found(*spec.args, **spec.kwargs)
    if not callable(found):
        raise SubjectError(
            f"the loss {text!r} is a {type(found).__name__} and cannot be called: name "
            "a function of model and batch, or of outputs and targets"
        )
    return found
