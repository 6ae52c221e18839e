"""Write small datasets in the published file formats."""

import gzip
import lzma
import pickle
import struct

import numpy as np

IDX_PREFIX = {"train": "train", "test": "t10k"}


def random_images(n, *tail, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, *tail), dtype=np.uint8)


def random_labels(n, n_classes=10, seed=1):
    return np.random.default_rng(seed).integers(0, n_classes, n, dtype=np.uint8)


def idx_bytes(array):
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder, images, labels, *, split="train", packed=True, dotted=False):
    folder.mkdir(parents=True, exist_ok=True)
    for array, what in ((images, "images-idx3"), (labels, "labels-idx1")):
        name = f"{IDX_PREFIX[split]}-{what}-ubyte"
        if dotted:
            name = name.replace("-idx", ".idx")
        content = idx_bytes(array)
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


def planes(images):
    """(N, 32, 32, 3) to rows of 3,072 bytes in planes R, G, B."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)


def write_pickle(path, images, labels, *, protocol=2, text_keys=False, **more):
    batch = {"data": planes(images), **labels, "batch_label": "a batch", **more}
    if not text_keys:
        batch = {key.encode(): value for key, value in batch.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(batch, protocol=protocol))


def write_binary(path, images, *columns):
    records = np.concatenate([*(c[:, None] for c in columns), planes(images)], axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(records.tobytes())


def write_delta(path, images):
    """Planes R-G, G, B-G, differenced along rows and columns (mod 256), xz."""
    r, g, b = images.transpose(3, 0, 1, 2)
    stack = np.stack([r - g, g, b - g])
    for axis in (3, 2):
        stack = np.diff(stack, axis=axis, prepend=np.uint8(0))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(stack.tobytes(), preset=0))


def write_cifar10(folder, images, labels, style, *, split="train"):
    """Write equal batches of CIFAR-10 in one of the three formats."""
    names = ["test_batch"]
    if split == "train":
        names = [f"data_batch_{number}" for number in range(1, 6)]
    parts = zip(
        names,
        np.array_split(images, len(names)),
        np.array_split(labels, len(names)),
        strict=True,
    )
    for name, part, classes in parts:
        if style == "pickle":
            write_pickle(folder / name, part, {"labels": classes.tolist()})
        elif style == "binary":
            write_binary(folder / f"{name}.bin", part, classes)
        else:
            write_delta(folder / f"{name}.xz", part)
    if style == "delta xz":
        np.save(folder / f"{split}_labels.npy", labels)


def one_sentence(error):
    """Whether a message is one line, without a full stop, that says what to do."""
    text = str(error.value)
    return "\n" not in text and not text.endswith(".") and len(text) > 40
