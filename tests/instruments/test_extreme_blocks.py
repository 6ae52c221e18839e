"""Instruments block by block are those of diagonal blocks of the Hessian."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from tests.cases import CASES
from theodolite.core import ConfigError, Status
from theodolite.instruments import (
    MatrixOperator,
    by_block,
    condition,
    diagonal,
    extreme_eigenvalues,
    hessian,
    trace,
)
from theodolite.instruments.curvature.dense import matrix_noise

CASE = next(case for case in CASES if case.name == "conv_bn_resnet")


def pieces(model, batch, loss):
    """Return every layer's diagonal block."""
    whole = hessian(model, batch, loss=loss, norm_mode="batch")
    found, start = {}, 0
    for name, shape in whole.layout:
        size = int(np.prod(shape))
        found.setdefault(name.rpartition(".")[0], []).extend(range(start, start + size))
        start += size
    return {name: whole.matrix[np.ix_(i, i)] for name, i in found.items()}


@pytest.mark.parametrize("method", ["dense", "products"])
def test_layers(method):
    model, batch, loss = CASE.make()
    blocks = pieces(model, batch, loss)
    found = by_block(
        extreme_eigenvalues,
        model,
        batch,
        loss=loss,
        norm_mode="batch",
        k=2,
        method=method,
    )
    assert found.blocks == tuple(blocks)
    for name, reading in found:
        exact = np.linalg.eigvalsh(blocks[name])
        scale = np.abs(exact).max() + 1e-9
        np.testing.assert_allclose(
            reading.eigenvalues, exact[::-1][:2], atol=1e-8 * scale
        )
    assert found.stack("eigenvalues").shape == (len(blocks), 2)
    assert found.status.trusted
    assert found.norm_mode == "batch"
    assert found.cost.passes == sum(reading.cost.passes for _, reading in found)
    row = found.rows(depth=1).only(quantity="eigenvalues", rank=0, block="0")
    assert row["value"] == found["0"].eigenvalues[0]


def test_parameters_named_blocks_and_ragged_stacks():
    model, batch, loss = CASE.make()
    settings = {"loss": loss, "norm_mode": "batch", "method": "dense"}
    traces = by_block(trace, model, batch, per="parameter", **settings)
    names = [name for name, _ in model.named_parameters()]
    assert traces.blocks == tuple(names)
    whole = trace(model, batch, **settings)
    assert traces.stack("trace").sum() == pytest.approx(whole.trace, rel=1e-9)
    halves = {"first": names[:2], "rest": names[2:]}
    found = by_block(diagonal, model, batch, blocks=halves, **settings)
    stacked = found.stack("diagonal")
    assert stacked.shape == (2, len(found["rest"].diagonal))
    assert np.isnan(stacked[0]).any()
    ratios = by_block(condition, model, batch, blocks=halves, quantile=0.5, **settings)
    assert ratios.status in (Status.EXACT, Status.ROUNDING)
    assert set(ratios.to_dict()) == {"first", "rest"}


def test_a_shuffling_loader_is_read_once():
    model, batch, loss = CASE.make()
    loader = DataLoader(TensorDataset(*batch), batch_size=3, shuffle=True)
    torch.manual_seed(0)
    settings = {"loss": loss, "norm_mode": "batch", "method": "dense"}
    found = by_block(trace, model, loader, per="parameter", **settings)
    torch.manual_seed(0)
    again = trace(model, loader, **settings)
    assert found.stack("trace").sum() == pytest.approx(again.trace, rel=1e-9)


@pytest.mark.parametrize("method", ["dense", "products"])
def test_a_block_of_nothing_but_rounding(method):
    # Batch norm takes out a bias before it: its curvature is zero in exact arithmetic.
    model, batch, loss = CASE.make()
    name = "1.branch.0.bias"
    found = extreme_eigenvalues(
        model, batch, loss=loss, norm_mode="batch", params=[name], method=method
    )
    assert abs(found.eigenvalues[0]) < 1e-15
    assert found.statuses == (Status.ROUNDING,)


def test_misuse():
    model, batch, loss = CASE.make()
    with pytest.raises(ConfigError, match="unknown per"):
        by_block(trace, model, batch, loss=loss, norm_mode="eval", per="colour")
    with pytest.raises(ConfigError, match="no blocks"):
        by_block(trace, model, batch, loss=loss, norm_mode="eval", blocks={})


def test_what_is_neither_symmetric_nor_above_rounding_has_an_error_of_all_of_it():
    matrix = np.array([[3e-35, 4e-36], [0.0, 9e-36]])
    for scale, whole in ((1.0, True), (1e30, False)):
        operator = MatrixOperator(torch.tensor(scale * matrix), symmetric=True)
        noise, symmetric = matrix_noise(operator, scale * matrix)
        assert symmetric is whole
        assert (noise.norm > scale * 3e-35) is whole
