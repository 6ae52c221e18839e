"""Neural collapse of models: the right features, any layer, models left as found."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES
from tests.instruments.test_preservation import portrait
from tests.instruments.textbook_collapse import textbook
from theodolite.core import MeasurementError, NormMode, UnknownNameError
from theodolite.figures import draw_collapse, save
from theodolite.instruments import CollapseMeter, collapse

MODES = list(NormMode)
# Attention without weights to give has several backends; none matters here.
ON_BATCHES = {case.name: case for case in CASES}


def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.BatchNorm2d(3),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(48, 6),
        nn.ReLU(),
        nn.Linear(6, 3),
    ).double()


X = torch.linspace(-3, 3, 30 * 36, dtype=torch.float64).sin().mul(7).cos()
X = X.reshape(30, 1, 6, 6)
Y = torch.arange(30) % 3
SPLIT = [(X[:12], Y[:12]), (X[12:], Y[12:])]


def by_hand(model, x, mode, statistics=None):
    """Run all but the last layer, batch norm by its definition."""
    z = model[0](x)
    norm = model[1]
    if mode == "eval":
        mean, variance = norm.running_mean, norm.running_var
    else:
        mean, variance = statistics or (z.mean((0, 2, 3)), z.var((0, 2, 3), False))
    shape = (1, -1, 1, 1)
    z = (z - mean.reshape(shape)) / (variance.reshape(shape) + norm.eps).sqrt()
    return model[5](model[4](z.relu().flatten(1))).detach()


@pytest.mark.parametrize("mode", MODES)
def test_features_enter_the_last_layer_under_the_norm_mode(mode):
    model = convolutional()
    if mode in ("batch", "as_is"):
        h = torch.cat([by_hand(model, x, mode) for x, _ in SPLIT])
    else:
        h = by_hand(model, X, mode)
    before = portrait(model)
    reading = collapse(model, SPLIT, norm_mode=mode)
    assert portrait(model) == before
    wanted = textbook(h, Y, model[6].weight.detach(), model[6].bias.detach())
    for name, value in wanted.items():
        assert getattr(reading, name) == pytest.approx(value, rel=1e-9, abs=1e-12), name
    assert reading.norm_mode is mode
    assert reading.layer == "input of 6"
    again = collapse(model, SPLIT, norm_mode=mode)
    assert again.rows().where(quantity="nc1_variability").values() == (
        reading.nc1_variability
    )


@pytest.mark.parametrize("mode", ["full", "frozen", "eval"])
def test_how_data_is_split_changes_nothing(mode):
    model = convolutional()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(X, Y), batch_size=7
    )
    whole = collapse(model, (X, Y), norm_mode=mode)
    for batches in (SPLIT, loader):
        for feature_bytes in (2**30, 0):
            found = collapse(
                model, batches, norm_mode=mode, feature_bytes=feature_bytes
            )
            for name in ("nc1_variability", "nc3_duality", "nc4_disagreement"):
                assert getattr(found, name) == pytest.approx(getattr(whole, name))


def test_float32_is_near_float64_within_its_error():
    model = convolutional().float()
    coarse = [(x.float(), y) for x, y in SPLIT]
    found = collapse(model, coarse, norm_mode="batch")
    same = [(x.double(), y) for x, y in coarse]
    exact = collapse(model.double(), same, norm_mode="batch")
    for name in ("nc1_variability", "nc1_noise", "nc1_cdnv"):
        off = abs(getattr(found, name) - getattr(exact, name))
        assert off <= getattr(found, f"{name}_error")
        assert off < 1e-4 * getattr(exact, name)
    assert abs(found.nc2_mean_simplex - exact.nc2_mean_simplex) < found.mean_shape_error


def test_any_layer_by_its_name():
    model = convolutional()
    reading = collapse(model, SPLIT, norm_mode="eval", layer="2")
    z = model.eval()[1](model[0](X)).relu().flatten(1).detach()
    near = textbook(z, Y)
    for name, value in near.items():
        assert getattr(reading, name) == pytest.approx(value, rel=1e-8, abs=1e-12), name
    assert np.isnan(reading.nc3_duality)
    decided = model(X).argmax(1)
    assert reading.accuracy == pytest.approx(float((decided == Y).double().mean()))
    with pytest.raises(UnknownNameError, match="unknown submodule 'nine'"):
        collapse(model, SPLIT, norm_mode="eval", layer="nine")


@pytest.mark.parametrize("name", ON_BATCHES)
def test_every_case_is_measured_and_left_as_found(name):
    model, (x, y), _ = ON_BATCHES[name].make(samples=12)
    y = torch.arange(12) % 3
    before = portrait(model)
    if name == "shared_weights":
        with pytest.raises(MeasurementError, match="called 2 times"):
            collapse(model, (x, y), norm_mode="batch")
    else:
        reading = collapse(model, (x, y), norm_mode="batch")
        assert np.isfinite(reading.nc1_variability)
    assert portrait(model) == before


def test_weights_and_labels_are_picked():
    model = convolutional()
    batch = {"pixels": X, "classes": Y, "mass": torch.arange(30) % 2}
    found = collapse(
        model,
        [batch],
        norm_mode="eval",
        outputs=lambda net, given: net(given["pixels"]),
        labels=lambda given: given["classes"],
        weights=lambda given: given["mass"],
    )
    kept = torch.arange(30) % 2 == 1
    wanted = collapse(model, (X[kept], Y[kept]), norm_mode="eval")
    assert found.nc1_variability == pytest.approx(wanted.nc1_variability, rel=1e-12)
    assert found.nc4_disagreement == pytest.approx(wanted.nc4_disagreement)


def test_other_data_by_the_same_statistics():
    model = convolutional()
    other = X[:5] * 3
    found = collapse(model, SPLIT, norm_mode="full", other=other)
    z = model[0](X)
    known = z.mean((0, 2, 3)), z.var((0, 2, 3), False)
    outside = by_hand(model, other, "full", known).mean(0)
    means = torch.stack([by_hand(model, X, "full")[Y == c].mean(0) for c in range(3)])
    cosines = torch.cosine_similarity(means, outside[None]).abs().mean()
    assert found.nc5_outside == pytest.approx(float(cosines), rel=1e-9)


def test_one_output_told_by_its_sign():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    x, y = torch.randn(20, 3).double(), torch.where(torch.arange(20) % 2 > 0, 1.0, -1.0)
    found = collapse(model, (x, y), norm_mode="eval")
    right = (model(x).squeeze(1).sign() == y).double().mean()
    assert found.accuracy == pytest.approx(float(right))
    assert found.classes.tolist() == [0, 1]


class Wordy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LSTM(3, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.inner(x[:, None])[0][:, -1])


def small(*layers):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), *layers).double()


GOOD = torch.randn(9, 3, dtype=torch.float64), torch.arange(9) % 3
MISUSE = {
    "softmax": (small(nn.Linear(4, 3), nn.Softmax(1)), GOOD, {}, "final linear"),
    "no linear": (nn.Flatten(), GOOD, {}, "has none"),
    "dropout": (
        small(nn.Dropout(0.5), nn.Linear(4, 3)), GOOD, {"norm_mode": "batch"},
        "dropout",
    ),
    "labels": (small(nn.Linear(4, 3)), GOOD[0], {}, "says no labels"),
    "soft labels": (
        small(nn.Linear(4, 3)), (GOOD[0], torch.rand(9, 3)), {}, "argmax",
    ),
    "classes": (small(nn.Linear(4, 2)), GOOD, {}, "a label is 2"),
    "one class": (small(nn.Linear(4, 3)), (GOOD[0], 0 * GOOD[1]), {}, "class 0 alone"),
    "nan": (small(nn.Linear(4, 3)), (GOOD[0] * torch.nan, GOOD[1]), {}, "NaN"),
    "flat": (
        small(nn.Linear(4, 3)), (torch.ones(9, 3).double(), GOOD[1]), {},
        "zero variance",
    ),
    "two tensors": (Wordy().double(), GOOD, {"layer": "inner"}, "gives a tuple"),
    "weights": (
        small(nn.Linear(4, 3)), GOOD, {"weights": lambda batch: "some"}, "weights came",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_one_sentence_and_leaves_the_model_as_found(name):
    model, batch, settings, words = MISUSE[name]
    before = portrait(model)
    with pytest.raises(MeasurementError, match=words) as said:
        collapse(model, batch, **{"norm_mode": "eval", **settings})
    assert "\n" not in str(said.value)
    assert portrait(model) == before


def test_the_geometry_is_drawn():
    h = torch.randn(40, 6)
    meter = CollapseMeter(head=torch.randn(4, 6))
    meter.update(h + torch.eye(4, 6)[torch.arange(40) % 4] * 4, torch.arange(40) % 4)
    reading = meter.compute()
    figure = draw_collapse(reading.rows())
    left, right = figure.axes
    points = {line.get_label(): line.get_xydata() for line in left.lines}
    np.testing.assert_allclose(points["class means"], reading.plane)
    np.testing.assert_allclose(points["head"], reading.head_plane)
    assert len(points["simplex"]) == 5
    heights = [patch.get_height() for patch in right.patches]
    np.testing.assert_allclose(heights, reading.cosines)
    assert save(figure, "collapse", ["svg"])["collapse.svg"]
    meter = CollapseMeter()
    meter.update(h, torch.arange(40) % 20)
    assert len(draw_collapse(meter.compute().rows()).axes[0].texts) == 0
    with pytest.raises(Exception, match="'plane'"):
        draw_collapse(reading.rows().where(quantity="energy"))
