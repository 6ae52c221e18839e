"""Whatever a pass writes to a model, or to one that its loss uses, is undone."""

from collections import deque
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from tests.instruments.test_preservation import portrait
from theodolite.instruments import (
    BlockJacobian,
    GaussNewton,
    HalfSquareLoss,
    Hessian,
    Jacobian,
    classifier_norms,
    collapse,
    hessian,
    preserve,
    tangent_kernel,
    trace,
)

X = torch.linspace(-1, 1, 18, dtype=torch.float64).reshape(6, 3)
CLASSES = torch.arange(6) % 3


class Keeping(nn.Module):
    """Keeps books in plain attributes of all kinds."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3, dtype=torch.float64)
        self.calls, self.log, self.seen = 0, [0], {"x": {1: "a"}}
        self.last, self.kinds, self.few = None, {1}, deque([1, 2], maxlen=2)
        self.plain = SimpleNamespace(count=0, inner=[1])
        self.held, self.array = torch.zeros(2), np.zeros(2)
        self.noise = torch.Generator().manual_seed(0)

    def forward(self, x):
        self.calls += 1
        self.log.append(self.calls)
        self.seen["x"][self.calls] = "b"
        self.kinds.add(self.calls + 5)
        self.few.append(self.calls)
        self.plain.count += 1
        self.plain.inner.append(3)
        self.plain.late = True
        self.last = x
        self.held += 1
        self.array += 1
        torch.rand(1, generator=self.noise)
        self.installed = True
        return self.layer(x)


def books(model):
    return (
        list(vars(model)),
        model.calls,
        model.log,
        model.seen,
        model.kinds,
        list(model.few),
        vars(model.plain),
        model.last,
        model.held.tolist(),
        model.array.tolist(),
        model.noise.get_state().tolist(),
    )


def same_books(model):
    fresh = Keeping()
    return repr(books(model)) == repr(books(fresh))


MEASURES = {
    "hessian": lambda m: hessian(m, (X, X), loss=HalfSquareLoss(), norm_mode="eval"),
    "trace": lambda m: trace(
        m, (X, X), loss=HalfSquareLoss(), norm_mode="eval", method="products",
        max_matvecs=6,
    ),
    "kernel": lambda m: tangent_kernel(m, X, norm_mode="eval"),
    "block": lambda m: BlockJacobian(m, X, block="layer", norm_mode="eval").dense(),
    "collapse": lambda m: collapse(m, (X, CLASSES), norm_mode="eval"),
    "norms": lambda m: classifier_norms(m, (X, CLASSES), norm_mode="eval"),
    "preserve": lambda m: preserved(m),
}  # fmt: skip


def preserved(model):
    with preserve(model):
        model(X)


@pytest.mark.parametrize("name", MEASURES)
def test_what_a_model_notes_on_itself_is_undone(name):
    model = Keeping()
    log, plain = model.log, model.plain
    MEASURES[name](model)
    assert same_books(model)
    assert model.log is log
    assert model.plain is plain


class Holder:
    """A loss that is a plain object with a teacher."""

    def __init__(self, teacher):
        self.teachers = [teacher]

    def __call__(self, model, batch):
        return (model(batch[0]) - self.teachers[0](batch[0])).square().mean()

    def method(self, model, batch):
        return self(model, batch)


class Criterion(nn.Module):
    """A loss module with a norm of its own."""

    def __init__(self, teacher):
        super().__init__()
        self.teacher = teacher

    def forward(self, outputs, targets):
        return (outputs - self.teacher(targets)).square().mean()


def distil(model, batch, *, teacher):
    return (model(batch[0]) - teacher(batch[0])).square().mean()


GLOBAL = []


def by_global(model, batch):
    return distil(model, batch, teacher=GLOBAL[0])


def defaulted(teacher):
    def loss(model, batch, teacher=teacher):
        return distil(model, batch, teacher=teacher)

    return loss


LOSSES = {
    "closure": lambda t: lambda m, b: distil(m, b, teacher=t),
    "nested": lambda t: lambda m, b: (lambda: distil(m, b, teacher=t))(),
    "partial": lambda t: partial(distil, teacher=t),
    "object": Holder,
    "method": lambda t: Holder(t).method,
    "default": defaulted,
    "module": Criterion,
    "global": lambda t: by_global,
}


@pytest.mark.parametrize("kind", LOSSES)
def test_a_teacher_in_train_mode_inside_the_loss_is_undone(kind):
    model = nn.Linear(3, 3, dtype=torch.float64)
    teacher = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3)).double()
    GLOBAL[:] = [teacher]
    before = portrait(teacher)
    operator = Hessian(model, (X, X), loss=LOSSES[kind](teacher), norm_mode="batch")
    operator @ torch.ones(12, dtype=torch.float64)
    assert portrait(teacher) == before
    assert teacher[0].num_batches_tracked == 0


def test_a_teacher_inside_outputs_is_undone():
    model = nn.Linear(3, 3, dtype=torch.float64)
    teacher = nn.BatchNorm1d(3, dtype=torch.float64)
    before = portrait(teacher)

    def outputs(network, batch):
        return network(batch[0]) + teacher(batch[0])

    def output_loss(found, batch):
        return (found - teacher(batch[1])).square().mean()

    settings = {"norm_mode": "batch", "outputs": outputs}
    ones = torch.ones(12, dtype=torch.float64)
    GaussNewton(model, (X, X), output_loss=output_loss, **settings) @ ones
    Jacobian(model, (X, X), **settings) @ ones
    tangent_kernel(model, (X, X), **settings)
    assert portrait(teacher) == before


def test_a_teacher_that_moves_is_followed():
    model = nn.Linear(3, 3, dtype=torch.float64)
    teacher = nn.Linear(3, 3, dtype=torch.float64)

    def loss(network, batch):
        return (network(batch[0]) * teacher(batch[0])).square().mean()

    ones = torch.ones(12, dtype=torch.float64)
    operator = Hessian(model, (X, X), loss=loss, norm_mode="eval")
    first = operator @ ones
    with torch.no_grad():
        teacher.weight.mul_(2)
        teacher.bias.mul_(2)
    torch.testing.assert_close(operator @ ones, 4 * first)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_hooks_that_are_installed_once_can_be_installed_again():
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: pip install transformers"
    )
    config = transformers.BertConfig(
        vocab_size=7, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=5, output_hidden_states=True,
    )  # fmt: skip
    model = transformers.BertModel(config).eval()
    tokens = {"input_ids": torch.tensor([[1, 2, 3], [4, 5, 6]])}

    def loss(network, batch):
        return network(**batch).last_hidden_state.square().mean()

    trace(
        model, tokens, loss=loss, norm_mode="eval", method="products", max_matvecs=6,
        params=["embeddings.LayerNorm.weight"],
    )  # fmt: skip
    assert len(model(**tokens).hidden_states) == 3
