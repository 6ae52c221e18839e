"""Steps that are guaranteed lower the loss, and what is not known is named."""

import copy
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from theodolite.certificates import CertifiedDescent, guaranteed_step
from theodolite.certificates.enclosure import prepare
from theodolite.core import MeasurementError
from theodolite.instruments import Problem

from .networks import CLASSES, FEATURES, NETWORKS, Applied, outside, problem


@pytest.mark.parametrize(
    ("network", "seed"), [(name, 2 * at) for at, name in enumerate(NETWORKS)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_step_up_to_the_guaranteed_one_lowers_the_loss(network, seed, dtype):
    given = problem(network, seed=seed + dtype.itemsize // 8, dtype=dtype)
    found = guaranteed_step(given)
    assert 0 < found.best_step <= found.step
    ready = prepare(given)
    along = [-part for part in ready.gradient()]
    before = ready.run(along, 0.0)[0]
    for share in (0.01, 0.1, 0.3, 0.5, 0.8, 1.0):
        assert ready.run(along, share * found.step)[0] < before
    fall = before - ready.run(along, found.best_step)[0]
    assert 0 < found.decrease <= fall + 1e-13
    assert found.looseness >= 1
    assert not (found.layer_looseness < 1 - 1e-9).any()
    if network in ("tanh", "relu", "GELU"):
        assert found.looseness < 10


def test_a_parabola_gives_the_known_numbers():
    """Of ‖θ‖²/2 along −θ: the loss falls until 2, most at 1, by all of it."""
    model = nn.Linear(1, 1, bias=False).double()
    with torch.no_grad():
        model.weight.fill_(3.0)

    def loss(model, batch):
        return model.weight.square().sum() / 2 + 0 * batch[0].sum()

    found = guaranteed_step(Problem(model, (torch.ones(1, 1),) * 2, loss=loss))
    assert found.slope == pytest.approx(-9.0)
    assert 1.99 < found.step < 2
    assert found.stable_step == pytest.approx(2.0)
    assert found.ratio == pytest.approx(found.step / 2)
    assert found.decrease == pytest.approx(4.5, rel=1e-6)
    assert found.looseness == pytest.approx(1.0)


def test_a_direction_is_that_of_its_numbers():
    given = problem("tanh")
    ready = prepare(given)
    flat = torch.cat([-part.reshape(-1) for part in ready.gradient()])
    one, double = (guaranteed_step(given, direction=k * flat) for k in (1, 2))
    own = guaranteed_step(given)
    assert one.step == pytest.approx(own.step, rel=1e-6)
    assert double.step == pytest.approx(one.step / 2, rel=1e-6)
    assert double.ratio == pytest.approx(one.ratio, rel=1e-3)
    upward = guaranteed_step(given, direction=-flat)
    assert upward.step == upward.decrease == 0


def test_rounding_in_very_deep_networks_is_said():
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32)) for _ in range(40)]
    model = nn.Sequential(nn.Linear(FEATURES, 32), *blocks, nn.Linear(32, CLASSES))
    data = torch.randn(8, FEATURES), torch.arange(8) % CLASSES
    found = guaranteed_step(Problem(model, data, loss=nn.CrossEntropyLoss()))
    assert found.step == found.decrease == 0
    assert found.status == "rounding"
    assert np.isfinite(found.loss)


def test_parameters_that_are_left_out_stay():
    given = problem("tanh")
    alone = Problem(given.model, given.batches, loss=given.loss, params=["4.weight"])
    assert prepare(alone).names == ("4.weight",)
    assert guaranteed_step(alone).step > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("network", ["relu", "batch_norm", "residual", "max_pool"])
def test_certified_descent_never_raises_the_loss(network, dtype):
    given = problem(network, dtype=dtype)
    optimizer = CertifiedDescent(given)
    for _ in range(3):
        before = _exact(given.model, given)
        found = optimizer.step(given.batches)
        after = _exact(given.model, given)
        assert after <= before - found.decrease * (1 - 1e-6)
        assert found.decrease >= 0
    assert found.loss < guaranteed_step(problem(network, dtype=dtype)).loss


def _exact(model, given):
    model = copy.deepcopy(model).double()
    x, y = given.batches
    with torch.no_grad():
        return float(functional.cross_entropy(model(x.double()), y))


def test_weights_that_cannot_move_stay():
    """A decrease smaller than the spacing of float32 is taken, or nothing is."""
    given = problem("relu", dtype=torch.float32)
    with torch.no_grad():
        given.model[4].bias.add_(2**30)
    before = copy.deepcopy(given.model.state_dict())
    old = _exact(given.model, given)
    found = CertifiedDescent(given).step(given.batches)
    moved = any(
        not torch.equal(before[name], one)
        for name, one in given.model.state_dict().items()
    )
    assert moved == (found.decrease > 0)
    assert Fraction(_exact(given.model, given)) <= Fraction(old)


def around(function, classes=CLASSES, **options):
    layers = {"stem": nn.Linear(FEATURES, CLASSES), "odd": Applied(function)}
    model = nn.Sequential(OrderedDict(layers)).double()
    data = torch.randn(5, FEATURES).double(), torch.arange(5) % classes
    return Problem(model, data, loss=nn.CrossEntropyLoss(**options))


