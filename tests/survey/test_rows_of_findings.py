"""Rows that findings read, on networks where the answer is known by construction."""

import pytest
import torch
from torch import nn

from theodolite.survey import survey
from theodolite.survey.findings.rulebook import RULES
from theodolite.survey.measures.gauges import unit_counts


def rows(model, inputs, quantity, *, measures=("map", "signal", "units", "norms")):
    targets = torch.arange(len(inputs)) % 3
    result = survey(
        model,
        (inputs, targets),
        loss=nn.CrossEntropyLoss(),
        measures=measures,
        progress=False,
    )
    return result.find(quantity)


def test_twins_are_counted_and_dead_units_are_not_among_them():
    unlike = torch.randn(50, 4)
    columns = [
        unlike[:, 0],
        unlike[:, 1],
        unlike[:, 0],
        torch.zeros(50),
        torch.zeros(50),
    ]
    counts = unit_counts(torch.stack(columns, 1).relu(), "relu")
    assert counts.twins == 1
    assert counts.dead == 2
    assert unit_counts(unlike.relu(), "relu").twins == 0


def test_units_that_agree_on_two_samples_are_no_twins():
    few = torch.tensor([1.0, 0.0]).repeat(6, 1).T  # as batch norms of two leave them
    assert unit_counts(few, "relu").twins == 0
    assert unit_counts(few.repeat(4, 1), "relu").twins == 5


def test_twins_of_images_are_channels():
    images = torch.randn(3, 1, 5, 5)
    counts = unit_counts(images.expand(-1, 4, -1, -1).relu(), "relu")
    assert counts.twins == 3


def test_the_layer_before_an_activation_is_named():
    model = nn.Sequential(
        nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)
    )
    (row,) = rows(model, torch.randn(9, 4), "twin_share")
    assert row["layer"] == "0"


@pytest.mark.parametrize("passes", [0, 2])
def test_running_statistics_are_read_as_they_were_found(passes):
    model = nn.Sequential(nn.BatchNorm1d(4, momentum=1.0), nn.Linear(4, 3))
    inputs = 5 + 2 * torch.randn(40, 4)
    for _ in range(passes):
        model(inputs)
    (tracked,) = rows(model, inputs, "batches_tracked")
    (distance,) = rows(model, inputs, "running_mean_distance")
    assert tracked["value"] == passes
    by_hand = (model[0].running_mean - inputs.mean(0)) / inputs.std(0, correction=0)
    wanted = float(by_hand.square().mean().sqrt())
    assert distance["value"] == pytest.approx(wanted, abs=1e-4)
    assert model[0].num_batches_tracked == passes


def test_inputs_are_sized_where_weights_meet_them():
    inputs = 7 * torch.randn(30, 4)
    model = nn.Sequential(nn.Linear(4, 3))
    (row,) = rows(model, inputs, "input_rms")
    assert row["value"] == pytest.approx(float(inputs.square().mean().sqrt()), rel=1e-5)
    model[0].register_forward_pre_hook(lambda module, args: (args[0] / 7,))
    (row,) = rows(model, inputs, "input_rms")
    assert row["value"] == pytest.approx(
        float(inputs.square().mean().sqrt()) / 7, rel=1e-5
    )


def test_distance_to_probabilities():
    scores = nn.Linear(4, 3)
    (far,) = rows(nn.Sequential(scores), torch.randn(9, 4), "simplex_distance")
    (near,) = rows(
        nn.Sequential(scores, nn.Softmax(1)), torch.randn(9, 4), "simplex_distance"
    )
    assert far["value"] > 0.1
    assert near["value"] < 1e-6


def test_blocks_that_keep_their_shape():
    model = nn.Sequential(
        nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)
    )
    kept = rows(model, torch.randn(5, 4), "keeps_shape")
    assert {row["block"]: row["value"] for row in kept} == {"0": 0, "2": 1, "4": 0}


class Skipping(nn.Module):
    """A layer whose outputs a norm reads, and perhaps a skip as well."""

    def __init__(self, skip):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6)
        self.head, self.skip = nn.Linear(6, 3), skip

    def forward(self, x):
        x = self.layer(x)
        branch = self.norm(x)
        return self.head(branch + x if self.skip else branch)


@pytest.mark.parametrize("skip", [False, True])
def test_a_skip_beside_a_norm_makes_the_size_of_weights_matter(skip):
    model = Skipping(skip)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    result = survey(
        model,
        (torch.randn(30, 4), torch.arange(30) % 3),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        measures=("map", "signal", "optimizer"),
        progress=False,
    )
    named = [row["module"] for row in result.find("decays_invariant")]
    assert named == ([] if skip else ["layer"])


class Packed(nn.Module):
    """A layer whose matrix is not called its weight, as those of attention are."""

    def __init__(self):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.randn(6, 4))
        self.norm, self.head = nn.BatchNorm1d(6), nn.Linear(6, 3)

    def forward(self, x):
        x = nn.functional.linear(x, self.in_proj_weight)
        return self.head(torch.relu(self.norm(x)))


