"""Networks of the paper scale, trained for a few steps: do they train at all?"""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from theodolite.data import Dataset, register_dataset, unregister_dataset
from theodolite.studies import find


@contextmanager
def colour_images(name="cifar10", *, each=64, classes=10, side=32):
    """Have drawn images, some of each class, stand for photographs."""
    rng = np.random.default_rng(0)
    splits = {"train": each, "test": max(1, each // 4)}
    for split, count in splits.items():
        labels = np.repeat(np.arange(classes), count)
        size = (len(labels), side, side, 3)
        register_dataset(
            Dataset(
                name=name,
                split=split,
                inputs=rng.integers(0, 255, size, dtype=np.uint8),
                labels=labels,
                class_names=tuple(map(str, range(classes))),
                origin="drawn",
            )
        )
    try:
        yield
    finally:
        for split in splits:
            unregister_dataset(name, split)


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
