"""Stated errors cover the rounding of the model's graph, over nets and seeds.

The truth is the same network, at the same weights and data, in float64.
"""

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES
from theodolite.core import DistributedError, MeasurementError, Status
from theodolite.instruments import (
    GaussNewton,
    Hessian,
    diagonal,
    extreme_eigenvalues,
    hessian,
    index,
    sharpness_along,
    singular_values,
    spectrum_of,
    tangent_kernel,
    trace,
)
from theodolite.instruments.operators import rounding_reference
from theodolite.instruments.operators.rounding_noise import rounding_noise

LOSS = nn.CrossEntropyLoss()


class Offset(nn.Module):
    """Adds a constant, which batch norm takes away again: digits are lost."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x + self.size


class Cast(nn.Module):
    """Scales by the root mean square in float32, whatever came."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(5))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.scale * wide.to(x.dtype)


def amplifying():
    return nn.Sequential(
        nn.Linear(4, 5), Offset(300.0), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)
    )


def casting():
    return nn.Sequential(nn.Linear(4, 5), Cast(), nn.Tanh(), nn.Linear(5, 3)).double()


BUILDERS = {case.name: (case.model, case.shape) for case in CASES}
BUILDERS["amplifying"] = (amplifying, (4,))
# Those of 60 parameters at most, and the others.
LARGE = {"conv_bn_resnet", "pre_activation_resnet", "group_norm", "attention"}
SMALL = set(BUILDERS) - LARGE


def fresh_pair(name, seed, samples=8):
    """Return a float32 model and batch, and their copies in float64."""
    build, shape = BUILDERS[name]
    generator = torch.Generator().manual_seed(seed)
    model = build().float()
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(0.5 * torch.randn(tensor.shape, generator=generator))
    x = torch.randn(samples, *shape, generator=generator)
    y = torch.randint(0, 3, (samples,), generator=generator)
    wide = build().double()
    wide.load_state_dict({k: v.double() for k, v in model.state_dict().items()})
    return (model, (x, y)), (wide, (x.double(), y))


# Instruments leave models as found, so that tests can share them.
pair = cache(fresh_pair)


def over_errors(measure, names=BUILDERS, seeds=2):
    """Return how many times its error each reading is off, over nets and seeds."""
    nets = [(name, seed) for name in sorted(names) for seed in range(seeds)]
    return np.array([measure(*pair(*net)) for net in nets])


def settings(**more):
    return {"loss": LOSS, "norm_mode": "batch", **more}


@cache
def exact_of(wide):
    return hessian(*wide, **settings()).matrix


def matrix_ratios(narrow, wide):
    exact = exact_of(wide)
    values = np.linalg.eigvalsh(exact)[::-1]
    found = hessian(*narrow, **settings())
    each = spectrum_of(found)
    return (
        np.abs(found.matrix - exact).max() / found.matrix_error,
        np.abs(each.eigenvalues - values).max() / each.eigenvalue_error,
    )


def sum_ratios(narrow, wide):
    exact = exact_of(wide)
    total = trace(*narrow, **settings())
    entries = diagonal(*narrow, **settings())
    off = np.abs(entries.diagonal - np.diagonal(exact))
    return (
        abs(total.trace - np.trace(exact)) / total.trace_error,
        np.quantile(off / (entries.diagonal_error + 1e-30), 0.95),
    )


@pytest.mark.parametrize(
    ("measure", "names", "seeds"),
    [(matrix_ratios, BUILDERS, 2), (sum_ratios, SMALL, 2)],
)
def test_dense_readings_in_float32_cover_float64(measure, names, seeds):
    ratios = over_errors(measure, names, seeds)
    assert np.all((ratios <= 1).mean(axis=0) >= 0.95)
    # Nor are they so wide as to say nothing.
    assert np.all(np.median(ratios, axis=0) > 0.02)


def products_ratios(narrow, wide):
    values = np.linalg.eigvalsh(exact_of(wide))[::-1]
    found = extreme_eigenvalues(
        *narrow, **settings(k=2, tol=1e-6, method="products", max_matvecs=400)
    )
    off = np.abs(found.eigenvalues - values[:2])
    below = np.abs(found.smallest - values[::-1][:2])
    return (
        np.max(off / found.errors),
        np.max(off / found.sharp_errors),
        np.max(below / found.smallest_errors),
    )


def test_extreme_eigenvalues_in_float32_cover_float64():
    ratios = over_errors(products_ratios)
    assert np.all((ratios <= 1).mean(axis=0) >= 0.95)


