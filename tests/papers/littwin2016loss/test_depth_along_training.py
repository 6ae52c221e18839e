"""Ensembles along training: what is judged of them, and how they are read."""

from functools import cache

import numpy as np
import pytest
import torch

from tests.studies.counterfactuals import (
    check_all_turn,
    check_errors,
    claim_of,
    const,
    each_case,
    many,
    refused,
    rows_of,
    said,
    with_change,
)
from theodolite.core import (
    LayerwiseBlueprint,
    PredictedAndMeasured,
    Rows,
    UnknownNameError,
)
from theodolite.networks import build
from theodolite.theory import path_length_moments
from theodolite_papers.littwin2016loss.depth_along_training import (
    STUDY as DECLARED,
)
from theodolite_papers.littwin2016loss.depth_along_training import (
    measure_ensemble as ensembles,
)
from theodolite_papers.littwin2016loss.depth_along_training.claims_beyond import (
    QUARTER,
)
from theodolite_papers.littwin2016loss.depth_along_training.config import (
    EXEMPT,
    PRESETS,
    Config,
    cells,
)
from theodolite_papers.littwin2016loss.depth_along_training.figure import (
    foretold,
    whole,
)
from theodolite_papers.littwin2016loss.depth_along_training.measure import (
    beta_of_scales,
    measure,
)

STUDY = "depth_along_training"
DEPTHS = ("output_depth", "gradient_depth")
BACK = ("reset_output_depth", "reset_gradient_depth")
SCALED = ("scaled_output_depth", "scaled_gradient_depth")


def at(value, rise=0.0):
    """Depths near a value that change with the step, unlike in every network."""
    return lambda row: (
        value
        + rise * row.get("step", 0) / 10 * (1 + 0.05 * (row["trial"] % 100))
        + 0.001 * np.cos(7 * (row["trial"] % 100))
    )


def law(factor):
    """Scales that foretell the output's depth at a factor, as a table knows it."""
    return lambda row: factor


OUT, GRAD = DEPTHS
RATIO = "deep_over_shallow"
SCALED_BOTH = SCALED[0], "scaled_scale_beta"
BELOW = "output_below_half"


def follows(slope):
    """Depths that rise or fall with the factor on all scales."""
    return lambda row: 0.5 + slope * row["factor"] * (1 + 0.01 * row["trial"])


def beside(value):
    """Depths of networks with norms beside 0.4 of those without."""
    plain = lambda row: 0.4 + 0.002 * np.cos(3 * row["trial"])  # noqa: E731
    return lambda row: (plain if row["norm"] == "none" else at(value))(row)


def climbs(row):
    return 0.1 + 0.01 * row["step"] * (1 + 0.01 * row["trial"])


def dips(row):
    return 0.5 - 0.01 * row["step"] * (1 + 0.01 * row["trial"])


def pairs(claim, quantity, holds, fails):
    """A claim with a counterfactual in which it holds and one in which it fails."""
    return [(claim, quantity, holds, "HOLDS"), (claim, quantity, fails, "FAILS")]


SHALLOW, UP, DOWN = (at(0.05), at(0.4)), at(0.2, 0.1), at(0.6, -0.1)
BETA = "scale_beta"
# Claim, quantity, change, and what is said of it then.
COUNTERFACTUALS = [
    ("initially-below-half", (BELOW, BETA), at(0.7), "HOLDS"),
    ("initially-below-half", BELOW, at(0.4), "UNDECIDED"),
    *pairs("images-initially-below-half", BELOW, at(0.7), at(0.4)),
    *pairs("unit-scales-extremely-shallow", (OUT, BETA), beside(0.05), beside(0.8)),
    ("unit-scales-extremely-shallow", (OUT, BETA), beside(0.35), "UNDECIDED"),
    *pairs("early-gradients-shallow", GRAD, beside(0.05), beside(0.8)),
    ("early-gradients-shallow", GRAD, beside(0.35), "UNDECIDED"),
    *pairs("images-extremely-shallow", DEPTHS, *SHALLOW),
    *pairs("scales-control-depth", SCALED_BOTH, follows(0.2), follows(-0.2)),
    *pairs("gradients-follow-scales", SCALED[1], follows(0.2), follows(-0.2)),
    *pairs("deeper-with-batch-norm", (OUT, BETA), UP, DOWN),
    *pairs("deeper-without-norm", (OUT, BETA), UP, DOWN),
    *pairs("images-deeper-with-batch-norm", OUT, UP, DOWN),
    *pairs("images-deeper-without-norm", OUT, UP, DOWN),
    *pairs("gradients-deeper-with-batch-norm", GRAD, UP, DOWN),
    *pairs("gradients-deeper-without-norm", GRAD, UP, DOWN),
    *pairs("deeper-and-deeper", (OUT, BETA), climbs, dips),
    *pairs("images-deeper-and-deeper", OUT, climbs, dips),
    *pairs("gradients-deeper-and-deeper", GRAD, climbs, dips),
    ("deeper-late", DEPTHS, UP, "HOLDS"),
    ("deeper-with-batch-norm", OUT, lambda row: (UP if row["readout"] == 1 else DOWN)(
        row), "UNDECIDED"),
    ("deeper-late", DEPTHS, DOWN, "FAILS"),
    ("scale-is-lambda", (*SCALED_BOTH, "fixed_output_depth", "fixed_scale_beta"),
     follows(0.02), "FAILS"),
    *pairs("deep-gradients-dominate", RATIO, at(0.9, 0.5), at(0.5)),
    ("deep-gradients-dominate", RATIO, lambda row: at(0.9, 0.5)(row)
     if row["split"] == 1 else at(0.5)(row), "UNDECIDED"),
    ("scales-grow-under-deep-gradients", RATIO, at(0.5), "NOT RUN"),
    ("gains-foretell-depth", "gain_beta", law(1e3), "FAILS"),
    ("paper-s-beta-foretells-depth", "scale_beta", law(1e3), "FAILS"),
]  # fmt: skip
# Two networks, as SMOKE trains, prove too little of these.
MORE_NETWORKS = (
    "deeper-late",
    "deep-gradients-dominate",
    "gains-foretell-depth",
    "paper-s-beta-foretells-depth",
)
MECHANISM = {
    "scales-are-the-mechanism": 0,
    "images-scales-are-the-mechanism": 0,
    "gradients-moved-by-scales": 1,
}
LATER = [*MECHANISM, "loss-is-low-before-depth"]


