"""Causes are listed before what they cause, and advice is tried before it is shown."""

import copy

import pytest
import torch
from torch import nn

from tests.survey.cases import done, row
from theodolite import survey
from theodolite.survey import Survey, advise, find
from theodolite.survey.advice.applying import Guard, Treated, runs
from theodolite.survey.checks.check import WRITTEN
from theodolite.survey.run.causes import Look, causes_first

CHECKED = ("checks", "map", "signal", "units", "norms")


def clouds(classes=3, size=32, n=4):
    x = torch.randn(size * n, 8, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long() + (classes > 2) * (x[:, 1] > 0).long()
    return [(x[i : i + size], y[i : i + size]) for i in range(0, size * n, size)]


def quadrants():
    """Return classes that no linear network tells apart."""
    batches = clouds(size=256)
    return [(x, (x[:, 0] * x[:, 1] > 0).long()) for x, _ in batches]


def deep(depth=6):
    torch.manual_seed(0)
    layers = [nn.Linear(8, 32), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(32, 32), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(32, 3))


def surveyed(model, batches=None, optimizer=None, **settings):
    settings = {"measures": CHECKED, "loss": nn.CrossEntropyLoss(), **settings}
    given = clouds() if batches is None else batches
    return survey(model, given, optimizer=optimizer, progress=False, **settings)


def test_of_one_bad_bias_vector_the_cause_is_first_and_the_rest_are_its_symptoms():
    model = deep()
    nn.init.constant_(model[2].bias, -20.0)
    before = copy.deepcopy(model.state_dict())
    listed = surveyed(model, tries=False)
    assert [f.rule for f in listed.findings].index("dead-units") == 3
    assert len(listed.findings) == 7
    result = surveyed(model)
    (finding,) = result.findings
    assert (finding.rule, finding.where) == ("biases-shut-units", ("2",))
    assert finding.severity == "sick"
    assert {f.rule for f in finding.symptoms} == {
        f.rule for f in listed.findings if f.rule != "biases-shut-units"
    }
    assert "    symptoms: The signal vanishes with depth; " in str(result)
    assert "biases" in result.advice[0].title
    assert {advice.rule for advice in result.advice} == {"biases-shut-units"}
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    (again,) = Survey.from_dict(result.to_dict()).findings
    assert [f.rule for f in again.symptoms] == [f.rule for f in finding.symptoms]


def test_nan_in_the_inputs_is_the_cause_of_all_other_nan():
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    batches = [(x.masked_fill(x > 2, torch.nan), y) for x, y in clouds()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (first,) = surveyed(model, batches, optimizer).findings
    assert first.rule == "inputs-not-finite"
    assert {"not-finite", "nothing-moves"} <= {f.rule for f in first.symptoms}


def a_survey(*rules, mild=()):
    """Return a survey in which checks fired, each with a repair that can be run."""
    labels = {"above": True, "where": "", "source": "", "confidence": "proved"}
    labels |= {"symptom": False, "repaired_by": "Do", "kind": "mode", "threshold": 0.0}
    repairs = {rule: f"model.{rule.replace('-', '_')} = 1\n" for rule in rules}
    WRITTEN.update(repairs.values())
    rows = [
        row("checks", "check", 1.0, 0.0, rule=rule, title=rule, says=rule,
            severity="warning" if rule in mild else "sick", repair=repairs[rule],
            **labels)
        for rule in rules
    ]  # fmt: skip
    made = Survey(
        title="x", n_parameters=1, blocks=(), measured=(done("checks", rows),)
    )
    return Survey(**{**vars(made), "findings": find(made)})


def looks(cleared, seen):
    """Return a look at copies on which a set of repairs clears a set of rules."""

    def look(advice):
        names = frozenset(each.rule for each in advice)
        seen.append(names)
        return Look(alarms=frozenset("abcd") - cleared.get(names, names), changed=1)

    return look


def test_single_repairs_are_tried_before_pairs_and_no_more_than_pairs():
    seen = []
    look = looks({frozenset("bc"): frozenset("abcd")}, seen)
    findings, _ = causes_first(a_survey(*"abcd"), look, effort=1e9)
    assert [len(names) for names in seen] == [1] * 4 + [2] * 4
    assert [f.rule for f in findings] == ["b", "c"]
    assert [f.rule for f in findings[0].symptoms] == ["a", "d"]
    seen.clear()
    findings, _ = causes_first(a_survey(*"abcd"), looks({}, seen), effort=1e9)
    assert max(map(len, seen)) == 2
    assert [f.rule for f in findings] == list("abcd")


def test_a_cause_is_as_bad_as_the_worst_that_it_clears():
    look = looks({frozenset("a"): frozenset("abcd")}, [])
    (cause,), _ = causes_first(a_survey(*"abcd", mild="a"), look, effort=1e9)
    assert (cause.rule, cause.severity) == ("a", "sick")
    assert [f.rule for f in cause.symptoms] == list("bcd")


def test_the_search_keeps_to_its_effort():
    seen = []
    findings, _ = causes_first(a_survey(*"abcd"), looks({}, seen), effort=130)
    assert len(seen) == 2
    assert [f.rule for f in findings] == list("abcd")


def test_a_repair_that_brings_a_new_alarm_is_no_cause():
    def look(advice):
        return Look(alarms=frozenset({"new"}), changed=1)

    findings, _ = causes_first(a_survey(*"abcd"), look, effort=1e9)
    assert not any(f.symptoms for f in findings)


def test_ctrl_c_in_the_trials_leaves_what_was_measured_and_says_so():
    calls, most = [], [10**9]

    def loss(model, batch):
        calls.append(batch)
        if len(calls) > most[0]:
            raise KeyboardInterrupt
        return nn.functional.cross_entropy(model(batch[0]), batch[1])

    model = deep()
    nn.init.constant_(model[2].bias, -20.0)
    whole = surveyed(model, loss=loss, tries=False)
    before, most[0] = copy.deepcopy(model.state_dict()), len(calls) + 30
    calls.clear()
    stopped = surveyed(model, loss=loss)
    assert stopped.incomplete == ("trials",)
    assert [f.rule for f in stopped.findings] == [f.rule for f in whole.findings]
    assert stopped.advice == whole.advice
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


@pytest.mark.parametrize("given", [True, False])
def test_advice_runs_as_it_is_with_and_without_an_optimizer(given):
    model = deep(20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if given else None
    result = surveyed(model, optimizer=optimizer, tries=False)
    advice = [a for a in advise(result, result.findings) if runs(a)]
    assert len({a.kind for a in advice}) > 1
    for each in advice:
        names = {"model": copy.deepcopy(model), "inputs": clouds()[0][0]}
        exec(each.code, names | ({"optimizer": optimizer} if given else {}))


class Halves(nn.Module):
    """A generator, and a discriminator that is not trained with it."""

    def __init__(self):
        super().__init__()
        self.made, self.judge, self.idle = deep(), nn.Linear(3, 3), nn.Linear(3, 3)
        self.judge.requires_grad_(False)

    def forward(self, x):
        return self.judge(self.made(x))


def test_what_is_frozen_unreached_or_of_another_optimizer_is_never_changed():
    model = Halves()
    nn.init.constant_(model.made[2].bias, -20.0)
    held = [p for name, p in model.made.named_parameters() if not name.startswith("4")]
    optimizer = torch.optim.SGD(held, lr=0.1)
    batch = clouds()[0]
    guard = Guard(model, optimizer, nn.CrossEntropyLoss(), batch)
    for name in ("judge.weight", "idle.weight", "made.4.weight"):
        other = copy.deepcopy(model)
        nn.init.normal_(other.get_parameter(name).data)
        said = guard.refusal(Treated(model=other, optimizer=None))
        assert said == f"it changes {name}, which is not trained here"
    result = surveyed(model, [batch], optimizer)
    advice = [a for a in result.advice if a.kind == "initialisation" and runs(a)]
    assert advice
    for each in advice:
        names = {"model": copy.deepcopy(model), "inputs": batch[0]}
        exec(each.code, names)
        assert not guard.refusal(Treated(model=names["model"], optimizer=optimizer))


def test_a_shared_embedding_is_never_set_to_zero():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens):
            return self.head(self.embed(tokens))

    model, batch = Tied(), (torch.arange(5), torch.arange(5))
    guard = Guard(model, None, nn.CrossEntropyLoss(), batch)
    other = copy.deepcopy(model)
    nn.init.zeros_(other.head.weight)
    assert "other layers share" in guard.refusal(Treated(model=other, optimizer=None))


def test_all_running_statistics_are_collected_again_and_the_setting_is_named():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(),
        nn.Linear(16, 16), nn.BatchNorm1d(16, momentum=0.0), nn.ReLU(),
        nn.Linear(16, 3),
    )  # fmt: skip
    model[1].eval().running_mean.fill_(120.0)
    result = surveyed(model)
    (advice,) = (a for a in result.advice if a.rule == "running-statistics-far")
    assert "4 has momentum 0" in advice.code
    exec(advice.code, {"model": model, "inputs": clouds()[0][0]})
    assert model[1].running_mean.abs().max() < 1
    assert model[4].running_mean.any()
    assert [model[1].training, model[4].training] == [False, True]
    assert [model[1].momentum, model[4].momentum] == [0.1, 0.0]


def test_notes_have_no_advice():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(),
        nn.Linear(16, 3),
    )  # fmt: skip
    nn.init.constant_(model[0].bias[:6].data, -20.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=5e-4)
    result = surveyed(model, optimizer=optimizer, measures=CHECKED)
    noted = {f.rule for f in result.findings if f.severity == "note"}
    assert "dead-units" in noted
    assert result.advice == ()


