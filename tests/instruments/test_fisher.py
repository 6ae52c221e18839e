"""Curvatures through the outputs against dense oracles, and in every instrument."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES
from tests.instruments.agreement import cut, multiplies_as, near
from tests.oracles import looped_gauss_newton, looped_jacobian
from theodolite.core import MeasurementError, Status
from theodolite.instruments import (
    EmpiricalFisher,
    Fisher,
    GaussNewton,
    HalfSquareLoss,
    by_block,
    condition,
    diagonal,
    extreme_eigenvalues,
    index,
    spectral_density,
    spectrum,
    trace,
)

X = torch.linspace(-4, 4, 18, dtype=torch.float64).sin().reshape(6, 3)
CLASSES = torch.tensor([0, 1, 2, 2, 1, 0])
REAL = X.cos()
BITS = (X > 0).double()
COUNTS = X.exp().round()


def model(last=None):
    torch.manual_seed(0)
    layers = [nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)]
    return nn.Sequential(*layers, *([last] if last else [])).double()


def categorical(z, _):
    p = torch.softmax(z, 0)
    return torch.diag(p) - torch.outer(p, p)


# What one sample's outputs carry, written down from the distributions.
FAMILIES = {
    "categorical": (nn.CrossEntropyLoss(), CLASSES, categorical),
    "smoothed": (nn.CrossEntropyLoss(label_smoothing=0.3), CLASSES, categorical),
    "probabilities": (nn.CrossEntropyLoss(), torch.softmax(REAL, 1), categorical),
    "logarithms": (nn.NLLLoss(), CLASSES, lambda z, _: torch.diag(z.exp())),
    "bernoulli": (
        nn.BCEWithLogitsLoss(),
        BITS,
        lambda z, n: torch.diag(torch.sigmoid(z) * (1 - torch.sigmoid(z))) / n,
    ),
    "gaussian": (nn.MSELoss(), REAL, lambda z, n: 2 * torch.eye(n).double() / n),
    "unit": (HalfSquareLoss(), REAL, lambda z, n: torch.eye(n).double()),
    "poisson": (nn.PoissonNLLLoss(), COUNTS, lambda z, n: torch.diag(z.exp()) / n),
}


@pytest.mark.parametrize("micro_batch", [None, 4])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_fisher_information_of_known_distributions(name, micro_batch):
    loss, targets, information = FAMILIES[name]
    network = model(nn.LogSoftmax(1) if name == "logarithms" else None)
    rows = torch.as_tensor(looped_jacobian(network, X)).reshape(6, 3, -1)
    with torch.no_grad():
        outputs = network(X)
    wanted = sum(rows[n].T @ information(outputs[n], 3) @ rows[n] / 6 for n in range(6))
    settings = {"loss": loss, "norm_mode": "eval", "micro_batch": micro_batch}
    multiplies_as(Fisher(network, (X, targets), **settings), wanted)


def test_the_fisher_is_the_gauss_newton_matrix_but_for_logarithms():
    for name, (loss, targets, _) in FAMILIES.items():
        network = model(nn.LogSoftmax(1) if name == "logarithms" else None)
        given = {"loss": loss, "norm_mode": "eval"}
        fisher = Fisher(network, (X, targets), **given).dense()
        other = GaussNewton(network, (X, targets), **given).dense()
        if name == "logarithms":
            assert np.abs(other).max() < 1e-12  # the loss is linear in its input
        else:
            near(fisher, other)


def test_targets_to_ignore_are_no_draws():
    some = CLASSES.clone()
    some[1], some[4] = -100, -100
    kept = some != -100
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}
    for kind in (Fisher, EmpiricalFisher):
        wanted = kind(model(), (X[kept], some[kept]), **given).dense()
        near(kind(model(), (X, some), **given).dense(), wanted)
        near(kind(model(), (X, some), micro_batch=2, **given).dense(), wanted)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("name", ["categorical", "gaussian", "bernoulli", "logarithms"])
def test_the_empirical_fisher_is_made_of_single_gradients(name, reduction):
    loss, targets, _ = FAMILIES[name]
    loss = type(loss)(reduction=reduction)
    network = model(nn.LogSoftmax(1) if name == "logarithms" else None)
    singles = []
    for n in range(6):
        value = loss(network(X[n : n + 1]), targets[n : n + 1])
        parts = torch.autograd.grad(value, list(network.parameters()))
        singles.append(torch.cat([part.reshape(-1) for part in parts]))
    rows = torch.stack(singles)
    wanted = rows.T @ rows / (6 if reduction == "mean" else 1)
    for batches, micro_batch in (((X, targets), 3), (cut((X, targets), 2), None)):
        found = EmpiricalFisher(
            network, batches, loss=loss, norm_mode="eval", micro_batch=micro_batch
        )
        multiplies_as(found, wanted)


class Places(nn.Module):
    """Outputs (samples, classes, 2, 2): the same layers at four places per sample."""

    def __init__(self, last):
        super().__init__()
        self.net = model(last)

    def forward(self, x):
        return self.net(x).movedim(-1, 1).contiguous()  # as NLLLoss wants it


IMAGES = torch.linspace(0, 9, 72, dtype=torch.float64).sin().reshape(6, 2, 2, 3)
TOKENS = torch.arange(24).reshape(6, 2, 2) * 5 % 7 % 3
HIDDEN = TOKENS.clone()
HIDDEN[0, 0, 1] = HIDDEN[2, 1] = HIDDEN[3] = -100
PLACES = {
    "all": (nn.CrossEntropyLoss, {}, TOKENS),
    "ignored": (nn.CrossEntropyLoss, {}, HIDDEN),
    "other index": (nn.CrossEntropyLoss, {"ignore_index": 1}, TOKENS),
    "smoothed": (nn.CrossEntropyLoss, {"label_smoothing": 0.3}, HIDDEN),
    "probabilities": (nn.CrossEntropyLoss, {}, torch.softmax(IMAGES, 3).movedim(3, 1)),
    "logarithms": (nn.NLLLoss, {}, HIDDEN),
}


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("name", PLACES)
def test_each_place_of_a_sample_has_a_gradient_of_its_own(name, reduction):
    kind, settings, targets = PLACES[name]
    loss = kind(reduction=reduction, **settings)
    network = Places(nn.LogSoftmax(-1) if name == "logarithms" else None)
    z = network(IMAGES).movedim(1, -1).reshape(24, 3)
    probable = targets.is_floating_point()
    flat = targets.movedim(1, -1).reshape(24, 3) if probable else targets.reshape(24)
    singles = []
    for one, target in zip(z, flat, strict=True):
        if not probable and target == loss.ignore_index:
            continue
        value = loss(one[None], target[None])
        parts = torch.autograd.grad(
            value, list(network.parameters()), retain_graph=True
        )
        singles.append(torch.cat([part.reshape(-1) for part in parts]))
    rows = torch.stack(singles)
    wanted = rows.T @ rows / (len(rows) if reduction == "mean" else 1)
    data = (IMAGES, targets)
    for batches, micro_batch in ((data, 1), (cut(data, 2), None), (cut(data, 3), 3)):
        found = EmpiricalFisher(
            network, batches, loss=loss, norm_mode="eval", micro_batch=micro_batch
        )
        multiplies_as(found, wanted)


@pytest.mark.parametrize("mode", ["batch", "eval"])
def test_through_batch_statistics(mode):
    case = next(c for c in CASES if c.name == "conv_bn_resnet")
    network, batch, loss = case.make()
    given = {"loss": loss, "norm_mode": mode}
    found = Fisher(network, batch, **given).dense()
    network.train(mode == "batch")
    near(found, looped_gauss_newton(network, batch, loss))
    multiplies_as(Fisher(network, batch, micro_batch=4, **given), found, rtol=1e-9)


KINDS = [GaussNewton, Fisher, EmpiricalFisher]


@pytest.mark.parametrize("kind", KINDS)
def test_every_instrument_takes_an_operator(kind):
    network, data = model(), (X, CLASSES)
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}
    values = np.linalg.eigvalsh(kind(network, data, **given).dense())
    given |= {"operator": kind}
    dense = {**given, "method": "dense"}
    assert trace(network, data, **dense).trace == pytest.approx(values.sum())
    top = extreme_eigenvalues(network, data, method="products", **given)
    assert top.eigenvalues[0] == pytest.approx(values[-1], rel=1e-5)
    found = spectrum(network, data, **given)
    np.testing.assert_allclose(found.eigenvalues[::-1], values, atol=1e-12)
    assert found.status is Status.EXACT
    assert diagonal(network, data, **dense).diagonal.sum() == pytest.approx(
        values.sum()
    )
    assert index(network, data, **dense).index == 0
    assert condition(network, data, quantile=0.9, **dense).largest == pytest.approx(
        values[-1]
    )
    assert spectral_density(network, data, **dense).nodes.max() == pytest.approx(
        values[-1]
    )
    blocks = by_block(trace, network, data, per="parameter", **dense)
    assert blocks.stack("trace").sum() == pytest.approx(values.sum())
    for reading in (found, top, blocks["0.weight"]):
        assert kind.title in reading.method


def test_what_has_no_distribution_is_refused_in_one_sentence():
    weighted = nn.CrossEntropyLoss(weight=torch.ones(3).double())
    for loss, targets, words in (
        (nn.SmoothL1Loss(), REAL, "no distribution of outputs is known of SmoothL1"),
        (weighted, CLASSES, "class weights"),
        (nn.PoissonNLLLoss(log_input=False), COUNTS, "no distribution"),
        (lambda network, batch: network(batch[0]).sum(), REAL, "no distribution"),
    ):
        with pytest.raises(MeasurementError, match=words) as said:
            Fisher(model(), (X, targets), loss=loss, norm_mode="eval")
        assert "\n" not in str(said.value)
    with pytest.raises(MeasurementError, match="class weights"):
        EmpiricalFisher(Places(None), (IMAGES, TOKENS), loss=weighted)
    with pytest.raises(MeasurementError, match="where the model ends"):
        EmpiricalFisher(
            model(), (X, REAL), loss=lambda m, b: m(b[0]).sum(), norm_mode="eval"
        )
    tokens = torch.zeros(6, 2, dtype=torch.long)
    with pytest.raises(MeasurementError, match="one loss per sample"):
        EmpiricalFisher(
            model(), (X, tokens), norm_mode="eval",
            outputs=lambda m, b: m(b[0])[:, :, None].expand(6, 3, 2),
            output_loss=lambda z, b: nn.functional.cross_entropy(z, b[1]),
        ).dense()  # fmt: skip


@pytest.mark.parametrize(
    ("loss", "targets", "words"),
    [
        (nn.MSELoss(reduction="sum"), torch.zeros(8).double(), "equal shapes"),
        (
            nn.CrossEntropyLoss(),
            torch.zeros(5, dtype=torch.long),
            "one target a sample",
        ),
        (nn.CrossEntropyLoss(), torch.eye(8, 1).long().expand(8, 1), "one-hot|targets"),
    ],
)
def test_targets_that_do_not_fit_are_said_as_elsewhere(loss, targets, words):
    layer, x = nn.Linear(3, 1).double(), torch.ones(8, 3).double()
    with pytest.raises(MeasurementError, match=words):
        Fisher(layer, (x, targets), loss=loss, norm_mode="eval").dense()
