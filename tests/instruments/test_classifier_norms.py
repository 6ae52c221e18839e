"""Norms of layers with norms folded in, and normalised margins."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES, Residual
from tests.instruments.test_preservation import portrait
from theodolite.core import MeasurementError, NormMode
from theodolite.instruments import classifier_norms

X = torch.linspace(-3, 3, 24 * 3, dtype=torch.float64).sin().mul(5).cos()
X = X.reshape(24, 3)
SIGNS = torch.where(torch.arange(24) % 2 > 0, 1, -1)


def plain(*widths, bias=False):
    torch.manual_seed(0)
    layers = []
    for left, right in itertools.pairwise(widths):
        layers += [nn.Linear(left, right, bias=bias), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def test_a_homogeneous_network_is_rho_times_the_normalised_one():
    model = plain(3, 5, 4, 1)
    reading = classifier_norms(model, (X, SIGNS), norm_mode="eval", directions=True)
    weights = [layer.weight.detach() for layer in model if hasattr(layer, "weight")]
    norms = [float(weight.norm()) for weight in weights]
    np.testing.assert_allclose(reading.layer_norms, norms, rtol=1e-14)
    assert reading.rho == pytest.approx(math.prod(norms), rel=1e-13)
    assert reading.log_rho == pytest.approx(sum(map(math.log, norms)), rel=1e-13)
    z = X
    for place, direction in enumerate(reading.directions):
        assert np.linalg.norm(direction) == pytest.approx(1)
        z = z @ torch.tensor(direction).T
        z = z.relu() if place < 2 else z
    np.testing.assert_allclose(reading.f, z.squeeze(1), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(reading.margins, SIGNS * z.squeeze(1), rtol=1e-12)
    np.testing.assert_allclose(reading.doubled_off, 0, atol=1e-14)
    rows = np.concatenate([weight.norm(dim=1) for weight in weights])
    np.testing.assert_allclose(reading.row_norms, rows, rtol=1e-14)
    assert np.bincount(reading.row_layers).tolist() == [5, 4, 1]


def test_equilibrium_is_where_the_square_loss_is_least_along_rho():
    model = plain(3, 6, 1)
    reading = classifier_norms(model, (X, SIGNS), norm_mode="eval")
    f, y = reading.f, SIGNS.numpy()
    best = np.polyfit(f, y, 1, full=False)  # not this: it has an intercept
    wanted = (y * f).sum() / (f**2).sum()
    assert reading.equilibrium == pytest.approx(wanted, rel=1e-12)
    assert reading.equilibrium != pytest.approx(best[0], rel=1e-3)
    assert reading.equilibrium_ratio == pytest.approx(wanted / reading.rho, rel=1e-12)
    losses = [((s * wanted * f - y) ** 2).sum() for s in (0.99, 1.0, 1.01)]
    assert losses[1] == min(losses)


def test_several_classes_have_the_margin_of_the_runner_up():
    model, y = plain(3, 5, 4), torch.arange(24) % 4
    reading = classifier_norms(model, (X, y), norm_mode="eval")
    g = model(X).detach().numpy()
    own = g[np.arange(24), y]
    g[np.arange(24), y] = -np.inf
    np.testing.assert_allclose(
        reading.margins * reading.rho, own - g.max(1), rtol=1e-12, atol=1e-15
    )
    assert reading.error_rate == np.mean(reading.margins <= 0)
    one_hot = np.eye(4)[y]
    outputs = model(X).detach().numpy()
    wanted = (one_hot * outputs).sum() / (outputs**2).sum()
    assert reading.equilibrium_ratio == pytest.approx(wanted, rel=1e-12)
    assert not reading.separable


def with_norm(kind=nn.BatchNorm2d, **settings):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, **settings), kind(4), nn.ReLU(), nn.Flatten(),
        nn.Linear(64, 3), nn.BatchNorm1d(3, affine=False), nn.ReLU(), nn.Linear(3, 3),
    ).double()  # fmt: skip
    with torch.no_grad():
        for norm in (model[1], model[5]):
            norm.running_mean += torch.randn(norm.num_features).double()
            norm.running_var *= 2.5
        model[1].weight += torch.randn(4).double()
    return model


IMAGES = torch.linspace(-2, 2, 24 * 36, dtype=torch.float64).sin().mul(9).cos()
IMAGES = IMAGES.reshape(24, 1, 6, 6)
CLASSES = torch.arange(24) % 3
SPLIT = [(IMAGES[:10], CLASSES[:10]), (IMAGES[10:], CLASSES[10:])]


def folded_by_hand(model, mode):
    """Run the network with statistics as constants; return folded weights."""
    first, second = model[1], model[5]
    z = model[0](IMAGES)
    if mode == "eval":
        stats = [(n.running_mean, n.running_var) for n in (first, second)]
    else:
        one = z.mean((0, 2, 3)), z.var((0, 2, 3), False)
        hat = (z - one[0].reshape(1, -1, 1, 1)) / (
            one[1].reshape(1, -1, 1, 1) + first.eps
        ).sqrt()
        hat = hat * first.weight.reshape(1, -1, 1, 1) + first.bias.reshape(1, -1, 1, 1)
        u = model[4](hat.relu().flatten(1))
        stats = [one, (u.mean(0), u.var(0, False))]
    rows = first.weight / (stats[0][1] + first.eps).sqrt()
    other = 1 / (stats[1][1] + second.eps).sqrt()
    return [
        model[0].weight.flatten(1) * rows[:, None],
        model[4].weight * other[:, None],
        model[7].weight,
    ]


@pytest.mark.parametrize("mode", [m for m in NormMode if not m.by_batch])
@pytest.mark.parametrize("batches", [SPLIT, [(IMAGES, CLASSES)]], ids=["2", "1"])
def test_batch_norms_are_folded_in(mode, batches):
    model = with_norm()
    before = portrait(model)
    found = classifier_norms(model, batches, norm_mode=mode, directions=True)
    assert portrait(model) == before
    wanted = [w.detach() for w in folded_by_hand(model, mode)]
    for norm, rows, matrix in zip(found.layer_norms, _rows(found), wanted, strict=True):
        assert norm == pytest.approx(float(matrix.norm()), rel=1e-10)
        np.testing.assert_allclose(rows, matrix.norm(dim=1), rtol=1e-10)
    np.testing.assert_allclose(
        found.directions[0], wanted[0] / wanted[0].norm(), rtol=1e-9, atol=1e-12
    )
    assert found.folded.tolist() == [True, True, False]
    assert found.invariance.tolist() == [2, 2, 0]
    assert found.notes == (
        "batch norm '1' folded into '0'", "batch norm '5' folded into '4'",
    )  # fmt: skip
    assert found.log_rho_varying == pytest.approx(math.log(float(wanted[2].norm())))
    raw = [float(model[i].weight.detach().norm()) for i in (0, 4, 7)]
    np.testing.assert_allclose(found.raw_norms, raw, rtol=1e-12)


def _rows(found):
    return [found.row_norms[found.row_layers == k] for k in range(len(found.names))]


def test_one_batch_is_folded_by_its_own_statistics_and_several_are_not():
    model = with_norm()
    one = classifier_norms(model, (IMAGES, CLASSES), norm_mode="batch")
    full = classifier_norms(model, (IMAGES, CLASSES), norm_mode="full")
    np.testing.assert_allclose(one.layer_norms, full.layer_norms, rtol=1e-12)
    several = classifier_norms(model, SPLIT, norm_mode="batch")
    np.testing.assert_allclose(several.layer_norms, several.raw_norms)
    assert all("each batch has statistics" in note for note in several.notes)
    assert several.invariance.tolist() == [2, 2, 0]


def test_scales_without_effect_are_seen_in_the_outputs():
    model = with_norm()
    model[1].eps = model[5].eps = 1e-12  # all that stands in the way
    moving = classifier_norms(model, (IMAGES, CLASSES), norm_mode="full")
    np.testing.assert_allclose(moving.scaled_off[:2], 0, atol=1e-9)
    assert moving.scaled_off[2] > 0.1
    frozen = classifier_norms(model, (IMAGES, CLASSES), norm_mode="eval")
    assert (frozen.scaled_off > 1e-3).all()
    spared = classifier_norms(model, (IMAGES, CLASSES), norm_mode="eval", scales=False)
    assert np.isnan(spared.scaled_off).all()


def linear_first(norm, **settings):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), norm, nn.Linear(4, 2)).double()


def test_a_norm_without_a_layer_before_it_is_folded_into_the_one_after():
    model = linear_first(nn.BatchNorm1d(4))
    with torch.no_grad():
        model[2].running_var.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    found = classifier_norms(model, (X, CLASSES % 2), norm_mode="eval")
    scale = (model[2].running_var + model[2].eps).rsqrt()
    wanted = float((model[3].weight.detach() * scale).norm())
    assert found.layer_norms[1] == pytest.approx(wanted, rel=1e-12)
    assert found.notes == ("batch norm '2' folded into '3'",)
    # The ReLU between scales along: the layer before it is scale-invariant too.
    assert found.invariance.tolist() == [2, 0]


def grouped(transposed):
    torch.manual_seed(0)
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    return nn.Sequential(
        nn.BatchNorm2d(4), kind(4, 6, 2, groups=2), nn.BatchNorm2d(6), nn.Flatten(),
        nn.LazyLinear(2),
    ).double()  # fmt: skip


@pytest.mark.parametrize("transposed", [False, True])
def test_groups_and_transposed_convolutions_are_folded_from_both_sides(transposed):
    model, x = grouped(transposed).eval(), torch.randn(8, 4, 3, 3).double()
    model(x)
    with torch.no_grad():
        for norm in (model[0], model[2]):
            norm.running_var.copy_(torch.rand(norm.num_features) + 0.5)
    found = classifier_norms(
        model, (x, torch.arange(8) % 2), norm_mode="eval", directions=True
    )
    assert found.folded.tolist() == [True, False]
    # Each column of the folded map, by pushing unit vectors through the three layers.
    zero = model[:3](torch.zeros(1, 4, 3, 3).double())
    basis = torch.eye(36, dtype=torch.float64).reshape(36, 4, 3, 3)
    dense = (model[:3](basis) - zero).detach()
    per_channel = dense.abs().amax((0, 2, 3))
    rows = _rows(found)[0]
    largest = (torch.tensor(found.directions[0]).abs() * found.layer_norms[0]).amax(1)
    np.testing.assert_allclose(largest, per_channel, rtol=1e-10)
    assert (rows >= largest.numpy()).all()


class Twice(nn.Module):
    """One layer, two norms."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(3, 3), nn.Linear(3, 2)
        self.one, self.two = nn.BatchNorm1d(3), nn.BatchNorm1d(3)

    def forward(self, x):
        return self.head(self.two(self.layer(self.one(self.layer(x)).relu())))


