"""Transformations that the papers apply to data; pure functions of arrays."""

from dataclasses import dataclass

import numpy as np

from theodolite.core import (
    ConfigError,
    DataError,
    Numbers,
    as_numbers,
    as_real,
    convert_fields,
    unknown_name,
)

from .dataset import Dataset

# Numbers that are converted to float64 at a time.
_CHUNK = 2**20


def unit_norm(x: Numbers) -> np.ndarray:
    """Scale rows to Euclidean norm 1; inputs of any shape are flattened to rows.

    Example:
        >>> unit_norm(np.array([[3.0, 4.0]]))
        array([[0.6, 0.8]])
    """
    rows = _rows(x)
    # Dividing by the largest entry first keeps squares from overflowing.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    zero = np.flatnonzero(largest == 0)
    if zero.size:
        raise DataError(
            f"row {zero[0]} (of {zero.size} such) is zero and has no direction: drop "
            "the zero rows before unit_norm"
        )
    rows = rows / largest
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class ChannelStatistics:
    """Mean and standard deviation of each channel, of pixels in [0, 1].

    Attributes:
        mean: One number per channel.
        std: One number per channel (``ddof=0``).
    """

    mean: np.ndarray
    std: np.ndarray

    def __post_init__(self) -> None:
        convert_fields(self, mean=("channels",))
        convert_fields(self, std=self.mean.shape)

    def apply(
        self, images: Numbers, dtype: type | np.dtype | str = np.float32
    ) -> np.ndarray:
        """Subtract the mean and divide by the deviation, channel by channel.

        The arithmetic is float64, some images at a time, for every result type.
        """
        images = _channels_last(images)
        if images.shape[-1] != len(self.mean) and len(self.mean) > 1:
            raise DataError(
                f"images of shape {images.shape} do not have the {len(self.mean)} "
                "channels of these statistics: pass images of the same kind"
            )
        scale = 255.0 if images.dtype == np.uint8 else 1.0
        out = np.empty(images.shape, _floating(dtype))
        step = max(1, _CHUNK // max(1, images[0].size))
        for start in range(0, len(images), step):
            part = as_numbers(
                "images", images[start : start + step], ..., error=DataError
            )
            out[start : start + step] = (part - scale * self.mean) / (scale * self.std)
        return out


def standardise_channels(
    images: Numbers, dtype: type | np.dtype | str = np.float32
) -> tuple[np.ndarray, ChannelStatistics]:
    """Return images whose channels have mean 0 and standard deviation 1.

    Args:
        images: (N, H, W) of one channel or (N, H, W, C); uint8 is divided by 255.
        dtype: Dtype of the result; statistics are always float64.

    Returns:
        The images and the statistics, whose ``apply`` does the same to a test set.

    Example:
        >>> train = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
        >>> scaled, statistics = standardise_channels(train)
        >>> float(statistics.mean[0] * 255)
        3.5
    """
    given = _channels_last(images)
    n_channels = given.shape[3] if given.ndim == 4 else 1
    columns = given.reshape(-1, n_channels)
    if given.dtype == np.uint8:
        # Counting values is exact and needs no float copy of the images.
        levels = np.arange(256) / 255.0
        share = np.stack([np.bincount(c, minlength=256) for c in columns.T])
        share = share / len(columns)
        mean = share @ levels
        std = np.sqrt((share * (levels - mean[:, None]) ** 2).sum(axis=1))
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # seen just below
            mean = columns.mean(axis=0, dtype=np.float64)
            std = columns.std(axis=0, dtype=np.float64)
    if not np.isfinite(std).all():
        raise DataError(
            "images hold NaN, infinity or numbers whose squares overflow: clean or "
            "scale them first"
        )
    if flat := [place for place, value in enumerate(std) if not value > 0]:
        raise DataError(
            f"channel {flat[0]} has the same value in every pixel and cannot be "
            "brought to deviation 1: drop the channel or check the images"
        )
    statistics = ChannelStatistics(mean, std)
    return statistics.apply(images, dtype), statistics


def two_classes(dataset: Dataset, a: int | str, b: int | str) -> Dataset:
    """Return the samples of two classes, labelled 0 for ``a`` and 1 for ``b``.

    The labels -1 and +1 are ``two_classes(…).signs()``.

    Args:
        dataset: Any dataset.
        a: First class, by number or name.
        b: Second class.
    """
    first, second = (_class_number(dataset, given) for given in (a, b))
    if first == second:
        raise DataError(
            f"both classes are {dataset.class_names[first]!r}: name two different ones"
        )
    kept = dataset.subset(np.isin(dataset.labels, (first, second)))
    return Dataset(
        name=dataset.name,
        split=dataset.split,
        inputs=kept.inputs,
        labels=(kept.labels == second).astype(np.int64),
        class_names=(dataset.class_names[first], dataset.class_names[second]),
        origin=dataset.origin,
        verified=dataset.verified,
    )


def _class_number(dataset: Dataset, given: int | str) -> int:
    if isinstance(given, str):
        if given not in dataset.class_names:
            raise unknown_name(f"class of {dataset.name}", given, dataset.class_names)
        return dataset.class_names.index(given)
    if not 0 <= given < dataset.n_classes:
        raise DataError(
            f"{dataset.name} has no class {given!r}: pass 0 to "
            f"{dataset.n_classes - 1}, or a class name"
        )
    return int(given)


def _floating(dtype: type | np.dtype | str) -> np.dtype:
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = None
    if kind is None or kind.kind != "f":
        raise ConfigError(f"dtype is {dtype!r}: pass a float type, such as np.float32")
    return kind


def _channels_last(images: Numbers) -> np.ndarray:
    images = as_real("images", images, error=DataError)
    if images.ndim not in (3, 4) or images.size == 0:
        raise DataError(
            f"images have shape {images.shape}: pass (N, H, W) or (N, H, W, C)"
        )
    return images


def _rows(x: Numbers) -> np.ndarray:
    x = as_numbers("x", x, ..., error=DataError)
    if x.ndim < 2 or x.size == 0:
        raise DataError(f"samples have shape {x.shape}: pass at least one row (N, d)")
    return x.reshape(len(x), -1)
