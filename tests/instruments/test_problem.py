"""A problem says once what operators and instruments measure."""

from dataclasses import FrozenInstanceError, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from tests.instruments.agreement import near
from theodolite.core import MeasurementError
from theodolite.instruments import (
    BlockJacobian,
    EmpiricalFisher,
    Fisher,
    GaussNewton,
    Hessian,
    Jacobian,
    Problem,
    TangentKernel,
    by_block,
    classifier_norms,
    collapse,
    diagonal,
    extreme_eigenvalues,
    hessian,
    index,
    memory_forecast,
    sharpness_along,
    singular_values,
    spectral_density,
    spectrum,
    tangent_kernel,
    trace,
)
from theodolite.instruments.passes import problem as module

X, Y = torch.randn(12, 4).double(), torch.arange(12) % 3
LOSS = nn.CrossEntropyLoss()
SETTINGS = {"loss": LOSS, "norm_mode": "eval", "micro_batch": 5}


def network(*norms):
    return nn.Sequential(nn.Linear(4, 3), *norms, nn.Tanh(), nn.Linear(3, 3)).double()


@pytest.fixture
def problem():
    return Problem(network(nn.BatchNorm1d(3)), (X, Y), **SETTINGS)


@pytest.mark.parametrize("kind", [Hessian, GaussNewton, Fisher, EmpiricalFisher])
def test_an_operator_of_a_problem_is_that_of_model_and_settings(problem, kind):
    same = kind(problem.model, (X, Y), **SETTINGS)
    operator = kind(problem)
    vector = torch.randn(operator.shape[1]).double()
    assert torch.equal(operator @ vector, same @ vector)
    assert operator.problem is problem
    assert operator.micro_batch == 5


@pytest.mark.parametrize("kind", [Jacobian, TangentKernel])
def test_operators_without_a_loss_take_the_same_problem(problem, kind):
    same = kind(problem.model, (X, Y), norm_mode="eval", micro_batch=5)
    np.testing.assert_array_equal(kind(problem).dense(), same.dense())


def test_the_matrix_of_a_tangent_kernel_takes_a_problem(problem):
    wanted = tangent_kernel(problem.model, (X, Y), norm_mode="eval", params=["0.bias"])
    reading = tangent_kernel(problem, params=["0.bias"])
    np.testing.assert_array_equal(reading.matrix, wanted.matrix)


@pytest.mark.parametrize(
    ("measure", "field", "settings"),
    [
        (trace, "trace", {"max_matvecs": 9}),
        (diagonal, "diagonal", {"max_matvecs": 9}),
        (extreme_eigenvalues, "eigenvalues", {"k": 2, "max_matvecs": 9}),
        (spectral_density, "density", {"n_probes": 2, "steps": 4}),
        (index, "index", {"n_probes": 2, "steps": 4}),
        (hessian, "matrix", {}),
        (spectrum, "eigenvalues", {}),
        (memory_forecast, "basis", {}),
    ],
)
def test_an_instrument_takes_model_problem_and_operator(
    problem, measure, field, settings
):
    wanted = getattr(measure(problem.model, (X, Y), **SETTINGS, **settings), field)
    np.testing.assert_array_equal(getattr(measure(problem, **settings), field), wanted)
    read = measure(Hessian(problem), **settings)
    near(np.asarray(getattr(read, field)), np.asarray(wanted), rtol=1e-10)


def test_blocks_and_steps_take_problems_and_operators(problem):
    wanted = by_block(trace, problem.model, (X, Y), **SETTINGS).stack("trace")
    for given in (problem, Hessian(problem)):
        near(by_block(trace, given).stack("trace"), wanted, rtol=1e-10)
    largest = sharpness_along(problem.model, (X, Y), **SETTINGS)(0)
    assert sharpness_along(problem)(0) == largest
    assert sharpness_along(Hessian(problem))(0) == largest


def test_features_margins_and_blocks_take_a_problem(problem):
    model, given = problem.model, {"norm_mode": "batch"}
    for measure, field in ((collapse, "nc1_variability"), (classifier_norms, "rho")):
        wanted = getattr(measure(model, (X, Y), norm_mode="eval"), field)
        assert getattr(measure(problem), field) == wanted
        changed = getattr(measure(model, (X, Y), **given), field)
        assert getattr(measure(problem, **given), field) == changed != wanted
        with pytest.raises(MeasurementError, match="a Problem came with batches"):
            measure(problem, (X, Y))
        with pytest.raises(MeasurementError, match="no data came: pass batches"):
            measure(model, norm_mode="eval")
    spans = (lambda *a, **k: BlockJacobian(*a, **k).dense(), singular_values)
    for measure in spans:
        wanted = measure(model, (X, Y), block="1", norm_mode="eval")
        read = measure(problem, block="1")
        for one in ("values", "cdf") if measure is singular_values else ("T",):
            np.testing.assert_array_equal(getattr(read, one), getattr(wanted, one))
        with pytest.raises(MeasurementError, match="has 2 batches"):
            measure(replace(problem, batches=[(X, Y), (X, Y)]), block="1")
        with pytest.raises(MeasurementError, match="no batch came: pass one"):
            measure(model, block="1", norm_mode="eval")


def test_settings_beside_a_problem_replace_its_own(problem):
    params = ["0.weight"]
    assert Hessian(problem, params=params).names == params
    assert Hessian(replace(problem, params=params)).shape == (12, 12)
    assert problem.params is None
    with pytest.raises(FrozenInstanceError):
        problem.params = params
    with pytest.raises(MeasurementError, match="a Problem came with batches"):
        Hessian(problem, (X, Y))