def test_a_layer_applied_twice_counts_twice_each_with_its_norm():
    model = Twice().double()
    with torch.no_grad():
        model.two.running_var.fill_(4.0 - model.two.eps)
        model.one.running_var.fill_(1.0 - model.one.eps)
    found = classifier_norms(model, (X, CLASSES % 2), norm_mode="eval")
    assert found.names == ("layer", "layer #2", "head")
    norm = float(model.layer.weight.detach().norm())
    np.testing.assert_allclose(found.layer_norms[:2], [norm, norm / 2], rtol=1e-12)


KEPT = {
    "used elsewhere": (
        lambda: nn.Sequential(
            nn.Linear(3, 4), Residual(nn.BatchNorm1d(4), nn.ReLU()), nn.Linear(4, 2)
        ),
        "used elsewhere too", [0, 0],
    ),
    "nothing beside": (
        lambda: linear_first(nn.Sequential(nn.BatchNorm1d(4), nn.Tanh())),
        "no linear layer", [2, 0],
    ),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)),
        "for each sample", [1, 0],
    ),
    "in place": (
        lambda: nn.Sequential(
            nn.Linear(3, 4), nn.ELU(inplace=True), nn.BatchNorm1d(4), nn.Tanh(),
            nn.Linear(4, 2),
        ),
        "no linear layer", [0, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_cannot_be_folded_is_stated(name):
    make, words, invariance = KEPT[name]
    found = classifier_norms(make().double(), (X, CLASSES % 2), norm_mode="eval")
    assert any(words in note for note in found.notes)
    assert not found.folded.any()
    assert found.invariance.tolist() == invariance
    assert "1 norms not folded" in str(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_is_measured_and_left_as_found(case):
    model, (x, _), _ = case.make(samples=12)
    before = portrait(model)
    found = classifier_norms(model, (x, torch.arange(12) % 3), norm_mode="batch")
    assert portrait(model) == before
    assert np.isfinite(found.layer_norms).all()
    left = {
        "attention": ("mix.in_proj_weight", "mix.out_proj.weight"),
        "recurrent": ("cell.weight_ih_l0", "cell.weight_hh_l0"),
    }
    assert found.left_out == left.get(case.name, ())


def test_float32_is_near_float64_within_its_error():
    model = with_norm().float()
    coarse = [(x.float(), y) for x, y in SPLIT]
    found = classifier_norms(model, coarse, norm_mode="full")
    same = [(x.double(), y) for x, y in coarse]
    exact = classifier_norms(model.double(), same, norm_mode="full")
    np.testing.assert_allclose(found.f, exact.f, rtol=0, atol=found.f_error)
    assert abs(found.rho - exact.rho) <= found.rho_error
    assert found.f_error < 1e-4 * np.abs(exact.f).max()


def test_weights_leave_samples_out():
    model = plain(3, 4, 1)
    mass = torch.arange(24) % 3
    found = classifier_norms(
        model, (X, SIGNS), norm_mode="eval", weights=lambda batch: mass
    )
    f, y = found.f, SIGNS[mass > 0].numpy()
    w = mass[mass > 0].numpy()
    assert len(f) == 16
    wanted = (w * y * f).sum() / (w * f**2).sum()
    assert found.equilibrium == pytest.approx(wanted, rel=1e-12)


LINEAR = plain(3, 4, 2)
ZERO = plain(3, 4, 2)
nn.init.zeros_(ZERO[0].weight)
MISUSE = {
    "no linear": (nn.Flatten(), (X, CLASSES), "no linear or convolutional"),
    "labels": (LINEAR, (X, CLASSES / 2), "wanted are whole numbers"),
    "one class": (LINEAR, (X, 0 * CLASSES), "at least 2"),
    "past": (LINEAR, (X, CLASSES), "a label is 2"),
    "nan": (LINEAR, (X * torch.nan, CLASSES % 2), "NaN"),
    "zero": (ZERO, (X, CLASSES % 2), "'0' have norm 0"),
    "count": (LINEAR, (X, CLASSES[:5] % 2), "5 labels"),
}


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_one_sentence(name):
    model, batch, words = MISUSE[name]
    with pytest.raises(MeasurementError, match=words) as said:
        classifier_norms(model, batch, norm_mode="eval")
    assert "\n" not in str(said.value)
