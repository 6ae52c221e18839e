"""Many classifiers at once: each as a plain loop alone would have trained it."""

import math
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from theodolite.core import ConfigError, DataError, PreactivationBlueprint, derive
from theodolite.instruments import preserve, trace
from theodolite.networks import build
from theodolite.training import Images, ProbeWarning, Recipe, train_many

RECIPE = Recipe(epochs=3, batch_size=8, rate=0.05, milestones=(0.4, 0.7))


def some_images(device="cpu"):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (44, 1, 8, 8), generator=generator, dtype=torch.uint8)
    labels = torch.randint(4, (44,), generator=generator)
    return Images(
        pixels[:36],
        labels[:36],
        pixels[36:],
        labels[36:],
        torch.tensor([127.0]),
        torch.tensor([74.0]),
    ).to(device)


def network(seed, shortcut=2, dtype=torch.float64):
    plan = PreactivationBlueprint(
        depth=14, shortcut=shortcut, width=3, stages=1, channels=1, classes=4
    )
    return build(plan, seed=seed, dtype=dtype)


def roll(images, generator):
    """A visible augmentation that draws from the run's generator."""
    amount = int(torch.randint(4, (), generator=generator))
    return images.roll(amount, dims=3)


def plain_loop(model, images, recipe, seed, augment=None):
    """One network by torch's own optimiser, with nothing shared or fast."""
    generator = torch.Generator().manual_seed(derive(seed, "images"))
    norms = [p for name, p in model.named_parameters() if "norm" in name]
    others = [p for name, p in model.named_parameters() if "norm" not in name]
    decay = recipe.weight_decay if recipe.decay_norms else 0.0
    optimizer = torch.optim.SGD(
        [{"params": others}, {"params": norms, "weight_decay": decay}],
        lr=recipe.rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        nesterov=recipe.nesterov,
        foreach=False,
    )
    steps = len(images.labels) // recipe.batch_size
    done, total = 0, steps * recipe.epochs
    readings = []
    for _ in range(recipe.epochs):
        order = torch.randperm(len(images.labels), generator=generator)
        order = order[: steps * recipe.batch_size]
        inputs, labels = images.inputs[order], images.labels[order]
        inputs = inputs if augment is None else augment(inputs, generator)
        losses = []
        for batch, answers in zip(
            inputs.split(recipe.batch_size),
            labels.split(recipe.batch_size),
            strict=True,
        ):
            passed = sum(done / total >= m for m in recipe.milestones)
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * recipe.factor**passed
            loss = functional.cross_entropy(model((batch.double() - 127) / 74), answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            done += 1
        model.eval()
        with torch.no_grad():
            scores = model((images.test_inputs.double() - 127) / 74)
        model.train()
        error = (scores.argmax(1) != images.test_labels).double().mean().item()
        readings.append((sum(losses) / steps, error))
    return readings


@pytest.mark.parametrize(
    "changes",
    [
        {"decay_norms": False, "weight_decay": 0.1},
        {"nesterov": False},
        {"nesterov": False, "momentum": 0.0},
    ],
    ids=["nesterov, norms without decay", "momentum", "plain"],
)
@pytest.mark.parametrize("augment", [None, roll])
def test_several_at_once_equal_a_plain_loop(augment, changes):
    recipe = Recipe(**{**vars(RECIPE), **changes})
    images = some_images()
    jobs = [(0, 1), (1, 2), (2, 4)]
    fast = [network(seed, n) for seed, n in jobs]
    done = train_many(fast, images, recipe=recipe, seeds=[s for s, _ in jobs],
                      augment=augment, at_once=2)  # fmt: skip
    for (seed, n), trained, result in zip(jobs, fast, done, strict=True):
        slow = network(seed, n)
        losses = plain_loop(slow, images, recipe, seed, augment)
        assert result.status == "finished"
        for reading, (loss, error) in zip(result.history[1:], losses, strict=True):
            assert reading["train_loss"] == pytest.approx(loss, rel=1e-9)
            assert reading["test_error"] == error
        for a, b in zip(trained.parameters(), slow.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-13)
        for a, b in zip(trained.buffers(), slow.buffers(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-13)


class Explosive(nn.Module):
    """A network that breaks at its seventh training step, by NaN or by an error."""

    def __init__(self, how):
        super().__init__()
        self.inner, self.how, self.calls = network(0), how, 0

    def forward(self, x):
        self.calls += self.training
        if self.calls > 6 and self.how == "raise":
            raise ValueError("broken on purpose")
        factor = math.nan if self.calls > 6 else 1.0
        return self.inner(x) * factor


def cannot_be_built():
    raise ValueError("no such network")


@pytest.mark.parametrize("at_once", [None, 3])
def test_one_bad_run_does_not_poison_the_others(at_once):
    images, seen = some_images(), []
    models = [Explosive("nan"), lambda: network(1), Explosive("raise"), cannot_be_built]
    done = train_many(models, images, recipe=RECIPE, seeds=range(4), at_once=at_once,
                      report=lambda place, reading: seen.append(place))  # fmt: skip
    assert [r.status for r in done] == ["diverged", "finished", "failed", "failed"]
    assert done[2].error == "ValueError: broken on purpose"
    assert done[3].error == "ValueError: no such network"
    assert [len(r.history) for r in done] == [3, 4, 2, 0]
    alone = train_many([network(1)], images, recipe=RECIPE, seeds=[1])[0]
    for a, b in zip(done[1].history, alone.history, strict=True):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}
    assert [seen.count(place) for place in range(3)] == [3, 4, 2]


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 4))

    def forward(self, x):
        return self.inner(x)


