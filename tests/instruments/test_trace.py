"""Traces against dense ones."""

import numpy as np
import pytest
import torch

from tests.cases import CASES
from tests.instruments.spectra import operator_with
from theodolite.core import Status
from theodolite.instruments import MatrixOperator, hessian, trace

DECAY = 3 * 0.9 ** np.arange(150)


@pytest.mark.parametrize("case", [*CASES[:2], *CASES[4:6]], ids=lambda c: c.name)
def test_models(case):
    model, batch, loss = case.make()
    exact = np.trace(hessian(model, batch, loss=loss, norm_mode="batch").matrix)
    dense = trace(model, batch, loss=loss, norm_mode="batch", method="dense")
    assert dense.trace == pytest.approx(exact, rel=1e-10)
    assert (dense.method, dense.status) == ("dense", Status.EXACT)
    found = trace(model, batch, loss=loss, norm_mode="batch", method="products")
    assert abs(found.trace - exact) <= 4 * found.trace_error + 1e-12 * abs(exact)
    assert found.cost.passes == 60
    assert found.norm_mode == "batch"


def test_the_sketch_beats_plain_probes_on_a_decaying_spectrum():
    found = trace(operator_with(DECAY), max_matvecs=60, method="products")
    plain = np.sqrt(2 * (DECAY**2).sum() / 60)  # standard error of 60 plain probes
    assert found.trace_error < plain / 2
    assert abs(found.trace - DECAY.sum()) < 4 * found.trace_error


def test_low_rank_is_exact():
    values = np.r_[3.0, -2.0, 1.0, np.zeros(97)]
    found = trace(operator_with(values), method="products")
    assert found.trace == pytest.approx(2, abs=1e-12)
    assert found.trace_error < 1e-12
    zero = MatrixOperator(torch.zeros(9, 9).double(), symmetric=True)
    assert trace(zero, method="products").trace == 0


def test_error_falls_with_the_root_of_the_budget():
    flat = operator_with(np.linspace(-1, 1, 300))
    few = np.mean([trace(flat, max_matvecs=12, seed=s, method="products").trace_error
                   for s in range(10)])  # fmt: skip
    many = np.mean([trace(flat, max_matvecs=48, seed=s, method="products")
                    .trace_error for s in range(10)])  # fmt: skip
    assert many == pytest.approx(few / 2, rel=0.2)
