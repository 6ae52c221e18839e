"""Which statistics norms use, and that saving memory never changes them."""

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck

from tests.cases import CASES
from tests.instruments.agreement import cut, multiplies_as, near
from tests.oracles import looped_hessian
from theodolite.core import MeasurementError, NormMode
from theodolite.instruments import (
    BlockJacobian,
    GaussNewton,
    HalfSquareLoss,
    Hessian,
    Jacobian,
    tangent_kernel,
)
from theodolite.instruments.differentiate.batch_norm_twice import batch_norm_twice


def bn_case(samples=8):
    case = next(c for c in CASES if c.name == "conv_bn_resnet")
    return case.make(samples=samples)


def product(model, batches, loss, **settings):
    operator = Hessian(model, batches, loss=loss, **settings)
    generator = torch.Generator().manual_seed(1)
    vector = torch.randn(operator.shape[0], generator=generator, dtype=torch.float64)
    return operator @ vector


def test_micro_batches_give_the_operator_of_one_batch_and_a_list_does_not():
    model, batch, loss = bn_case()
    one = Hessian(model, batch, loss=loss, norm_mode="batch")
    vector = torch.randn(one.shape[0], dtype=torch.float64)
    four = Hessian(model, batch, loss=loss, norm_mode="batch", micro_batch=2)
    near(four @ vector, one @ vector)
    assert four.partition == one.partition == (8,)
    assert four.micro_batch == 2
    parts = cut(batch, 2, 4, 6)
    full = Hessian(model, parts, loss=loss, norm_mode="full")
    near(full @ vector, one @ vector)
    other = Hessian(model, parts, loss=loss, norm_mode="batch")
    assert other.partition == (2, 2, 2, 2)
    gap = (other @ vector - one @ vector).norm() / (one @ vector).norm()
    assert gap > 0.01
    # The mean over batches of each one's own loss.
    model.train()
    mean = sum(looped_hessian(model, part, loss) for part in parts) / 4
    near(other @ vector, mean @ vector)


def test_micro_batches_within_several_batches():
    model, batch, loss = bn_case()
    parts = cut(batch, 3)
    whole = product(model, parts, loss, norm_mode="batch")
    for size in (1, 2):
        pieces = product(model, parts, loss, norm_mode="batch", micro_batch=size)
        near(pieces, whole)


@pytest.mark.parametrize("mode", ["eval", "frozen"])
def test_constant_statistics_split_freely(mode):
    model, batch, loss = bn_case()
    whole = product(model, batch, loss, norm_mode=mode)
    near(product(model, cut(batch, 1, 3), loss, norm_mode=mode), whole)
    near(product(model, batch, loss, norm_mode=mode, micro_batch=3), whole)


def test_frozen_is_eval_with_the_statistics_of_all_the_data():
    model, batch, loss = bn_case()
    frozen = product(model, cut(batch, 3), loss, norm_mode="frozen")
    # By hand: momentum 1 writes the mean and the unbiased variance of a batch.
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    model.train()
    model(batch[0])
    for norm in norms:
        norm.running_var.mul_(127 / 128)
    near(frozen, product(model, batch, loss, norm_mode="eval"), rtol=1e-9)
    moved = product(model, batch, loss, norm_mode="batch")
    assert (moved - frozen).norm() > 0.01 * frozen.norm()


@pytest.mark.parametrize("shape", [(5, 3), (4, 2, 3), (3, 2, 2, 2), (2, 2, 2, 1, 2)])
def test_second_derivative_of_batch_norm(shape):
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    weight, bias = torch.randn(2, shape[1], dtype=torch.float64)
    weight[0] = 0  # as residual branches start
    arguments = (x, weight.requires_grad_(), bias.requires_grad_())

    def ours(*given):
        return batch_norm_twice(*given, 1e-3)

    torch.testing.assert_close(
        ours(*arguments), nn.functional.batch_norm(x, None, None, *arguments[1:], True,
                                                   0.1, 1e-3))  # fmt: skip
    assert gradcheck(ours, arguments)
    assert gradgradcheck(ours, arguments)


