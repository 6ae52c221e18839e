"""Hessian, Gauss–Newton and Jacobian against dense oracles in float64."""

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import eigsh
from torch import nn

from tests.cases import CASES, shortcut_case
from tests.instruments.agreement import cut, multiplies_as, near
from tests.oracles import (
    finite_difference_hessian,
    looped_gauss_newton,
    looped_hessian,
    looped_jacobian,
)
from theodolite.core import MeasurementError, NormMode, UnknownNameError
from theodolite.instruments import GaussNewton, Hessian, Jacobian, hessian

MODES = [NormMode.BATCH, NormMode.EVAL]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_hessian_agrees_with_oracles(case, mode):
    model, batch, loss = case.make()
    operator = Hessian(model, batch, loss=loss, norm_mode=mode)
    matrix = operator.dense()
    near(matrix, matrix.T)
    model.train(mode is NormMode.BATCH)
    if case.double_backward:
        near(matrix, looped_hessian(model, batch, loss))
    else:
        near(matrix, finite_difference_hessian(model, batch, loss), rtol=2e-7)
    assert operator.passes == len(matrix)
    assert operator.norm_mode is mode
    assert operator.partition == (6,)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_jacobian_and_gauss_newton_agree_with_oracles(case, mode):
    model, batch, loss = case.make()
    jacobian = Jacobian(model, batch, norm_mode=mode)
    curvature = GaussNewton(model, batch, loss=loss, norm_mode=mode)
    forwards, backwards = jacobian.dense(), jacobian.T.dense().T
    matrix = curvature.dense()
    model.train(mode is NormMode.BATCH)
    exact = looped_jacobian(model, batch[0])
    near(forwards, exact)
    near(backwards, exact)
    near(jacobian.outputs(), model(batch[0]).reshape(-1))
    near(matrix, looped_gauss_newton(model, batch, loss))
    near(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > -1e-10 * np.abs(matrix).max()


def test_the_dense_hessian_is_the_operator():
    for case in CASES:
        model, batch, loss = case.make()
        dense = hessian(model, cut(batch, 2), loss=loss, norm_mode="batch")
        operator = Hessian(model, cut(batch, 2), loss=loss, norm_mode="batch")
        vector = torch.randn(operator.shape[0], dtype=torch.float64)
        near(operator @ vector, dense.matrix @ vector.numpy())
        assert dense.partition == (2, 4)
        value, gradient = operator.loss_and_gradient()
        near(gradient, dense.gradient)
        assert float(value) == pytest.approx(dense.loss, rel=1e-12)


def test_several_batches_are_weighted_by_their_samples():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    whole = looped_hessian(model, batch, loss)
    for parts in (cut(batch, 1, 3), cut(batch, 5)):
        near(Hessian(model, parts, loss=loss, norm_mode="batch").dense(), whole)
        near(GaussNewton(model, parts, loss=loss, norm_mode="batch").dense(),
             looped_gauss_newton(model, batch, loss))  # fmt: skip
        near(Jacobian(model, parts, norm_mode="batch").dense(),
             looped_jacobian(model, batch[0]))  # fmt: skip


def test_sums_are_added():
    model, batch, _ = next(c for c in CASES if c.name == "mlp").make()
    summed = nn.CrossEntropyLoss(reduction="sum")
    operator = Hessian(model, cut(batch, 2), loss=summed, norm_mode="batch")
    assert operator.reduction == "sum"
    near(operator.dense(), looped_hessian(model, batch, summed))

    def by_hand(network, part):
        return nn.functional.cross_entropy(network(part[0]), part[1], reduction="sum")

    stated = Hessian(
        model, cut(batch, 2), loss=by_hand, norm_mode="batch", reduction="sum"
    )
    near(stated.dense(), looped_hessian(model, batch, summed))
    with pytest.raises(MeasurementError, match="leave out reduction"):
        Hessian(model, batch, loss=summed, norm_mode="batch", reduction="mean")
    with pytest.raises(MeasurementError, match="'mean' or 'sum'"):
        Hessian(model, batch, loss=by_hand, norm_mode="batch", reduction="median")


@pytest.mark.parametrize("parts", [(2,), (1, 2, 5)])
@pytest.mark.parametrize(
    "criterion",
    [
        {"weight": torch.tensor([1.0, 5.0, 0.2], dtype=torch.float64)},
        {"ignore_index": 0},
        {"label_smoothing": 0.1},
    ],
)
def test_means_with_class_weights_are_those_of_all_the_data(criterion, parts):
    model, batch, _ = next(c for c in CASES if c.name == "mlp").make()
    loss = nn.CrossEntropyLoss(**criterion)
    # Every part holds a class that counts.
    batch = (batch[0], torch.tensor([1, 2, 1, 0, 2, 1]))
    whole = looped_hessian(model, batch, loss)
    parts = cut(batch, *parts)
    multiplies_as(Hessian(model, parts, loss=loss, norm_mode="batch"), whole)
    cutting = Hessian(model, batch, loss=loss, norm_mode="batch", micro_batch=2)
    multiplies_as(cutting, whole)


def test_gauss_newton_of_a_loss_in_two_parts():
    model, batch, loss = shortcut_case()
    whole = GaussNewton(model, batch, loss=loss, norm_mode="batch").dense()
    data = {"x": batch[0], "y": batch[1]}
    parts = GaussNewton(
        model,
        data,
        outputs=lambda network, given: network(given["x"]),
        output_loss=lambda z, given: (z - given["y"]).square().sum() / (2 * len(z)),
        norm_mode="batch",
        micro_batch=3,
    )
    near(parts.dense(), whole)
    with pytest.raises(MeasurementError, match="where the model ends"):
        GaussNewton(model, batch, loss=lambda m, b: m(b[0]).sum(), norm_mode="batch")


def test_vectors_blocks_and_other_libraries():
    model, batch, loss = next(c for c in CASES if c.name == "conv_bn_resnet").make()
    operator = Hessian(model, batch, loss=loss, norm_mode="batch")
    matrix = operator.dense()
    block = np.random.default_rng(0).normal(size=(len(matrix), 3))
    near(operator @ block, matrix @ block)
    largest = eigsh(operator, k=1, which="LA", v0=block[:, 0])[0][0]
    assert largest == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-10)


