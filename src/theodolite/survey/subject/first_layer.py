"""Guess the inputs that a model takes from its first layers."""

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

# Image sizes, tried in this order; a stem with stride expects larger images.
_SMALL = (32, 28, 64, 224, 96, 128, 16, 256, 8, 299)
_LARGE = (64, 224, 96, 128, 32, 256, 299, 384, 512)
_VOLUMES, _SIGNALS = (16, 32, 64), (64, 256, 1024, 4096, 16000)
_LENGTHS = (16, 32, 8, 64, 128, 4)

# Layers that fix channels but no size: spatial axes, attribute with the channels.
_BY_CHANNELS: dict[type, tuple[int, str]] = {
    nn.BatchNorm2d: (2, "num_features"),
    nn.BatchNorm3d: (3, "num_features"),
    nn.InstanceNorm1d: (1, "num_features"),
    nn.InstanceNorm2d: (2, "num_features"),
    nn.InstanceNorm3d: (3, "num_features"),
    nn.GroupNorm: (2, "num_channels"),
    nn.ConvTranspose1d: (1, "in_channels"),
    nn.ConvTranspose2d: (2, "in_channels"),
    nn.ConvTranspose3d: (3, "in_channels"),
}


@dataclass(frozen=True)
class Wanted:
    """A kind of input that a layer accepts.

    Attributes:
        shape: Shape of one sample.
        ids: Number of token ids to draw from; 0 for real numbers.
        because: The layer that suggests it, in words.
    """

    shape: tuple[int, ...]
    ids: int = 0
    because: str = ""

    def __str__(self) -> str:
        size = "×".join(map(str, self.shape))
        return f"token ids below {self.ids}, {size}" if self.ids else f"Gaussian {size}"


def candidates(model: nn.Module) -> Iterator[Wanted]:
    """Yield kinds of inputs that a model may take, most likely first."""
    seen: set[tuple[Any, ...]] = set()
    for one in _all(model):
        key = one.shape, one.ids
        if key not in seen:
            seen.add(key)
            yield one


def _all(model: nn.Module) -> Iterator[Wanted]:
    yield from _declared(model)
    count = 0
    for name, layer in model.named_modules():
        kinds = list(_of_layer(layer, f"{type(layer).__name__} {name!r}"))
        yield from kinds
        count += bool(kinds)
        # The first layers are enough: later ones read other values.
        if count == 4:
            return


def _declared(model: nn.Module) -> Iterator[Wanted]:
    """Yield inputs that a model declares, as those of timm and torchvision do."""
    example = getattr(model, "example_input_array", None)  # of Lightning
    if isinstance(example, torch.Tensor) and example.ndim > 1:
        if example.is_floating_point():
            yield Wanted(tuple(example.shape[1:]), because="its example_input_array")
    for holder in ("default_cfg", "pretrained_cfg"):
        settings = getattr(model, holder, None)
        size = settings.get("input_size") if isinstance(settings, dict) else None
        if isinstance(size, tuple | list) and len(size) == 3:
            yield Wanted(tuple(size), because=f"its {holder}")
    channels = next(
        (m.in_channels for m in model.modules() if isinstance(m, nn.Conv2d)), 0
    )
    for name in ("image_size", "img_size", "input_size"):
        side = getattr(model, name, None)
        side = side[0] if isinstance(side, tuple | list) and side else side
        if channels and isinstance(side, int) and not isinstance(side, bool):
            yield Wanted((channels, side, side), because=f"its {name}")


def _of_layer(layer: nn.Module, what: str) -> Iterator[Wanted]:
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
        for length in _LENGTHS:
            yield Wanted((length,), layer.num_embeddings, what)
    elif isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        yield from _images(layer, what)
    elif isinstance(layer, nn.Linear):
        yield from _rows(layer.in_features, what)
        yield from _flattened(layer.in_features, what)
    elif isinstance(layer, nn.Bilinear):
        return
    elif isinstance(layer, nn.RNNBase):
        yield Wanted((_LENGTHS[0], layer.input_size), because=what)
    elif isinstance(layer, nn.RNNCellBase):
        yield Wanted((layer.input_size,), because=what)
    elif isinstance(layer, nn.MultiheadAttention):
        yield Wanted((_LENGTHS[0], layer.embed_dim), because=what)
    elif isinstance(layer, nn.LayerNorm):
        yield from _rows(layer.normalized_shape[-1], what)
    elif isinstance(layer, nn.BatchNorm1d):
        yield from _rows(layer.num_features, what)
    elif type(layer) in _BY_CHANNELS:
        axes, channels = _BY_CHANNELS[type(layer)]
        for side in (16, 32, 8):
            yield Wanted((getattr(layer, channels), *(side,) * axes), because=what)
    else:
        yield from _of_parameters(layer, what)


def _images(layer: Any, what: str) -> Iterator[Wanted]:
    axes = len(layer.kernel_size)
    strides = max(layer.stride) > 1 or max(layer.kernel_size) > 5
    sides = {1: _SIGNALS, 2: _LARGE if strides else _SMALL, 3: _VOLUMES}[axes]
    for side in sides:
        if side >= max(layer.kernel_size):
            yield Wanted((layer.in_channels, *(side,) * axes), because=what)


def _rows(width: int, what: str) -> Iterator[Wanted]:
    yield Wanted((width,), because=what)
    yield Wanted((_LENGTHS[0], width), because=what)


def _flattened(width: int, what: str) -> Iterator[Wanted]:
    """Yield shapes of square images with ``width`` numbers, for models that flatten."""
    for channels in (1, 3):
        side = math.isqrt(width // channels)
        if side > 1 and channels * side * side == width:
            yield Wanted((channels, side, side), because=what)
            yield Wanted((side, side), because=what)


def _of_parameters(layer: nn.Module, what: str) -> Iterator[Wanted]:
    """Yield inputs for a layer of an unknown class, by its largest weight."""
    if any(True for _ in layer.children()):
        return
    own = [p for p in layer.parameters(recurse=False) if p.ndim == 2]
    for width in dict.fromkeys(n for p in own for n in reversed(p.shape)):
        yield from _rows(int(width), what)


def required_arguments(model: nn.Module) -> list[str]:
    """Return the names of the arguments of ``forward`` without a default."""
    try:
        given = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        one.name
        for one in given
        if one.default is inspect.Parameter.empty and one.kind in (*plain, keyword)
    ]