def test_the_seed_of_a_problem_is_that_of_its_instruments(problem):
    given = {"max_matvecs": 9, "method": "products"}
    seeded = trace(replace(problem, seed=7), **given)
    same = trace(problem.model, (X, Y), **SETTINGS, **given, seed=7)
    assert (seeded.seed, seeded.trace) == (7, same.trace)
    assert trace(replace(problem, seed=7), **given, seed=0).seed == 0
    probe = sharpness_along(replace(problem, seed=7))
    probe(0)
    assert probe.reading().seed == 7


def test_the_typed_settings_are_those_of_a_problem():
    typed = module.ProblemSettings.__annotations__
    fields = Problem.__dataclass_fields__
    assert typed == {
        name: one.type for name, one in fields.items()
        if name not in ("model", "batches")
    }  # fmt: skip


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm1d(3), nn.InstanceNorm1d(3, track_running_stats=True)]
)
def test_a_norm_in_train_mode_needs_a_norm_mode(norm):
    model = network(norm)
    for call in (Problem, Hessian, trace):
        with pytest.raises(MeasurementError, match=r"^a \w+Norm1d is in train mode"):
            call(model, (X, Y), loss=LOSS)
    others = [Jacobian, tangent_kernel, collapse, classifier_norms]
    others += [partial(call, block="0") for call in (BlockJacobian, singular_values)]
    for call in others:
        with pytest.raises(MeasurementError, match="pass norm_mode="):
            call(model, (X, Y))


def test_without_one_the_norm_mode_is_as_is():
    model = network(nn.BatchNorm1d(3)).eval()
    problem = Problem(model, (X, Y), loss=LOSS)
    reading = trace(problem)
    assert reading.norm_mode == "as_is"
    assert reading.norm_layers == {"train": (), "eval": ("1",)}
    wanted = trace(model, (X, Y), loss=LOSS, norm_mode="eval").trace
    assert reading.trace == pytest.approx(wanted, rel=1e-12)
    model.train()
    with pytest.raises(MeasurementError, match="is in train mode"):
        Hessian(problem)
    other = network(nn.LayerNorm(3))
    assert trace(other, (X, Y), loss=LOSS).norm_mode == "as_is"
    for measure in (tangent_kernel, collapse, classifier_norms):
        assert measure(other, (X, Y)).norm_mode == "as_is"
    assert singular_values(other, (X, Y), block="0").norm_mode == "as_is"


class Returns(nn.Module):
    """A model that returns its loss beside its logits, as those of Hugging Face."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3).double()

    def forward(self, inputs, labels=None):
        logits = self.layer(inputs)
        loss = None if labels is None else LOSS(logits, labels)
        return SimpleNamespace(loss=loss, logits=logits)


def test_a_model_may_return_its_loss():
    model, y = Returns(), torch.where(torch.arange(12) % 4 == 0, -100, Y)
    wanted = spectrum(model.layer, (X, y), loss=LOSS).eigenvalues
    whole = spectrum(model, {"inputs": X, "labels": y}).eigenvalues
    near(whole, wanted, rtol=1e-10)
    parts = [{"inputs": X[i], "labels": y[i]} for i in (slice(5), slice(5, 12))]
    near(spectrum(model, parts).eigenvalues, wanted, rtol=1e-10)
    near(spectrum(model, parts, micro_batch=2).eigenvalues, wanted, rtol=1e-10)
    keyed = lambda params, **batch: vars(functional_call(model, params, (), batch))  # noqa: E731
    same = spectrum((keyed, dict(model.named_parameters())), parts).eigenvalues
    near(same, wanted, rtol=1e-10)  # a plain dict with the loss


@pytest.mark.parametrize("batch", [{"inputs": X}, (X, Y)], ids=["unlabelled", "pair"])
def test_a_loss_that_is_nowhere_is_asked_for(batch):
    with pytest.raises(MeasurementError, match=r"no loss was given.*pass loss="):
        trace(Returns(), batch)


def test_a_loss_of_outputs_will_do_for_the_hessian_too():
    model = Returns()
    given = {
        "outputs": lambda model, batch: model(batch[0]).logits,
        "output_loss": lambda outputs, batch: LOSS(outputs, batch[1]),
    }
    problem = Problem(model, (X, Y), **given)
    wanted = Hessian(model.layer, (X, Y), loss=LOSS).dense()
    for kind in (Hessian, GaussNewton):
        np.testing.assert_allclose(kind(problem).dense(), wanted, atol=1e-14)


SLIPS = {
    "reduction": ({"reduction": "max"}, "reduction is 'max'"),
    "weights": ({"weights": len, "loss": nn.MSELoss(reduction="sum")}, "weights= say"),
    "randomness": ({"randomness": "some"}, "randomness 'some'"),
    "micro_batch": ({"micro_batch": 0}, "micro_batch is 0"),
    "norm_mode": ({"norm_mode": "train"}, "norm mode 'train'"),
    "loss": ({"loss": nn.MSELoss}, r"make one, MSELoss\(\)"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_arguments_are_checked_once_and_without_a_pass(slip):
    changed, words = SLIPS[slip]
    model = network()
    model.register_forward_hook(lambda *_: pytest.fail("the model ran"))
    with pytest.raises(Exception, match=words):
        Problem(model, (X, Y), **{"loss": LOSS, **changed})
