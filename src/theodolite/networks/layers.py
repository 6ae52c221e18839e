"""Layers for builders that draw all weights themselves; checks of inputs."""

from typing import Any

from torch import Tensor, nn

from theodolite.core import ConfigError


class _Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Leave the weights uninitialised."""


class _Conv2d(nn.Conv2d):
    def reset_parameters(self) -> None:
        """Leave the weights uninitialised."""


def uninitialised_linear(inputs: int, outputs: int, **settings: Any) -> nn.Linear:
    """Make a linear layer without drawing its weights.

    ``torch.nn.utils.skip_init`` does the same, but makes each layer twice and takes ten
    times as long. Torch's generator is not used.
    """
    layer: Any = _Linear(inputs, outputs, device="cpu", **settings)
    layer.__class__ = nn.Linear
    return layer


def uninitialised_conv(into: int, out: int, kernel: int, **settings: Any) -> nn.Conv2d:
    """Make a convolution without drawing its weights."""
    layer: Any = _Conv2d(into, out, kernel, device="cpu", **settings)
    layer.__class__ = nn.Conv2d
    return layer


def same_conv(into: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Make an uninitialised convolution without bias, padded to keep the size."""
    settings = {"stride": stride, "padding": kernel // 2, "bias": False}
    return uninitialised_conv(into, out, kernel, **settings)


def image_norm(channels: int) -> nn.BatchNorm2d:
    """Make a batch norm that does not count batches.

    Only averages over all steps need the count, and it costs one kernel per layer.
    """
    norm = nn.BatchNorm2d(channels)
    norm.num_batches_tracked = None
    return norm


def require_images(x: Tensor, channels: int) -> None:
    """Raise if a batch is not (samples, channels, height, width)."""
    if x.ndim != 4 or x.shape[1] != channels:
        raise ConfigError(
            f"input of shape {tuple(x.shape)}: this network wants (samples, "
            f"{channels}, height, width); move the channels to the second place"
        )


def require_rows(x: Tensor, width: int, advice: str) -> None:
    """Raise if a batch is not (samples, width)."""
    if x.ndim != 2 or x.shape[1] != width:
        raise ConfigError(
            f"input of shape {tuple(x.shape)}: this network wants (samples, "
            f"{width}); {advice} the data to that width"
        )
