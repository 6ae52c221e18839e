"""Named datasets as arrays: found, checked, never trusted."""

from typing import TYPE_CHECKING

from theodolite.core import attach
from theodolite.data.cache import cache_folder, clear_cache
from theodolite.data.condense import condense
from theodolite.data.dataset import Dataset
from theodolite.data.listing import Listing, available
from theodolite.data.loading import load, needs_folder
from theodolite.data.provided import packed, provide, unpacked, withdraw
from theodolite.data.targets import one_hot
from theodolite.data.transforms import (
    ChannelStatistics,
    standardise_channels,
    two_classes,
    unit_norm,
)
from theodolite.data.whitening import Whitening, whiten

if TYPE_CHECKING:
    from theodolite.data.augmentation import augment

# Only augmentation needs torch: it is loaded when first used.
__getattr__, _, _ = attach(__name__, {"augmentation": ["augment"]})

__all__ = [
    "ChannelStatistics",
    "Dataset",
    "Listing",
    "Whitening",
    "augment",
    "available",
    "cache_folder",
    "clear_cache",
    "condense",
    "load",
    "needs_folder",
    "one_hot",
    "packed",
    "provide",
    "standardise_channels",
    "two_classes",
    "unit_norm",
    "unpacked",
    "whiten",
    "withdraw",
]
