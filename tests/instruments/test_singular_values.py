"""Singular values of a block: exact, by samples with a rank bound, by quadrature."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from torch import nn

from tests.cases import CASES, Residual
from tests.instruments.test_preservation import portrait, without_versions
from theodolite.core import ConfigError, MeasurementError, NormMode, Status
from theodolite.core import UnknownNameError as UnknownName
from theodolite.instruments import BlockJacobian, singular_values
from theodolite.instruments.operators.matrix_operator import MatrixOperator
from theodolite.instruments.solvers.bidiagonal import Bidiagonalisation, grid

BY_NAME = {case.name: case for case in CASES}
PLACES = [
    ("mlp", ("0", "2")),
    ("conv_bn_resnet", "1"),
    ("pre_activation_resnet", ("1", "3")),
    ("group_norm", "1"),
    ("attention", "norm"),
    ("recurrent", ("cell", "head")),
]


def oracle(model, batch, block, mode):
    jacobian = BlockJacobian(model, batch, block=block, norm_mode=mode)
    return np.linalg.svd(jacobian.dense(), compute_uv=False)


def cdf_of(values, points):
    return np.searchsorted(np.sort(values), points, side="right") / len(values)


def random_block(generator):
    """A small residual block with BatchNorm, in one of several forms."""
    width = int(generator.integers(2, 5))
    kind = generator.integers(4)
    if kind == 0:
        body = [nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU()]
        return nn.Sequential(Residual(*body)), (width,)
    if kind == 1:
        body = [nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width)]
        tail = [nn.Linear(width, width), nn.BatchNorm1d(width)]
        return nn.Sequential(Residual(*body, *tail)), (width,)
    layers = [nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU()]
    more = [nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)]
    if kind == 2:
        return nn.Sequential(nn.Sequential(*layers, *more, nn.ReLU())), (2, 3, 3)
    inner = nn.Sequential(Residual(*layers, *more), nn.ReLU(), nn.BatchNorm2d(2))
    return nn.Sequential(inner), (2, 3, 3)


@pytest.mark.parametrize("mode", list(NormMode))
@pytest.mark.parametrize(("name", "block"), PLACES, ids=str)
def test_dense_equals_the_svd(name, block, mode):
    model, batch, _ = BY_NAME[name].make(samples=3)
    wanted = oracle(model, batch, block, mode)
    reading = singular_values(model, batch, block=block, norm_mode=mode, method="dense")
    assert reading.status is Status.EXACT
    assert reading.norm_mode is mode
    assert reading.size == len(wanted)
    assert reading.rank == int((wanted > 1e-8 * wanted[0]).sum())
    assert (
        np.abs(reading.values - wanted[: reading.rank]) <= reading.value_error
    ).all()
    assert_allclose(reading.cdf, cdf_of(wanted, reading.points), atol=1e-12)
    assert reading.bound == 0


@pytest.mark.parametrize("mode", list(NormMode))
@pytest.mark.parametrize(("name", "block"), PLACES, ids=str)
def test_blocks_are_exact_where_statistics_are_constants(name, block, mode):
    model, batch, _ = BY_NAME[name].make(samples=3)
    reading = singular_values(
        model, batch, block=block, norm_mode=mode, method="blocks"
    )
    frozen = mode if mode is NormMode.EVAL else NormMode.FROZEN
    wanted = oracle(model, batch, block, frozen)
    assert_allclose(
        reading.values, wanted[: reading.rank], rtol=1e-7, atol=1e-7 * wanted[0]
    )
    coupled = BY_NAME[name].norm == "batch" and mode in ("batch", "full", "as_is")
    assert (reading.bound > 0) == coupled
    assert reading.status is (Status.CONVERGED if coupled else Status.EXACT)


def test_the_rank_bound_is_honest_and_tight_enough_to_matter():
    distances = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        torch.manual_seed(seed)
        model, shape = random_block(generator)
        model.double()
        for norm in model.modules():
            if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
                nn.init.normal_(norm.weight)
        x = torch.randn(int(generator.integers(6, 16)), *shape, dtype=torch.float64)
        reading = singular_values(
            model, x, block="0", norm_mode="batch", method="blocks"
        )
        truth = oracle(model, x, "0", "batch")
        blocks = np.zeros(reading.size)
        blocks[: reading.rank] = reading.values
        points = np.concatenate([truth, blocks])
        # To each side of every jump, out of reach of rounding.
        points = np.concatenate([points * (1 - 1e-9) - 1e-9, points + 1e-9])
        points = points[points > 1e-7]
        gap = np.abs(cdf_of(truth, points) - cdf_of(blocks, points)).max()
        assert reading.bound == min(1.0, reading.coupling_rank / reading.size)
        assert gap <= reading.bound + 1e-12
        rank = int((truth > 1e-7 * truth[0]).sum())
        assert abs(rank - reading.rank) <= reading.rank_error
        distances.append(gap / reading.bound)
    # The statistics do couple samples, so that a bound of 0 would be wrong.
    assert max(distances) > 0.3


def test_the_zero_atom_is_a_rank():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(12, 12), nn.ReLU()).double()
    x = torch.randn(10, 12, dtype=torch.float64)
    on = int((net[0](x) > 0).sum())
    for method in ("dense", "blocks", "quadrature"):
        reading = singular_values(
            net, x, block=("0", "1"), norm_mode="eval", method=method, tol=0.2
        )
        assert reading.rank == on < reading.size
        assert reading.cdf[0] >= 1 - on / reading.size - 1e-12
        assert (reading.values > reading.tolerance).all()
    middle = nn.Sequential(nn.Linear(6, 3), nn.Linear(3, 6)).double()
    reading = singular_values(middle, x[:, :6], block=("0", "1"), norm_mode="eval")
    assert (reading.rank, reading.size) == (30, 60)
    assert reading.tolerance < reading.values.min() < reading.values.max()


@pytest.mark.parametrize("method", ["auto", "dense", "blocks"])
def test_a_block_that_starts_at_a_batch_norm(method):
    net = nn.Sequential(nn.BatchNorm1d(2, affine=False)).double()
    x = torch.tensor([[1.0, -2.0], [0.5, 0.3], [-1.2, 1.0]], dtype=torch.float64)
    for block in ("0", ("0", "0"), ""):
        reading = singular_values(net, x, block=block, norm_mode="batch", method=method)
        assert reading.coupling_rank == 4
        # A channel has one value of size 1, one of ε/variance, and a zero.
        truth = oracle(net, x, block, "batch")
        assert truth[1] > 0.1 > 1e-4 > truth[2] > truth[3] > 1e-6 > 1e-12 > truth[4]
        assert reading.rank_low <= 4 <= reading.rank_high
        if method != "blocks":
            assert_allclose(reading.values, truth[:4], rtol=1e-9)
            assert (reading.rank_low, reading.rank_high) == (4, 6)
        else:
            assert reading.status is Status.CONVERGED
            assert (
                reading.bound
                >= np.abs(reading.cdf - cdf_of(truth, reading.points)).max()
            )


class Scaled(nn.Module):
    """Units times constants: what a product rounds to is known."""

    def __init__(self, factors, dtype):
        super().__init__()
        self.factors = nn.Parameter(torch.tensor(factors, dtype=dtype))

    def forward(self, x):
        return x * self.factors


@pytest.mark.parametrize("method", ["dense", "blocks"])
def test_a_rank_is_no_surer_than_its_values_are_resolved(method):
    factors = [1.0, 0.5, 1e-9, 0.0]
    settings = {"block": "0", "norm_mode": "eval", "method": method}
    for dtype, ends in ((torch.float64, (6, 6)), (torch.float32, (4, 6))):
        net = nn.Sequential(Scaled(factors, dtype))
        reading = singular_values(net, torch.ones(2, 4, dtype=dtype), **settings)
        # The last unit is off for certain, the third in float64 only.
        assert (reading.rank_low, reading.rank_high) == ends
        assert reading.rank_error == ends[1] - reading.rank
        assert reading.status is Status.EXACT


def test_a_rank_of_which_nothing_was_resolved_is_open():
    wide = nn.Sequential(Scaled(np.linspace(0.5, 1, 300).tolist(), torch.bfloat16))
    x = torch.ones(1, 300, dtype=torch.bfloat16)
    reading = singular_values(wide, x, block="0", norm_mode="eval", method="dense")
    assert (reading.rank_low, reading.rank_high) == (0, 300)
    assert reading.status is Status.ROUNDING
    assert reading.bound == 1


def test_a_block_that_is_off_has_rank_zero():
    net = nn.Sequential(nn.ReLU())
    x = -torch.rand(4, 3)
    for method in ("dense", "blocks", "quadrature"):
        reading = singular_values(net, x, block="0", norm_mode="eval", method=method)
        assert (reading.rank, reading.size, len(reading.values)) == (0, 12, 0)
        assert_array_equal(reading.cdf, 1)


def test_quadrature_bands_cover_the_truth():
    """Over 80 seeds the band holds the whole distribution at its stated rate."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(60, 50), nn.ReLU()).double()
    x = torch.randn(4, 60, dtype=torch.float64)
    truth = oracle(net, x, ("0", "1"), "eval")
    covered, spread = 0, []
    for seed in range(80):
        reading = singular_values(
            net,
            x,
            block=("0", "1"),
            norm_mode="eval",
            method="quadrature",
            tol=0.2,
            max_steps=24,
            seed=seed,
        )
        gap = np.abs(reading.cdf - cdf_of(truth, reading.points))
        covered += bool((gap <= reading.cdf_error + 1e-9).all())
        spread.append(gap.max())
    assert covered >= binom.ppf(0.001, 80, reading.level)
    # And the band is not trivially wide.
    assert reading.bound < 0.25
    assert np.std(spread) > 0


