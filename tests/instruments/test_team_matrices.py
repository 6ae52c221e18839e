"""Tangent kernels and singular values of several processes are those of one."""

import os

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from tests.instruments import rank_matrices
from tests.instruments.ranks import import_all, launch, network
from theodolite.instruments import Team, singular_values
from theodolite.instruments.differentiate.batch_norm_twice import NormCall
from theodolite.instruments.norms.shared_statistics import SharedStatistics

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork


@pytest.fixture(scope="module")
def alone():
    """What one process measures; first, so that ranks find all modules imported."""
    import_all()
    return rank_matrices.measured()


@pytest.fixture(scope="module")
def together(tmp_path_factory, alone):
    place, size = tmp_path_factory.mktemp("ranks"), 3
    ended = launch(rank_matrices.work, place, size=size)
    assert ended == [0] * size, os.listdir(place)
    found = [place / f"found-{rank}" for rank in range(size)]
    return [torch.load(path, weights_only=False) for path in found]


def test_kernels_are_those_of_one_process(together, alone):
    for found, _ in together:
        assert found.keys() - {"values batch"} == alone.keys()
        for name in (name for name in alone if name.startswith("kernel")):
            mine, one = found[name], alone[name]
            assert (mine.samples, mine.outputs) == (one.samples, one.outputs)
            tight = {"rtol": 1e-10, "atol": 1e-11, "err_msg": name}
            if name.endswith("float32"):
                tight = {"rtol": 0, "atol": 2 * one.matrix_error, "err_msg": name}
                assert mine.matrix_error < 10 * one.matrix_error
            assert_allclose(mine.matrix, one.matrix, **tight)
            assert mine.status == one.status
        assert found["kernel eval"].method == "layer by layer"
        assert found["kernel batch"].method == "by rows"
        for name in ("kernel full", "kernel full, traced"):
            assert found[name].method == "by products"
        assert found["kernel in pieces"].peak_bytes <= 30_000


def test_singular_values_are_those_of_one_process(together, alone):
    for found, _ in together:
        for name in (name for name in alone if name.startswith("values")):
            mine, one = found[name], alone[name]
            tight = {"rtol": 1e-9, "atol": 1e-10, "err_msg": name}
            assert_allclose(mine.values, one.values, **tight)
            assert_allclose(mine.cdf, one.cdf, **tight)
            assert (mine.rank, mine.size) == (one.rank, one.size)
            assert mine.coupling_rank == one.coupling_rank
            assert (mine.method, mine.status) == (one.method, one.status)
        for mine, one in zip(found["products"], alone["products"], strict=True):
            assert_close(mine, one, rtol=1e-11, atol=1e-12)


def test_a_share_is_a_batch_of_its_own_under_batch(together):
    """Then values are those of all shares, each with its own statistics."""
    parts = torch.tensor_split(rank_matrices.batch(), len(together))
    given = {"block": rank_matrices.SPAN, "norm_mode": "batch"}
    each = [singular_values(network(), part, **given) for part in parts]
    wanted = np.sort(np.concatenate([one.values for one in each]))[::-1]
    for found, _ in together:
        assert_allclose(found["values batch"].values, wanted, rtol=1e-10, atol=1e-12)
        assert found["values batch"].coupling_rank == 12 * len(together)


def test_all_ranks_have_the_same_bits(together):
    first = together[0][0]
    for found, _ in together[1:]:
        for name, one in first.items():
            if name.startswith("kernel"):
                assert np.array_equal(found[name].matrix, one.matrix), name
            elif name.startswith("values"):
                assert np.array_equal(found[name].values, one.values), name


def test_what_differs_between_ranks_is_said_on_all(together):
    size = len(together)
    for rank, (_, said) in enumerate(together):
        by = "by other means than" if rank else "of another rank: use"
        assert f"block '0' couples samples {by}" in said["coupled"]
        couples = f"block '0' couples samples of {size} ranks by batch statistics"
        assert couples in said["by a function"]
        assert said["twin"] is None, "where one rank has none"
        assert said["mixed"] == "by rows", "though samples of some are independent"
        for name in ("kernel", "values"):
            assert f"models of {size} ranks have different weights" in said[name]
        assert "batches have [3, 4] outputs a sample" in said["widths"]
        assert said["disputed"].startswith("MeasurementError: two ways to the tangent")


def test_statistics_of_coarse_types_are_summed_in_float32():
    x = 30 + torch.randn(4096, 2)  # beyond what float16 holds, and bfloat16 counts
    for dtype in (torch.float16, torch.bfloat16):
        given = x.to(dtype)
        call = NormCall(place=0, x=given, weight=None, bias=None, eps=1e-5)
        found = SharedStatistics(Team())(call)
        assert found.dtype == dtype
        wanted = torch.nn.functional.batch_norm(
            given.float(), None, None, training=True
        )
        close = {"rtol": 2 * torch.finfo(dtype).eps, "atol": 1e-4}
        assert_close(found.float(), wanted, **close)
