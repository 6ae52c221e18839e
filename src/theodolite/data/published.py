"""MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, from files that the user has."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from theodolite.core import DataError, unknown_name

from . import checksums
from .cache import cached
from .cifar import read_cifar10, read_cifar100
from .dataset import Dataset
from .files import Layout, SplitFiles, data_folder, escape, locate
from .idx import read_idx

_IDX_PREFIX = {"train": "train", "test": "t10k"}
_CIFAR10_BATCHES = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}
# Class names, in the order of the labels.
_FASHION_NAMES = (
    *"T-shirt/top Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag".split(),
    "Ankle boot",
)
_CIFAR10_NAMES = tuple(
    "airplane automobile bird cat deer dog frog horse ship truck".split()
)
_CIFAR100_COARSE = tuple(
    """
    aquatic_mammals fish flowers food_containers fruit_and_vegetables
    household_electrical_devices household_furniture insects large_carnivores
    large_man-made_outdoor_things large_natural_outdoor_scenes
    large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people
    reptiles small_mammals trees vehicles_1 vehicles_2
    """.split()
)
_CIFAR100_FINE = tuple(
    """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy
    bridge bus butterfly camel can castle caterpillar cattle chair chimpanzee clock
    cloud cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish
    forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion
    lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange
    orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
    possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper
    snail snake spider squirrel streetcar sunflower sweet_pepper table tank
    telephone television tiger tractor train trout tulip turtle wardrobe whale
    willow_tree wolf woman worm
    """.split()
)


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
        read: Reads images and labels from the files.
        kinds: Kinds of label, in the order of the label columns, with class names.
    """

    name: str
    origin: str
    home: str
    how_to: str
    places: tuple[str, ...]
    layouts: Callable[[str], tuple[Layout, ...]]
    read: Callable[[SplitFiles], tuple[np.ndarray, np.ndarray]]
    kinds: dict[str, tuple[str, ...]]

    def find(self, split: str, folder: str | Path | None) -> SplitFiles:
        """Return the files of a split."""
        layouts = self.layouts(split)
        wanted = f"{self.home}/{layouts[0].files[0][-1]} and what goes with it"
        at = data_folder(self.name, folder, wanted)
        title, how_to = f"{self.name} {split}", self.how_to
        return locate(title, at, self.places, layouts, wanted=wanted, how_to=how_to)

    def load(
        self, split: str, folder: str | Path | None, verify: bool, kind: str
    ) -> Dataset:
        """Return a split, compared with its published checksums if ``verify``."""
        if kind not in self.kinds:
            raise unknown_name(f"kind of {self.name} label", kind, self.kinds)
        files = self.find(split, folder)
        label = f"{self.name}-{split}"
        arrays = cached(label, files.files, lambda: self._build(files))
        verified = verify and checksums.verify(
            self.name, split, arrays, files.files, how_to=self.how_to
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

    def _build(self, files: SplitFiles) -> checksums.Decoded:
        images, labels = self.read(files)
        columns = labels.reshape(len(labels), -1)
        for column, names in zip(columns.T, self.kinds.values(), strict=True):
            if len(column) and (top := int(column.max())) >= len(names):
                raise DataError(
                    f"{escape(files.files[-1])} holds the label {top}, {self.name} has "
                    f"classes 0 to {len(names) - 1}: it is damaged or another "
                    f"dataset's; {self.how_to}"
                )
        match = checksums.files_match(self.name, files.files)
        return checksums.decoded(images, labels, match)


def _read_idx_pair(files: SplitFiles) -> tuple[np.ndarray, np.ndarray]:
    images, labels = read_idx(files.files[0], 3), read_idx(files.files[1], 1)
    if len(images) != len(labels):
        raise DataError(
            f"{escape(files.files[1])} has {len(labels):,} labels for the "
            f"{len(images):,} images of {escape(files.files[0].name)}: take both "
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
    return (Layout("pickle", ((split,),)), Layout("binary", ((f"{split}.bin",),)))


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
    kinds={"class": tuple("0123456789")},
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
    places=("fashion-mnist", "fashion_mnist", "FashionMNIST/raw", "FashionMNIST", "."),
    layouts=_idx_layouts,
    read=_read_idx_pair,
    kinds={"class": _FASHION_NAMES},
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
    kinds={"class": _CIFAR10_NAMES},
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
    kinds={"coarse": _CIFAR100_COARSE, "fine": _CIFAR100_FINE},
)