def test_every_claim_has_a_counterfactual():
    check_all_turn(STUDY, [*COUNTERFACTUALS, *((name,) for name in LATER)])


@pytest.mark.parametrize("depth", [10, 20])
def test_theory_begins_in_the_region_for_extremely_shallow(depth):
    # Energies that grow by one a layer: a branch has 1/l of what passes layer l.
    foretold = sum(1 / layer for layer in range(2, depth + 1)) / (depth - 1)
    assert 0.1 < foretold < QUARTER.high


def test_rows_carry_their_error(smoke_root):
    check_errors(smoke_root, STUDY)


@each_case(COUNTERFACTUALS)
def test_each_verdict_turns_on_a_counterfactual(case, smoke_root):
    claim, quantity, change, wanted = case
    study, _ = rows_of(smoke_root, STUDY)
    both = living(smoke_root, 2 if claim in MORE_NETWORKS else 1)
    there = with_change(both, "m", quantity, change)
    assert said(claim_of(study, claim).rule(there)) == (wanted, None)


@cache
def living(root, copies=1):
    """Return the rows of the run, once or more, with losses that fall."""
    return alive(many(rows_of(root, STUDY)[1], copies))


def alive(both):
    """Return the rows with losses that fall from a guess's to nearly nothing."""
    there = with_change(both, "m", "test_error", const(0.01))
    losses = ("train_loss", "test_loss")
    return with_change(there, "m", losses, lambda row: 3.9 * 0.8 ** row["step"] + 0.001)


