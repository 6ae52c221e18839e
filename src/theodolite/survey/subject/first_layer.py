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
_LENGTHS, _CODES = (16, 32, 8, 64, 128, 4), (16, 32, 8)


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
    kinds = list(_declared(model))
    count = 0
    for name, layer in model.named_modules():
        of_layer = list(_of_layer(layer, f"{type(layer).__name__} {name!r}"))
        kinds += of_layer
        count += bool(of_layer)
        # The first layers are enough: later ones read other values.
        if count == 4:
            break
    first: dict[tuple[Any, ...], Wanted] = {}
    for one in kinds:
        first.setdefault((one.shape, one.ids), one)
    yield from first.values()


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
    elif isinstance(layer, nn.modules.conv._ConvNd):
        axes = len(layer.kernel_size)
        strides = max(layer.stride) > 1 or max(layer.kernel_size) > 5
        sides = {1: _SIGNALS, 2: _LARGE if strides else _SMALL, 3: _VOLUMES}[axes]
        for side in _CODES if layer.transposed else sides:
            if side >= max(layer.kernel_size):
                yield Wanted((layer.in_channels, *(side,) * axes), because=what)
    elif isinstance(layer, nn.Linear):
        yield from _rows(layer.in_features, what)
        for channels in (1, 3):  # of a square image that is flattened
            side = math.isqrt(layer.in_features // channels)
            if side > 1 and channels * side * side == layer.in_features:
                yield Wanted((channels, side, side), because=what)
                yield Wanted((side, side), because=what)
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
    elif not any(True for _ in layer.children()):  # of a class of the user's own
        own = [p for p in layer.parameters(recurse=False) if p.ndim == 2]
        for width in dict.fromkeys(n for p in own for n in reversed(p.shape)):
            yield from _rows(int(width), what)


def _rows(width: int, what: str) -> Iterator[Wanted]:
    yield Wanted((width,), because=what)
    yield Wanted((_LENGTHS[0], width), because=what)


def required_arguments(model: nn.Module) -> list[str]:
    """Return the names of the arguments of ``forward`` without a default."""
    try:
        given = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    gathered = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = (one for one in given if one.default is inspect.Parameter.empty)
    return [one.name for one in needed if one.kind not in gathered]