def test_chance_alone_is_calibrated():
    """Where nothing is truncated the band holds about as often as it says."""
    torch.manual_seed(0)
    values = torch.linspace(0.5, 2, 400, dtype=torch.float64)
    covered, points = 0, grid(2.0, 512)
    truth = cdf_of(values.numpy(), points)
    from theodolite.instruments.solvers.bidiagonal import chance

    generator = np.random.default_rng(0)
    for _ in range(400):
        weights = generator.standard_normal(400) ** 2
        sums = np.concatenate([[0], np.cumsum(weights / weights.sum())])
        found = sums[np.searchsorted(values.numpy(), points, side="right")]
        covered += np.abs(found - truth).max() <= chance(400, 1, 0.95)
    low, high = binom.ppf([0.0005, 0.9995], 400, 0.95)
    assert low <= covered <= max(high, 396)


@pytest.mark.parametrize("seed", range(8))
def test_the_gauss_envelope_always_holds(seed):
    """Bounds on one start's own measure are certain, atoms included."""
    generator = np.random.default_rng(seed)
    values = np.concatenate(
        [np.zeros(20), np.ones(15), generator.uniform(0.1, 3, 45), [0.1] * 5]
    )
    left = np.linalg.qr(generator.normal(size=(100, 100)))[0][:, : len(values)]
    right = np.linalg.qr(generator.normal(size=(len(values),) * 2))[0]
    operator = MatrixOperator(torch.as_tensor(left * values @ right.T))
    start = generator.normal(size=len(values))
    start /= np.linalg.norm(start)
    weights = (right.T @ start) ** 2
    points = grid(3.1, 300)
    measure = np.array([weights[values <= point].sum() for point in points])
    process = Bidiagonalisation(operator, torch.as_tensor(start), len(values))
    widths, raised = [], 0
    while not process.full:
        process.step()
        rule = process.rule()
        low, high = rule.envelope(points)
        plain = np.concatenate([[0.0, 0.0], np.cumsum(rule.weights)])
        below = np.searchsorted(rule.nodes, points, side="right")
        raised += int((low > plain[below] + 1e-9).sum()) * (not process.exhausted)
        assert (low <= measure + 1e-9).all()
        assert (measure <= high + 1e-9).all()
        widths.append(float((high - low).max()))
    assert process.exhausted
    assert widths[-1] <= 1e-9 < widths[0]
    assert raised > 100  # nodes pin more mass than their order alone


