"""What a reading says of itself, what it leaves alone, and what is refused."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tests.instruments.test_preservation import portrait
from tests.paths.nets import STYLES, make
from theodolite.core import (
    ConfigError,
    DataError,
    MeasurementError,
    TheodoliteError,
    UnknownNameError,
)
from theodolite.instruments import HalfSquareLoss
from theodolite.paths import Lesion, PathEnsemble, lesion, path_ensemble, unravel
from theodolite.paths.energies import energies_of, fit, law_shares, scale_from_gains


@pytest.mark.parametrize("mode", ["batch", "full", "frozen", "eval"])
def test_model_is_left_as_found(mode):
    net, x = make("post-activation")
    net.train()
    net.blocks[0].eval()
    y = torch.randn(6, 3, dtype=torch.float64)
    before = portrait(net)
    path_ensemble(net, (x, y), norm_mode=mode, loss=HalfSquareLoss())
    lesion(net, x, norm_mode=mode, exchange=[(0, 0)])
    assert portrait(net) == before


@pytest.mark.parametrize("style", ["pre-activation", "bottleneck", "nested"])
def test_chunks_and_precision_change_nothing(style):
    net, x = make(style)
    y = torch.randn_like(net.eval()(x)).detach()
    given = {"norm_mode": "frozen", "loss": HalfSquareLoss()}
    whole = path_ensemble(net, (x, y), **given)
    pieces = path_ensemble(
        net, (x, y), **given, graph_bytes=90_000 if x.ndim > 2 else 5_000
    )
    assert pieces.cost.passes > whole.cost.passes
    np.testing.assert_allclose(pieces.energy, whole.energy, rtol=1e-10)
    np.testing.assert_allclose(pieces.gain, whole.gain, rtol=1e-10)
    single = copy.deepcopy(net).float()
    promoted = path_ensemble(single, (x.float(), y.float()), **given)
    np.testing.assert_allclose(promoted.energy, whole.energy, rtol=1e-3)
    assert (promoted.status, "twin" in promoted.method) == ("exact", True)
    own = path_ensemble(single, (x.float(), y.float()), **given, promote=False)
    np.testing.assert_allclose(own.share, whole.share, atol=1e-3)
    assert own.status == "rounding"
    assert 1e-9 < own.residual.max() < 1e-4


def test_reading_holds_together(tmp_path):
    net, x = make("pre-activation")
    y = torch.randn(6, 2, dtype=torch.float64)
    result = path_ensemble(net, (x, y), norm_mode="batch", loss=HalfSquareLoss())
    np.testing.assert_allclose(result.share.sum(1), 1)
    np.testing.assert_allclose(result.alignment.sum(1), 1)
    np.testing.assert_allclose(result.law.sum(1), 1)
    degrees = np.arange(5)
    np.testing.assert_allclose(result.effective_depth, result.share @ degrees)
    np.testing.assert_allclose(result.effective_depth, result.law @ degrees, rtol=1e-9)
    assert result.places == tuple(str(place) for place in range(1, 5))
    assert result.of("gradient")["beta"] == result.beta[1]
    for part, place in (("output", 0), ("gradient", 1)):
        assert (
            f"  {part}: effective depth {result.effective_depth[place]:.4g} of 4 "
            f"branches, spread {result.spread[place]:.3g}, beta "
            f"{result.beta[place]:.4g} (distance {result.distance[place]:.2g})"
        ) in result.summary_lines()
    rows = result.rows()
    assert rows.value(quantity="spread", part="output") == result.spread[0]
    result.save(tmp_path / "kept")
    again = PathEnsemble.load(tmp_path / "kept")
    assert again.to_dict() == result.to_dict()
    with pytest.raises(DataError):
        Lesion.load(tmp_path / "kept")
    with pytest.raises(TheodoliteError, match="unknown part of the ensemble"):
        path_ensemble(net, x, norm_mode="eval").of("gradient")


def test_errors_are_those_of_other_draws():
    """Standard errors over samples are the spread of readings of other samples."""
    rng = np.random.default_rng(0)
    result = []
    for _ in range(200):
        parts = rng.normal(size=(60, 4, 5)) * [[[2.0], [1.0], [0.5], [0.2]]]
        parts[:, 1] += 0.7 * parts[:, 0]  # samples differ in size, degrees go together
        parts *= rng.gamma(2.0, size=(60, 1, 1))
        whole = parts.sum(1, keepdims=True)
        result.append(energies_of((parts**2).mean(2), (parts * whole).mean(2)))
    for name in ("depth", "spread", "energy", "share", "alignment"):
        values = np.stack([getattr(f, name) for f in result])
        errors = np.stack([getattr(f, f"{name}_error") for f in result])
        ratio = values.std(axis=0, ddof=1) / errors.mean(axis=0)
        assert np.all((ratio > 0.8) & (ratio < 1.25)), (name, ratio)


def test_one_sample_has_no_error():
    net, x = make("nested")
    alone = path_ensemble(net, x[:1], norm_mode="eval")
    assert np.isinf(alone.effective_depth_error).all()
    assert alone.samples == 1


class Plain(nn.Module):
    def forward(self, x):
        return torch.relu(x)


class Outside(nn.Module):
    """Two outputs, of which the first does not lie behind the addition."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2, dtype=torch.float64)

    def forward(self, x):
        return x * 2, x + torch.relu(self.layer(x))


