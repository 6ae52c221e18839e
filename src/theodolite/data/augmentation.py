"""Random crops and flips of image batches, on any device."""

import torch
from torch.nn.functional import pad

from theodolite.core import DataError, Numbers, as_integer, as_real


def augment(
    images: torch.Tensor | Numbers,
    *,
    generator: torch.Generator,
    padding: int = 4,
    flip: bool = True,
) -> torch.Tensor:
    """Return random crops of zero-padded images, half of them mirrored.

    Draws are made on the generator's device, so a CPU generator gives the same crops
    on every device. Zeros mean black for raw pixels and the mean colour for
    standardised ones.

    Args:
        images: (N, C, H, W), a tensor of any dtype and device, or an array or lists of
            real numbers; not changed.
        generator: Source of all randomness.
        padding: Zeros on every side, hence the largest shift.
        flip: Whether to mirror left and right with probability one half.

    Returns:
        A new tensor of the same shape, dtype and device.

    References:
        He et al. (2016), Deep Residual Learning for Image Recognition, section 4.2.
    """
    if not isinstance(images, torch.Tensor):
        images = _tensor(images)
    if images.ndim != 4:
        raise DataError(
            f"images have shape {tuple(images.shape)}: pass a batch (N, C, H, W)"
        )
    as_integer("padding", padding, 0)
    n, channels, height, width = images.shape
    home = images.device

    def draw(top: int) -> torch.Tensor:
        kind = generator.device
        return torch.randint(top, (n, 1), generator=generator, device=kind).to(home)

    rows = draw(2 * padding + 1) + torch.arange(height, device=home)
    columns = draw(2 * padding + 1) + torch.arange(width, device=home)
    if flip:
        columns = torch.where(draw(2) == 1, columns.flip(1), columns)
    padded = pad(images, (padding,) * 4)
    return padded[
        torch.arange(n, device=home)[:, None, None, None],
        torch.arange(channels, device=home)[:, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    ]


def _tensor(images: Numbers) -> torch.Tensor:
    """Return an array or nested lists as a tensor of the same numbers."""
    array = as_real("images", images, error=DataError)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype("float64")  # torch has no longer floats
    return torch.tensor(array.astype(array.dtype.newbyteorder("=")), device="cpu")