def test_quadrature_through_batch_statistics():
    model, batch, _ = BY_NAME["conv_bn_resnet"].make(samples=6)
    truth = oracle(model, batch, "1", "batch")
    reading = singular_values(
        model, batch, block="1", norm_mode="batch", method="quadrature", tol=0.2
    )
    gap = np.abs(reading.cdf - cdf_of(truth, reading.points))
    assert (gap <= reading.cdf_error + 1e-9).all()
    assert reading.status is Status.CONVERGED
    assert_allclose(reading.values[0], truth[0], rtol=1e-6)
    nearest = np.abs(reading.values[:, None] - truth).min(1)
    assert (nearest <= reading.value_error + 1e-12).all()


def test_a_budget_too_small_is_a_status():
    model, batch, _ = BY_NAME["conv_bn_resnet"].make(samples=6)
    reading = singular_values(
        model,
        batch,
        block="1",
        norm_mode="batch",
        method="quadrature",
        tol=0.05,
        max_steps=3,
    )
    assert reading.status is Status.MAX_MATVECS
    assert reading.bound > 0.05


def test_the_method_follows_the_size():
    conv = Residual(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))
    net = nn.Sequential(conv).double()
    small, middle = torch.randn(2, 8, 4, 4).double(), torch.randn(16, 8, 6, 6).double()
    many = {"block": "0"}
    assert singular_values(net, small, norm_mode="batch", **many).method == "dense"
    found = singular_values(net, middle, norm_mode="batch", **many)
    assert found.method == "per-sample blocks"
    assert found.bound == 16 / found.size
    assert "within 0.0035" in str(found)
    found = singular_values(net, small, norm_mode="eval", **many)
    assert (found.method, found.status) == ("per-sample blocks", Status.EXACT)
    found = singular_values(
        net, middle, norm_mode="batch", tol=0.003, max_steps=8, **many
    )
    assert found.method.startswith("quadrature")


