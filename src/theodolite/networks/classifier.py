"""Plain ReLU classifiers whose layers start at a set Frobenius norm."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import ClassifierBlueprint, ConfigError, stream

from .layers import uninitialised_conv, uninitialised_linear

_EPS = 1e-5  # added to variances, as torch's batch norms do


class ClassifierNetwork(nn.Module):
    """Bias-free layers with ReLU between them; the last one is linear.

    ``layers`` holds all layers except the last, which is ``head``; ``norms`` holds the
    norm after each of them. ``blueprint`` is the blueprint it was built from.
    """

    def __init__(self, blueprint: ClassifierBlueprint) -> None:
        super().__init__()
        self.blueprint = blueprint
        images = blueprint.family == "convolutional"
        self.layers = nn.ModuleList()
        self.norms = nn.ModuleList()
        for into, _, _ in blueprint.maps[:-1]:
            self.layers.append(_layer(into, blueprint.width, images=images))
            self.norms.append(_norm(blueprint, images=images))
        self.head: Any = uninitialised_linear(
            blueprint.features, blueprint.outputs, bias=False
        )

    @property
    def weights(self) -> list[nn.Parameter]:
        """Weights of every layer in the order applied."""
        layers: list[Any] = [*self.layers, self.head]
        return [layer.weight for layer in layers]

    def forward(self, x: Tensor) -> Tensor:
        """Map a batch of samples to outputs, (samples, outputs)."""
        return self.head(self.read_features(x))

    def read_features(self, x: Tensor) -> Tensor:
        """Return the inputs of the last layer."""
        shape = self.blueprint.inputs
        if tuple(x.shape[1:]) != shape and x[0].numel() != int(np.prod(shape)):
            raise ConfigError(
                f"samples of shape {tuple(x.shape[1:])}: this network wants {shape}"
            )
        images = self.blueprint.family == "convolutional"
        x = x.reshape(len(x), *shape) if images else x.flatten(1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = norm(layer(x)).relu()
        return x.flatten(1)

    def set_weights(self, matrices: Sequence[Tensor]) -> None:
        """Copy matrices, one per layer, into the weights."""
        with torch.no_grad():
            for weight, matrix in zip(self.weights, matrices, strict=True):
                weight.copy_(matrix.reshape(weight.shape))

    def set_statistics(self, statistics: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Set means and variances for eval mode, one pair per normalised layer."""
        norms: list[Any] = [m for m in self.norms if not isinstance(m, nn.Identity)]
        with torch.no_grad():
            for norm, (mean, variance) in zip(norms, statistics, strict=True):
                norm.running_mean.copy_(mean)
                norm.running_var.copy_(variance)


def initial_classifier_weights(
    blueprint: ClassifierBlueprint, *, seed: int
) -> list[np.ndarray]:
    """Return the matrix of every layer: normal, then scaled to ``start_norm``.

    Blueprints that differ in ``start_norm`` or ``norm`` alone start in the same
    direction.

    Example:
        >>> plan = ClassifierBlueprint(inputs=(6,), width=3, start_norm=5.0)
        >>> weights = initial_classifier_weights(plan, seed=0)
        >>> [round(float(np.linalg.norm(matrix)), 6) for matrix in weights]
        [5.0, 5.0, 5.0, 5.0]
    """
    rng = stream(seed)
    samples = [rng.normal(size=shape) for shape in blueprint.shapes]
    return [blueprint.start_norm * m / np.linalg.norm(m) for m in samples]


def build_classifier(
    blueprint: ClassifierBlueprint, *, seed: int, dtype: torch.dtype
) -> ClassifierNetwork:
    """Make a classifier with weights drawn by NumPy."""
    network = ClassifierNetwork(blueprint).to(dtype)
    network.set_weights(
        [torch.as_tensor(m) for m in initial_classifier_weights(blueprint, seed=seed)]
    )
    return network


def _layer(into: int, out: int, *, images: bool) -> nn.Module:
    if not images:
        return uninitialised_linear(into, out, bias=False)
    return uninitialised_conv(into, out, 3, stride=2, padding=1, bias=False)


def _norm(blueprint: ClassifierBlueprint, *, images: bool) -> nn.Module:
    if blueprint.norm == "none":
        return nn.Identity()
    kind = nn.BatchNorm2d if images else nn.BatchNorm1d
    return kind(blueprint.width, affine=False, eps=_EPS)