def test_what_a_network_draws_does_not_depend_on_its_company():
    images, state = some_images(), torch.get_rng_state()
    losses = {}
    for at_once in (1, 3):
        models = [Noisy() for _ in range(3)]
        torch.set_rng_state(state)
        done = train_many(
            models, images, recipe=RECIPE, seeds=[0, 1, 2], at_once=at_once
        )
        assert torch.equal(torch.get_rng_state(), state)
        losses[at_once] = [run.history[-1]["train_loss"] for run in done]
    assert losses[1] == losses[3]
    assert len(set(losses[1])) == 3


def test_a_measurement_in_another_thread_waits_and_disturbs_no_training():
    images, traces, stop = some_images(), [], threading.Event()
    layer, x = nn.Linear(3, 2), torch.ones(4, 3)
    recipe = Recipe(epochs=20, batch_size=12, rate=0.05)

    def built():  # which measures too, in the thread that trains
        with preserve(layer):
            return Noisy()

    def measure():
        while not stop.is_set():
            given = {"loss": nn.MSELoss(), "norm_mode": "eval", "max_matvecs": 6}
            traces.append(trace(layer, (x, x[:, :2]), **given).trace)

    def trained():
        done = train_many([built, built], images, recipe=recipe, seeds=[0, 1])
        return [(run.error, without_seconds(run)) for run in done]

    alone = trained()
    other = threading.Thread(target=measure)
    other.start()
    try:
        together = trained()
    finally:
        stop.set()
        other.join(60)
    assert together == alone
    assert len(set(traces)) == 1


def test_the_time_limit_stops_what_still_runs():
    calls = []

    def probe(model):
        calls.append(model)
        return {"first": float(model.stem.weight.detach().sum())}

    done = train_many([network(0), network(1)], some_images(), recipe=RECIPE,
                      seeds=[0, 1], probe=probe, at_once=1, limit_s=0.0)  # fmt: skip
    assert [r.status for r in done] == ["stopped", "stopped"]
    done = train_many([network(0)], some_images(), recipe=RECIPE, seeds=[0],
                      probe=probe)[0]  # fmt: skip
    assert [reading["epoch"] for reading in done.history] == [0, 1, 2, 3]
    assert len(calls) == 4
    assert done.history[0]["first"] != done.history[1]["first"]
    assert "train_loss" not in done.history[0]


def test_the_rate_falls_at_the_paper_s_epochs():
    recipe = Recipe(epochs=200)
    rates = [recipe.rate_at(epoch / 200) for epoch in range(200)]
    assert rates[:80] == [0.1] * 80
    assert rates[80:121] == pytest.approx([0.01] * 41)
    assert rates[121:] == pytest.approx([0.001] * 79)


