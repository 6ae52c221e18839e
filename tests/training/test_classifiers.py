"""Classifiers trained by the dozen: stacks against modules, records, bad input."""

from typing import Any

import numpy as np
import pytest
import torch

from theodolite.core import (
    ClassifierBlueprint,
    ConfigError,
    DataError,
    ShortcutBlueprint,
    UnknownNameError,
)
from theodolite.instruments import classifier_norms
from theodolite.networks import build
from theodolite.training import (
    ClassifierRecipe,
    LabelledSamples,
    log_epochs,
    train_classifiers,
)
from theodolite.training.classifiers.loops import label_signs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 1, 6, 5))
CLASSES = np.arange(50) % 3
SIGNS = np.where(X[:, 0, 0, 0] > 0, 1.0, -1.0)
TWO = LabelledSamples(X, SIGNS, X[:20] + 0.1, SIGNS[:20])
THREE = LabelledSamples(X, CLASSES)
PLAN = ClassifierBlueprint(inputs=(1, 6, 5), width=4, start_norm=2.0)
RECIPE = ClassifierRecipe(epochs=3, batch_size=16, rate=0.05, weight_decay=0.01)


def train(plans, samples=TWO, recipe: Any = RECIPE, seeds=None, **settings):
    return train_classifiers(
        plans,
        samples,
        recipe=recipe,
        seeds=list(range(len(plans))) if seeds is None else seeds,
        **{"dtype": torch.float64} | settings,
    )


@pytest.mark.parametrize("family", ["dense", "convolutional"])
@pytest.mark.parametrize("norm", ["batch", "none"])
@pytest.mark.parametrize(
    ("loss", "outputs"),
    [("square", 1), ("square", 3), ("cross_entropy", 1), ("cross_entropy", 3)],
)
def test_stacks_do_what_modules_and_optimizers_do(family, norm, loss, outputs):
    """The rival is a stack in which runs touch: rates, decays and starts differ."""
    samples = TWO if outputs == 1 else THREE
    plans = [
        PLAN.with_(family=family, norm=norm, outputs=outputs, start_norm=size)
        for size in (1.0, 4.0, 1.0, 4.0)
    ]
    recipes = [
        ClassifierRecipe(
            epochs=3, batch_size=16, rate=rate, weight_decay=decay, loss=loss
        )
        for rate, decay in ((0.05, 0.0), (0.02, 0.01), (0.1, 0.1), (0.05, 0.0))
    ]
    seeds = [0, 0, 7, 7]
    together = train(plans, samples, recipes, seeds, at_once=4)
    apart = train(plans, samples, recipes, seeds, way="plain")
    for one, other in zip(together, apart, strict=True):
        assert one.status == other.status == "finished"
        assert [r.epoch for r in one.records] == [r.epoch for r in other.records]
        for mine, theirs in zip(one.records, other.records, strict=True):
            np.testing.assert_allclose(mine.outputs, theirs.outputs, rtol=1e-9)
            np.testing.assert_allclose(mine.train_loss, theirs.train_loss, rtol=1e-9)
        for mine, theirs in zip(one.weights, other.weights, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)
    assert not np.allclose(together[0].last.outputs, together[2].last.outputs)


@pytest.mark.parametrize("family", ["dense", "convolutional"])
def test_records_say_what_the_instruments_say(family):
    (run,) = train([PLAN.with_(family=family)])
    network, record = run.network(), run.last
    inputs = torch.as_tensor(X)
    with torch.no_grad():
        outputs = network(inputs)[:, 0].numpy()
    np.testing.assert_allclose(record.outputs, outputs, rtol=1e-9)
    norms = classifier_norms(
        network, (inputs, torch.as_tensor(SIGNS)), norm_mode="eval"
    )
    np.testing.assert_allclose(norms.layer_norms, record.folded_norms, rtol=1e-8)
    np.testing.assert_allclose(norms.raw_norms, record.layer_norms, rtol=1e-8)
    np.testing.assert_allclose(norms.rho, record.folded_rho, rtol=1e-8)
    np.testing.assert_allclose(norms.equilibrium_ratio, record.equilibrium_ratio)
    assert record.train_error == norms.error_rate
    with torch.no_grad():
        held = network(TWO.test_inputs)[:, 0] * TWO.test_labels <= 0
    assert record.test_wrong.tolist() == held.tolist()
    assert record.test_error == held.double().mean()
    np.testing.assert_allclose(record.rho * record.f, outputs, rtol=1e-9)
    np.testing.assert_allclose(record.margins * record.rho, SIGNS * outputs, rtol=1e-9)
    np.testing.assert_allclose(
        record.equilibrium, (SIGNS * record.f).sum() / (record.f**2).sum()
    )