def test_weights_of_any_name_are_exempt_from_decay_by_the_advice():
    model = Packed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    given = {"loss": nn.CrossEntropyLoss(), "optimizer": optimizer, "progress": False}
    given["measures"] = ("map", "signal", "optimizer")
    batch = torch.randn(30, 4), torch.arange(30) % 3
    result = survey(model, batch, **given)
    (advice,) = [a for a in result.advice if a.rule == "decay-on-invariant-weights"]
    exec(advice.code, {"model": model, "optimizer": optimizer})
    decays = {
        id(p): group["weight_decay"]
        for group in optimizer.param_groups
        for p in group["params"]
    }
    free = [name for name, p in model.named_parameters() if not decays[id(p)]]
    assert free == ["in_proj_weight"]
    assert "decay-on-invariant-weights" not in {
        finding.rule for finding in survey(model, batch, **given).findings
    }


def tied(model, inputs, *, loss=None):
    """Return what the rule on the tangent kernel says of samples."""
    result = survey(
        model,
        (inputs, torch.arange(len(inputs)) % 3),
        loss=loss or nn.CrossEntropyLoss(),
        measures=("signal", "units", "tangent"),
        effort=1000,
    )
    (rule,) = (rule for rule in RULES if rule.name == "outputs-tied")
    return rule.judge(result)


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))


@pytest.fixture(scope="module")
def eight():
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(0))


def test_a_kernel_of_samples_that_differ_is_not_singular(eight):
    assert tied(small(), eight) is None


def test_repeated_samples_are_named_as_the_reason(eight):
    said = tied(small(), torch.cat([eight[:6], eight[:2]]))
    assert "2 of 8 samples repeat another one" in said.says


def test_too_few_numbers_that_are_trained_are_named_as_the_reason(eight):
    model = small()
    model[0].requires_grad_(False)
    model[2].weight.requires_grad_(False)
    assert "24 outputs were looked at and 3 numbers" in tied(model, eight).says


def test_dead_units_are_named_as_the_reason(eight):
    model = small()
    nn.init.constant_(model[0].bias, -50.0)
    assert "units are dead: 1 (1 ±" in tied(model, eight).says


def test_what_is_lost_on_the_way_is_the_reason_else(eight):
    model = small()
    with torch.no_grad():
        model[0].weight.mul_(1e-6)
        model[0].bias.fill_(1.0)
    assert "is lost on the way" in tied(model, eight).says


def test_outputs_that_sum_to_one_are_tied_and_nothing_is_wrong(eight):
    model = nn.Sequential(small(), nn.LogSoftmax(dim=1))
    assert tied(model, eight, loss=nn.NLLLoss()) is None


def test_outputs_of_a_narrow_head_are_tied_and_nothing_is_wrong(eight):
    model = nn.Sequential(small(), nn.Linear(3, 5))
    assert tied(model, eight) is None
    result = tangent(model, eight, torch.zeros(8, 5))
    row = result.number("tangent_smallest")
    assert row["narrow"]
    assert abs(row["value"]) < 1e-5 * result.number("tangent_largest")["value"]


def tangent(model, inputs, targets):
    """Survey the tangent kernel of a model."""
    given = {"loss": nn.MSELoss(), "measures": ("tangent",), "effort": 5000}
    return survey(model, (inputs, targets), **given)


class Tokens(nn.Module):
    """Four numbers a token, and more tokens to tell apart than these."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 4)
        self.branch = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.head = nn.Linear(4, 12)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        return self.head(hidden + self.branch(hidden))


@pytest.mark.parametrize("logarithms", [False, True])
def test_a_narrow_head_is_told_by_the_classes_at_each_position(logarithms):
    torch.manual_seed(0)
    tokens = torch.arange(12).reshape(2, 6)
    model = nn.Sequential(Tokens(), nn.LogSoftmax(2)) if logarithms else Tokens()
    result = tangent(model, tokens, torch.zeros(2, 6, 12))
    row = result.number("tangent_smallest")
    assert row["probabilities"] if logarithms else row["narrow"]
    assert abs(row["value"]) < 1e-5 * result.number("tangent_largest")["value"]
    assert not [one for one in result.findings if one.rule == "outputs-tied"]


def test_single_numbers_among_the_inputs_are_no_samples():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x, scale):
            return scale * self.linear(x)

    result = tangent(
        Scaled(),
        {"x": torch.randn(4, 3), "scale": torch.tensor(1.0)},
        torch.zeros(4, 2),
    )
    assert result.number("tangent_smallest")["n_repeated"] == 0


def test_features_are_held_against_the_usual_one_and_constants_are_not_counted():
    torch.manual_seed(0)
    inputs = torch.randn(64, 5) * torch.tensor([3.0, 1.0, 1.0, 1.0, 0.0])
    (row,) = rows(
        nn.Sequential(nn.Linear(5, 3)), inputs, "input_condition", measures=("signal",)
    )
    assert row["n_features"] == 4
    by_hand = inputs.var(0, correction=0)[:4]
    wanted = float(by_hand.max() / by_hand.median())
    assert row["value"] == pytest.approx(wanted, rel=1e-5)
    images = torch.randn(6, 2, 3, 3) * torch.tensor([1.0, 10.0])[:, None, None]
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten())
    (row,) = rows(model, images, "input_condition", measures=("signal",))
    assert row["n_features"] == 2
    assert 50 < row["value"] < 200