@pytest.mark.parametrize(
    ("loss", "wanted"), [(0.1, "HOLDS"), (1.0, "UNDECIDED"), (3.0, "FAILS")]
)
def test_losses_are_low_once_the_ensemble_is_deep(loss, wanted, smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    there = with_change(both, "m", (OUT, BETA), at(0.2, 0.1))
    change = lambda row: loss + 0.001 * row["trial"]  # noqa: E731
    there = with_change(there, "m", "train_loss", change)
    assert said(claim_of(study, "loss-is-low-before-depth").rule(there))[0] == wanted


@pytest.mark.parametrize(("slope", "wanted"), [(0.01, "HOLDS"), (-0.01, "FAILS")])
def test_scales_grow_while_deep_gradients_dominate(slope, wanted, smoke_root):
    study, _ = rows_of(smoke_root, STUDY)
    there = with_change(living(smoke_root), "m", RATIO, at(2.0))
    change = at(1.0, slope)
    there = with_change(there, "m", "scale", change)
    claim = claim_of(study, "scales-grow-under-deep-gradients")
    assert said(claim.rule(there))[0] == wanted


@pytest.mark.parametrize("claim", MECHANISM)
@pytest.mark.parametrize(("back", "wanted"), [(0.2, "HOLDS"), (0.24, "FAILS")])
def test_scales_are_the_mechanism_where_putting_them_back_undoes_it(
    claim, back, wanted, smoke_root
):
    study, _ = rows_of(smoke_root, STUDY)
    part = MECHANISM[claim]
    there = with_change(living(smoke_root), "m", (DEPTHS[part], BETA), at(0.2, 0.01))
    there = with_change(there, "m", (BACK[part], "reset_scale_beta"), at(back))
    assert said(claim_of(study, claim).rule(there))[0] == wanted


@pytest.mark.parametrize(
    ("power", "fixed", "wanted"),
    [
        (1.0, 1.0, "HOLDS"),
        (0.5, 0.5, "FAILS"),
        (1.5, 1.5, "FAILS"),
        (0.4, 1.0, "UNDECIDED"),
    ],
)
def test_scales_of_norms_are_the_paper_s_where_beta_is_proportional(
    power, fixed, wanted, smoke_root
):
    """Depths are those of the law itself at a power of the factor."""
    study, _ = rows_of(smoke_root, STUDY)

    def scale(row):
        own = fixed if row["quantity"].startswith("fixed") else power
        return 0.4 * row["factor"] ** (own * (1 + 0.001 * row["trial"]))

    def depth(row):
        mean = path_length_moments(row["depth"], scale(row)).mean
        return (mean - 1) / (row["depth"] - 1)

    depths = ("scaled_output_depth", "fixed_output_depth")
    there = with_change(living(smoke_root), "m", depths, depth)
    there = with_change(there, "m", ("scaled_scale_beta", "fixed_scale_beta"), scale)
    ruling = claim_of(study, "scale-is-lambda").rule(there)
    assert said(ruling) == (wanted, None)
    for number in ruling.asides.values():
        assert number.value == pytest.approx(2**power, rel=0.01)
    assert len(ruling.asides) == 9


@pytest.mark.parametrize("beta", [0.3, 2.0])
def test_what_a_scale_foretells_is_met_by_the_law_itself(beta, smoke_root):
    study, _ = rows_of(smoke_root, STUDY)
    there = with_change(living(smoke_root), "m", "gain_beta", lambda row: beta)
    depths = {
        (row["family"], row["step"]): row["value"]
        for row in foretold(there, "gain_beta")
    }
    there = with_change(
        there,
        "m",
        "output_depth",
        lambda row: depths[row["family"], row["step"]] + 0.001 * row["trial"],
    )
    assert said(claim_of(study, "gains-foretell-depth").rule(there))[0] == "HOLDS"


@pytest.mark.parametrize(
    ("quantity", "chance"), [("train_loss", 3.91), ("test_loss", 2.30)]
)
def test_networks_that_guess_do_not_count(quantity, chance, smoke_root):
    """Chance is that of each task's classes: 50 of Gaussians, 10 of digits."""
    study, _ = rows_of(smoke_root, STUDY)
    claim = claim_of(study, "deeper-late")
    assert claim.rule(living(smoke_root)).died.startswith("0 of ")
    for loss, dead in ((chance - 0.01, False), (chance + 0.01, True)):
        guessing = with_change(living(smoke_root), "m", quantity, const(loss))
        assert ("not below chance" in claim.rule(guessing).died) == dead


def test_networks_that_were_stopped_do_not_count(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    rows = both.measured.where(family="images")
    stopped = Rows(
        {**row, "value": 0.0} if row["quantity"] == "finished" else row for row in rows
    )
    assert len(whole(rows)) == len(rows), "images have no scale of the paper"
    assert not len(whole(stopped))
    study, _ = rows_of(smoke_root, STUDY)
    alone = PredictedAndMeasured(both.predicted, stopped)
    name = "images-initially-below-half"
    assert claim_of(study, name).rule(alone).outcome == "NOT RUN"


@pytest.mark.parametrize("lacking", [{"norm": EXEMPT}, {"readout": 0.02}])
def test_a_training_on_images_that_was_not_run_leaves_claims_open(lacking, smoke_root):
    study, _ = rows_of(smoke_root, STUDY)
    there = with_change(living(smoke_root), "m", OUT, UP)
    claim = claim_of(study, "images-deeper-with-batch-norm")
    assert claim.rule(there).outcome == "HOLDS"
    rows = there.measured.where(lambda row: not lacking.items() <= row.items())
    ruling = claim.rule(PredictedAndMeasured(there.predicted, rows))
    assert ruling.outcome == "UNDECIDED"
    assert "; not run under depth of the output; digits, " in ruling.judged.because


def test_axes_of_images_change_the_training_alone(smoke_root):
    """The start has the same paths; scales end apart where they do not decay."""
    _, both = rows_of(smoke_root, STUDY)
    rows = both.measured.where(family="images", trial=0)

    def read(quantity, **labels):
        return rows.value(quantity=quantity, **labels)

    last = max(rows.levels("step"))
    usual, exempt, small = (
        {"norm": norm, "readout": readout}
        for norm, readout in (("batch", 1.0), (EXEMPT, 1.0), ("batch", 0.02))
    )
    for other in (exempt, small):
        start = [read(OUT, step=0, **one) for one in (usual, other)]
        assert start[0] == pytest.approx(start[1], rel=1e-6)
        ends = [read("scale", step=last, **one) for one in (usual, other)]
        assert ends[0] != pytest.approx(ends[1], rel=1e-5)


class TestReading:
    """A network of equation 20 with one unit, whose ensemble is known."""

    @pytest.fixture
    def network(self):
        plan = LayerwiseBlueprint(inputs=4, width=6, depth=2, classes=3, norm="scalar")
        return ensembles.remember_sizes(build(plan, seed=0))

    @pytest.fixture
    def samples(self):
        draw = torch.manual_seed(0)
        x = torch.randn(16, 4, dtype=torch.float64, generator=draw)
        return x, torch.arange(16) % 3

    def test_depth_is_the_share_of_the_branch(self, network, samples):
        x, y = samples
        depth = ensembles.ensemble(network, x, y, 16)["output_depth"][0]
        first = network.first(x)
        skip = network.head(first).detach()
        branch = network.head(network.units[0](first) - first).detach()
        share = branch.square().sum() / (branch.square() + skip.square()).sum()
        assert depth == pytest.approx(float(share), rel=1e-6)

    def test_scales_are_multiplied_and_put_back(self, network, samples):
        double = ensembles.scaled(network, 2.0)
        assert ensembles.scale_of(double) == pytest.approx(2.0)
        assert ensembles.scale_of(ensembles.reset(double)) == pytest.approx(1.0)
        assert ensembles.scale_of(network) == pytest.approx(1.0)

    def test_weights_are_where_there_are_no_norms(self, samples):
        plan = LayerwiseBlueprint(inputs=4, width=6, depth=3, classes=3, norm="none")
        network = ensembles.remember_sizes(build(plan, seed=0))
        size = ensembles.scale_of(network)
        double = ensembles.scaled(network, 2.0)
        assert ensembles.scale_of(double) == pytest.approx(2 * size)
        again = ensembles.reset(double)
        for a, b in zip(again.parameters(), network.parameters(), strict=True):
            torch.testing.assert_close(a, b)

    def test_the_network_is_left_as_found(self, network, samples):
        before = {k: v.clone() for k, v in network.state_dict().items()}
        ensembles.ensemble(network, *samples, 8)
        for name, value in network.state_dict().items():
            assert torch.equal(value, before[name])
        assert network.training

    def test_the_paper_s_scale(self, network, samples):
        held = ensembles.held(network, samples[0])
        beta, error = beta_of_scales(held, samples[0])
        assert error == 0, "one layer has no spread"
        layer = held.units[0]
        size = float(layer.weight.weight.detach().norm()) / 6**0.5
        opened = (layer.weight(held.first(samples[0])) > 0).double().mean()
        factor = 1 / float(layer.norm.running_deviation)
        assert beta == pytest.approx(float(opened) * size * factor, rel=1e-12)

    def test_the_paper_s_scale_has_the_spread_of_its_layers(self, samples):
        plan = LayerwiseBlueprint(inputs=4, width=6, depth=3, classes=3, norm="none")
        network = build(plan, seed=0)
        beta, error = beta_of_scales(network, samples[0])
        with torch.no_grad():
            network.units[1].weight.weight.mul_(3.0)
        more, wider = beta_of_scales(network, samples[0])
        # The second layer's share of the mean of two, and half their distance.
        second = more - beta
        assert second > 0
        assert error == pytest.approx(abs(2 * beta - 2 * second) / 2, rel=1e-9)
        assert wider == pytest.approx(abs(2 * beta - 4 * second) / 2, rel=1e-9)


test_refusals = refused(
    Config,
    ({"updates": 8}, "at least 16"),
    ({"probes": 1}, "at least 2 samples"),
)


def test_norms_of_image_networks_are_known_by_name():
    with pytest.raises(UnknownNameError, match="did you mean 'batch_exempt'"):
        Config(image_norms=("exempt",))


def test_the_datasets_of_a_study_are_those_that_must_be_loaded():
    config = Config(n_seeds=2, tasks=("gaussians", "mnist"), image_tasks=("cifar10",))
    assert DECLARED.datasets(config) == ("mnist", "cifar10")


def test_an_image_network_is_read_while_it_trains():
    config = PRESETS["smoke"]
    cell = next(cell for cell in cells(config) if cell["family"] == "images")
    benchmark = torch.backends.cudnn.benchmark
    rows = measure(config, cell)
    assert rows.where(quantity="finished").column("value") == [1.0]
    read = set(rows.where(quantity="output_depth").column("step"))
    assert read == set(config.image_reading_steps(config.image_samples))
    assert torch.backends.cudnn.benchmark == benchmark