def test_margins_of_several_classes_are_over_the_next():
    (run,) = train([PLAN.with_(outputs=3)], THREE)
    g = run.last.outputs
    wanted = [
        row[c] - np.delete(row, c).max() for row, c in zip(g, CLASSES, strict=True)
    ]
    np.testing.assert_allclose(run.last.output_margins, wanted, rtol=1e-12)
    assert run.last.train_error == np.mean(np.array(wanted) <= 0)


def test_test_samples_take_statistics_of_the_training_samples():
    (run,) = train([PLAN])
    with torch.no_grad():
        g = run.network()(torch.as_tensor(X[:20] + 0.1))[:, 0].numpy()
    assert run.last.test_error == np.mean(SIGNS[:20] * g <= 0)
    np.testing.assert_allclose(run.last.test_loss, np.mean((g - SIGNS[:20]) ** 2))
    (without,) = train([PLAN], LabelledSamples(X, SIGNS))
    assert np.isnan(without.last.test_loss)


def test_networks_given_are_trained_in_place_from_where_they_are():
    network = build(PLAN, seed=5, dtype=torch.float64)
    before = [w.detach().clone() for w in network.weights]
    (run,) = train([network], seeds=[3])
    for weight, start, end in zip(network.weights, before, run.weights, strict=True):
        torch.testing.assert_close(weight.detach().flatten(1), end)
        assert not torch.equal(weight.detach(), start)
    np.testing.assert_allclose(run.records[0].layer_norms, 2.0, rtol=1e-12)


def test_any_optimizer_may_train_a_module():
    def adam(network):
        return torch.optim.Adam(network.parameters(), lr=0.01)

    (run,), (other,) = train([PLAN], way="plain", optimizer=adam), train([PLAN])
    assert run.last.train_loss < run.records[0].train_loss
    assert not np.allclose(run.last.outputs, other.last.outputs)


def test_reports_see_every_record():
    told = []
    train(
        [PLAN, PLAN],
        record_epochs=[0, 2],
        report=lambda place, record: told.append((place, record.epoch)),
    )
    assert sorted(told) == [(p, e) for p in (0, 1) for e in (0, 2, 3)]


def test_what_diverges_is_told_and_touches_no_other():
    mild = ClassifierRecipe(epochs=40, batch_size=16, rate=0.01)
    wild = ClassifierRecipe(epochs=40, batch_size=16, rate=1.0, weight_decay=1e3)
    plan = PLAN.with_(norm="none", start_norm=9.0)
    calm, burst = train([plan, plan], recipe=[mild, wild], seeds=[0, 0])
    (alone,) = train([plan], recipe=mild)
    assert (calm.status, burst.status) == ("finished", "diverged")
    np.testing.assert_allclose(calm.last.outputs, alone.last.outputs, rtol=1e-9)
    assert len(burst.records) < len(calm.records)


def test_a_time_limit_stops_runs_with_what_they_have():
    (run,) = train([PLAN], recipe=ClassifierRecipe(epochs=50, batch_size=16), limit_s=0)
    assert run.status == "stopped"
    assert run.last.epoch == 1


def test_epochs_are_evenly_spaced_in_logarithm():
    epochs = log_epochs(1000)
    assert epochs[:3] == (0, 1, 2)
    assert epochs[-1] == 1000
    assert 30 <= len(epochs) <= 41
    assert log_epochs(1) == (0, 1)


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        (np.where(SIGNS > 0, 2.0, -1.0), r"labels hold \[-1.0, 2.0\] .* wants -1 and"),
        (np.ones(50), "all labels are 1 .* at least 2"),
        (np.full(50, np.nan), "labels hold NaN"),
        (SIGNS[:40], "pass one label per sample"),
    ],
)
def test_labels_that_are_none_are_refused(labels, hint):
    with pytest.raises(DataError, match=hint) as caught:
        train([PLAN], LabelledSamples(X, labels))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("labels", [CLASSES + 0.5, CLASSES - 1, CLASSES + 1])