def test_one_product_bounds_the_rounding_at_several_vectors():
    def ratio(narrow, wide):
        found = extreme_eigenvalues(*narrow, **settings(**THREE, tol=0.1, vectors=True))
        vectors = torch.as_tensor(found.eigenvectors).T
        ours, exact = Hessian(*narrow, **settings()), Hessian(*wide, **settings())
        gaps = [exact @ v - (ours @ v.float()).double() for v in vectors]
        truth = max(float(gap.norm()) for gap in gaps)
        return truth / (found.graph_error * abs(found.eigenvalues[0]))

    ratios = over_errors(ratio, SMALL)
    assert np.mean(ratios <= 1) >= 0.95
    assert np.median(ratios) > 0.005


# A tolerance that grants what rounding does, and one that does not.
@pytest.mark.parametrize(("tol", "compared"), [(0.1, 1), (0.0, 3)])
def test_no_more_is_compared_than_the_tolerance_asks_for(tol, compared):
    found = extreme_eigenvalues(*pair("mlp", 0)[0], **settings(**THREE, tol=tol))
    own = int(found.method.split()[1])  # "Lanczos, … products"
    assert found.cost.passes - own == compared


THREE = {"k": 3, "ends": "magnitude", "method": "products"}


@pytest.mark.parametrize("traced", [False, True])
def test_tangent_kernels_in_float32_cover_float64(traced):
    def ratios(narrow, wide):
        mode = {"norm_mode": "batch", "trace_outputs": traced}
        found = tangent_kernel(narrow[0], narrow[1][0], **mode)
        exact = tangent_kernel(wide[0], wide[1][0], **mode)
        return (
            np.abs(found.matrix - exact.matrix).max() / found.matrix_error,
            abs(found.largest - exact.largest) / found.eigenvalue_error,
            abs(found.smallest - exact.smallest) / found.eigenvalue_error,
        )

    found = over_errors(ratios, SMALL if traced else BUILDERS)
    assert np.all((found <= 1).mean(axis=0) >= 0.95)


@pytest.mark.parametrize("size", [300.0, 1e5])
def test_singular_values_in_float32_cover_float64(size):
    norm = nn.Sequential(Offset(size), nn.BatchNorm1d(3), nn.Tanh())
    x = torch.randn(10, 3)
    shared = {"block": "", "norm_mode": "batch", "method": "dense"}
    found = singular_values(norm, x, **shared)
    exact = singular_values(norm.double(), x.double(), **shared)
    kept = found.rank
    off = np.abs(found.values - exact.values[:kept])
    assert np.all(off <= found.value_error)
    assert found.rank_low <= exact.rank <= found.rank_high


def test_the_trace_of_one_weight():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 1), Offset(300.0), nn.BatchNorm1d(1), nn.Tanh())
    batch = torch.randn(8, 4), torch.randn(8, 1)
    shared = {"loss": nn.MSELoss(), "norm_mode": "batch", "params": ["2.weight"]}
    found = trace(model, batch, **shared)
    exact = trace(model.double(), tuple(part.double() for part in batch), **shared)
    assert found.status is Status.EXACT
    off = abs(found.trace - exact.trace)
    assert 1e-6 < off / abs(exact.trace) < 1e-2
    assert off <= found.trace_error < 10 * off


def test_estimates_from_products_include_the_graph():
    narrow, wide = pair("amplifying", 1)
    shared = settings(method="products", max_matvecs=150)
    found, exact = trace(*narrow, **shared), np.trace(exact_of(wide))
    assert found.trace_low <= exact <= found.trace_high
    # All of it is rounding: so many products leave nothing to chance.
    assert found.trace_error < 5e-2 * abs(exact)
    hits = []
    for seed in range(6):
        narrow, wide = pair("amplifying", seed)
        entries = diagonal(*narrow, **shared, seed=seed)
        off = np.abs(entries.diagonal - np.diagonal(exact_of(wide)))
        hits.extend(off <= entries.factor * entries.diagonal_error)
    assert np.mean(hits) >= 0.95


@pytest.mark.parametrize("measure", [trace, diagonal])
@pytest.mark.parametrize(("lost", "compared"), [(0.0, 2), (3e4, 4)])
def test_rounding_far_below_chance_takes_fewer_vectors(measure, lost, compared):
    (model, batch), _ = fresh_pair("amplifying", 1)
    model[1].size = lost
    shared = settings(method="products", max_matvecs=150)
    assert measure(model, batch, **shared).cost.passes == 150 + 2 * compared


def test_a_probe_looks_into_the_graph_once():
    (model, batch), _ = fresh_pair("amplifying", 2)
    probe = sharpness_along(model, batch, loss=LOSS, norm_mode="batch")
    probe(0)
    with torch.no_grad():
        model[0].weight *= 1.01
    probe(1)
    reading = probe.reading()
    exact = np.linalg.eigvalsh(
        exact_of((model.double(), (batch[0].double(), batch[1])))
    )
    off = abs(reading.eigenvalues[1, 0] - exact[-1])
    assert off <= reading.sharp_errors[1, 0]
    assert reading.products[1] <= reading.products[0]


