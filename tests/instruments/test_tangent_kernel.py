"""The tangent kernel against the Gram matrix of looped Jacobian rows."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from tests.cases import CASES, in_modes
from tests.instruments.test_block_jacobian import set_mode
from tests.instruments.test_preservation import portrait, without_versions
from theodolite.core import MeasurementError, NormMode, Status
from theodolite.instruments import TangentKernel, tangent_kernel
from theodolite.instruments.tangents.strategies import agrees

BY_NAME = {case.name: case for case in CASES}
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def jacobian(model, inputs, params=None):
    """Return the Jacobian by parameters, one backward pass a row."""
    known = dict(model.named_parameters())
    leaves = [known[name] for name in (params or known)]
    outputs = model(inputs).reshape(-1)
    rows = [
        torch.autograd.grad(out, leaves, retain_graph=True, allow_unused=True)
        for out in outputs
    ]
    return np.stack(
        [
            np.concatenate(
                [
                    (torch.zeros_like(p) if g is None else g).detach().numpy().ravel()
                    for g, p in zip(row, leaves, strict=True)
                ]
            )
            for row in rows
        ]
    )


def oracle(model, inputs, mode, params=None):
    rows = jacobian(set_mode(model, inputs, str(mode)), inputs, params)
    return rows @ rows.T


def test_what_is_not_finite_agrees_with_nothing():
    assert agrees(2.0, 2.0 * (1 + 1e-14), 1e-16)
    assert not agrees(2.0, 2.0 * (1 + 1e-12), 1e-16)
    for one, other in (np.inf, 2.0), (2.0, np.inf), (np.inf, np.inf), (np.nan, 2.0):
        assert not agrees(one, other, 1e-16)


class Sequences(nn.Module):
    """Linear maps along a sequence, a norm and a head."""

    def __init__(self):
        super().__init__()
        self.one, self.norm = nn.Linear(3, 4), nn.LayerNorm((2, 4))
        self.head = nn.Linear(8, 2, bias=False)

    def forward(self, x):
        y = torch.relu_(self.norm(torch.tanh(self.one(x))))
        return self.head(y.flatten(1))


class Turned(nn.Module):
    """Samples along the second axis inside, as many as steps."""

    def __init__(self):
        super().__init__()
        self.one, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        y = torch.tanh(self.one(x.transpose(0, 1)))
        return self.head(y.transpose(0, 1).sum(1))


class Folded(nn.Module):
    """Samples and steps in one axis inside."""

    def __init__(self):
        super().__init__()
        self.one, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        y = torch.tanh(self.one(x.reshape(-1, 3)))
        return self.head(y.reshape(*x.shape[:2], 4).sum(1))


class Borrowed(nn.Module):
    """A weight that is used by its layer and by other code."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(3, 3)

    def forward(self, x):
        return torch.tanh(self.one(x)) @ self.one.weight


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.spare = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        return self.one(x)


def convolutions():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 4, 2, dilation=2, padding=(1, 2), bias=False),
        nn.GroupNorm(2, 4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 3, 3, padding="same"),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


MODELS = {
    "sequences": (Sequences, (4, 2, 3), "layer by layer"),
    "turned": (Turned, (4, 4, 3), "by samples"),
    "folded": (Folded, (4, 2, 3), "layer by layer"),
    "borrowed": (Borrowed, (4, 3), "by samples"),
    "unused": (Unused, (4, 3), "layer by layer"),
    "convolutions": (convolutions, (3, 2, 5, 5), "layer by layer"),
}


