"""Surveys of models as people have them; each is left as found, bit for bit."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.survey import others
from theodolite.survey import make_subject, survey

QUICK = {"measures": ("map", "signal"), "progress": False}


def surveyed(subject, **settings):
    """Survey a subject; it must be left as found, and its loss must be right."""
    before = others.state(subject.model)
    result = survey(subject, **{**QUICK, **settings})
    assert others.same(before, others.state(subject.model))
    assert not [one for one in result.measured if one.status == "failed"]
    return result


def loss_of(subject):
    """Return the loss of the first batch in eval mode, without the survey."""
    batch = subject.batches[0]
    modes = [module.training for module in subject.model.modules()]
    subject.model.eval()
    with torch.no_grad():
        if isinstance(subject.loss, nn.Module):
            value = subject.loss(subject.model(batch[0]), batch[1])
        else:
            value = subject.loss(subject.model, batch)
    for module, mode in zip(subject.model.modules(), modes, strict=True):
        module.training = mode
    return float(value)


# Additions of a branch to a skip, by what the configs ask for.
ADDITIONS = {"resnet": 2, "convnext": 2, "vit": 4, "bert": 4, "gpt2": 4, "llama": 4}


@pytest.mark.parametrize("kind", ADDITIONS)
def test_models_of_transformers_are_mapped(kind):
    subject = make_subject(others.transformer(kind), batch_size=4, n_batches=1)
    result = surveyed(subject, norm_mode="eval")
    assert sum(block.kind == "residual" for block in result.blocks) == ADDITIONS[kind]
    assert result.number("loss")["value"] == pytest.approx(loss_of(subject), rel=1e-4)
    assert np.isfinite(result.find("branch_gain").values()).all()
    assert result.inputs == subject.inputs
    assert result.unsupported == () or kind in ("bert", "gpt2", "llama")


def both(model, batch):
    """Two losses in one."""
    scores = model(**batch)
    return scores.logsumexp(1).mean() + 0.1 * scores.square().mean()


def by_name():
    torch.manual_seed(1)
    batch = {"image": torch.randn(6, 6), "text": torch.randint(9, (6, 3))}
    return make_subject(others.Named(), batch, both)


def compiled():
    return make_subject(torch.compile(others.Several(), backend="eager"), batch_size=6)


MADE = {
    "by name, two losses": by_name,
    "several outputs": lambda: make_subject(others.Several(), batch_size=6),
    "compiled": compiled,
    "autograd by hand": lambda: make_subject(others.ByHand(), batch_size=6),
    "its own loss": lambda: make_subject(others.OwnLoss(), batch_size=6),
    "tokens": lambda: make_subject(others.Tokens(), batch_size=6),
}


@pytest.mark.parametrize("name", MADE)
def test_what_people_write_is_surveyed(name):
    subject = MADE[name]()
    result = surveyed(
        subject, measures=("map", "signal", "curvature"), effort="thorough"
    )
    assert result.number("loss")["value"] == pytest.approx(loss_of(subject), rel=1e-4)
    largest = result.number("largest_eigenvalue")["value"]
    assert largest == pytest.approx(by_hand(subject), rel=2e-2)


def by_hand(subject):
    """Return the Hessian's largest eigenvalue of the first batch, written out."""
    names, values = zip(*subject.model.named_parameters(), strict=True)
    sizes = [value.numel() for value in values]

    def loss(flat):
        parts = [
            part.view_as(value)
            for part, value in zip(flat.split(sizes), values, strict=True)
        ]
        model = Pinned(subject.model, dict(zip(names, parts, strict=True)))
        batch = subject.batches[0]
        if isinstance(subject.loss, nn.Module):
            return subject.loss(model(batch[0]), batch[1])
        return subject.loss(model, batch)

    flat = torch.cat([value.detach().flatten() for value in values])
    dense = torch.autograd.functional.hessian(loss, flat)
    return float(torch.linalg.eigvalsh(dense)[-1])


class Pinned(nn.Module):
    """A model with other tensors in the place of its parameters."""

    def __init__(self, model, parameters):
        super().__init__()
        self.inner, self.pinned = [model], parameters

    def forward(self, *args, **kwargs):
        return torch.func.functional_call(self.inner[0], self.pinned, args, kwargs)


# Passes so far, and after how many somebody presses Ctrl-C; not the model's to restore.
PASSES = {"made": 0, "pressed": 10**9}


class Interrupted(nn.Module):
    """Somebody presses Ctrl-C in the midst of a pass."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Linear(4, 8), nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.norm(self.stem(x))
        PASSES["made"] += 1
        if PASSES["made"] > PASSES["pressed"]:
            raise KeyboardInterrupt
        return self.head(torch.relu(x))


@pytest.mark.parametrize("after", [1, 4, 12])
def test_an_interrupt_gives_what_is_done_and_leaves_the_model_as_found(
    after, monkeypatch
):
    model = Interrupted()
    subject = make_subject(model, batch_size=8, n_batches=2)
    before = others.state(model)
    monkeypatch.setitem(PASSES, "made", 0)
    monkeypatch.setitem(PASSES, "pressed", after)
    result = survey(subject, effort="thorough", progress=False)
    assert others.same(before, others.state(model))
    assert PASSES["made"] > after
    status = [one.status for one in result.measured]
    assert "interrupted" in status
    assert "failed" not in status


@pytest.mark.slow
def test_a_hundred_million_parameters_fit_a_small_machine():
    """GPT-2 small in size, on the CPU; the process stays below 24 GiB."""
    import resource

    sizes = {"n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
    model = others.transformer("gpt2", **sizes)
    subject = make_subject(model, batch_size=4, n_batches=2)
    count = sum(p.numel() for p in subject.model.parameters())
    assert count > 100_000_000
    before = {name: one.clone() for name, one in subject.model.state_dict().items()}
    result = survey(subject, effort="thorough", progress=False)
    after = subject.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    status = {one.measure: one.status for one in result.measured}
    assert "failed" not in status.values()
    assert status["map"] == status["signal"] == "done"
    assert result.number("loss")["value"] == pytest.approx(np.log(50257), rel=0.05)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    assert peak < 24, f"{peak:.1f} GiB"