@pytest.mark.parametrize(
    ("changes", "seeds", "match"),
    [
        ([{}, {"precision": "bf16"}], [0, 1], "precisions bf16, float32"),
        ([{"precision": "bf16"}] * 2, [0, 1], "wants CUDA"),
        ([{}, {"batch_size": 64}], [0, 1], "smaller batch_size"),
        ([{}], [0, 1], "2 models and 1 recipes"),
        ([{}, {}], [0], "one seed per model"),
    ],
)
def test_what_cannot_run_is_refused(changes, seeds, match):
    recipes = [Recipe(**{**vars(RECIPE), **change}) for change in changes]
    models = [network(0), network(1)]
    with pytest.raises(ConfigError, match=match):
        train_many(models, some_images(), recipe=recipes, seeds=seeds)


def test_networks_of_one_call_may_have_recipes_of_their_own():
    images = some_images()
    recipes = [Recipe(**{**vars(RECIPE), "rate": rate}) for rate in (0.05, 0.2, 0.05)]
    models = [network(0), network(0), network(1)]
    done = train_many(models, images, recipe=recipes, seeds=[0, 0, 1])
    for result, how, seed in zip(done, recipes, (0, 0, 1), strict=True):
        alone = train_many([network(seed)], images, recipe=how, seeds=[seed])[0]
        assert without_seconds(result) == without_seconds(alone)
    assert done[0].history[-1]["train_loss"] != done[1].history[-1]["train_loss"]


def test_tests_are_made_when_due_and_change_nothing():
    images, recipe = some_images(), Recipe(**{**vars(RECIPE), "test_every": 2})
    often = train_many([network(0)], images, recipe=RECIPE, seeds=[0])[0]
    seldom = train_many([network(0)], images, recipe=recipe, seeds=[0])[0]
    tested = [r["epoch"] for r in seldom.history if "test_error" in r]
    assert tested == [0, 2, 3]
    assert [r["epoch"] for r in seldom.history] == [0, 1, 2, 3]
    for a, b in zip(seldom.history, often.history, strict=True):
        assert {**b, **a, "seconds": 0} == {**b, "seconds": 0}
    with pytest.raises(ConfigError, match="test_every is 0"):
        Recipe(epochs=1, test_every=0)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"rate": 0}, "rate is 0: pass a positive"),
        ({"rate": math.nan}, "rate is nan"),
        ({"rate": math.inf}, "rate is inf"),
        ({"rate": "high"}, "rate is 'high'"),
        ({"factor": -0.1}, "factor is -0.1"),
        ({"momentum": 1.0}, "from 0 to below 1"),
        ({"momentum": -0.1}, "from 0 to below 1"),
        ({"momentum": math.nan}, "from 0 to below 1"),
        ({"weight_decay": -1e-4}, "weight_decay is -0.0001"),
        ({"weight_decay": math.inf}, "weight_decay is inf"),
        ({"epochs": 0}, "epochs is 0"),
        ({"precision": "bf61"}, "did you mean 'bf16'"),
        ({"epochs": 1.5}, "epochs is 1.5"),
        ({"epochs": True}, "epochs is True"),
        ({"batch_size": 8.0}, "batch_size is 8.0"),
    ],
)
def test_a_recipe_that_means_nothing_is_refused(change, match):
    with pytest.raises((ConfigError, LookupError), match=match):
        Recipe(**{"epochs": 1, **change})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"labels": torch.zeros(3, dtype=torch.int64)}, "36 inputs and 3 labels"),
        ({"test_labels": torch.zeros(3, dtype=torch.int64)}, "8 test_inputs and 3"),
        (
            {
                "test_inputs": torch.zeros(0, 1, 8, 8),
                "test_labels": torch.zeros(0, dtype=torch.int64),
            },
            "at least one image",
        ),
        ({"inputs": torch.full((36, 1, 8, 8), math.nan)}, "2304 of the 2304"),
        ({"scale": torch.tensor([math.inf])}, "numbers of scale"),
    ],
)
def test_images_that_cannot_be_trained_on_are_refused(change, match):
    with pytest.raises(DataError, match=match):
        Images(**{**vars(some_images()), **change})