def _written(x):
    part = x[:, :1]
    part *= 2
    return x + 1


def _hidden(x):
    return x * torch.from_numpy(x.detach().numpy())


def _alias(x):
    sums = torch.zeros_like(x)
    part = sums[:, :1]
    sums += x
    return x * part


def _statistics(x):
    mean, variance = torch.zeros(CLASSES).double(), torch.ones(CLASSES).double()
    x = functional.batch_norm(x, mean, variance, training=True)
    return x * mean


@torch.library.custom_op("theodolite_tests::relu", mutates_args=())
def _foreign(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def _indices(x):
    pooled, index = functional.max_pool2d(x[None, None], 1, return_indices=True)
    return pooled[0, 0] + index[0, 0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (torch.sin, r"layer odd \(Applied\) uses the operator sin, of which no bounds"),
        (lambda x: x.abs() ** 1.5, "pow with exponent 1.5"),
        (lambda x: x.float().double(), "a cast to torch.float32"),
        (lambda x: functional.pad(x, (0, 1), value=2.0)[:, 1:], "not of zeros"),
        (lambda x: functional.elu(x, 0.5), "ELU with an alpha"),
        (lambda x: functional.dropout(x, 0.5), "draws random numbers"),
        (_written, "reads memory that was written to"),
        (_alias, "through another tensor"),
        (_hidden, r"numpy\(\), whose numbers leave torch"),
        (_statistics, "reads memory that was written to"),
        (lambda x: _foreign(x), "the operator theodolite_tests.relu.default"),
        (lambda x: 2**x, "an exponent that is a tensor"),
        (lambda x: x ** torch.full_like(x, 2.0), "an exponent that is a tensor"),
        (lambda x: functional.softplus(x, threshold=1), "a threshold below 20"),
        (lambda x: x.masked_fill(x.detach() * 0 == 0, 1.0), "the operator eq"),
        (lambda x: torch.flip(x.float(), (0,)).double(), "a cast to torch.float32"),
        (lambda x: torch.empty_like(x).exponential_() * x, "random numbers"),
        (_indices, "a second result of max_pool2d_with_indices"),
    ],
)
def test_what_is_not_known_is_named(function, words):
    along = torch.ones((FEATURES + 1) * CLASSES)
    with pytest.raises(MeasurementError, match=words):
        guaranteed_step(around(function), direction=along)


def test_a_loss_that_changes_from_run_to_run_is_noticed():
    numbers = iter(range(10**6))
    with pytest.raises(MeasurementError, match="changes from run to run"):
        guaranteed_step(around(lambda x: x * (1 + next(numbers) / 1e5)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + (x.tanh() - x).detach(),
        lambda x: functional.max_pool1d(x[None], 2)[0],
        lambda x: x.tanh().masked_fill(torch.eye(5, CLASSES) > 0, 0.3),
    ],
)
def test_what_looks_difficult_is_bounded(function):
    for length in (1e-3, 0.1):
        assert not outside(around(function, 1, label_smoothing=0.1), length, "random")


def refused():
    """Return problems that cannot be certified, or settings of a step, and why."""
    given = problem("batch_norm")
    model, (x, y) = given.model, given.batches
    normed = nn.utils.spectral_norm(nn.Linear(x.shape[1], 3).double())
    normed(x)
    overlapping, twins = copy.deepcopy(model), copy.deepcopy(model)
    overlapping.extra = nn.Parameter(overlapping[0].weight.data[1:])
    twins.extra = nn.Parameter(twins[0].weight.data)
    weight = model[0].weight
    fragile = Applied(lambda x: weight.sum().exp() * x.exp_().exp_())
    return [
        ({"params": ["none"]}, "asked for"),
        ({"params": []}, "none asked for"),
        ({"model": nn.Sequential(nn.LazyLinear(3))}, "has no shape"),
        ({"model": normed}, "cannot be copied"),
        ({"batches": [(x, y), (x, y)]}, "2 batches came"),
        ({"norm_mode": "frozen"}, "frozen"),
        ({"direction": torch.ones(3)}, "one number for each"),
        ({"batches": (x * torch.inf, y)}, "not finite"),
        ({"model": overlapping}, "share memory"),
        ({"model": twins}, "share memory"),
        ({"model": nn.Sequential(model, fragile)}, "has no gradient"),
        ({"evaluations": 0}, "at least 1"),
    ]


@pytest.mark.parametrize(("changes", "words"), refused(), ids=[w for _, w in refused()])
def test_what_cannot_be_certified_is_refused(changes, words):
    given = problem("batch_norm")
    settings = {k: changes[k] for k in ("direction", "evaluations") if k in changes}
    kept = {"model": given.model, "batches": given.batches, "loss": given.loss}
    kept |= {"norm_mode": "batch"} | {
        key: one for key, one in changes.items() if key not in settings
    }
    with pytest.raises(MeasurementError, match=words):
        guaranteed_step(Problem(**kept), **settings)
    if "params" in changes:
        with pytest.raises(MeasurementError, match=words):
            CertifiedDescent(Problem(**kept))