class Ragged(nn.Module):
    """Another number of calls every time."""

    count = 0

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2, dtype=torch.float64)

    def forward(self, x):
        Ragged.count += 1
        for _ in range(Ragged.count):
            x = x * 1.0
        return x + torch.relu(self.layer(x))


class Making(nn.Module):
    """Makes tensors of its own, of the default type or of single precision."""

    def __init__(self, **kind):
        super().__init__()
        self.layer, self.kind = nn.Linear(2, 2), kind

    def forward(self, x):
        start = torch.zeros(3, 2, **self.kind)
        return x + torch.relu(self.layer(x) + start @ self.layer.weight)


def test_a_twin_makes_tensors_of_its_own_precision():
    result = path_ensemble(Making(), torch.ones(3, 2), norm_mode="eval")
    assert result.residual[0] < 1e-14
    assert torch.get_default_dtype() == torch.float32


X = torch.ones(3, 2, dtype=torch.float64)
REFUSED = {
    "copy in double precision does not run": lambda: path_ensemble(
        Making(dtype=torch.float32), torch.ones(3, 2), norm_mode="eval"
    ),
    "has no residual addition": lambda: path_ensemble(Plain(), X, norm_mode="eval"),
    "no residual addition leads to the output": lambda: path_ensemble(
        Outside(), X, norm_mode="eval", outputs=lambda model, batch: model(batch)[0]
    ),
    "returned a tuple": lambda: path_ensemble(Outside(), X, norm_mode="eval"),
    "made .* calls": lambda: path_ensemble(Ragged(), X, norm_mode="eval"),
    "raise graph_bytes": lambda: path_ensemble(
        *make("nested"), norm_mode="eval", graph_bytes=8
    ),
    "graph_bytes is -1": lambda: path_ensemble(
        *make("nested"), norm_mode="eval", graph_bytes=-1
    ),
    "unknown counted 'layer'.*'layers'": lambda: path_ensemble(
        *make("nested"), norm_mode="eval", counted="layer"
    ),
    "unknown by 'output'": lambda: path_ensemble(
        *make("nested"), norm_mode="eval", by="output"
    ),
    "branch 9 was asked for, and the network has 4": lambda: lesion(
        *make("nested"), norm_mode="eval", delete=[[9]]
    ),
    "cannot be exchanged": lambda: lesion(
        *make("post-activation"), norm_mode="eval", exchange=[(0, 2)]
    ),
    "no single number": lambda: path_ensemble(
        *make("nested"), norm_mode="eval", loss=lambda model, batch: model(batch)
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_bad_input_gets_one_sentence(sentence):
    with pytest.raises((MeasurementError, ConfigError, TheodoliteError)) as raised:
        REFUSED[sentence]()
    assert raised.match(sentence)
    assert "\n" not in str(raised.value)


def test_law_is_found_again_and_its_rivals_are_not():
    counts = np.log([1.0, 8, 28, 56, 70, 56, 28, 8, 1])
    for beta in (1e-3, 0.3, 1.0, 40.0):
        result = fit(law_shares(np.log(beta), counts), counts)
        assert result.beta == pytest.approx(beta, rel=1e-9)
        assert result.divergence < 1e-12
    # Independent paths: a binomial, twice as wide at the same mean.
    binomial = np.exp(counts) * 0.3 ** np.arange(9)
    result = fit(binomial / binomial.sum(), counts)
    assert result.distance > 0.1
    # Sums over paths are 1, 0.2 + 0.8 and 0.2 * 0.8, their mean length 0.518957.
    beta = scale_from_gains([0.2, 0.8])
    assert (4 * beta**2 + 2 * beta**4) / (1 + 4 * beta**2 + beta**4) == pytest.approx(
        (1 + 2 * 0.16**2) / (2 + 0.16**2)
    )
    assert (fit(np.eye(9)[0], counts).beta, fit(np.eye(9)[8], counts).beta) == (
        0.0,
        np.inf,
    )


@pytest.mark.parametrize("style", STYLES)
def test_deletions_add_up_to_what_the_ensemble_says(style):
    net, x = make(style)
    result = lesion(net, x, norm_mode="eval")
    assert result.residual[0] < 1e-12
    # The last branch of a chain without ReLU behind it meets gates that do not react.
    if style in ("pre-activation", "bottleneck", "parallel"):
        assert result.true_change[-1] == pytest.approx(result.frozen_change[-1])
        assert result.alignment[-1] == pytest.approx(1)
        assert abs(result.alignment[0] - 1) > 1e-6


def test_true_lesions_are_those_by_hand():
    net, x = make("post-activation")
    result = lesion(net, x, norm_mode="eval", delete=[[1], [0, 2]], exchange=[(2, 2)])
    taps, whole = [block.tap for block in net.eval().blocks], net(x).detach()
    for place, chosen in enumerate(([1], [0, 2])):
        for number, tap in enumerate(taps):
            tap.level = 0.0 if number in chosen else None
        change = (net(x).detach() - whole).norm() / whole.norm()
        assert result.true_change[place] == pytest.approx(float(change))
    assert max(result.true_change[2], result.frozen_change[2]) < 1e-14
    assert result.lesions[1:] == ("without 0+2", "exchanged 2 and 2")


def test_exchanged_branches_are_exchanged():
    net, x = make("bottleneck")
    result = lesion(net, x, norm_mode="eval", delete=[], exchange=[(0, 3)])
    whole = net(x).detach()
    blocks = list(net.blocks)
    net.blocks = nn.Sequential(blocks[3], *blocks[1:3], blocks[0])
    change = (net(x).detach() - whole).norm() / whole.norm()
    assert result.true_change[0] == pytest.approx(float(change))
    assert 0 < result.frozen_change[0] != pytest.approx(result.true_change[0])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("style", STYLES)
def test_on_a_cuda_device(style):
    net, x = make(style)
    y = torch.randn_like(net.eval()(x)).detach()
    given = {"norm_mode": "frozen", "loss": HalfSquareLoss()}
    here = path_ensemble(net, (x, y), **given)
    there = path_ensemble(net.cuda(), (x.cuda(), y.cuda()), **given)
    np.testing.assert_allclose(there.energy, here.energy, rtol=1e-9)
    assert there.residual.max() < 1e-12


@pytest.mark.parametrize("style", STYLES)
def test_single_paths_add_up_to_their_lengths(style):
    net, x = make(style)
    result = unravel(net, x, norm_mode="eval")
    whole = path_ensemble(net, x, norm_mode="eval")
    assert result.residual < 1e-12
    by_length = np.zeros(len(result.paths[0]) + 1)
    for path, share in zip(result.paths, result.alignment, strict=True):
        by_length[path.count("1")] += share
    length = len(whole.alignment[0])
    np.testing.assert_allclose(by_length[:length], whole.alignment[0], atol=1e-12)
    if style == "parallel":  # no path takes two branches of one skip
        taken = [
            p for p, e in zip(result.paths, result.energy, strict=True) if e > 1e-25
        ]
        assert not [p for p in taken if p[:2] == "11" or p[2:] == "11"]


def test_many_branches_are_not_unravelled():
    net = nn.Sequential(*(make("parallel")[0][1] for _ in range(6)))
    with pytest.raises(MeasurementError, match=r"12 branches.*use path_ensemble"):
        unravel(net, torch.ones(2, 5).double(), norm_mode="eval")


@pytest.mark.parametrize("instrument", [path_ensemble, lesion, unravel])
def test_data_that_hold_no_numbers_are_refused(instrument):
    net, x = make("parallel")
    for inputs, words in (
        (torch.full_like(x, np.nan), "outputs hold NaN or infinity"),
        (x[:0], "outputs are empty"),
        (torch.ones(3, x.shape[1] + 1).double(), r"take inputs of shape \(3, \d+\)"),
    ):
        with pytest.raises(MeasurementError, match=words) as error:
            instrument(net, inputs, norm_mode="eval")
        assert "\n" not in str(error.value)


def test_a_mistyped_norm_mode_is_a_sentence():
    net, x = make("parallel")
    with pytest.raises(
        UnknownNameError, match="unknown norm mode 'bath': did you mean 'batch'"
    ):
        path_ensemble(net, x, norm_mode="bath")


def test_inputs_that_are_no_tensors_are_left_as_they_are():
    class Repeated(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, inputs):
            x, times = inputs
            for _ in range(times):
                x = x + self.layer(x).relu()
            return x

    net, x = Repeated(), torch.randn(6, 3)
    given = {"norm_mode": "eval", "loss": HalfSquareLoss()}
    twice = path_ensemble(net, ((x, 2), torch.randn(6, 3)), **given)
    assert twice.energy.shape[-1] == 3