def test_classes_that_are_no_places_are_refused(labels):
    with pytest.raises(DataError, match="whole numbers from 0 to 2"):
        train([PLAN.with_(outputs=3)], LabelledSamples(X, labels))


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"inputs": np.where(X > 2, np.nan, X)}, "inputs hold NaN"),
        ({"inputs": X.astype(int)}, "pass floating numbers"),
        ({"test_inputs": None}, "pass both or neither"),
        ({"inputs": [["a"]] * 50}, "holds no numbers"),
        ({"labels": None}, "labels are None"),
    ],
)
def test_samples_that_are_none_are_refused(change, hint):
    given = {"inputs": X, "labels": SIGNS, "test_inputs": X, "test_labels": SIGNS}
    with pytest.raises(DataError, match=hint):
        LabelledSamples(**{**given, **change})


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 1.5}, "batch_size is 1.5"),
        ({"rate": 0}, "rate is 0"),
        ({"momentum": 1}, "momentum is 1"),
        ({"weight_decay": -1}, "weight_decay is -1"),
        ({"loss": "squares"}, "did you mean 'square'"),
        ({"label_noise": -1}, "label_noise is -1"),
        ({"label_noise": 0.1, "loss": "cross_entropy"}, "targets are classes"),
    ],
)
def test_recipes_that_cannot_be_followed_are_refused(change, hint):
    with pytest.raises((ConfigError, UnknownNameError), match=hint):
        ClassifierRecipe(**change)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"seeds": [0, 1]}, "1 models, 1 recipes and 2 seeds"),
        ({"models": []}, "0 models"),
        ({"recipe": ClassifierRecipe(batch_size=64)}, "50 samples do not fill"),
        ({"models": [PLAN.with_(inputs=(7,))]}, r"blueprint of inputs \(7,\)"),
        ({"way": "stack"}, "did you mean 'stacked'"),
        ({"optimizer": torch.optim.SGD}, "pass way='plain'"),
        (
            {"models": [ShortcutBlueprint(width=2, depth=2)]},
            "models is",
        ),
        ({"dtype": torch.int64}, "dtype is torch.int64"),
        ({"dtype": "float32"}, "dtype is 'float32'"),
        ({"device": "abacus"}, "device 'abacus' is not there"),
        ({"device": "cuda:99"}, "device 'cuda:99' is not there"),
        ({"models": None}, "models is None"),
        ({"samples": None}, "samples is None"),
        ({"recipe": None}, "recipe is None"),
        ({"recipe": [None]}, "recipe is"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seeds": ["a"]}, "seeds is .'a'"),
        ({"at_once": -1}, "at_once is -1"),
    ],
)
def test_calls_that_make_no_sense_are_refused(change, hint):
    usual = {"models": [PLAN], "samples": TWO, "recipe": RECIPE, "seeds": [0]}
    with pytest.raises((ConfigError, UnknownNameError), match=hint):
        train_classifiers(**{**usual, **change})


def test_label_noise_is_drawn_anew_and_moves_no_neighbour():
    """Noise of a run is its own; rivals: noise held over epochs, or shared."""
    plans = [PLAN, PLAN, PLAN.with_(start_norm=1.0)]
    recipes = [
        ClassifierRecipe(epochs=3, batch_size=16, label_noise=noise)
        for noise in (0.5, 0.0, 2.0)
    ]
    seeds = [3, 3, 3]
    together = train(plans, TWO, recipes, seeds)
    apart = train(plans, TWO, recipes, seeds, way="plain")
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_allclose(one.last.outputs, other.last.outputs, rtol=1e-9)
    (quiet,) = train([PLAN], TWO, ClassifierRecipe(epochs=3, batch_size=16), [3])
    np.testing.assert_array_equal(together[1].last.outputs, quiet.last.outputs)
    assert abs(together[0].last.outputs - quiet.last.outputs).max() > 1e-3
    drawn = [label_signs([3, 4], epoch, 50, 3) for epoch in (1, 2)]
    assert drawn[0].shape == (2, 50, 3)
    assert np.unique(drawn[0]).tolist() == [-1, 1]
    for other in (drawn[1][0], drawn[0][1]):
        assert 0.3 < np.mean(drawn[0][0] == other) < 0.7