def test_split_and_join():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    operator = Hessian(model, batch, loss=loss, norm_mode="batch")
    vector = torch.arange(operator.shape[0], dtype=torch.float64)
    parts = operator.split(vector)
    assert list(parts) == [name for name, _ in model.named_parameters()]
    assert parts["0.weight"].shape == (5, 4)
    torch.testing.assert_close(operator.join(parts), vector)
    alone = operator.join({"2.bias": torch.ones(3)})
    assert alone.sum() == 3
    assert alone.dtype is torch.float64
    with pytest.raises(UnknownNameError, match=r"2\.bias"):
        operator.join({"2.biass": torch.ones(3)})
    with pytest.raises(MeasurementError, match="shape"):
        operator.join({"2.bias": torch.ones(4)})
    with pytest.raises(MeasurementError, match="one number per parameter"):
        operator.split(torch.ones(3))


@pytest.mark.parametrize("micro_batch", [None, 4])
@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_blocks_of_modules(kind, micro_batch):
    model, batch, loss = next(c for c in CASES if c.name == "in_place_relu").make()
    operator = kind(model, batch, loss=loss, norm_mode="batch", micro_batch=micro_batch)
    matrix = kind(model, batch, loss=loss, norm_mode="batch").dense()
    assert list(operator.blocks) == ["0", "1", "4"]
    near(operator.blocks["1"].dense(), matrix[20:24, 20:24])
    near(operator[["4.bias", "0.bias"]].dense(),
         matrix[np.ix_(np.r_[48:51, 18:20], np.r_[48:51, 18:20])])  # fmt: skip
    assert operator.blocks["1"].norm_mode == "batch"
    with pytest.raises(UnknownNameError):
        operator[["5.bias"]]