def without_seconds(result):
    return [{**reading, "seconds": 0} for reading in result.history]


def test_a_probe_leaves_the_training_as_it_was():
    def spoils(model):
        torch.rand(7)
        model(torch.ones(2, 1, 8, 8, dtype=torch.float64)).sum().backward()
        model.eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        return {"seen": 1.0}

    models = [network(0), network(0)]
    given = {"recipe": RECIPE, "seeds": [0]}
    alone = train_many(models[:1], some_images(), **given)[0]
    torch.manual_seed(3)
    watched = train_many(models[1:], some_images(), probe=spoils, **given)[0]
    state = torch.get_rng_state()
    torch.manual_seed(3)
    assert torch.equal(state, torch.get_rng_state())
    assert all(reading.pop("seen") == 1.0 for reading in watched.history)
    assert without_seconds(watched) == without_seconds(alone)
    for a, b in zip(*(m.state_dict().values() for m in models), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("what", ["probe", "report"])
def test_what_raises_is_retired_with_one_warning(what):
    calls = []

    def fails(*_):
        calls.append(1)
        raise ValueError("not today")

    given: dict[str, Any] = {"recipe": RECIPE, "seeds": [0, 1]}
    alone = train_many([network(0), network(1)], some_images(), **given)
    given |= {what: fails}
    with pytest.warns(ProbeWarning, match=f"the {what} raised ValueError") as caught:
        done = train_many([network(0), network(1)], some_images(), **given)
    assert len(caught) == 1
    assert len(calls) == 2  # once a network
    for mine, theirs in zip(done, alone, strict=True):
        assert mine.status == "finished"
        assert mine.retired == {what: "ValueError: not today"}
        assert without_seconds(mine) == without_seconds(theirs)


@pytest.mark.gpu
def test_graphs_on_cuda_equal_the_plain_loop():
    images = some_images("cuda")
    models = [network(seed, n) for seed, n in ((0, 1), (1, 2), (2, 3))]
    done = train_many(models, images, recipe=RECIPE, seeds=[0, 1, 2], augment=roll)
    for seed, (result, model) in enumerate(zip(done, models, strict=True)):
        assert result.graphed, result.error
        slow = network(seed, seed + 1)
        losses = plain_loop(slow, some_images(), RECIPE, seed, roll)
        for reading, (loss, _) in zip(result.history[1:], losses, strict=True):
            assert reading["train_loss"] == pytest.approx(loss, rel=1e-7)
        for a, b in zip(model.parameters(), slow.parameters(), strict=True):
            torch.testing.assert_close(a.cpu(), b, rtol=1e-6, atol=1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_low_precision_on_cuda_learns_and_stays_near(precision):
    images = some_images("cuda")
    recipe = Recipe(**{**vars(RECIPE), "precision": precision})
    models = [network(0, dtype=torch.float32) for _ in range(3)]
    done = train_many(models, images, recipe=recipe, seeds=[0, 0, 0], at_once=3)
    exact = plain_loop(network(0), some_images(), RECIPE, 0)
    for result in done:
        assert result.graphed, result.error
        assert result.history[1]["train_loss"] == pytest.approx(exact[0][0], rel=0.05)


def test_the_probe_reads_at_the_steps_asked_for():
    images = some_images()
    steps = len(images.labels) // RECIPE.batch_size
    asked = (0, 1, steps, steps + 1)
    done = train_many([network(0)], images, recipe=RECIPE, seeds=[0],
                      probe_steps=asked,
                      probe=lambda model: {"seen": 1.0})[0]  # fmt: skip
    read = [reading["step"] for reading in done.history if "seen" in reading]
    assert read == sorted(set(asked))
    plain = train_many([network(0)], images, recipe=RECIPE, seeds=[0])[0]
    ends = [r for r in done.history if r["epoch"] == int(r["epoch"])]
    assert [r["step"] for r in plain.history] == [r["step"] for r in ends]
    assert [r["test_loss"] for r in plain.history] == [r["test_loss"] for r in ends]
