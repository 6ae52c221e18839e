"""Make a subject from a SPEC, and an optimiser from a line of text.

Before any code that a SPEC names is loaded, the user decides whether it may run. Names
of losses run only code of theodolite. Other SPECs name a callable, which always needs
approval, unless it is a module or a function of ``torch.nn`` itself.
"""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from theodolite.core import (
    ConfigError,
    SubjectError,
    error_text,
    not_trusted,
    unknown_name,
)
from theodolite.instruments import Loss

from .imported import (
    attribute,
    callable_of,
    model_of,
    module_of,
    read_source,
)
from .read_data import read_data
from .specs import FORMS, ApprovedSpec, Spec, literal_arguments, parse_spec
from .subject import (
    BATCH_SIZE,
    N_BATCHES,
    Subject,
    check_seed,
    check_sizes,
    make_subject,
)

_EXAMPLE = "such as sgd:lr=0.1,momentum=0.9"


def approve(
    text: str, *, trust: bool = False, ask: Callable[[str], None] | None = None
) -> ApprovedSpec:
    """Return a parsed SPEC whose code may run.

    Args:
        text: The SPEC of a model or of a loss.
        trust: Whether foreign code may run.
        ask: Called with what would run if ``trust`` is not given; raises to refuse.

    Returns:
        The approved SPEC, which :func:`subject_of` takes in place of a text.

    Raises:
        ConfigError: The SPEC cannot be parsed, or names foreign code that was not
            approved.

    Example:
        >>> approve("torch.nn:Linear(4, 3)").spec.args
        (4, 3)
        >>> approve("os:system('ls')")
        Traceback (most recent call last):
        theodolite.core.errors.ConfigError: os:system('ls') would run with all your \
rights: read it, then pass --trust, or trust=True from Python
    """
    spec = parse_spec(text)
    source = read_source(spec.place) if spec.kind == "file" else b""
    code = "" if trust else _code_of_others(spec)
    if code and ask is None:
        raise not_trusted(code)
    if code and ask is not None:
        ask(code)
    return ApprovedSpec(spec, source)


def _code_of_others(spec: Spec) -> str:
    """Return words for the foreign code that a SPEC would run; empty if none."""
    if spec.kind == "file":
        return f"the Python file {spec.place}"
    return spec.text if spec.kind == "module" and not _is_known(spec) else ""


def _is_known(spec: Spec) -> bool:
    """Return whether a SPEC names a module of torch.nn, or a function of losses."""
    if spec.place not in ("torch.nn", "torch.nn.functional") or "." in spec.name:
        return False
    value = attribute(module_of(spec), spec.name, spec.place)
    home = getattr(value, "__module__", None) or ""
    if isinstance(value, type):
        return issubclass(value, nn.Module) and home.startswith("torch.nn.modules.")
    return callable(value) and home == "torch.nn.functional"


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
    model, code = _model(spec, seed)
    if weights is not None:
        _load(model, weights)
        code += f"\n# weights: {weights}"
    model = _on(model, device)
    chosen = _loss(loss) if isinstance(loss, ApprovedSpec) else loss
    made: Any = {"seed": seed, "title": spec.spec.text, "code": code}
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


def _model(approved: ApprovedSpec, seed: int) -> tuple[nn.Module, str]:
    """Return the model, and code that makes it."""
    spec = approved.spec
    if spec.kind == "name":
        raise ConfigError(f"SPEC {spec.text!r} is not understood: pass {FORMS}")
    model = model_of(approved, seed=seed)
    parts = [repr(one) for one in spec.args]
    parts += [f"{name}={value!r}" for name, value in spec.kwargs.items()]
    called = f"model = {spec.name}({', '.join(parts)})"
    if spec.kind == "module":
        first = spec.name.split(".")[0]
        return model, f"from {spec.place} import {first}\n{called}"
    return model, f"# in {shlex.quote(spec.place)}\n{called}"


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
    settings = _settings(written)
    try:
        leaves = [p for p in model.parameters() if p.requires_grad]
        return kinds[name.lower()](leaves, **settings)
    except Exception as error:  # torch refuses settings in many ways
        raise ConfigError(
            f"torch does not take the optimiser {text!r} ({error}): write it {_EXAMPLE}"
        ) from error


def _settings(written: str) -> dict[str, Any]:
    if not written.strip():
        return {}
    try:
        unnamed, settings = literal_arguments(written)
        if unnamed:
            raise ValueError("a value without a name")
        return settings
    except ValueError as error:
        raise ConfigError(
            f"the settings {written!r} are not NAME=VALUE: write them {_EXAMPLE}"
        ) from error
