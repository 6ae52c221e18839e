"""Data for a model: a named dataset, a folder of images, or arrays in a file."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from theodolite import data as datasets
from theodolite.core import DataError, SubjectError, error_text, stream, unknown_name
from theodolite.instruments import Batches

from .made_up import find_inputs, place_of, run_once


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
        inputs, targets = datasets.read_npz(path)
        said = f"{path}, {len(inputs):,} samples"
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


def _shaped(x: Tensor, model: nn.Module) -> tuple[Tensor, str]:
    """Return samples in the model's shape, and words for the changes made."""
    device, dtype = place_of(model)
    if x.dtype == torch.uint8:
        x = x.float() / 255
    whole = not x.is_floating_point()
    x = x.to(device, torch.int64 if whole else dtype)
    first: Exception | None = None
    for changed, how in ((x, ""), (x.flatten(1), ", flattened")):
        try:
            outputs = run_once(model, changed[:2])
        except Exception as error:
            first = first or error
            continue
        if not isinstance(outputs, Tensor) or len(outputs) == len(changed[:2]):
            return changed, how
    raise SubjectError(
        f"the model does not take the data, whose samples are of shape "
        f"{tuple(x.shape[1:])} ({error_text(first or SubjectError('none'))[:200]}): "
        "pass data of the shape that it was made for"
    )