class Twice(nn.Module):
    """One norm applied twice, another as a function."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        x = self.norm(torch.tanh(self.layer(self.norm(x))))
        return nn.functional.batch_norm(self.layer(x), None, None, training=True)


class WithActivation(nn.BatchNorm1d):
    """As in libraries that fuse norm and activation into one module."""

    def forward(self, x):
        return torch.tanh(super().forward(x))


def dense_case(model):
    model = model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    inputs = torch.randn(7, 3, dtype=torch.float64)
    return model, (inputs, torch.randn(7, 3, dtype=torch.float64)), HalfSquareLoss()


@pytest.mark.parametrize(
    "build",
    [
        Twice,
        lambda: nn.Sequential(nn.Linear(3, 3), WithActivation(3), nn.Linear(3, 3)),
        lambda: nn.Sequential(nn.Linear(3, 3), nn.SyncBatchNorm(3), nn.Tanh()),
        lambda: nn.Sequential(
            nn.Linear(3, 3), nn.BatchNorm1d(3, affine=False), nn.Tanh()
        ),
        lambda: nn.Sequential(
            nn.Linear(3, 3), nn.BatchNorm1d(3, momentum=None), nn.Tanh()
        ),
    ],
)
def test_norms_of_other_makes(build):
    model, batch, loss = dense_case(build())
    exact = looped_hessian(model.train(), batch, loss)
    whole = Hessian(model, batch, loss=loss, norm_mode="batch").dense()
    near(whole, exact)
    cutting = Hessian(model, cut(batch, 3), loss=loss, norm_mode="full", micro_batch=2)
    multiplies_as(cutting, exact)


def test_instance_norm_couples_no_samples():
    model = nn.Sequential(nn.Conv1d(3, 3, 1), nn.InstanceNorm1d(3), nn.Flatten())
    model = model.double()
    x = torch.randn(4, 3, 5, dtype=torch.float64)
    batch, loss = (x, torch.randn(4, 15, dtype=torch.float64)), HalfSquareLoss()
    exact = looped_hessian(model, batch, loss)
    for mode in NormMode:
        operator = Hessian(model, batch, loss=loss, norm_mode=mode, micro_batch=1)
        multiplies_as(operator, exact)
    model[1] = nn.InstanceNorm1d(3, track_running_stats=True).double()
    with pytest.raises(MeasurementError, match="InstanceNorm"):
        Hessian(model, batch, loss=loss, norm_mode="frozen")


@pytest.mark.parametrize("micro_batch", [None, 2])
def test_instance_norm_beside_a_batch_norm_that_is_frozen(micro_batch):
    layers = nn.Conv1d(3, 2, 1), nn.InstanceNorm1d(2), nn.BatchNorm1d(2, momentum=1.0)
    model = nn.Sequential(*layers, nn.Tanh(), nn.Flatten()).double()
    x = torch.randn(4, 3, 5, dtype=torch.float64)
    batch, loss = (x, torch.randn(4, 10, dtype=torch.float64)), HalfSquareLoss()
    settings = {"norm_mode": "frozen", "micro_batch": micro_batch}
    frozen = product(model, batch, loss, **settings)
    model.train()
    model(x)
    model[2].running_var.mul_(19 / 20)
    near(frozen, product(model, batch, loss, norm_mode="eval"))


def test_what_has_no_statistics_is_said():
    model, batch, loss = dense_case(Twice())
    with pytest.raises(MeasurementError, match="also in eval mode"):
        Hessian(model, batch, loss=loss, norm_mode="eval")
    with pytest.raises(MeasurementError, match="no one set of statistics"):
        Hessian(model, batch, loss=loss, norm_mode="frozen") @ torch.ones(18)
    with pytest.raises(MeasurementError, match="one value a channel"):
        Hessian(model, cut(batch, 1), loss=loss, norm_mode="batch")


ONE_SAMPLE = {
    "Hessian": lambda model, batch, **given: Hessian(
        model, batch, loss=HalfSquareLoss(), norm_mode="frozen", **given
    ).dense(),
    "Jacobian": lambda model, batch, **given: Jacobian(
        model, batch, norm_mode="frozen", **given
    ).dense(),
    "kernel": lambda model, batch: tangent_kernel(model, batch, norm_mode="frozen"),
    "block": lambda model, batch: BlockJacobian(
        model, batch, block="1", norm_mode="frozen"
    ),
    "samples apart": lambda model, batch: BlockJacobian(
        model, batch, block="1", norm_mode="batch", coupled=False
    ),
}


@pytest.mark.parametrize("name", ONE_SAMPLE)
def test_one_sample_has_no_statistics_to_freeze(name):
    layers = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Tanh()
    model, batch, _ = dense_case(nn.Sequential(*layers))
    one = cut(batch, 1)[0]
    cuts = [{}, {"micro_batch": 1}] if name in ("Hessian", "Jacobian") else [{}]
    for given in cuts:
        with pytest.raises(MeasurementError, match="one value a channel"):
            ONE_SAMPLE[name](model, one, **given)
        ONE_SAMPLE[name](model, batch, **given)


class HandMade(nn.Module):
    """Couples samples in a way that no one can see from outside."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        z = self.layer(x)
        return z - z.mean(0)


