"""On a CUDA device the same code gives the same numbers."""

import numpy as np
import pytest
import torch

from tests.cases import CASES
from theodolite.instruments import hessian

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("mode", ["batch", "frozen", "eval"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_dense_hessian(case, mode):
    model, (x, y), loss = case.make()
    there = hessian(model, (x, y), loss=loss, norm_mode=mode)
    model.cuda()
    here = hessian(model, (x.cuda(), y.cuda()), loss=loss, norm_mode=mode)
    scale = np.abs(there.matrix).max()
    np.testing.assert_allclose(here.matrix, there.matrix, atol=1e-10 * scale)
    assert here.asymmetry < 1e-10
    assert next(model.parameters()).is_cuda
