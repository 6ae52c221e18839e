"""The dense Hessian against finite differences and row-by-row double backward."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES, shortcut_case
from tests.oracles import finite_difference_hessian, looped_hessian
from theodolite.core import MeasurementError, NormMode, Status
from theodolite.instruments import HalfSquareLoss, hessian

MODES = [NormMode.BATCH, NormMode.EVAL]


def numpy(tensor):
    return tensor.detach().numpy()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_agrees_with_oracles(case, mode):
    model, batch, loss = case.make()
    reading = hessian(model, batch, loss=loss, norm_mode=mode)
    model.train(mode is NormMode.BATCH)
    scale = np.abs(reading.matrix).max()
    if case.double_backward:
        exact = numpy(looped_hessian(model, batch, loss))
        np.testing.assert_allclose(
            reading.matrix, exact, rtol=1e-10, atol=1e-12 * scale
        )
    if mode is NormMode.BATCH or not case.double_backward:
        differences = numpy(finite_difference_hessian(model, batch, loss))
        np.testing.assert_allclose(reading.matrix, differences, atol=2e-7 * scale)
    assert reading.asymmetry < 1e-10
    assert reading.status is Status.EXACT
    assert reading.norm_mode is mode
    assert reading.cost.passes == len(reading.matrix) + 1


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.norm == "batch"], ids=lambda c: c.name
)
def test_train_and_eval_are_different_operators(case):
    model, batch, loss = case.make()
    train = hessian(model, batch, loss=loss, norm_mode="batch").matrix
    evaluation = hessian(model, batch, loss=loss, norm_mode="eval").matrix
    frozen = hessian(model, batch, loss=loss, norm_mode="frozen").matrix
    assert np.abs(train - evaluation).max() > 1e-2 * np.abs(train).max()
    assert np.abs(train - frozen).max() > 1e-2 * np.abs(train).max()
    full = hessian(model, batch, loss=loss, norm_mode="full").matrix
    np.testing.assert_array_equal(full, train)


def test_float32_is_near_float64():
    for case in CASES:
        model, batch, loss = case.make(dtype=torch.float32)
        narrow = hessian(model, batch, loss=loss, norm_mode="batch")
        model, batch, loss = case.make()
        wide = hessian(model, batch, loss=loss, norm_mode="batch")
        scale = np.abs(wide.matrix).max()
        np.testing.assert_allclose(narrow.matrix, wide.matrix, atol=2e-4 * scale)


def test_splitting_rows_into_chunks_changes_nothing():
    model, batch, loss = shortcut_case()
    whole = hessian(model, batch, loss=loss, norm_mode="batch", chunk=1000).matrix
    split = hessian(model, batch, loss=loss, norm_mode="batch", chunk=5).matrix
    np.testing.assert_allclose(whole, split, rtol=1e-12, atol=1e-14)


def test_frozen_parameters_are_left_out_and_left_frozen():
    model, batch, loss = shortcut_case()
    first = next(model.parameters())
    first.requires_grad_(False)
    reading = hessian(model, batch, loss=loss, norm_mode="batch")
    assert len(reading.matrix) == 27
    assert not first.requires_grad


def test_an_unused_parameter_has_zero_rows():
    model, batch, loss = shortcut_case()
    model.spare = nn.Parameter(torch.ones(2, dtype=torch.float64))
    reading = hessian(model, batch, loss=loss, norm_mode="batch")
    assert reading.layout[0][0] == "spare"
    assert not reading.matrix[:2].any()
    assert reading.matrix[2:, 2:].any()


def broken_square():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, w):
            ctx.save_for_backward(w)
            return w.square().sum()

        @staticmethod
        def backward(ctx, grad):
            (w,) = ctx.saved_tensors
            mix = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=w.dtype)
            return grad * 2 * (w @ mix)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2, dtype=torch.float64))

        def forward(self, x):
            return Square.apply(self.w)

    return Model()


@pytest.mark.parametrize(
    ("model", "batch", "loss", "words"),
    [
        (nn.ReLU(), (torch.ones(2, 2), torch.ones(2, 2)), HalfSquareLoss(),
         "no parameters"),
        (nn.Linear(2, 2), (torch.full((2, 2), torch.nan), torch.ones(2, 2)),
         HalfSquareLoss(), "the loss is nan"),
        (nn.Linear(2, 2), (torch.ones(2, 2), torch.ones(2)), HalfSquareLoss(),
         "equal shapes"),
        (nn.Linear(2, 2), torch.ones(2, 2), HalfSquareLoss(), "pair"),
        (nn.Linear(2, 2), (torch.ones(2, 2), torch.ones(2, 2)),
         nn.MSELoss(reduction="none"), "one number"),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout()),
         (torch.ones(2, 2), torch.ones(2, 2)), HalfSquareLoss(), "dropout '1'"),
        (nn.Linear(2, 2), None, lambda model, batch: torch.tensor(1.0),
         "does not depend"),
        (broken_square(), None, lambda model, batch: model(batch), "disagree"),
    ],
)  # fmt: skip
def test_misuse_is_one_sentence(model, batch, loss, words):
    with pytest.raises(MeasurementError, match=words) as caught:
        hessian(model, batch, loss=loss, norm_mode="batch")
    assert "\n" not in str(caught.value)


def test_eval_without_running_statistics_is_refused():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False))
    with pytest.raises(MeasurementError, match="no running statistics"):
        hessian(model, (torch.randn(4, 2), torch.randn(4, 2)), loss=HalfSquareLoss(),
                norm_mode="eval")  # fmt: skip


def test_unknown_parameter_and_too_large_a_matrix():
    model, batch, loss = shortcut_case()
    with pytest.raises(MeasurementError, match="nowhere"):
        hessian(model, batch, loss=loss, norm_mode="batch", params=["nowhere"])
    with pytest.raises(MeasurementError, match="GiB"):
        hessian(model, batch, loss=loss, norm_mode="batch", matrix_bytes=1000)
