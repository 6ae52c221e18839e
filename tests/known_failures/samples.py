"""What patients learn from: classes that can be told apart, drawn from a seed."""

import torch

from tests.known_failures.cases import BatchList
from tests.known_failures.seeds import seed_of

N_CLASSES = 4


def clouds(
    n_samples: int = 64, *, features: int = 16, n_batches: int = 2, seed: int = 0
) -> BatchList:
    """Draw Gaussian clouds, a class each, of mean 0 and variance 1 a feature."""
    return _drawn(n_samples, (features,), n_batches, seed)


def pictures(
    n_samples: int = 16, *, channels: int = 3, size: int = 8, n_batches: int = 2
) -> BatchList:
    """Draw images around a pattern a class."""
    return _drawn(n_samples, (channels, size, size), n_batches, seed=1)


def sequences(
    n_samples: int = 16, *, length: int = 6, width: int = 16, n_batches: int = 2
) -> BatchList:
    """Draw sequences of vectors around one a class."""
    return _drawn(n_samples, (length, width), n_batches, seed=2)


def sentences(
    n_samples: int = 16, *, length: int = 6, words: int = 12, n_batches: int = 2
) -> BatchList:
    """Draw rows of words; the class is the first word's remainder."""
    generator = torch.Generator().manual_seed(seed_of(3))
    batches: BatchList = []
    for _ in range(n_batches):
        tokens = torch.randint(words, (n_samples, length), generator=generator)
        batches.append((tokens, tokens[:, 0] % N_CLASSES))
    return batches


def _drawn(
    n_samples: int, shape: tuple[int, ...], n_batches: int, seed: int
) -> BatchList:
    generator = torch.Generator().manual_seed(seed_of(seed))
    centres = torch.randn(N_CLASSES, *shape, generator=generator)
    batches: BatchList = []
    for _ in range(n_batches):
        labels = torch.randint(N_CLASSES, (n_samples,), generator=generator)
        noise = torch.randn(n_samples, *shape, generator=generator)
        batches.append(((centres[labels] + noise) / 2**0.5, labels))
    return batches