def listed():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = [nn.Linear(8, 8), nn.Linear(8, 8)], nn.Linear(8, 3)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).relu()
            return self.head(x)

    return Listed(), {}


def columns():
    layers = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)
    batches = [(x, x[:, 0].clone()) for x, _ in clouds()]
    return nn.Sequential(*layers), {"batches": batches, "loss": nn.MSELoss()}


def bounded():
    model, given = columns()
    batches = [(x, y[:, None] - 1) for x, y in given["batches"]]
    return nn.Sequential(model, nn.ReLU()), {**given, "batches": batches}


def normed():
    layers = nn.Linear(8, 1), nn.LayerNorm(1), nn.Linear(1, 16), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(16, 3)), {}


def recurrent():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(2, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.head(self.rnn(x.reshape(-1, 4, 2))[0][:, -1])

    return Last(), {}


MADE = {
    "probabilities-as-logits": lambda: (
        nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3), nn.Softmax(1)),
        {},
    ),
    "not-registered": listed,
    "no-activation": lambda: (
        nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 3)),
        {"batches": quadrants()},
    ),
    "odd-norm-setting": lambda: (
        nn.Sequential(
            nn.Linear(8, 32),
            nn.BatchNorm1d(32, track_running_stats=False),
            nn.ReLU(),
            nn.ReLU(),
            nn.Linear(32, 3),
        ),
        {},
    ),
    "one-module-for-several": lambda: (
        nn.Sequential(*[nn.Linear(8, 8), nn.ReLU()] * 3, nn.Linear(8, 3)),
        {},
    ),
    "shapes-broadcast": columns,
    "targets-out-of-reach": bounded,
    "norm-removes-signal": normed,
    "samples-mixed": recurrent,
}