@pytest.mark.parametrize("kind", [Hessian, GaussNewton, Jacobian])
def test_samples_coupled_by_hand_are_not_cut(kind):
    model, batch, loss = dense_case(HandMade())
    settings = {} if kind is Jacobian else {"loss": loss}
    kind(model, batch, norm_mode="batch", **settings)
    with pytest.raises(MeasurementError, match="together and apart"):
        kind(model, batch, norm_mode="batch", micro_batch=3, **settings)
    with pytest.raises(MeasurementError, match="together and apart"):
        kind(model, cut(batch, 3), norm_mode="full", **settings)


def test_a_reduction_stated_wrongly_is_noticed():
    model, batch, _ = dense_case(nn.Sequential(nn.Linear(3, 3)))

    def summed(network, given):
        return (network(given[0]) - given[1]).square().sum()

    right = Hessian(model, batch, loss=summed, norm_mode="batch", micro_batch=2,
                    reduction="sum")  # fmt: skip
    multiplies_as(right, looped_hessian(model, batch, summed))
    with pytest.raises(MeasurementError, match="state reduction"):
        Hessian(model, batch, loss=summed, norm_mode="batch", micro_batch=2)


@pytest.mark.parametrize("size", [0, -1, 2.0, True])
def test_a_micro_batch_is_a_count(size):
    model, batch, loss = dense_case(nn.Linear(3, 3))
    with pytest.raises(MeasurementError, match="whole number"):
        Hessian(model, batch, loss=loss, norm_mode="batch", micro_batch=size)


class Cast(nn.Module):
    """Gives its layer another type, as autocast does."""

    def __init__(self, layer, dtype):
        super().__init__()
        self.layer, self.dtype = layer, dtype

    def forward(self, x):
        return self.layer(x.to(self.dtype)).to(x.dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", ["batch", "full", "frozen"])
def test_half_precision_enters_batch_norm_in_pieces(mode, dtype):
    norm = Cast(nn.BatchNorm1d(4), dtype)
    model = nn.Sequential(nn.Linear(3, 4), norm, nn.Tanh(), nn.Linear(4, 3))
    torch.manual_seed(0)
    data = torch.randn(16, 3), torch.arange(16) % 3
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": mode}
    whole = Hessian(model, data, **given).dense()
    pieces = Hessian(model, data, micro_batch=5, **given)
    rtol = 20 * torch.finfo(dtype).eps
    near(pieces.dense(), whole, rtol=rtol)
    wide = Cast(norm.layer, torch.float32)
    exact = Hessian(nn.Sequential(model[0], wide, *model[2:]), data, **given).dense()
    near(whole, exact, rtol=rtol)
