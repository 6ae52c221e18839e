"""Index and condition number by quadrature, against dense ones."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES
from tests.instruments.spectra import operator_with
from theodolite.core import ConfigError, Status
from theodolite.instruments import (
    condition,
    index,
    spectrum,
)

GAPPED = np.r_[-np.linspace(1, 2, 60), np.zeros(100), np.linspace(1, 3, 140)]


def test_index_and_the_zero_atom():
    found = index(operator_with(GAPPED), method="products", n_probes=8, steps=64)
    assert found.index_low <= 0.2 <= found.index_high
    assert found.near_zero == pytest.approx(1 / 3, abs=0.06)
    assert found.index_error < 0.06
    assert found.method == "stochastic Lanczos quadrature"
    exact = index(operator_with(GAPPED))
    assert (exact.index, exact.near_zero) == (0.2, 1 / 3)
    assert exact.count == 300
    assert exact.status is Status.EXACT


def test_the_default_spends_products_where_they_narrow_the_interval():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 5)
    ).double()
    batch = torch.randn(40, 20).double(), torch.randint(0, 5, (40,))
    found = index(model, batch, loss=nn.CrossEntropyLoss(), norm_mode="eval")
    assert found.cost.passes <= 512
    # What the docstring says that it buys.
    wide = 20 / 256 + 3 / np.sqrt(found.count * 2)
    assert found.index_high - found.index_low < 1.2 * wide < 0.2
    few = index(operator_with(GAPPED), method="products", n_probes=16)
    assert few.cost.passes == 512


def test_condition_and_its_percentile():
    values = np.random.default_rng(1).normal(size=300) * 3
    for quantile in (0.3, 0.5):
        truth = np.abs(values).max() / np.quantile(np.abs(values), quantile)
        found = condition(
            operator_with(values), quantile=quantile, method="products", steps=100
        )
        assert found.ratio_low <= truth <= found.ratio_high
        assert found.ratio == pytest.approx(truth, rel=0.5)
        assert found.largest == pytest.approx(np.abs(values).max(), rel=1e-6)
        assert found.status is Status.SAMPLED
        exact = condition(operator_with(values), quantile=quantile)
        assert exact.ratio == pytest.approx(truth, rel=1e-9)
        assert exact.method == "dense"


def test_a_percentile_in_the_zero_atom_is_a_bound():
    found = condition(operator_with(GAPPED), quantile=0.1, method="products")
    assert found.status is Status.ROUNDING
    assert found.ratio_high == np.inf


@pytest.mark.parametrize("case", CASES[:2], ids=lambda c: c.name)
def test_models(case):
    model, batch, loss = case.make()
    whole = spectrum(model, batch, loss=loss, norm_mode="batch")
    settings = {"n_probes": 2, "steps": 25, "level": 0.999, "method": "products"}
    found = index(model, batch, loss=loss, norm_mode="batch", **settings)
    truth = np.mean(whole.eigenvalues < -found.rounding)
    assert found.index_low <= truth <= found.index_high
    dense = index(model, batch, loss=loss, norm_mode="batch")
    assert dense.index == pytest.approx(whole.index().index, abs=1e-12)
    found = condition(
        model, batch, loss=loss, norm_mode="batch", quantile=0.9, **settings
    )
    truth = whole.condition(quantile=0.9).ratio
    assert found.ratio_low <= truth <= found.ratio_high
    assert found.norm_mode == "batch"


def test_misuse():
    with pytest.raises(ConfigError, match="quantile"):
        condition(operator_with(GAPPED), method="products", quantile=0.0)
    with pytest.raises(ConfigError, match="rounding"):
        index(operator_with(GAPPED), rounding=-1.0)