def test_same_seed_same_reading():
    model, batch, _ = BY_NAME["group_norm"].make()
    settings = {"block": "1", "norm_mode": "eval", "method": "quadrature", "tol": 0.3}
    first = singular_values(model, batch, seed=3, **settings)
    again = singular_values(model, batch, seed=3, **settings)
    other = singular_values(model, batch, seed=4, **settings)
    assert_array_equal(first.values, again.values)
    assert_array_equal(first.cdf_error, again.cdf_error)
    assert (first.seed, other.seed) == (3, 4)
    assert len(first.values) != len(other.values) or (
        np.abs(first.values - other.values).max() > 0
    )


@pytest.mark.parametrize("method", ["dense", "blocks", "quadrature"])
def test_float32_is_near_float64(method):
    found = []
    for dtype in (torch.float64, torch.float32):
        model, batch, _ = BY_NAME["conv_bn_resnet"].make(dtype=dtype, samples=3)
        found.append(
            singular_values(
                model, batch, block="1", norm_mode="batch", method=method, tol=0.3
            )
        )
    assert found[0].rank == found[1].rank
    if method == "quadrature":
        assert_allclose(found[1].values[0], found[0].values[0], rtol=1e-4)
    else:
        assert_allclose(found[1].values, found[0].values, atol=1e-4)
        assert (np.abs(found[1].values - found[0].values) <= found[1].value_error).all()


@pytest.mark.parametrize("method", ["dense", "blocks", "quadrature"])
@pytest.mark.parametrize("mode", list(NormMode))
def test_left_as_found(mode, method):
    model, batch, loss = BY_NAME["conv_bn_resnet"].make()
    loss(model(batch[0]), batch[1]).backward()
    before = portrait(model)
    singular_values(model, batch, block="1", norm_mode=mode, method=method, tol=0.2)
    assert without_versions(portrait(model)) == without_versions(before)


def test_rows_carry_value_and_error():
    model, batch, _ = BY_NAME["mlp"].make()
    reading = singular_values(model, batch, block="0", norm_mode="eval")
    rows = reading.rows(block="0")
    quantities = {row["quantity"] for row in rows}
    assert {"values", "cdf", "rank", "bound", "coupling_rank"} <= quantities
    assert all(row["error"] is not None for row in rows if row["quantity"] == "cdf")


def test_misuse_is_said_in_one_sentence():
    model, batch, _ = BY_NAME["mlp"].make()
    given = {"block": "0", "norm_mode": "eval"}
    with pytest.raises(UnknownName, match="method 'svd'"):
        singular_values(model, batch, **given, method="svd")
    with pytest.raises(ConfigError, match="tol"):
        singular_values(model, batch, **given, tol=0.0)
    with pytest.raises(ConfigError, match="max_steps"):
        singular_values(model, batch, **given, max_steps=0)
    for method, limit in (
        ("dense", "matrix_bytes"),
        ("blocks", "matrix_bytes"),
        ("quadrature", "basis_bytes"),
    ):
        few = {**given, "method": method}
        with pytest.raises(MeasurementError, match=f"raise {limit}"):
            singular_values(model, batch, **few, **{limit: 100})
        singular_values(model, batch, **few, **{limit: 10**6})
    with pytest.raises(MeasurementError, match="NaN or infinity"):
        singular_values(nn.Sequential(Root()), torch.zeros(2, 3), **given)


class Root(nn.Module):
    def forward(self, x):
        return x.sqrt()