@pytest.mark.parametrize("rule", MADE)
def test_the_repair_of_a_check_silences_it(rule):
    torch.manual_seed(0)
    model, given = MADE[rule]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    given = {"optimizer": optimizer, **given}
    result = surveyed(model, **given)
    assert rule in {f.rule for f in result.findings}
    advice = next(a for a in result.advice if a.rule == rule)
    inputs = given.get("batches", clouds())[0][0]
    names = {"model": model, "optimizer": optimizer, "inputs": inputs}
    exec(advice.code, names)
    given["optimizer"] = names["optimizer"]
    again = surveyed(names["model"], **given, tries=False)
    assert rule not in {f.rule for f in again.findings}


def test_a_softmax_of_one_unit_becomes_a_sigmoid():
    model, given = columns()
    batches = [(x, (y[:, None] > 0).float()) for x, y in given["batches"]]
    model = nn.Sequential(model, nn.Softmax(dim=1))
    result = surveyed(model, batches, loss=nn.BCELoss())
    assert result.findings[0].rule == "softmax-of-one"
    assert result.advice[0].trial.helped == "yes"
    exec(result.advice[0].code, {"model": model, "inputs": batches[0][0]})
    assert model(batches[0][0]).std() > 0


class Calls(nn.Module):
    """A network with one call that may be wrong, and its right version."""

    def __init__(self, call):
        super().__init__()
        self.call, self.score = call, nn.Linear(6, 1)
        self.mix, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.call(self, x)


def attended(axis):
    def call(self, x):
        weights = torch.softmax(self.score(x), dim=axis)
        return self.head((weights * x).sum(1))

    return call


def crossed(axis):
    def call(self, x):
        weights = (self.mix(x) @ x.mT).softmax(axis)
        return self.head((weights @ x).mean(1))

    return call


def classified(axis):
    return lambda self, x: self.head(x[:, 0]).log_softmax(axis)


def exchanged(right):
    def call(self, x):
        turned = x.transpose(1, 2) if right else x.view(len(x), 6, 5)
        return self.head(torch.relu(turned).mean(2))

    return call


@pytest.mark.parametrize(
    ("rule", "wrong", "right"),
    [
        ("softmax-of-one", attended(-1), attended(1)),
        ("attention-axis", crossed(1), crossed(2)),
        ("softmax-over-batch", classified(0), classified(1)),
        ("axes-mixed-by-view", exchanged(False), exchanged(True)),
    ],
)
def test_a_wrong_call_inside_the_network_is_replaced(rule, wrong, right):
    torch.manual_seed(0)
    model, x = Calls(wrong), torch.randn(16, 5, 6)
    batch = x, torch.arange(16) % 3
    result = surveyed(model, [batch], loss=nn.NLLLoss() if "batch" in rule else None)
    assert rule in {f.rule for f in result.findings}
    advice = next(a for a in advise(result, result.findings) if a.rule == rule)
    sound = copy.deepcopy(model)
    sound.call = right
    exec(advice.code, {"model": model, "inputs": x})
    torch.testing.assert_close(model(x[:7]), sound(x[:7]))
