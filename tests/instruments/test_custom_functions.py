"""Autograd functions that other people wrote: wrong derivatives are refused.

All of them are a hyperbolic tangent, so that ``nn.Tanh`` gives the right numbers.
"""

import copy
import sys

import pytest
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.testing import assert_close

from tests.cases import CASES
from theodolite.core import MeasurementError
from theodolite.instruments import (
    BlockJacobian,
    EmpiricalFisher,
    Fisher,
    GaussNewton,
    Hessian,
    Jacobian,
    MatrixOperator,
    TangentKernel,
    diagonal,
    extreme_eigenvalues,
    hessian,
    tangent_kernel,
    trace,
)
from theodolite.instruments.differentiate.model_backward import OWN

LOSS = {"loss": nn.CrossEntropyLoss(), "norm_mode": "batch"}


class Tangent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh()


class Sound(Tangent):
    @staticmethod
    def backward(ctx, g):
        return g * (1 - ctx.saved_tensors[0].tanh() ** 2)


class Once(Tangent):
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * (1 - ctx.saved_tensors[0].tanh() ** 2)


class Detached(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.slope = 1 - y**2
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.slope


class Numpy(Tangent):
    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach().numpy()
        return torch.from_numpy(
            g.detach().numpy() * (1 - torch.tensor(x).tanh().numpy() ** 2)
        )


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.tanh()

    @staticmethod
    def backward(ctx, g):
        return g


class Detoured(nn.Module):
    """Straight, by an operator of torch."""

    def forward(self, x):
        return x + (x.tanh() - x).detach()


class Applied(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function.apply(x)


def network(middle, dtype):
    torch.manual_seed(0)
    layers = nn.Linear(4, 6), middle, nn.Linear(6, 3)
    x = torch.randn(8, 4, dtype=dtype)
    return nn.Sequential(*layers).to(dtype), (x, torch.arange(8) % 3)


def vector(operator):
    generator = torch.Generator().manual_seed(1)
    drawn = torch.randn(operator.shape[1], generator=generator, dtype=torch.float64)
    return drawn.to(operator.torch_dtype)


def product(kind):
    def measure(model, data):
        operator = kind(model, data, **LOSS)
        return operator @ vector(operator)

    return measure


def block_product(model, data):
    operator = BlockJacobian(model, data, block=("0", "2"), norm_mode="batch")
    return operator @ vector(operator)


def many(model, data):
    operator = Hessian(model, data, **LOSS)
    return operator.matvecs(torch.stack([vector(operator)] * 9))


def outputs_product(kind):
    def measure(model, data):
        operator = kind(model, data[0], norm_mode="batch")
        return operator @ vector(operator)

    return measure


TWICE = {
    "H @ v": product(Hessian),
    "matvecs": many,
    "trace": lambda m, d: trace(m, d, **LOSS).trace,
    "trace by products": lambda m, d: trace(m, d, method="products", **LOSS).trace,
    "diagonal": lambda m, d: diagonal(m, d, **LOSS).diagonal,
    "extremes": lambda m, d: extreme_eigenvalues(m, d, **LOSS).eigenvalues,
    "hessian": lambda m, d: hessian(m, d, **LOSS).matrix,
    "micro-batches": lambda m, d: product(
        lambda *given, **more: Hessian(*given, micro_batch=3, **more)
    )(m, d),
}
ONCE = {
    "GaussNewton": product(GaussNewton),
    "Fisher": product(Fisher),
    "EmpiricalFisher": product(EmpiricalFisher),
    "Jacobian": outputs_product(Jacobian),
    "TangentKernel": outputs_product(TangentKernel),
}
BLOCK = {"BlockJacobian": block_product}
SOME = {"H @ v": TWICE["H @ v"], "GaussNewton": ONCE["GaussNewton"]}
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def cases(**by):
    """Pair each function by name with each measure of its table."""
    return [
        pytest.param(getattr(sys.modules[__name__], name), measure, id=f"{name}-{what}")
        for name, table in by.items()
        for what, measure in table.items()
    ]


@DTYPES
@pytest.mark.parametrize(
    ("function", "measure"),
    cases(
        Once=TWICE | ONCE | BLOCK,
        Detached=TWICE,
        Numpy=SOME | BLOCK,
    ),
)
def test_wrong_derivatives_are_refused_by_name(function, measure, dtype):
    model, data = network(Applied(function), dtype)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(MeasurementError, match=function.__name__) as caught:
        measure(model, data)
    assert "\n" not in str(caught.value)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


@DTYPES
@pytest.mark.parametrize(
    ("function", "measure"),
    cases(Sound=TWICE | ONCE | BLOCK, Detached=ONCE | BLOCK),
)
def test_right_derivatives_are_measured(function, measure, dtype):
    found = measure(*network(Applied(function), dtype))
    wanted = measure(*network(nn.Tanh(), dtype))
    eps = torch.finfo(dtype).eps
    assert_close(found, wanted, rtol=1e3 * eps, atol=1e3 * eps)


@DTYPES
@pytest.mark.parametrize("measure", SOME.values(), ids=SOME)
def test_a_straight_through_backward_is_measured_as_written(measure, dtype):
    with pytest.warns(RuntimeWarning, match="Straight is not the derivative"):
        found = measure(*network(Applied(Straight), dtype))
    wanted = measure(*network(Detoured(), dtype))
    eps = torch.finfo(dtype).eps
    assert_close(found, wanted, rtol=1e3 * eps, atol=1e3 * eps)


def test_transposed_products_want_one_derivative_alone():
    made = []
    for middle in (Applied(Once), nn.Tanh()):
        model, (x, _) = network(middle, torch.float64)
        operator = Jacobian(model, x, norm_mode="batch")
        made.append(operator.T @ torch.ones(24, dtype=torch.float64))
    assert_close(made[0], made[1])


def test_a_loss_written_by_hand():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.slope = 3 * x**2 / len(x)
            return x.pow(3).sum() / len(x)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.slope

    model, data = network(nn.Tanh(), torch.float64)
    operator = GaussNewton(
        model,
        data,
        outputs=lambda m, batch: m(batch[0]),
        output_loss=lambda z, batch: Cube.apply(z),
        norm_mode="batch",
    )
    with pytest.raises(MeasurementError, match="Cube"):
        operator @ vector(operator)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_sound_functions_in_every_case(case):
    """The check runs on the whole network, and changes neither it nor the product."""
    model, data, loss = case.make()
    plain = Hessian(model, data, loss=loss, norm_mode="batch")
    wanted = plain @ vector(plain)
    model = nn.Sequential(model, Applied(Sound), Applied(Inverse))
    before = copy.deepcopy(model.state_dict())
    operator = Hessian(model, data, loss=loss, norm_mode="batch")
    found = operator @ vector(operator)
    assert_close(found, wanted, rtol=1e-6, atol=1e-8)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


class Inverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.atanh()

    @staticmethod
    def backward(ctx, g):
        return g / (1 - ctx.saved_tensors[0] ** 2)


class Stopped(nn.Module):
    """Holds a part of its output fixed, in one of three ways."""

    def __init__(self, way, function):
        super().__init__()
        self.way, self.first = way, nn.Linear(4, 6)
        self.second, self.function = nn.Linear(6, 3), function

    def forward(self, x):
        z = self.second(self.function.apply(self.first(x)))
        if self.way == "no_grad":
            with torch.no_grad():
                target = self.second(self.first(x).tanh()).softmax(1)
        else:
            target = z.detach() if self.way == "detach" else z.data
        return z * target.square()


@pytest.mark.parametrize("way", ["detach", "data", "no_grad"])
def test_stopped_gradients_are_constants(way):
    torch.manual_seed(0)
    x = torch.randn(8, 4, dtype=torch.float64)
    for function in (Sound, Detached):
        model = Stopped(way, function).double()
        operator = Hessian(model, (x, torch.arange(8) % 3), **LOSS)
        if function is Sound:
            assert float((operator @ vector(operator)).norm()) > 0
        else:
            with pytest.raises(MeasurementError, match="Detached"):
                operator @ vector(operator)


class Given(torch.autograd.Function):
    """Reads in its backward a slope that it is given, which may have no graph."""

    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(slope)
        return x.tanh()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


class Stretched(torch.autograd.Function):
    """A tangent of a scale that is a constant in its forward as well."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return (x / scale).tanh()

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * (1 - (x / scale).tanh() ** 2) / scale, None


class Called(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


def no_graph(x):
    with torch.no_grad():
        return 1 - x.tanh() ** 2


SLOPES = {
    "detach": lambda x: 1 - x.detach().tanh() ** 2,
    "data": lambda x: 1 - x.data.tanh() ** 2,
    "no_grad": no_graph,
}


@DTYPES
@pytest.mark.parametrize("slope", SLOPES.values(), ids=SLOPES)
def test_a_backward_that_is_given_a_value_without_a_graph(slope, dtype):
    model, data = network(Called(lambda x: Given.apply(x, slope(x))), dtype)
    with pytest.raises(MeasurementError, match="Given"):
        product(Hessian)(model, data)


@DTYPES
def test_a_function_of_a_scale_that_is_held(dtype):
    def run(function):
        return Called(lambda x: function(x, x.detach().abs().amax(0)))

    made = [
        product(Hessian)(*network(run(function), dtype))
        for function in (Stretched.apply, lambda x, scale: (x / scale).tanh())
    ]
    eps = torch.finfo(dtype).eps
    assert_close(*made, rtol=1e3 * eps, atol=1e3 * eps)


def test_numbers_are_constants():
    def run(function):
        scaled = Called(lambda x: function(x) / x.abs().max().item())
        return product(Hessian)(*network(scaled, torch.float64))

    assert_close(run(Sound.apply), run(torch.tanh))
    with pytest.raises(MeasurementError, match="Detached"):
        run(Detached.apply)


def test_a_function_without_float64_is_measured_with_a_warning():
    class Single(Detached):
        @staticmethod
        def forward(ctx, x):
            if x.dtype is not torch.float32:
                raise TypeError("float32 alone")
            return Detached.forward(ctx, x)

    model, data = network(Applied(Single), torch.float32)
    with pytest.warns(RuntimeWarning, match="Single were not compared"):
        product(Hessian)(model, data)


def test_a_function_whose_backward_has_no_derivative():
    class Written(Tangent):
        @staticmethod
        def backward(ctx, g):
            x = ctx.saved_tensors[0]
            return torch.mul(g, 1 - x.tanh() ** 2, out=torch.empty_like(g))

    model, data = network(Applied(Written), torch.float64)
    with pytest.raises(MeasurementError, match="torch lacks a derivative"):
        product(Hessian)(model, data)


def test_power_iterations_are_constants():
    model, data = network(Applied(Sound), torch.float64)
    nn.utils.parametrizations.spectral_norm(model[0])
    operator = Hessian(model, data, **LOSS)
    assert float((operator @ vector(operator)).norm()) > 0


@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_weights_at_a_kink(kind):
    model, data = network(nn.Sequential(nn.ReLU(), Applied(Sound)), torch.float64)
    for parameter in model[0].parameters():
        nn.init.zeros_(parameter)
    assert float(product(kind)(model, data).norm()) > 0


def test_a_refusal_stands():
    model, data = network(Applied(Detached), torch.float64)
    operator = Hessian(model, data, **LOSS)
    for _ in range(2):
        with pytest.raises(MeasurementError, match="gradgradcheck"):
            operator @ vector(operator)


@pytest.mark.parametrize("measure", [trace, diagonal])
def test_sketches_refuse_what_is_not_symmetric(measure):
    matrix = torch.randn(80, 80, dtype=torch.float64)
    operator = MatrixOperator(matrix @ matrix.T + 0.1 * matrix, symmetric=True)
    with pytest.raises(MeasurementError, match="disagree with symmetry"):
        measure(operator, method="products")


def test_own_functions_are_known_by_their_class():
    def below(kind):
        return {kind}.union(*(below(each) for each in kind.__subclasses__()))

    ours = {
        k for k in below(torch.autograd.Function) if k.__module__.startswith("theod")
    }
    assert ours == OWN
    impostor = type("_Rectified", (Detached,), {"backward": Detached.backward})
    model, data = network(Applied(impostor), torch.float64)
    with pytest.raises(MeasurementError, match="_Rectified"):
        trace(model, data, **LOSS)


@pytest.fixture(scope="module")
def library_operator():
    library = torch.library.Library("theodolite_tests", "DEF")
    library.define("square(Tensor x) -> Tensor")
    library.impl("square", lambda x: x.detach() ** 2, "CPU")
    yield torch.ops.theodolite_tests.square
    library._destroy()


@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_a_library_operator_without_a_derivative_is_refused(library_operator, kind):
    class Squared(nn.Module):
        def forward(self, x):
            return library_operator(x)

    model, data = network(Squared(), torch.float64)
    with pytest.raises(MeasurementError, match="has no autograd kernel"):
        product(kind)(model, data)


def test_data_of_inference_mode_is_refused_in_a_sentence():
    with torch.inference_mode():
        x = torch.randn(4, 3)
    with pytest.raises(MeasurementError, match=r"pass tensor.clone\(\)"):
        trace(nn.Linear(3, 1), (x, torch.randn(4, 1)), **LOSS)
    with pytest.raises(MeasurementError, match=r"pass tensor.clone\(\)"):
        tangent_kernel(nn.Linear(3, 1), x)
