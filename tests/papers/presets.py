"""Networks of the paper scale, trained for a few steps: do they train at all?"""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from theodolite.data import Dataset, register_dataset, unregister_dataset
from theodolite.studies import find


@contextmanager
def colour_images(each=64):
    """Have drawn images, some of each of ten classes, stand for CIFAR-10."""
    rng = np.random.default_rng(0)
    splits = {"train": each, "test": max(4, each // 4)}
    for split, count in splits.items():
        labels = np.repeat(np.arange(10), count)
        images = rng.integers(0, 255, (len(labels), 32, 32, 3), dtype=np.uint8)
        register_dataset(
            Dataset(
                name="cifar10",
                split=split,
                inputs=images,
                labels=labels,
                class_names=tuple("abcdefghij"),
                origin="drawn",
            )
        )
    try:
        yield
    finally:
        for split in splits:
            unregister_dataset("cifar10", split)


def few_steps(study, *, cell=None, **fewer):
    """Return the rows of one cell at the paper scale; only what is named is cut.

    Args:
        study: Name of the study.
        cell: Labels of the cell; the first one by default.
        fewer: Settings that make it short, such as ``epochs``. Rates, momentum, decay
            and widths stay: they decide whether networks train.
    """
    named = find(study).study
    config = replace(named.presets["paper"], n_seeds=2, **fewer)
    cells = named.cells(config)
    wanted = (cell or {}).items()
    chosen = next(one for one in cells if wanted <= one.items())
    return named.measure(config, chosen)


def check_finite(rows, *quantities, most=np.inf):
    """Assert that there are rows of each quantity, all of them finite and not large."""
    for quantity in quantities:
        values = [row["value"] for row in rows.where(quantity=quantity)]
        assert values, quantity
        kept = [v for v in values if v is not None and np.isfinite(v) and v < most]
        assert kept == values, quantity