def test_blocks_of_the_jacobian_are_columns():
    model, batch, _ = next(c for c in CASES if c.name == "mlp").make()
    operator = Jacobian(model, batch, norm_mode="batch")
    part = operator.blocks["2"]
    near(part.dense(), operator.dense()[:, 25:])
    near(part.T.dense(), operator.dense()[:, 25:].T)


def test_a_subset_of_parameters_is_a_block():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    matrix = Hessian(model, batch, loss=loss, norm_mode="batch").dense()
    names = ["2.bias", "0.bias"]
    part = Hessian(model, batch, loss=loss, norm_mode="batch", params=names)
    order = np.r_[40:43, 20:25]
    near(part.dense(), matrix[np.ix_(order, order)])
    with pytest.raises(MeasurementError, match="name each once"):
        Hessian(model, batch, loss=loss, norm_mode="batch", params=["0.bias"] * 2)


def test_a_tied_parameter_answers_to_both_names():
    model, batch, loss = shortcut_case(depth=2)
    model.alias = next(model.parameters())
    names = [n for n, _ in model.named_parameters(remove_duplicate=False)]
    assert "alias" in names
    first, other = [
        Hessian(model, batch, loss=loss, norm_mode="batch", params=[name]).dense()
        for name in ("alias", next(n for n in names if n != "alias"))
    ]
    near(first, other)


def test_float32_is_near_float64():
    for case in CASES:
        wide, narrow = [
            Hessian(*made[:2], loss=made[2], norm_mode="batch")
            for made in (case.make(), case.make(dtype=torch.float32))
        ]
        vector = torch.randn(wide.shape[0], dtype=torch.float64)
        near((narrow @ vector).double(), wide @ vector, rtol=1e-4)
        assert narrow.torch_dtype is torch.float32


def test_hooks_on_gradients_are_no_part_of_the_loss():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make()
    exact = looped_hessian(model, batch, loss)
    model[0].weight.register_hook(lambda grad: grad * 7)
    near(Hessian(model, batch, loss=loss, norm_mode="batch").dense(), exact)
    assert len(model[0].weight._backward_hooks) == 1


def test_activation_checkpointing():
    from torch.utils.checkpoint import checkpoint

    class Lean(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=False)

    model, batch, loss = next(c for c in CASES if c.name == "group_norm").make()
    operator = Hessian(Lean(model), batch, loss=loss, norm_mode="batch")
    vector = torch.randn(operator.shape[0], dtype=torch.float64)
    near(operator @ vector, looped_hessian(model, batch, loss) @ vector)
    model, batch, loss = next(c for c in CASES if c.name == "in_place_relu").make()
    operator = Hessian(Lean(model), batch, loss=loss, norm_mode="eval")
    vector = torch.randn(operator.shape[0], dtype=torch.float64)
    model.eval()
    near(operator @ vector, looped_hessian(model, batch, loss) @ vector)
    model.train()
    operator = Hessian(Lean(model), batch, loss=loss, norm_mode="batch")
    near(operator @ vector, looped_hessian(model, batch, loss) @ vector)


@pytest.mark.parametrize(
    ("model", "batch", "words"),
    [
        (nn.LSTM(2, 2), (torch.ones(3, 1, 2), torch.ones(3, 1, 2)), "returned a tuple"),
        (nn.Linear(2, 2), torch.ones(2, 2, device="meta"), "on cpu and a batch on"),
    ],
)  # fmt: skip
def test_misuse_of_the_jacobian(model, batch, words):
    with pytest.raises(MeasurementError, match=words):
        Jacobian(model, batch, norm_mode="batch")
