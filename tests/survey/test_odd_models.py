"""Surveys of models and data that most people never meet."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close
from torch.utils.data import DataLoader, Dataset

from theodolite.core import SubjectError
from theodolite.survey import survey

QUICK = {
    "measures": ["checks", "map", "signal"],
    "effort": "thorough",
    "progress": False,
}


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (8,), generator=generator)
    return torch.randn(8, 6, generator=generator), labels


def scores():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def rules(result):
    return {finding.rule for finding in result.findings}


def test_a_model_without_parameters_is_surveyed(batch):
    result = survey(nn.ReLU(), (batch[0][:, :3], batch[1]), **QUICK)
    assert result.n_parameters == 0
    assert result.settings["device"] == "cpu"


def test_a_forward_that_raises_is_told_in_a_sentence(batch):
    class Broken(nn.Linear):
        def forward(self, inputs):
            raise ValueError("this never works")

    with pytest.raises(SubjectError, match=r"Broken does not run .*this never works"):
        survey(Broken(6, 3), batch, **QUICK)


def test_a_batch_without_samples_is_refused(batch):
    with pytest.raises(SubjectError, match="no samples"):
        survey(scores(), (batch[0][:0], batch[1][:0]), **QUICK)


def test_probabilities_are_right_where_no_softmax_is_taken(batch):
    inputs, labels = batch
    model = scores().append(nn.Softmax(1))
    rows = functional.one_hot(labels, 3).float()
    assert not rules(survey(model, (inputs, rows), **QUICK)) & {
        "probabilities-as-logits"
    }
    result = survey(model, batch, loss=nn.CrossEntropyLoss(), **QUICK)
    assert "probabilities-as-logits" in rules(result)


def test_infinite_inputs_are_told_and_no_weights_are_redrawn(batch):
    inputs = batch[0].clone()
    inputs[3, 2] = math.inf
    result = survey(scores(), (inputs, batch[1]), **QUICK)
    (cause,) = result.findings
    assert cause.rule == "inputs-not-finite"
    (told,) = (f for f in cause.symptoms if f.rule == "not-finite")
    assert told.where == ("0",)
    assert not [advice for advice in result.advice if advice.rule == "not-finite"]


class Named(Dataset):
    """Samples by name, and how many were read."""

    def __init__(self, batch, copies=1):
        self.batch, self.copies, self.read = batch, copies, 0

    def __len__(self):
        return len(self.batch[0]) * self.copies

    def __getitem__(self, place):
        self.read += 1
        place %= len(self.batch[0])
        return {"inputs": self.batch[0][place], "labels": self.batch[1][place]}


class ByName(nn.Module):
    """Takes inputs by name; with ``own``, labels too, and computes its loss."""

    def __init__(self, own):
        super().__init__()
        self.scores, self.own = scores(), own

    def forward(self, inputs, labels=None):
        outputs = {"logits": self.scores(inputs)}
        if self.own and labels is not None:
            outputs["loss"] = 3 * functional.cross_entropy(outputs["logits"], labels)
        return outputs


@pytest.mark.parametrize(("own", "factor"), [(True, 3.0), (False, 1.0)])
def test_a_loader_of_mappings_with_labels_finds_its_loss(batch, own, factor):
    loader = DataLoader(Named(batch), batch_size=8)
    result = survey(ByName(own), loader, **QUICK)
    wanted = factor * functional.cross_entropy(scores()(batch[0]), batch[1]).item()
    assert_close(result.number("loss")["value"], wanted, rtol=1e-5, atol=0.0)
    assert ("own loss" in result.inputs) is own


def test_of_a_long_loader_only_the_beginning_is_read(batch):
    samples = Named(batch, copies=400)
    survey(ByName(own=True), DataLoader(samples, batch_size=8), **QUICK)
    assert samples.read < 8 * 100
