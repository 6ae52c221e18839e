"""Neural collapse of two classes, by the textbook formulas."""

import numpy as np

from theodolite.core import Row


def collapse(
    features: np.ndarray, last: np.ndarray, outputs: np.ndarray, y: np.ndarray
) -> list[Row]:
    """Return what the four properties say of features of two equally large classes.

    Args:
        features: Last hidden layer, a row a sample.
        last: The last layer's weights.
        outputs: What the network says.
        y: Labels -1 and +1.
    """
    means = [features[y == sign].mean(axis=0) for sign in (1, -1)]
    within = np.concatenate(
        [features[y == s] - m for s, m in zip((1, -1), means, strict=True)]
    )
    half = (means[0] - means[1]) / 2
    length = np.linalg.norm(half)
    # tr(S_W S_B^+)/2 with S_B = half half^T, of rank one.
    within_share = float(np.mean((within @ half) ** 2) / (2 * length**4))
    centre = (means[0] + means[1]) / 2
    nearest = _nearest(features, means)
    found = {
        "within_share": within_share,
        "raw_cosine": _cosine(means[0], means[1]),
        "centred_cosine": _cosine(means[0] - centre, means[1] - centre),
        "dual_cosine": _cosine(last, half),
        "nearest_agreement": float(np.mean(nearest == np.sign(outputs))),
    }
    return [{"quantity": k, "value": v} for k, v in found.items()]


def _nearest(features: np.ndarray, means: list[np.ndarray]) -> np.ndarray:
    away = [np.linalg.norm(features - mean, axis=1) for mean in means]
    return np.where(away[0] < away[1], 1.0, -1.0)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
