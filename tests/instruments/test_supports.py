"""Rows of a sample's Jacobian that share cotangents, and Gram matrices with zeros."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from tests.instruments.test_block_jacobian import TIGHT, built_of
from theodolite.instruments import BlockJacobian, singular_values
from theodolite.instruments.singular import dense_values as per_sample
from theodolite.instruments.singular.dense_values import gram_triangle, resolved_values
from theodolite.instruments.singular.sample_blocks import (
    Supports,
    sample_blocks,
    supports_of,
)


def conv(kind, channels=4, *, stride=1, groups=1):
    """Two convolutions with a ReLU between them, in one or two dimensions."""
    one = {"kernel_size": 3, "padding": 1, "stride": stride, "groups": groups}
    two = {"kernel_size": 3, "padding": 1, "groups": groups}
    return nn.Sequential(
        kind(channels, channels, **one), nn.ReLU(), kind(channels, channels, **two)
    )


class Positionwise(nn.Module):
    """Tokens that do not see one another, as in the MLP of a transformer."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(16, 16)

    def forward(self, x):
        return x + torch.tanh(self.one(x))


class Mixed(nn.Module):
    """A matrix that mixes all units of a sample, in the shape that came."""

    def __init__(self, size):
        super().__init__()
        self.mix = nn.Linear(size, size)

    def forward(self, x):
        return self.mix(x.flatten(1)).reshape(x.shape)


# The block, its input, axes that tell outputs apart, and vectors for all of them.
BLOCKS = {
    "images": (lambda: conv(nn.Conv2d), (4, 9, 9), (1, 2), 4 * 25),
    "strided": (lambda: conv(nn.Conv2d, stride=2), (4, 18, 18), (1, 2), 4 * 16),
    "by channel": (lambda: conv(nn.Conv2d, groups=4), (4, 9, 9), (0, 1, 2), 25),
    "lines": (lambda: conv(nn.Conv1d, 16), (16, 20), (1,), 16 * 5),
    "tokens": (Positionwise, (20, 16), (0,), 16),
    "one by one": (nn.Tanh, (16, 20), (0, 1), 1),
    "all by all": (lambda: Mixed(320), (16, 20), (), 320),
    "one output": (lambda: nn.Linear(4, 1), (4,), (), 1),
    "no axis": (lambda: nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), (4,), (), 1),
}


def jacobian_of(name, *, dtype=torch.float64):
    make, shape, axes, vectors = BLOCKS[name]
    x = torch.randn(2, *shape, dtype=torch.float64).to(dtype)
    net = nn.Sequential(make()).to(dtype)
    found = BlockJacobian(net, x, block="0", norm_mode="eval", coupled=False)
    return found, axes, vectors


@pytest.mark.parametrize("name", BLOCKS)
def test_rows_that_share_cotangents_are_told_apart(name):
    jacobian, axes, vectors = jacobian_of(name)
    supports = supports_of(jacobian)
    assert supports.axes == axes
    assert sample_blocks(jacobian, supports).packed.shape[1] == vectors
    assert_allclose(built_of(jacobian, supports), jacobian.dense(), **TIGHT)


def test_rows_that_are_off_take_no_cotangents():
    net = nn.Sequential(nn.Sequential(*conv(nn.Conv2d), nn.ReLU())).double()
    x = torch.randn(2, 4, 9, 9, dtype=torch.float64)
    jacobian = BlockJacobian(net, x, block="0", norm_mode="eval", coupled=False)
    rows, _ = per_sample.active_units(jacobian)
    blocks = sample_blocks(jacobian, supports_of(jacobian), rows)
    fullest = rows.reshape(2, 4, -1).sum(1).max()
    assert fullest <= blocks.packed.shape[1] < 4 * 25
    by_sample, dense = rows.reshape(2, -1), jacobian.dense()
    vectors = torch.zeros_like(x.flatten(1))
    for sample, (matrix, numbers, _) in enumerate(blocks.matrices(vectors)):
        assert_array_equal(numbers.sort().values, by_sample[sample].nonzero()[:, 0])
        own = dense[324 * sample :][:324, 324 * sample :][:, :324]
        assert_allclose(matrix, own[np.ix_(numbers, blocks.columns)], **TIGHT)


def test_supports_that_are_wrong_are_found_out(monkeypatch):
    jacobian, _, _ = jacobian_of("images")
    right = supports_of(jacobian)
    everything = torch.ones(jacobian.shape[0], dtype=torch.bool)
    whole = per_sample.sample_values(
        jacobian, everything, everything, matrix_bytes=2**30
    )
    narrow = right.reaching[0].clone()
    narrow[4] &= narrow[3]
    wrong = Supports(
        right.shape, right.axes, (narrow, right.reaching[1]), right.colours
    )
    monkeypatch.setattr(per_sample, "supports_of", lambda _: wrong)
    passes = jacobian.passes
    again = per_sample.sample_values(
        jacobian, everything, everything, matrix_bytes=2**30
    )
    assert jacobian.passes - passes > jacobian.shape[0] // jacobian.samples
    assert_allclose(again[0], whole[0], rtol=1e-12, atol=1e-12)


def test_types_in_which_sums_vanish_by_chance_are_not_probed():
    jacobian, _, _ = jacobian_of("images", dtype=torch.bfloat16)
    assert supports_of(jacobian).axes == ()
    jacobian, axes, _ = jacobian_of("images", dtype=torch.float32)
    assert supports_of(jacobian).axes == axes


@pytest.mark.parametrize("band", [0, 30, 150, 500])
def test_gram_matrices_skip_zeros_and_nothing_else(band):
    generator = np.random.default_rng(band)
    matrix = generator.normal(size=(300, 400))
    rows, columns = np.indices(matrix.shape)
    matrix[np.abs(rows - columns) > band] = 0
    matrix[40:60] = 0
    wanted = matrix @ matrix.T
    room = np.full(300 * 300 + 7, np.nan)
    for given in (None, room):
        found = np.tril(gram_triangle(matrix, given))
        assert_allclose(found, np.tril(wanted), rtol=1e-13, atol=1e-13)
    for given in (matrix, matrix.T, np.asfortranarray(matrix)):
        values, errors = resolved_values(torch.as_tensor(given), eps=0.0, room=room)
        truth = np.linalg.svd(matrix, compute_uv=False)
        assert (np.abs(values - truth) <= errors + 1e-15 * truth[0]).all()


@pytest.mark.parametrize("scale", [1e-150, 1e-70, 1.0, 1e70, 1e150])
def test_values_of_any_size(scale):
    matrix = np.random.default_rng(0).normal(size=(40, 50))
    truth = np.linalg.svd(matrix, compute_uv=False)
    values, _ = resolved_values(torch.as_tensor(scale * matrix), eps=0.0)
    assert_allclose(values / scale, truth, rtol=1e-10)


def test_a_convolutional_block_takes_fewer_passes_than_it_has_rows():
    net = nn.Sequential(conv(nn.Conv2d)).double()
    x = torch.randn(2, 4, 9, 9, dtype=torch.float64)
    reading = singular_values(net, x, block="0", norm_mode="eval", method="blocks")
    assert reading.cost.passes < 4 * 81 / 2
    whole = BlockJacobian(net, x, block="0", norm_mode="eval").dense()
    truth = np.linalg.svd(whole, compute_uv=False)
    assert reading.size == len(truth)
    gap = np.abs(reading.values - truth[: reading.rank])
    assert (gap <= reading.value_error).all()
    assert (truth[reading.rank :] <= reading.tolerance).all()
