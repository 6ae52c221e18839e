"""MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, from files that the user has."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from theodolite.core import DataError, unknown_name
from theodolite.data import checksums, class_names
from theodolite.data.cache import remembered
from theodolite.data.cifar import read_cifar10, read_cifar100
from theodolite.data.dataset import Dataset
from theodolite.data.files import shown
from theodolite.data.folders import Found, Layout, data_folder, locate
from theodolite.data.idx import read_idx

_IDX_PREFIX = {"train": "train", "test": "t10k"}
_CIFAR10_BATCHES = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}


@dataclass(frozen=True, kw_only=True)
class Published:
    """A dataset that others publish: where to look, how to read, what to expect.

    Attributes:
        name: Registered name.
        origin: One sentence on where it comes from.
        home: The usual folder of its files, for messages.
        how_to: How to get them.
        places: Folders below the user's to look into, in order.
        layouts: The ways to store a split.
        read: Reads images and labels from the files found.
        kinds: Kinds of label, in the order of the label columns, with class names.
    """

    name: str
    origin: str
    home: str
    how_to: str
    places: tuple[str, ...]
    layouts: Callable[[str], tuple[Layout, ...]]
    read: Callable[[Found], tuple[np.ndarray, np.ndarray]]
    kinds: dict[str, tuple[str, ...]]

    def find(self, split: str, folder: str | Path | None) -> Found:
        """Return the files of a split."""
        layouts = self.layouts(split)
        wanted = f"{self.home}/{layouts[0].files[0][-1]} and what goes with it"
        at = data_folder(self.name, folder, wanted)
        return locate(
            f"{self.name} {split}",
            at,
            self.places,
            layouts,
            wanted=wanted,
            how_to=self.how_to,
        )

    def load(
        self, split: str, folder: str | Path | None, verify: bool, kind: str
    ) -> Dataset:
        """Return a split, compared with its published checksums if ``verify``."""
        if kind not in self.kinds:
            raise unknown_name(f"kind of {self.name} label", kind, self.kinds)
        found = self.find(split, folder)
        label = f"{self.name}-{split}"
        arrays = remembered(label, found.files, lambda: self._build(found))
        verified = verify and checksums.judge(
            self.name, split, arrays, found.files, how_to=self.how_to
        )
        labels = arrays.labels
        if labels.ndim > 1:
            labels = labels[:, list(self.kinds).index(kind)]
        return Dataset(
            name=self.name,
            split=split,
            inputs=arrays.inputs,
            labels=labels,
            class_names=self.kinds[kind],
            origin=self.origin,
            verified=verified,
        )

    def _build(self, found: Found) -> checksums.Decoded:
        images, labels = self.read(found)
        columns = labels.reshape(len(labels), -1)
        for column, names in zip(columns.T, self.kinds.values(), strict=True):
            if len(column) and (top := int(column.max())) >= len(names):
                raise DataError(
                    f"{shown(found.files[-1])} holds the label {top}, {self.name} has "
                    f"classes 0 to {len(names) - 1}: it is damaged or another "
                    f"dataset's; {self.how_to}"
                )
        match = checksums.files_match(self.name, found.files)
        return checksums.decoded(images, labels, match)


def _read_idx_pair(found: Found) -> tuple[np.ndarray, np.ndarray]:
    images, labels = read_idx(found.files[0], 3), read_idx(found.files[1], 1)
    if len(images) != len(labels):
        raise DataError(
            f"{shown(found.files[1])} has {len(labels):,} labels for the "
            f"{len(images):,} images of {shown(found.files[0].name)}: take both "
            "files from one distribution"
        )
    return images, np.array(labels)


def _idx_layouts(split: str) -> tuple[Layout, ...]:
    prefix = _IDX_PREFIX[split]

    def names(what: str) -> tuple[str, ...]:
        dashed = f"{prefix}-{what}-ubyte"
        dotted = dashed.replace("-idx", ".idx")
        return dashed, dotted, f"{dotted}.gz", f"{dashed}.gz"

    return (Layout("IDX", (names("images-idx3"), names("labels-idx1"))),)


def _cifar10_layouts(split: str) -> tuple[Layout, ...]:
    batches = _CIFAR10_BATCHES[split]
    packed = (*(f"{batch}.xz" for batch in batches), f"{split}_labels.npy")
    return (
        Layout("pickle", tuple((batch,) for batch in batches)),
        Layout("binary", tuple((f"{batch}.bin",) for batch in batches)),
        Layout("delta xz", tuple((name,) for name in packed)),
    )


def _cifar100_layouts(split: str) -> tuple[Layout, ...]:
    return (
        Layout("pickle", ((split,),)),
        Layout("binary", ((f"{split}.bin",),)),
    )


def _cifar_places(number: int) -> tuple[str, ...]:
    inner = (
        ("cifar-10-batches-py", "cifar-10-batches-bin")
        if number == 10
        else ("cifar-100-python", "cifar-100-binary")
    )
    roots = (f"cifar{number}", f"CIFAR{number}", f"cifar-{number}", ".")
    nested = tuple(f"{root}/{name}" for root in roots for name in inner)
    return (*roots[:-1], *nested, ".")


MNIST = Published(
    name="mnist",
    origin=(
        "Handwritten digits by LeCun, Cortes and Burges (1998), The MNIST database of "
        "handwritten digits."
    ),
    home="mnist",
    how_to=(
        "put the four .gz files of MNIST (for instance from "
        "https://ossci-datasets.s3.amazonaws.com/mnist/) into mnist/ in the data folder"
    ),
    places=("mnist", "MNIST/raw", "MNIST", "."),
    layouts=_idx_layouts,
    read=_read_idx_pair,
    kinds={"class": class_names.DIGITS},
)

FASHION_MNIST = Published(
    name="fashion-mnist",
    origin=(
        "Pictures of clothes by Xiao, Rasul and Vollgraf (2017), Fashion-MNIST, from "
        "Zalando Research."
    ),
    home="fashion-mnist",
    how_to=(
        "put the four .gz files of https://github.com/zalandoresearch/fashion-mnist "
        "into fashion-mnist/ in the data folder"
    ),
    places=(
        "fashion-mnist",
        "fashion_mnist",
        "FashionMNIST/raw",
        "FashionMNIST",
        ".",
    ),
    layouts=_idx_layouts,
    read=_read_idx_pair,
    kinds={"class": class_names.FASHION},
)

CIFAR10 = Published(
    name="cifar10",
    origin=(
        "Photographs by Krizhevsky, Nair and Hinton, in Krizhevsky (2009), Learning "
        "Multiple Layers of Features from Tiny Images."
    ),
    home="cifar-10-batches-py",
    how_to=(
        "unpack cifar-10-python.tar.gz from "
        "https://www.cs.toronto.edu/~kriz/cifar.html in the data folder"
    ),
    places=_cifar_places(10),
    layouts=_cifar10_layouts,
    read=read_cifar10,
    kinds={"class": class_names.CIFAR10},
)

CIFAR100 = Published(
    name="cifar100",
    origin=(
        "Photographs in 100 fine and 20 coarse classes by Krizhevsky (2009), Learning "
        "Multiple Layers of Features from Tiny Images."
    ),
    home="cifar-100-python",
    how_to=(
        "unpack cifar-100-python.tar.gz from "
        "https://www.cs.toronto.edu/~kriz/cifar.html in the data folder"
    ),
    places=_cifar_places(100),
    layouts=_cifar100_layouts,
    read=read_cifar100,
    kinds={
        "coarse": class_names.CIFAR100_COARSE,
        "fine": class_names.CIFAR100_FINE,
    },
)
