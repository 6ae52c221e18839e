"""Whatever of data takes arrays takes every real type, and computes in float64."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from tests.data.test_dataset import small
from tests.data.writers import one_sentence
from tests.dtypes import FORMS, RANGES, formed, numbers, spoilt
from theodolite import data
from theodolite.core import ConfigError, DataError

STATISTICS = data.ChannelStatistics([0.25, 0.5], [2.0, 3.0])
WHITENING = data.Whitening([1.0, 2.0, 3.0], np.eye(3)[:, :2], [4.0, 9.0])


def augmented(images):
    generator = torch.Generator().manual_seed(0)
    cropped = data.augment(images, padding=1, generator=generator)
    return cropped.to(torch.float64).numpy()


def whitened(x):
    fitted = data.whiten(x, 2)
    return [fitted.mean, fitted.eigenvalues, fitted.apply(x)]


def condensed(x, y):
    few = np.hstack(data.moment_samples(x, y))
    return few.T @ few


def statistics(mean, std):
    return data.ChannelStatistics(mean, std).apply(np.ones((2, 3, 3, 2)), np.float64)


def whitening(mean, components, eigenvalues):
    return data.Whitening(mean, components, eigenvalues).apply(np.ones((2, 3)))


def standardised(images):
    scaled, facts = data.standardise_channels(images, np.float64)
    return [scaled, facts.mean, facts.std]


CASES = {
    "ChannelStatistics": (statistics, {"mean": (2,), "std": (2,)}),
    "ChannelStatistics.apply": (
        lambda images: STATISTICS.apply(images, np.float64),
        {"images": (4, 3, 3, 2)},
    ),
    "Dataset": (lambda inputs: small(inputs=inputs).flat(), {"inputs": (4, 3)}),
    "Whitening": (whitening, {"mean": (3,), "components": (3, 2), "eigenvalues": (2,)}),
    "Whitening.apply": (WHITENING.apply, {"x": (5, 3)}),
    "augment": (augmented, {"images": (2, 1, 4, 3)}),
    "moment_samples": (condensed, {"x": (9, 3), "y": (9, 3)}),
    "standardise_channels": (standardised, {"images": (4, 3, 3, 2)}),
    "unit_norm": (data.unit_norm, {"x": (4, 3)}),
    "whiten": (whitened, {"x": (9, 3)}),
}
# What takes whole numbers, names or datasets; their own tests say what is refused.
OTHERS = {
    *("Listing", "available", "load", "needs_folder", "read_npz"),
    *(
        "one_hot",
        "pack_dataset",
        "register_dataset",
        "two_classes",
        "unpack_dataset",
        "unregister_dataset",
    ),
}


def given(name, dtype):
    drawn = {
        argument: numbers(dtype, *shape, seed=place)
        for place, (argument, shape) in enumerate(CASES[name][1].items())
    }
    for argument in ("std", "eigenvalues"):
        if argument in drawn:  # which are positive
            drawn[argument][drawn[argument] <= 0] = 1
    if "x" in drawn:  # no row of zeros, and full rank
        drawn["x"][:3] = np.maximum(drawn["x"][:3], np.eye(3).astype(dtype))
    return drawn


def test_every_public_name_is_swept():
    swept = {name.split(".")[0] for name in CASES} | OTHERS
    assert sorted(swept) == sorted(data.__all__)


def scale(name, dtype):
    """Bytes count as pixels of 255ths where images or inputs are asked for."""
    pixels = dtype == "uint8" and name in (
        "ChannelStatistics.apply",
        "Dataset",
        "standardise_channels",
    )
    return 255.0 if pixels else 1.0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", RANGES)
def test_numbers_are_the_same_in_every_type(name, dtype):
    call, arrays = CASES[name][0], given(name, dtype)
    exact = {
        key: value.astype(np.float64) / scale(name, dtype)
        for key, value in arrays.items()
    }
    wanted = call(**exact)
    forms = FORMS if scale(name, dtype) == 1.0 else FORMS[:1]
    for form in forms:
        came = {key: formed(value, form) for key, value in arrays.items()}
        for one, other in zip(listed(call(**came)), listed(wanted), strict=True):
            assert one.dtype == np.float64
            assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())


def listed(result):
    return result if isinstance(result, list) else [result]


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_number_is_a_sentence(name):
    call, arrays = CASES[name][0], given(name, "float64")
    for argument, array in arrays.items():
        for what, bad in spoilt(array).items():
            if what in ("NaN", "infinity") and name in ("Dataset", "augment"):
                continue  # these move numbers and do not compute
            with pytest.raises((DataError, ConfigError)) as error:
                call(**{**arrays, argument: bad})
            assert one_sentence(error), (what, str(error.value))


def test_a_large_offset_survives_single_precision():
    images = 1e8 + np.random.default_rng(0).normal(size=(40, 5, 5))
    scaled, _ = data.standardise_channels(images, np.float32)
    assert_allclose(scaled.std(), 1.0, rtol=1e-5)
    wanted = (images - images.mean()) / images.std()
    assert_allclose(scaled, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [int, "uint8", complex, "no type"])
def test_images_are_scaled_to_floats_only(dtype):
    with pytest.raises(ConfigError, match="pass a float type"):
        data.standardise_channels(np.eye(4).reshape(1, 4, 4), dtype)


@pytest.mark.parametrize("dtype", [d for d in RANGES if np.dtype(d).kind in "iu"])
def test_labels_of_every_width(dtype):
    labels = np.array([1, 0, 2, 1], dtype)
    wanted = np.eye(3)[[1, 0, 2, 1]]
    for form in FORMS:
        came = formed(labels, form)
        assert_array_equal(data.one_hot(came, 3), wanted)
        assert_array_equal(small(labels=came).one_hot(), wanted)
        part = small().subset(came)
        assert_array_equal(part.labels, small().labels[[1, 0, 2, 1]])
    assert data.two_classes(small(), labels[0], labels[2]).n_classes == 2


@pytest.mark.parametrize(
    "labels",
    [[0.0], [True], ["a"], [None], [[0], [1, 2]], [1j], None, {0}, 10**400, [10**400]],
)
def test_labels_that_are_not_whole_numbers_are_refused(labels):
    with pytest.raises(DataError) as error:
        data.one_hot(labels, 3)
    assert one_sentence(error)
    with pytest.raises(DataError) as error:
        small(labels=labels)
    assert one_sentence(error)


@pytest.mark.parametrize("indices", [[0.5], ["a"], [[0], [1, 2]], None, [None], {1}])
def test_indices_that_are_none_are_refused(indices):
    with pytest.raises(DataError) as error:
        small().subset(indices)
    assert one_sentence(error)


@pytest.mark.parametrize("wrong", [1.5, True, None, 1j])
def test_a_class_is_a_whole_number_or_a_name(wrong):
    with pytest.raises(DataError, match=r"b is .*: pass a whole number or str"):
        data.two_classes(small(), 0, wrong)
    with pytest.raises(ConfigError, match="n_classes"):
        data.one_hot([0], wrong)


@pytest.mark.parametrize("value", ["3", None, [3.0], 1j, True, float("nan")])
def test_a_mixture_of_odd_settings_is_refused(value):
    for setting in ("separation", "spread", "n_samples"):
        with pytest.raises(ConfigError, match=setting):
            data.load("gaussians", **{setting: value})


def test_a_mixture_that_fits_no_memory_is_refused():
    with pytest.raises(DataError, match="memory") as error:
        data.load("gaussians", n_samples=10**15)
    assert one_sentence(error)


@pytest.mark.parametrize("parcel", [{}, {"checksum": 1}, [], None, {"a": 1}, 3])
def test_a_parcel_that_is_none_is_refused(parcel):
    with pytest.raises(DataError, match="pack_dataset"):
        data.unpack_dataset(parcel)