@in_modes
def test_equals_the_gram_matrix_of_rows(case, mode):
    model, batch, _ = case.make()
    whole = oracle(model, batch[0], mode)
    live = any(m.training for m in model.modules() if isinstance(m, nn.BatchNorm2d))
    coupled = mode in ("batch", "full", "as_is") and live
    for traced in (False, True):
        reading = tangent_kernel(model, batch, norm_mode=mode, trace_outputs=traced)
        shape = reading.samples, -1, reading.samples, reading.outputs
        wanted = np.einsum("ncmc->nm", whole.reshape(shape)) if traced else whole
        assert_allclose(reading.matrix, wanted, **TIGHT)
        assert reading.norm_mode is mode
        values = np.linalg.eigvalsh(wanted)
        assert abs(reading.smallest - values[0]) <= reading.eigenvalue_error
        assert abs(reading.largest - values[-1]) <= reading.eigenvalue_error
        # Each way falls back to a surer one, so a wrong one shows here.
        assert reading.method == ("by rows" if coupled else "layer by layer")


@pytest.mark.parametrize("mode", ["eval", "frozen"])
@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_layer(name, mode):
    torch.manual_seed(0)
    build, shape, method = MODELS[name]
    model = build().double()
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
            nn.init.normal_(norm.weight)
    inputs = torch.randn(*shape, dtype=torch.float64)
    reading = tangent_kernel(model, inputs, norm_mode=mode)
    assert_allclose(reading.matrix, oracle(model, inputs, mode), **TIGHT)
    assert reading.method == method


def test_samples_that_act_on_one_another_are_noticed():
    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(3, 2)

        def forward(self, x):
            y = self.one(x)
            return y - y.mean(0)

    model, x = Mixing().double(), torch.randn(4, 3, dtype=torch.float64)
    reading = tangent_kernel(model, x, norm_mode="eval")
    assert reading.method == "by rows"
    assert_allclose(reading.matrix, oracle(model, x, "eval"), **TIGHT)


@pytest.mark.parametrize("mode", ["full", "frozen", "eval"])
@pytest.mark.parametrize("name", ["conv_bn_resnet", "mlp", "attention", "recurrent"])
def test_how_the_data_is_split_changes_nothing(name, mode):
    model, (x, y), _ = BY_NAME[name].make()
    whole = tangent_kernel(model, (x, y), norm_mode=mode)
    parts = [(x[:1], y[:1]), (x[1:4], y[1:4]), (x[4:], y[4:])]
    split = tangent_kernel(model, parts, norm_mode=mode)
    assert_allclose(split.matrix, whole.matrix, **TIGHT)


def test_each_batch_has_its_own_statistics_under_batch():
    model, (x, y), _ = BY_NAME["conv_bn_resnet"].make()
    by_hand = set_mode(model, x, "batch")
    rows = np.concatenate([jacobian(by_hand, x[:3]), jacobian(by_hand, x[3:])])
    parts = [(x[:3], y[:3]), (x[3:], y[3:])]
    got = tangent_kernel(model, parts, norm_mode="batch").matrix
    assert_allclose(got, rows @ rows.T, **TIGHT)
    assert np.abs(got - oracle(model, x, "batch")).max() > 1e-3


@pytest.mark.parametrize("mode", ["batch", "eval"])
@pytest.mark.parametrize("name", ["conv_bn_resnet", "group_norm", "weight_norm"])
def test_memory_changes_nothing_but_the_passes(name, mode):
    model, batch, _ = BY_NAME[name].make()
    roomy = tangent_kernel(model, batch, norm_mode=mode)
    passes = []
    for extra in (60_000, 100_000):
        tight = tangent_kernel(model, batch, norm_mode=mode, matrix_bytes=extra)
        assert_allclose(tight.matrix, roomy.matrix, **TIGHT)
        assert tight.peak_bytes <= extra
        passes.append(tight.cost.passes)
    assert passes[0] >= passes[1] >= roomy.cost.passes


def test_some_parameters_only():
    model, batch, _ = BY_NAME["conv_bn_resnet"].make()
    for params in (["0.weight"], ["4.bias", "1.branch.1.weight"], ["4.weight"]):
        got = tangent_kernel(model, batch, norm_mode="eval", params=params)
        assert_allclose(got.matrix, oracle(model, batch[0], "eval", params), **TIGHT)