@pytest.mark.parametrize("name", ["mlp", "conv_bn_resnet", "layer_norm", "amplifying"])
def test_a_twin_that_is_moved_shows_the_size_of_the_error(name):
    # Where no finer type is at hand; here one is, to judge by.
    ratios = []
    for seed in range(6):
        (model, batch), (wide, data) = pair(name, seed)
        settings_of = {"loss": LOSS, "norm_mode": "batch"}
        operator = Hessian(model, batch, randomness="fixed", **settings_of)
        exact = Hessian(wide, data, **settings_of)
        moved = rounding_reference.rounding_reference(operator)
        assert moved is not None
        assert not moved.finer
        v = torch.randn(operator.shape[1], dtype=torch.float32)
        truth = (exact.matvec(v.double()) - operator.matvec(v).double()).norm()
        shown = moved.factor * (moved.operator.matvec(v) - operator.matvec(v)).norm()
        ratios.append(float(truth / shown))
    assert np.mean(np.array(ratios) <= 1) >= 0.8
    assert np.median(ratios) > 0.05


def test_blocks_and_gauss_newton_have_noise_too():
    (model, batch), (wide, data) = pair("layer_norm", 0)
    shared = {"loss": LOSS, "norm_mode": "eval"}
    operator, exact = (
        GaussNewton(model, batch, **shared),
        GaussNewton(wide, data, **shared),
    )
    error = np.linalg.norm(operator.dense() - exact.dense())
    noise = rounding_noise(operator)
    assert noise is not None
    assert error <= noise.norm < 30 * error
    block = Hessian(model, batch, **shared)["3.weight"]
    noise = rounding_noise(block)
    assert noise is not None
    assert len(noise.rows) == 15


def casting_data():
    return torch.randn(16, 4).double(), torch.randint(0, 3, (16,))


@pytest.mark.parametrize("method", ["dense", "products"])
def test_casts_to_float32_within_float64_are_noise_and_no_refusal(method):
    model, batch = casting(), casting_data()
    found = extreme_eigenvalues(
        model, batch, loss=LOSS, norm_mode="eval", k=2, method=method
    )
    # The truth: the same without the cast.
    exact = nn.Sequential(nn.Linear(4, 5), Cast(), nn.Tanh(), nn.Linear(5, 3)).double()
    exact.load_state_dict(model.state_dict())
    exact[1].forward = lambda x: (
        exact[1].scale * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    )
    values = np.linalg.eigvalsh(
        hessian(exact, batch, loss=LOSS, norm_mode="eval").matrix
    )
    off = np.abs(found.eigenvalues - values[::-1][:2])
    assert np.all(off <= found.errors)
    assert np.all(found.errors < 1e-4)
    assert found.errors[0] > 1e-8  # and not those of float64
    matrix = hessian(model, batch, loss=LOSS, norm_mode="eval")
    assert matrix.asymmetry > 1e-9
    assert index(model, batch, loss=LOSS, norm_mode="eval", method=method).index >= 0


@pytest.mark.parametrize("method", ["dense", "products"])
def test_large_noise_in_float32_is_stated_and_not_refused(method):
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(4, 5), Offset(3e4), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)
    )
    batch = torch.randn(12, 4), torch.randint(0, 3, (12,))
    found = extreme_eigenvalues(
        model, batch, loss=LOSS, norm_mode="batch", method=method, tol=1e-2
    )
    batch = batch[0].double(), batch[1]
    exact = np.linalg.eigvalsh(exact_of((model.double(), batch)))
    assert abs(found.eigenvalues[0] - exact[-1]) <= found.errors[0]
    assert found.errors[0] > 1e-4 * exact[-1]


class Wrong(torch.autograd.Function):
    """A cube whose second derivative depends on who asks."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.pow(3).sum()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * (x + 0.3 * torch.roll(x, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("method", ["dense", "products"])
def test_asymmetry_beyond_the_noise_is_still_refused(dtype, method):
    model = nn.Linear(12, 1, bias=False, dtype=dtype)
    with pytest.raises(MeasurementError, match="symmetr") as caught:
        extreme_eigenvalues(
            model,
            None,
            loss=lambda network, _: Wrong.apply(network.weight),
            norm_mode="eval",
            method=method,
        )
    assert "\n" not in str(caught.value)


def test_a_rank_that_is_lost_is_no_model_without_a_twin(monkeypatch):
    x = torch.randn(4, 4), torch.arange(4) % 3
    operator = Hessian(nn.Linear(4, 3), [x], loss=LOSS, norm_mode="eval")

    def lost(*_):
        raise DistributedError("rank 1 of 2 was lost")

    monkeypatch.setattr(operator, "remaking", lost)
    with pytest.raises(DistributedError, match="rank 1 of 2 was lost"):
        rounding_noise(operator)
