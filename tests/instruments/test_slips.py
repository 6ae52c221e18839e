"""The commonest slips: accepted where they mean something, else one sentence."""

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.instruments.test_preservation import portrait
from theodolite.core import ConfigError, MeasurementError, UnknownNameError
from theodolite.instruments import (
    GaussNewton,
    Jacobian,
    collapse,
    memory_forecast,
    spectrum,
    tangent_kernel,
    trace,
)

X, Y = torch.randn(12, 4), torch.arange(12) % 3
CROSS_ENTROPY = nn.CrossEntropyLoss()


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 3))


def top(model, batch, loss=CROSS_ENTROPY, norm_mode="batch", **settings):
    found = spectrum(model, batch, loss=loss, norm_mode=norm_mode, **settings)
    return found.eigenvalues[0]


@pytest.mark.parametrize(
    "loss",
    [
        functional.cross_entropy,
        functools.partial(functional.cross_entropy, label_smoothing=0.0),
        lambda outputs, targets: CROSS_ENTROPY(outputs, targets),
        lambda a, b: CROSS_ENTROPY(a, b),
        lambda model, batch: CROSS_ENTROPY(model(batch[0]), batch[1]),
    ],
    ids=["torch", "partial", "by name", "nameless", "model and batch"],
)
def test_losses_of_every_make_are_one(model, loss):
    assert top(model, (X, Y), loss) == pytest.approx(top(model, (X, Y)), rel=1e-5)


@pytest.mark.parametrize("measure", [spectrum, trace, memory_forecast])
@pytest.mark.parametrize("operator", [3, Jacobian, nn.Linear], ids=str)
def test_something_else_than_a_curvature_is_told(model, measure, operator):
    given = {"loss": CROSS_ENTROPY, "norm_mode": "eval"}
    with pytest.raises(ConfigError, match=r"^operator is .*: pass the class Hessian"):
        measure(model, (X, Y), **given, operator=operator)


def test_a_function_that_sums_is_added_over_batches(model):
    summed = functools.partial(functional.cross_entropy, reduction="sum")
    batches = [(X[:8], Y[:8]), (X[8:], Y[8:])]
    module = nn.CrossEntropyLoss(reduction="sum")
    wanted = top(model, batches, module, "eval")
    assert top(model, batches, summed, "eval") == pytest.approx(wanted, rel=1e-5)


def test_a_function_of_outputs_will_do_for_gauss_newton(model):
    settings = {"norm_mode": "eval", "seed": 0}
    given = trace(
        model, (X, Y), loss=functional.cross_entropy, operator=GaussNewton, **settings
    )
    wanted = trace(model, (X, Y), loss=CROSS_ENTROPY, operator=GaussNewton, **settings)
    assert given.trace == wanted.trace


def test_an_error_of_a_loss_of_ones_own_is_its_own(model):
    with pytest.raises(AttributeError, match="no_such_layer"):
        top(model, (X, Y), lambda model, batch: model.no_such_layer(batch))


SLIPS = {
    "train": ((X, Y), {"norm_mode": "train"}, "it is 'batch'"),
    "class": ((X, Y), {"loss": nn.CrossEntropyLoss}, r"one, CrossEntropyLoss\(\)"),
    "word": ((X, Y), {"loss": "mse"}, "cannot be called"),
    "double": ((X.double(), Y), {}, r"is float32 and does not take .* float64 .*32\)"),
    "array": ((X.numpy(), Y), {}, "a ndarray"),
    "float labels": ((X, Y.float()), {}, r"pass targets.long\(\)"),
    "short labels": ((X, Y.int()), {}, r"are int32.*pass targets.long\(\)"),
    "columns": ((X, Y[:, None]), {}, r"squeeze\(1\)"),
    "range": ((X, Y + 1), {}, "a label is 3, and the outputs have 3 classes"),
    "negative": ((X, Y - 1), {}, "a label is -1"),
    "one-hot": ((X, functional.one_hot(Y, 3)), {}, r"one-hot.*argmax\(1\)"),
    "few": ((X, Y[:8]), {}, "12 outputs and 8 targets"),
    "spread": ((X, Y.float()), {"loss": nn.MSELoss()}, "wants equal shapes"),
    "whole": (
        (X, functional.one_hot(Y, 3)), {"loss": nn.BCEWithLogitsLoss()}, "to.torch.f",
    ),
    "elsewhere": ((X.to("meta"), Y), {}, r"batch with .to\('cpu'\)"),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_one_sentence_with_the_right_words(model, slip):
    batch, settings, words = SLIPS[slip]
    with pytest.raises((MeasurementError, UnknownNameError), match=words) as said:
        top(model, batch, **settings)
    assert "\n" not in str(said.value)


def test_a_float_batch_on_a_double_model_is_one_sentence(model):
    words = r"is float64 and does not take .* float32 .*to\(torch.float64\)"
    with pytest.raises(MeasurementError, match=words):
        top(model.double(), (X, Y))


def test_dropout_draws_nothing_in_eval_mode():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 3))
    before = portrait(model)
    found = top(model, (X, Y), norm_mode="eval")
    kernel = tangent_kernel(model, X, norm_mode="eval").matrix
    collapsed = collapse(model, (X, Y), norm_mode="eval")
    assert portrait(model) == before  # also that dropout is in train mode
    model.eval()
    assert found == top(model, (X, Y), norm_mode="batch")
    assert (kernel == tangent_kernel(model, X, norm_mode="eval").matrix).all()
    assert collapsed.nc1_noise == collapse(model, (X, Y), norm_mode="eval").nc1_noise
    model.train()
    with pytest.raises(MeasurementError, match="dropout '1' is active"):
        top(model, (X, Y), norm_mode="batch")
