"""Load weights from safetensors and plain checkpoints, without running code."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import SubjectError

# Keys of the weights in foreign checkpoints, and prefixes that wrappers add to names.
_HOMES = ("state_dict", "model_state_dict", "model", "module", "params", "net")
_PREFIXES = ("module.", "_orig_mod.", "model.", "net.")


def load_weights(model: nn.Module, path: Path | str) -> str:
    """Load the weights of a file into a model.

    Args:
        model: The model; the file must have all of its parameters and buffers.
        path: ``.safetensors``, or a file of ``torch.save`` that holds only tensors.

    Returns:
        A few words about where the weights come from.

    Raises:
        SubjectError: The file cannot be read, holds more than tensors, or is of
            another model.
    """
    tensors = _tensors(_read(Path(path)), path)
    state = model.state_dict()
    tensors = _renamed(tensors, set(state))
    _check(tensors, state, path)
    model.load_state_dict(dict(tensors), strict=False)
    return f"weights of {path}"


def _read(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(path)
        with path.open("rb"):  # its own error, where it is not there
            return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        why = error.strerror or error
        raise SubjectError(
            f"the weights {path} cannot be read ({why}): pass a .safetensors file or a "
            "checkpoint of torch.save"
        ) from error
    except pickle.UnpicklingError as error:
        raise SubjectError(
            f"the weights {path} are no checkpoint, or hold more than tensors, which "
            "would run code when read: save model.state_dict() alone, or convert them "
            "to safetensors"
        ) from error
    except SubjectError:
        raise
    except Exception as error:  # a file that is no checkpoint may raise anything
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SubjectError(
            f"the weights {path} are no checkpoint ({first[:80].rstrip('. ')}): pass a "
            ".safetensors file or one of torch.save(model.state_dict(), path)"
        ) from error


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise SubjectError(
            f"the weights {path} need a library that cannot be imported ({error}): "
            "pip install 'theodolite[safetensors]'"
        ) from error
    try:
        return load_file(path)
    except SafetensorError as error:
        raise SubjectError(
            f"the weights {path} are damaged ({error}): get the file again"
        ) from error


def _tensors(read: Any, path: Path | str) -> dict[str, Tensor]:
    """Return the tensors by name, from a state dict or a checkpoint with one."""
    for home in ("", *_HOMES):
        tensors = read.get(home) if home and isinstance(read, Mapping) else read
        if isinstance(tensors, Mapping):
            kept = {k: v for k, v in tensors.items() if isinstance(v, Tensor)}
            if kept and all(isinstance(name, str) for name in kept):
                return kept
    raise SubjectError(
        f"the weights {path} hold a {type(read).__name__} without named tensors: save "
        "model.state_dict()"
    )


def _renamed(tensors: dict[str, Tensor], wanted: set[str]) -> dict[str, Tensor]:
    """Remove prefixes of wrappers from all names, if more names match then."""
    choices = [tensors]
    for prefix in _PREFIXES:
        if all(name.startswith(prefix) for name in tensors):
            choices.append({k.removeprefix(prefix): v for k, v in tensors.items()})
        choices.append({f"{prefix}{name}": v for name, v in tensors.items()})
    return max(choices, key=lambda one: len(wanted & set(one)))


def _check(
    tensors: Mapping[str, Tensor], state: Mapping[str, Tensor], path: Path | str
) -> None:
    # Batch counters have no effect on measurements.
    missing = [n for n in state if n not in tensors and "num_batches_tracked" not in n]
    if missing:
        spare = [name for name in tensors if name not in state]
        has = f" and have {spare[0]!r}, which the model lacks" if spare else ""
        raise SubjectError(
            f"the weights {path} lack {len(missing)} of {len(state)} tensors of the "
            f"model, such as {missing[0]!r}{has}: name the model that they are of"
        )
    for name, tensor in state.items():
        if name not in tensors:
            continue
        if odd := _oddity(tensors[name], tensor):
            raise SubjectError(
                f"the weights {path} have {name!r} {odd}, and plain numbers are "
                "wanted: save the state_dict() of the model before it was converted"
            )
        if tensors[name].shape != tensor.shape:
            raise SubjectError(
                f"the weights {path} have {name!r} of shape "
                f"{tuple(tensors[name].shape)} and the model of {tuple(tensor.shape)}: "
                "name the model that they are of, with its arguments"
            )


def _oddity(given: Tensor, wanted: Tensor) -> str:
    """Return why a tensor cannot be copied as it is, or an empty string."""
    if given.is_meta:
        return "on the meta device, without numbers"
    if given.is_quantized or (given.is_floating_point() and given.itemsize < 2):
        return f"quantised, as {given.dtype}"
    if given.is_nested or given.layout != torch.strided:
        return f"{'nested' if given.is_nested else given.layout}"
    kinds = [(one.is_complex(), one.is_floating_point()) for one in (given, wanted)]
    # Whole numbers that count batches may be stored as real ones.
    if kinds[0] != kinds[1] and not (wanted.ndim == 0 and not given.is_complex()):
        return f"of {given.dtype} where the model has {wanted.dtype}"
    return ""
