"""Repairs from outside: of calls of torch, of losses, of steps, and of any training."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.known_failures.cases import Case
from tests.known_failures.samples import clouds
from theodolite import survey
from theodolite.survey import CallReplacer, Finding, Survey, advise
from theodolite.survey.advice.general import general_advice
from theodolite.survey.advice.remedy import ANY

GIVEN = ["loss", "optimizer", "step"]
close = partial(torch.testing.assert_close, rtol=1e-6, atol=1e-6)


def code_for(rule, says="", where=(), given=GIVEN, value=1.0, title=""):
    """Return the code of advice for a finding of this rule."""
    asked = {"given": given, "optimizer": "SGD", "loss": "loss", "batch_size": 32}
    result = Survey(title="x", n_parameters=1, blocks=(), measured=(), settings=asked)
    found = Finding(
        rule=rule, severity="sick", title=rule, says=says, quantity="x", value=value,
        above=True, where=where,
    )  # fmt: skip
    return next(a.code for a in advise(result, [found]) if title in a.title)


def repaired(code, **names):
    """Return the names after the code of a piece of advice has run."""
    given = {"model": nn.Identity(), "step": print, "loss": nn.MSELoss()}
    names = {**given, "inputs": torch.zeros(1), **names}
    exec(code, names)
    return names


class Logged(CallReplacer):
    def __init__(self):
        super().__init__()
        self.names = []

    def on_function(self, function, args, kwargs):
        self.names.append(function.__name__)
        made = function(*args, **kwargs)
        return made + 1 if function.__name__ == "relu" else made


def test_a_call_is_replaced_once_however_deep_and_nowhere_else():
    calls, model = Logged(), nn.ReLU()
    calls.inside(model)
    loss = calls.inside(lambda x: model(x).sum())
    step = calls.inside(lambda x: loss(x))
    one = torch.ones(2)
    assert float(step(one)) == float(loss(one)) == 4.0
    assert model(one).tolist() == [2.0, 2.0]
    assert one.relu().tolist() == [1.0, 1.0]
    assert calls.names.count("relu") == 3


def test_replacing_ends_where_a_model_raises():
    class Raising(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    calls, model = Logged(), Raising()
    calls.inside(model)
    with pytest.raises(ValueError, match="no"):
        model(torch.ones(1))
    assert torch.ones(1).relu().tolist() == [1.0]


SCORES = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0, 1, 1])
ENTROPY = functional.cross_entropy
# Rule, a loss that has the fault, outputs and targets, and what the loss should be.
LOSSES = {
    "not-log-probabilities": (
        nn.NLLLoss(),
        (SCORES.softmax(1), LABELS),
        ENTROPY(SCORES, LABELS),
    ),
    "addition-broadcasts": (
        lambda outputs, targets: (outputs[:, :1] - targets).square().mean(),
        (SCORES, SCORES[:, 1]),
        (SCORES[:, 0] - SCORES[:, 1]).square().mean(),
    ),
}


@pytest.mark.parametrize("rule", LOSSES)
def test_a_loss_becomes_what_it_should_be(rule):
    loss, pair, wanted = LOSSES[rule]
    assert abs(float(loss(*pair) - wanted)) > 1e-3
    names = repaired(code_for(rule), loss=loss, inputs=LABELS.reshape(2, 3))
    close(names["loss"](*pair), wanted)
    step = names["calls"].inside(lambda: loss(*pair))  # as in a step of the user's own
    close(step(), wanted)


def test_a_term_without_gradient_gets_it():
    layer, x = nn.Linear(1, 1), torch.ones(4, 1)

    def loss(model, batch):
        given = batch.clone().requires_grad_()
        (slope,) = torch.autograd.grad(model(given).square().sum(), given)
        return slope.square().mean()

    with pytest.raises(RuntimeError, match="does not require grad"):
        loss(layer, x).backward()
    names = repaired(code_for("loss-term-without-gradient"), model=layer, loss=loss)
    names["loss"](layer, x).backward()
    assert layer.weight.grad.abs() > 0


def test_minus_a_loss_is_turned_round():
    loss = repaired(
        code_for("loss-below-zero", value=-1.0),
        loss=lambda outputs, targets: -ENTROPY(outputs, targets),
    )["loss"]
    close(loss(SCORES, LABELS), ENTROPY(SCORES, LABELS))


class Dropped(nn.Module):
    def forward(self, x):
        return functional.dropout(x, 0.5)


def test_dropout_in_eval_mode_ends():
    model = repaired(code_for("dropout-in-evaluation"), model=Dropped())["model"]
    assert not torch.equal(model(SCORES), SCORES)
    close(model.eval()(SCORES), SCORES)


def test_positions_are_added_and_given_to_the_optimizer():
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 2))
    tokens = torch.randint(7, (3, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model(tokens)
    repaired(code_for("order-ignored"), model=model, inputs=tokens, optimizer=optimizer)
    assert not torch.equal(model(tokens), before)
    new = optimizer.param_groups[-1]["params"]
    assert [tuple(p.shape) for p in new] == [(5, 4)]


def test_labels_of_a_loss_are_shifted_once():
    model = nn.Sequential(nn.Embedding(3, 3))
    tokens = torch.tensor([[0, 1, 2, 0, 1]])
    loss = lambda scores, labels: ENTROPY(scores[:, :3].mT, labels)  # noqa: E731
    once = repaired(code_for("labels-shifted-twice"), model=model, loss=loss)["loss"]
    close(once(model(tokens), tokens[:, 2:]), loss(model(tokens), tokens[:, 1:4]))


def learner(rate):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, torch.optim.SGD(model.parameters(), lr=rate)


def test_a_step_that_never_updates_gets_a_plain_one_that_does():
    (model, optimizer), batches = learner(0.1), clouds(32)
    loss = nn.CrossEntropyLoss()

    def step(batch):
        optimizer.zero_grad()
        loss(model(batch[0]), batch[1]).backward()

    result = survey(
        model, batches, loss=loss, optimizer=optimizer, step=step, progress=False,
        measures=("checks",),
    )  # fmt: skip
    first = result.advice[0]
    assert (first.rule, first.kind) == ("step-learns-less", "step")
    names = {"model": model, "optimizer": optimizer, "step": step, "loss": loss}
    exec(first.code, names)
    before = loss(model(batches[0][0]), batches[0][1]).item()
    for _ in range(20):
        names["step"](batches[0])
    assert loss(model(batches[0][0]), batches[0][1]).item() < 0.7 * before


def test_general_changes_are_shown_only_where_they_clearly_help():
    batches, loss = clouds(32), nn.CrossEntropyLoss()
    model, optimizer = learner(1e-5)
    given = {"loss": loss, "optimizer": optimizer}
    result = survey(model, batches, tries=False, progress=False, **given)
    before = [p.clone() for p in model.parameters()]
    best = general_advice(result, Case(model=model, batches=batches, **given))
    assert best[0].title == "Use Adam at a rate of 0.001"
    assert all(a.trial.helped == "yes" for a in best)
    assert all(map(torch.equal, before, model.parameters()))
    model, optimizer = learner(0.3)
    given = {"loss": loss, "optimizer": optimizer}
    assert survey(model, batches, progress=False, **given).advice == ()


def test_what_is_about_speed_alone_is_no_advice(tmp_path):
    (model, optimizer), loss = learner(0.01), nn.CrossEntropyLoss()
    given = {"loss": loss, "optimizer": optimizer, "progress": False}
    result = survey(model, clouds(32), **given)
    assert (result.findings, result.advice) == ((), ())
    first = result.faster[0]
    assert first.title == "Use ten times the learning rate"
    assert first.trial.helped == "yes"
    short, full = result.text(), result.text(full=True)
    for text in (short, full):
        assert "nothing wrong found" in text
        line = text[text.index("  Could be faster: Use ten times the learning rate") :]
        assert "optional; tried: after 120 steps" in " ".join(line.split())
        assert "\n→ " not in text
    assert short.count("Could be faster") == 1
    assert "group[name] *= 10.0" in full
    result.to_json(tmp_path / "survey.json")
    assert Survey.from_json(tmp_path / "survey.json").faster == result.faster
    result.to_html(tmp_path / "survey.html")
    page = (tmp_path / "survey.html").read_text()
    assert 'id="faster"' in page
    assert 'id="advice"' not in page
    # A training with a fault gets the same change as advice.
    (model, optimizer) = learner(1e-5)
    sick = survey(model, clouds(32), loss=loss, optimizer=optimizer, progress=False)
    assert sick.advice
    assert not sick.faster
    assert "Could be faster" not in sick.text(full=True)


def test_general_changes_run_without_an_optimizer_and_leave_what_is_frozen():
    model, _ = learner(0.1)
    model[0].requires_grad_(False)
    frozen = model[0].weight.clone()
    result = survey(model, clouds(32), progress=False, tries=False)
    any_fault = Finding(
        rule=ANY, severity="warning", title="", says="", quantity="", above=True,
        where=("2",),
    )  # fmt: skip
    changes = advise(result, [any_fault])
    assert len(changes) > 3
    for each in changes:
        exec(each.code, {"model": model, "inputs": clouds(32)[0][0]})
    assert torch.equal(model[0].weight, frozen)


def test_two_networks_with_their_own_step_get_no_general_changes():
    """The generator's loss alone would say that any change of its rate helps."""
    torch.manual_seed(0)
    made, judge = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU())
    judge.append(nn.Linear(8, 1))
    of_made = torch.optim.Adam(made.parameters(), lr=1e-3)
    of_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
    batches = [torch.randn(32, 4) for _ in range(4)]
    bce = functional.binary_cross_entropy_with_logits

    def loss(model, batch):
        scores = judge(model(batch))
        return bce(scores, torch.ones_like(scores))

    def step(batch):
        of_judge.zero_grad()
        scores = judge(made(batch).detach()), judge(batch[:, :2])
        targets = torch.zeros_like(scores[0]), torch.ones_like(scores[1])
        bce(torch.cat(scores), torch.cat(targets)).backward()
        of_judge.step()
        of_made.zero_grad()
        loss(made, batch).backward()
        of_made.step()

    before = [p.clone() for p in judge.parameters()]
    result = survey(
        made, batches, loss=loss, optimizer=of_made, step=step, progress=False
    )
    assert all(each.rule != ANY for each in result.advice)
    assert all(map(torch.equal, before, judge.parameters()))
