import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from theodolite.core import ConfigError, DataError, UnknownNameError
from theodolite.data import files, load


def centres(data):
    return np.stack([data.inputs[data.labels == c].mean(0) for c in range(3)])


def test_same_seed_same_draw_and_other_seed_another():
    first, again = load("gaussians", seed=3), load("gaussians", seed=3)
    assert first.checksum == again.checksum
    assert load("gaussians", seed=4).checksum != first.checksum


def test_splits_share_means_and_not_draws():
    options = {"n_samples": 30_000, "n_classes": 3, "width": 4, "separation": 5.0}
    train = load("gaussians", **options)
    test = load("gaussians", "test", **options)
    assert not np.isin(train.inputs[:, 0], test.inputs[:, 0]).any()
    # Means over 10,000 draws of deviation 1 differ by 0.014; 0.08 is over 5 of that.
    assert_allclose(centres(train), centres(test), atol=0.08)
    assert_allclose(np.linalg.norm(centres(train), axis=1), 5.0, atol=0.08)


def test_spread_is_the_deviation_around_the_means():
    data = load("gaussians", n_samples=30_000, n_classes=3, width=4, spread=0.5)
    rest = data.inputs - centres(data)[data.labels]
    assert_allclose(rest.std(axis=0), 0.5, rtol=0.03)


def test_classes_are_balanced_and_mixed():
    data = load("gaussians", n_samples=100, n_classes=3)
    assert sorted(np.bincount(data.labels)) == [33, 33, 34]
    assert not np.array_equal(data.labels, np.arange(100) % 3)


def test_without_spread_samples_are_their_means():
    data = load("gaussians", spread=0.0, n_samples=6, n_classes=2)
    for c in range(2):
        rows = data.inputs[data.labels == c]
        assert_array_equal(rows, np.broadcast_to(rows[0], rows.shape))


@pytest.mark.parametrize(
    "options",
    [
        {"n_samples": 0},
        {"n_classes": True},
        {"width": 2.5},
        {"separation": -1.0},
        {"spread": float("nan")},
        {"seed": -1},
    ],
)
def test_settings_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match="pass"):
        load("gaussians", **options)


def test_an_unknown_option_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'n_samples'"):
        load("gaussians", samples=3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_samples": 100, "width": 6},
         "100 samples of 6 numbers would take 4.47e-06"),
        ({"n_samples": 2, "n_classes": 70, "width": 8},
         "70 means of 8 numbers would take 4.17e-06"),
    ],
)  # fmt: skip
def test_what_memory_cannot_hold_is_refused_before_it_is_drawn(
    options, said, monkeypatch
):
    monkeypatch.setattr(files, "free_memory", lambda: 10_000)
    load("gaussians", n_samples=100, width=5)  # 4,000 bytes, of 0.4 · 10,000
    with pytest.raises(DataError, match=f"{said} GiB"):
        load("gaussians", **options)
