r"""What a stack of networks has to see of the data.

A ReLU network needs every sample. A linear one sees $m$ samples only through their
moments: with $X = QR$ (rows are samples) and any matrix $A$,
$\lVert X A^T - Y \rVert^2 = \lVert R A^T - Q^T Y \rVert^2 + \lVert Y - Q Q^T Y
\rVert^2$, so that $R$ and $Q^T Y$ stand in for the data as ``width`` samples. Unlike
$\Sigma_{XX}$ and $\Sigma_{YX}$, they lose no digits where the loss is small.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, ShortcutBlueprint


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples to train on, and how their squared errors make the loss.

    Attributes:
        x: Inputs as float64, shape (samples, width).
        y: Targets, the same shape.
        scale: One over the number of samples that the loss is the mean of.
        constant: What to add to the loss of these samples.
        reduced: Whether few samples stand in for many.
    """

    x: np.ndarray
    y: np.ndarray
    scale: float
    constant: float
    reduced: bool


def gather(
    blueprint: ShortcutBlueprint, x: np.ndarray, y: np.ndarray, *, dtype: str
) -> Samples:
    """Check the data, and reduce it where the blueprint is linear.

    Args:
        blueprint: Architecture that will see the data.
        x: Inputs, shape (samples, width).
        y: Targets, the same shape.
        dtype: Precision to which inputs and targets are rounded first.

    Example:
        >>> x = np.eye(2).repeat(3, axis=0)
        >>> gather(ShortcutBlueprint(width=2, depth=2), x, x, dtype="float64").x.shape
        (2, 2)
    """
    x, y = (np.asarray(part).astype(dtype).astype(np.float64) for part in (x, y))
    wanted = (len(x), blueprint.width)
    if x.ndim != 2 or not len(x) or x.shape != wanted or y.shape != wanted:
        raise ConfigError(
            f"inputs of shape {x.shape} and targets of shape {y.shape} for a network "
            f"of width {blueprint.width}: pass both as (samples, {blueprint.width})"
        )
    scale = 1 / len(x)
    if not blueprint.linear or len(x) <= blueprint.width:
        return Samples(x, y, scale, 0.0, reduced=False)
    basis, inputs = np.linalg.qr(x)
    targets = basis.T @ y
    constant = 0.5 * scale * float(np.square(y - basis @ targets).sum())
    return Samples(inputs, targets, scale, constant, reduced=True)
