"""The commonest slips: accepted where they mean something, else one sentence."""

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.instruments.agreement import near
from tests.instruments.test_preservation import portrait
from theodolite.core import ConfigError, MeasurementError, UnknownNameError
from theodolite.instruments import (
    EmpiricalFisher,
    Fisher,
    GaussNewton,
    Hessian,
    Jacobian,
    TangentKernel,
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
    with pytest.raises(
        ConfigError, match=r"^operator is .*: pass (the class Hessian|Callable)"
    ):
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


class Several(nn.Sequential):
    def forward(self, x):
        return super().forward(x), x


SLIPS = {
    "train": ((X, Y), {"norm_mode": "train"}, "it is 'batch'"),
    "class": ((X, Y), {"loss": nn.CrossEntropyLoss}, r"one, CrossEntropyLoss\(\)"),
    "word": ((X, Y), {"loss": "mse"}, "loss is 'mse': pass Module"),
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
    "logits": (
        (X, Y.float()), {"loss": nn.BCEWithLogitsLoss()}, "equal shapes.*one-hot",
    ),
    "tuple": ((X, Y), {"model": Several(nn.Linear(4, 3))}, "returned a tuple, and Cro"),
    "tuple of squares": (
        (X, X), {"model": Several(nn.Linear(4, 4)), "loss": nn.MSELoss()},
        "returned a tuple, and MSELoss wants one tensor: pass loss=lambda",
    ),
    "whole": (
        (X, functional.one_hot(Y, 3)), {"loss": nn.BCEWithLogitsLoss()}, "to.torch.f",
    ),
    "elsewhere": ((X.to("meta"), Y), {}, r"batch with .to\('cpu'\)"),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_one_sentence_with_the_right_words(model, slip):
    batch, settings, words = SLIPS[slip]
    with pytest.raises((MeasurementError, UnknownNameError), match=words) as said:
        top(**{"model": model, "batch": batch} | settings)
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        (Hessian, nn.BCEWithLogitsLoss()),
        (Hessian, nn.BCELoss()),
        (GaussNewton, nn.BCEWithLogitsLoss()),
        (GaussNewton, nn.BCELoss()),
        (EmpiricalFisher, nn.BCELoss()),
        (Fisher, nn.BCEWithLogitsLoss()),
        (Fisher, nn.MSELoss()),
    ],
)
def test_targets_want_the_shape_of_the_outputs(kind, loss):
    model, targets = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid()), (Y > 1).float()
    words = r"equal shapes, such as targets.reshape\(outputs.shape\)"
    with pytest.raises(MeasurementError, match=words):
        kind(model, (X, targets), loss=loss, norm_mode="eval").dense()


def test_a_float_batch_on_a_double_model_is_one_sentence(model):
    words = r"is float64 and does not take .* float32 .*to\(torch.float64\)"
    with pytest.raises(MeasurementError, match=words):
        top(model.double(), (X, Y))


@pytest.mark.parametrize("randomness", ["refuse", "fixed"])
def test_dropout_is_off_in_eval_mode_also_where_masks_are_fixed(randomness):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 3)).double()
    settings = {"loss": CROSS_ENTROPY, "norm_mode": "eval", "randomness": randomness}
    found = Hessian(model, (X.double(), Y), **settings).dense()
    assert model[1].training
    cut = Hessian(model, (X.double(), Y), **settings, micro_batch=5).dense()
    wanted = Hessian(model.eval(), (X.double(), Y), **settings).dense()
    near(found, wanted)
    near(cut, wanted)


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "kind", [Hessian, GaussNewton, Fisher, EmpiricalFisher, Jacobian, TangentKernel]
)
def test_weights_without_a_number_are_said_to_be_so(model, kind, weight):
    model[0].weight.data[0, 0] = weight
    outputs = kind in (Jacobian, TangentKernel)
    settings = {} if outputs else {"loss": CROSS_ENTROPY}
    with pytest.raises(MeasurementError, match="check the batch and the weights for"):
        kind(model, (X, Y), norm_mode="batch", **settings)


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


def test_errors_of_ones_own_loss_are_ones_own():
    def loss(outputs, targets):
        raise ValueError("out of luck")

    data = torch.randn(6, 4), torch.randint(3, (6,))
    with pytest.raises(ValueError, match="out of luck"):
        Hessian(nn.Linear(4, 3), data, loss=loss, norm_mode="eval", reduction="mean")


class Overwriting(nn.Module):
    """Writes to what its own derivative needs."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 3), nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.first(x).relu_().mul_(2.0))


@pytest.mark.parametrize("operator", [Hessian, GaussNewton])
def test_writes_that_forbid_a_derivative_are_named(operator):
    with pytest.raises(MeasurementError, match="wants its in-place operations replac"):
        trace(
            Overwriting(),
            (X, Y),
            loss=CROSS_ENTROPY,
            norm_mode="eval",
            operator=operator,
        )


@pytest.mark.parametrize("measure", [Hessian, GaussNewton, trace, collapse])
def test_lazy_layers_want_a_first_batch(measure):
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.LazyLinear(3))
    given = {} if measure is collapse else {"loss": CROSS_ENTROPY}
    with pytest.raises(MeasurementError, match=r"'0\.weight'.* on a batch once"):
        measure(model, (X, Y), norm_mode="batch", **given)
    model(X)
    measure(model, (X, Y), norm_mode="batch", **given)
