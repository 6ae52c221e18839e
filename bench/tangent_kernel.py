"""The whole tangent kernel of 256 samples with 10 outputs each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.high_water import both
from bench.peers import Missing, peer, peer_name
from bench.timing import Result, beside
from theodolite.instruments import tangent_kernel

TITLE = "Tangent kernel"
SAMPLES = 256


def run() -> list[Result]:
    """Compare entries first, then costs."""
    results = []
    for words, make in NETS.items():
        model, x = make()
        count = sum(p.numel() for p in model.parameters())
        task = f"tangent kernel, N = {SAMPLES}, C = 10, {words} of {count:,} parameters"
        row = beside(
            task,
            lambda model=model, x=x: ours(model, x),
            "torch.func.vmap(jacrev) + einsum",
            lambda model=model, x=x: functional(model, x),
            _gap,
            tolerance=1e-4,
            peer_repeats=3,
        )
        results.append(_with_memory(row, words, "functional"))
        results.append(_neural_tangents(task, words, model, x))
    return results


def ours(model: nn.Module, x: Tensor) -> np.ndarray:
    """Return the kernel; eigenvalues, which no peer computes, are left out."""
    return tangent_kernel(model, x, norm_mode="eval", certify=False).matrix


def functional(model: nn.Module, x: Tensor) -> np.ndarray:
    """Return the kernel from the per-sample Jacobian, as torch's tutorial does."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def one(values: dict[str, Tensor], sample: Tensor) -> Tensor:
        return torch.func.functional_call(model, values, (sample[None],))[0]

    jacobian = torch.func.vmap(torch.func.jacrev(one), (None, 0))(parameters, x)
    parts = [part.flatten(2) for part in jacobian.values()]
    kernel = sum(torch.einsum("ncp,mdp->ncmd", part, part) for part in parts)
    return kernel.reshape(10 * len(x), -1).double().numpy()


def structured(model: nn.Module, x: Tensor) -> Callable[[], np.ndarray]:
    """Return what computes the kernel with neural-tangents, compiled already."""
    tangents, jax = peer("neural_tangents"), peer("jax")
    parameters, apply = _in_jax(model, jax)
    kernel = jax.jit(
        tangents.empirical_ntk_fn(
            apply,
            trace_axes=(),
            vmap_axes=0,
            implementation=tangents.NtkImplementation.STRUCTURED_DERIVATIVES,
        )
    )
    inputs = jax.numpy.asarray(x.numpy())
    compiled = kernel.lower(inputs, None, parameters).compile()

    def compute() -> np.ndarray:
        found = np.asarray(compiled(inputs, None, parameters))  # (N, M, C, D)
        return found.transpose(0, 2, 1, 3).reshape(10 * len(x), -1).astype(np.float64)

    return compute


def _in_jax(model: nn.Module, jax: Any) -> tuple[list, Callable]:
    """Write a sequential model in jax, with the same weights."""
    layers = [m for m in model if not isinstance(m, nn.Flatten)]
    parameters = [
        [jax.numpy.asarray(p.detach().numpy()) for p in layer.parameters()]
        for layer in layers
    ]

    def apply(values: list, x: Any) -> Any:
        for layer, held in zip(layers, values, strict=True):
            if isinstance(layer, nn.Linear):
                x = x @ held[0].T + held[1]
            elif isinstance(layer, nn.Conv2d):
                x = jax.lax.conv_general_dilated(
                    x, held[0], layer.stride, [(1, 1), (1, 1)]
                )
                x = x + held[1][None, :, None, None]
            elif isinstance(layer, nn.ReLU):
                x = jax.nn.relu(x)
            else:
                x = x.mean((2, 3))
        return x

    return parameters, apply


def _neural_tangents(task: str, words: str, model: nn.Module, x: Tensor) -> Result:
    name = f"{peer_name('neural_tangents')} (structured, compiled)"
    try:
        theirs = structured(model, x)
    except Missing as missing:
        return Result(task, name, None, "—", str(missing))
    row = beside(
        task,
        lambda: ours(model, x),
        name,
        theirs,
        _gap,
        tolerance=1e-4,
        peer_repeats=3,
        note="compilation not counted",
    )
    return _with_memory(row, words, "structured")


def _with_memory(row: Result, words: str, case: str) -> Result:
    memory = both("bench.tangent_kernel", f"{case}, {words}", f"ours, {words}")
    return Result(row.task, row.peer, row.ratio, row.agree, row.note, memory)


def _gap(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.abs(first - second).max() / np.abs(second).max())


def convolutional() -> tuple[nn.Module, Tensor]:
    """Return three convolutions with mean pooling and a head."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(48, 10),
        )
        return model, torch.randn(SAMPLES, 1, 16, 16)


def perceptron() -> tuple[nn.Module, Tensor]:
    """Return four linear layers."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(64, 96),
            nn.ReLU(),
            nn.Linear(96, 96),
            nn.ReLU(),
            nn.Linear(96, 32),
            nn.ReLU(),
            nn.Linear(32, 10),
        )
        return model, torch.randn(SAMPLES, 64)


NETS = {"a convolutional net": convolutional, "a perceptron": perceptron}


def _case(function, make, compiled=False):
    def prepare():
        model, x = make()
        if compiled:
            return function(model, x)
        function(model, x[:2])
        return lambda: function(model, x)

    return prepare


CASES = {
    f"{name}, {words}": _case(function, make, name == "structured")
    for words, make in NETS.items()
    for name, function in (
        ("ours", ours),
        ("functional", functional),
        ("structured", structured),
    )
}