@in_modes
def test_the_operator_multiplies_as_the_matrix(case, mode):
    model, batch, _ = case.make()
    kernel = TangentKernel(model, batch, norm_mode=mode)
    matrix = tangent_kernel(model, batch, norm_mode=mode).matrix
    vector = np.random.default_rng(0).normal(size=len(matrix))
    assert kernel.shape == matrix.shape
    assert kernel.symmetric
    assert_allclose(kernel @ vector, matrix @ vector, rtol=1e-8, atol=1e-9)


def test_a_singular_kernel_is_a_status():
    layer = nn.Linear(2, 1, dtype=torch.float64)
    x = torch.randn(9, 2, dtype=torch.float64)
    reading = tangent_kernel(layer, x, norm_mode="eval")
    assert reading.status is Status.ROUNDING
    assert reading.condition == np.inf
    assert abs(reading.smallest) <= reading.eigenvalue_error < 1e-12
    better = tangent_kernel(layer, x[:2], norm_mode="eval")
    assert better.status is Status.EXACT
    assert better.smallest > better.eigenvalue_error
    assert_allclose(better.condition, np.linalg.cond(better.matrix), rtol=1e-8)


def test_float32_is_near_float64_within_its_error():
    found = []
    for dtype in (torch.float64, torch.float32):
        model, batch, _ = BY_NAME["group_norm"].make(dtype=dtype)
        found.append(tangent_kernel(model, batch, norm_mode="eval"))
    exact, rough = found
    assert_allclose(rough.matrix, exact.matrix, rtol=1e-4, atol=rough.matrix_error * 10)
    assert abs(rough.smallest - exact.smallest) <= rough.eigenvalue_error
    assert rough.matrix.dtype == np.float64


def test_same_call_same_reading():
    model, batch, _ = BY_NAME["conv_bn_resnet"].make()
    first = tangent_kernel(model, batch, norm_mode="frozen")
    again = tangent_kernel(model, batch, norm_mode="frozen")
    assert_array_equal(first.matrix, again.matrix)
    assert_array_equal(first.matrix, first.matrix.T)
    bare = tangent_kernel(model, batch, norm_mode="frozen", certify=False)
    assert np.isnan(bare.smallest)
    assert_array_equal(bare.matrix, first.matrix)


@in_modes
def test_left_as_found(case, mode):
    model, batch, loss = case.make()
    loss(model(batch[0]), batch[1]).backward()
    model.register_forward_hook(lambda *_: None)
    before = portrait(model)
    tangent_kernel(model, batch, norm_mode=mode)
    assert without_versions(portrait(model)) == without_versions(before)


@pytest.mark.parametrize("mode", list(NormMode))
def test_left_as_found_after_an_exception(mode):
    model, batch, _ = BY_NAME["conv_bn_resnet"].make()
    before, calls = portrait(model), []

    def failing(network, given):
        calls.append(network(given[0]))
        torch.rand(3)
        if len(calls) > 2:
            raise ZeroDivisionError
        return calls[-1]

    with pytest.raises(ZeroDivisionError):
        tangent_kernel(model, batch, norm_mode=mode, outputs=failing)
    assert without_versions(portrait(model)) == without_versions(before)


def test_misuse_is_said_in_one_sentence():
    model, batch, _ = BY_NAME["mlp"].make()
    with pytest.raises(MeasurementError, match="allowed are"):
        tangent_kernel(model, batch, norm_mode="eval", matrix_bytes=1000)
    with pytest.raises(MeasurementError, match="no parameters"):
        tangent_kernel(nn.ReLU(), batch, norm_mode="eval")
    with pytest.raises(MeasurementError, match="samples along the first axis"):
        tangent_kernel(
            model, batch, norm_mode="eval", outputs=lambda m, b: m(b[0]).sum()
        )
    with pytest.raises(MeasurementError, match="outputs a sample"):
        tangent_kernel(
            nn.Sequential(nn.Conv1d(1, 1, 2), nn.Flatten()),
            [(torch.randn(2, 1, length), torch.zeros(2)) for length in (4, 5)],
            norm_mode="eval",
        )
    with pytest.raises(MeasurementError):
        tangent_kernel(model, batch[0] * torch.nan, norm_mode="eval")
