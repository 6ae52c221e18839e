"""Data for a model: a named dataset, a folder of images, or arrays in a file."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from theodolite import data as datasets
from theodolite.core import DataError, SubjectError, error_text, stream, unknown_name
from theodolite.instruments import Batches

from .made_up import find_inputs, place_of, run_once

_INPUTS = ("inputs", "x", "X", "images", "data", "x_train", "input_ids")
_TARGETS = ("labels", "y", "Y", "targets", "label", "y_train")


def read_data(
    source: str, model: nn.Module, *, batch_size: int, n_batches: int, seed: int
) -> tuple[Batches, str]:
    """Return samples in the shape that a model takes.

    Args:
        source: Name of a dataset, folder of images, or ``FILE.npz``.
        model: The model that will read them.
        batch_size: Samples per batch.
        n_batches: Largest number of batches.
        seed: Seed of the choice of samples.

    Returns:
        Batches, with targets if there are any, and a description in words.
    """
    path = Path(source)
    if path.suffix == ".npz":
        inputs, targets, said = _from_file(path)
    elif path.is_dir():
        inputs, targets, said = _from_folder(path, model, seed)
    else:
        inputs, targets, said = _named(source)
    order = stream(seed).permutation(len(inputs))[: batch_size * n_batches]
    x, how = _shaped(torch.from_numpy(np.ascontiguousarray(inputs[order])), model)
    if targets is None:  # a list of tensors would be one batch
        return DataLoader(x, batch_size=batch_size), f"{said}{how}"  # pyright: ignore[reportArgumentType]
    y = torch.from_numpy(np.array(targets[order])).to(place_of(model)[0])
    if y.is_floating_point():
        y = y.to(x.dtype if x.is_floating_point() else torch.float32)
    pairs = zip(x.split(batch_size), y.split(batch_size), strict=True)
    return list(pairs), f"{said}{how}"


def _named(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    known = {one.name for one in datasets.available()}
    if name not in known:
        if "/" in name or "." in name:
            raise DataError(
                f"the data {name} are no folder of images and no .npz file: pass one "
                f"that is there, or a name ({', '.join(sorted(known))})"
            )
        raise unknown_name("dataset", name, known)
    dataset = datasets.load(name)
    return _scaled(dataset.inputs), dataset.labels, f"{name}, {len(dataset):,} samples"


def _from_folder(
    path: Path, model: nn.Module, seed: int
) -> tuple[np.ndarray, np.ndarray, str]:
    wanted = find_inputs(model, seed=seed).wanted
    size = wanted.shape[-1] if len(wanted.shape) == 3 else None
    dataset = datasets.load("imagefolder", folder=path, size=size)
    said = f"images of {path}, {len(dataset):,} samples"
    return _scaled(dataset.inputs), dataset.labels, said


def _scaled(inputs: np.ndarray) -> np.ndarray:
    """Return images (samples, channels, height, width) with mean 0 and deviation 1."""
    if inputs.ndim < 3:
        return np.asarray(inputs, dtype=np.float32)
    scaled, _ = datasets.standardise_channels(inputs)
    scaled = np.asarray(scaled)
    return scaled[:, None] if scaled.ndim == 3 else scaled.transpose(0, 3, 1, 2)


def _from_file(path: Path) -> tuple[np.ndarray, np.ndarray | None, str]:
    try:
        if path.is_file():
            _refuse_others(path)
        with np.load(path, allow_pickle=False) as arrays:
            entries = {name: arrays[name] for name in arrays.files}
    except DataError:
        raise
    except Exception as error:  # a damaged archive may raise anything
        raise DataError(
            f"the data {path} cannot be read ({error_text(error)}): pass a file of "
            "numpy.savez(path, inputs=…, labels=…)"
        ) from error
    # An entry that is no array was read as bytes.
    stored = {name: e for name, e in entries.items() if isinstance(e, np.ndarray)}
    inputs = next((stored[n] for n in _INPUTS if n in stored), None)
    targets = next((stored[n] for n in _TARGETS if n in stored), None)
    if inputs is None:
        names = ", ".join(stored) or "none"
        raise DataError(
            f"the data {path} have the arrays {names} and no real numbers named "
            "'inputs': save them with numpy.savez(path, inputs=…, labels=…)"
        )
    inputs = _numbers(inputs, "inputs", path)
    if targets is not None:
        targets = _numbers(targets, "labels", path)
        if len(targets) != len(inputs):
            raise DataError(
                f"the data {path} have {len(inputs)} inputs and {len(targets)} labels: "
                "save as many of one as of the other"
            )
    return inputs, targets, f"{path}, {len(inputs):,} samples"


def _refuse_others(path: Path) -> None:
    """Raise if a file is no archive; raise OSError if it cannot be read."""
    # Given a path, this would report an unreadable file as no archive.
    with path.open("rb") as file:
        archive = zipfile.is_zipfile(file)
    if not archive:
        raise DataError(
            f"the data {path} are no archive of arrays: pass a file of "
            "numpy.savez(path, inputs=…, labels=…)"
        )


def _numbers(array: np.ndarray, what: str, path: Path) -> np.ndarray:
    """Return real numbers in a dtype and byte order that torch accepts."""
    kind = array.dtype.kind
    if kind not in "fiub" or not array.ndim or not array.size:
        raise DataError(
            f"the data {path} have {what} of type {array.dtype} and shape "
            f"{array.shape}, and real numbers were wanted, a row per sample: save them "
            "with numpy.savez(path, inputs=…, labels=…)"
        )
    if kind == "f":
        return array.astype(
            np.float64 if array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")
        )
    if kind == "u" and array.dtype.itemsize == 8 and array.max() > np.iinfo("i8").max:
        raise DataError(
            f"the data {path} have {what} up to {array.max()}, which torch cannot "
            "hold: save them as int64"
        )
    # Bytes are images, as the model's samples are made of them later.
    plain = array.dtype == np.uint8 and what == "inputs"
    return array if plain else array.astype(np.int64)


def _shaped(x: Tensor, model: nn.Module) -> tuple[Tensor, str]:
    """Return samples in the model's shape, and words for the changes made."""
    device, dtype = place_of(model)
    if x.dtype == torch.uint8:
        x = x.float() / 255
    whole = not x.is_floating_point()
    x = x.to(device, torch.int64 if whole else dtype)
    first: Exception | None = None
    for change, how in _changes(x, model):
        try:
            changed = change(x[:2])
            outputs = run_once(model, changed)
        except Exception as error:
            first = first or error
            continue
        if not isinstance(outputs, Tensor) or len(outputs) == len(changed):
            return change(x), how
    raise SubjectError(
        f"the model does not take the data, whose samples are of shape "
        f"{tuple(x.shape[1:])} ({error_text(first or SubjectError('none'))[:200]}): "
        "pass data of the shape that it was made for"
    )


def _changes(x: Tensor, model: nn.Module) -> list[tuple[Any, str]]:
    """List changes that may make samples fit a model, smallest first."""
    changes: list[tuple[Any, str]] = [(lambda x: x, "")]
    if x.ndim == 4 and x.shape[1] == 1:
        changes.append(
            (lambda x: x.repeat(1, 3, 1, 1), ", grey repeated in 3 channels")
        )
    if x.ndim == 4 and x.shape[3] in (1, 3):
        changes.append((lambda x: x.permute(0, 3, 1, 2), ", channels put first"))
    changes.append((lambda x: x.flatten(1), ", flattened"))
    if x.ndim == 4:
        try:
            wanted = find_inputs(model).wanted.shape
        except SubjectError:
            return changes
        if len(wanted) == 3:
            changes.append(
                (lambda x: _resized(x, wanted), f", resized to {wanted[-1]}")
            )
    return changes


def _resized(x: Tensor, wanted: tuple[int, ...]) -> Tensor:
    if x.shape[1] == 1 and wanted[0] == 3:
        x = x.repeat(1, 3, 1, 1)
    return functional.interpolate(
        x, size=wanted[1:], mode="bilinear", align_corners=False, antialias=True
    )
