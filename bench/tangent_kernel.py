"""The whole tangent kernel of 256 samples with 10 outputs each."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.peak_memory import both
from bench.peers import Missing, peer, peer_name
from bench.progress import say, told
from bench.timing import Result, in_turns
from theodolite.instruments import tangent_kernel

TITLE = "Tangent kernel"
SAMPLES = 256
ROUNDS = 2  # the least time of so many turns counts
FUNCTIONAL = "torch.func.vmap(jacrev) + einsum"


def run() -> Iterator[Result]:
    """Compare entries first, then costs, all ways in turns."""
    for words, make in told((words, (words, make)) for words, make in NETS.items()):
        model, x = make()
        yield from _compared(words, model, x)


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
        kernel = np.asarray(compiled(inputs, None, parameters))  # (N, M, C, D)
        return kernel.transpose(0, 2, 1, 3).reshape(10 * len(x), -1).astype(np.float64)

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


def _compared(words: str, model: nn.Module, x: Tensor) -> Iterator[Result]:
    """Yield a row a peer, all of which are timed beside the same of ours."""
    count = sum(p.numel() for p in model.parameters())
    task = f"tangent kernel, N = {SAMPLES}, C = 10, {words} of {count:,} parameters"
    ways = {"ours": lambda: ours(model, x), FUNCTIONAL: lambda: functional(model, x)}
    structure = f"{peer_name('neural_tangents')} (structured, compiled)"
    try:
        ways[structure] = structured(model, x)
    except Missing as missing:
        yield Result(task, structure, None, "—", str(missing))
    truth = ways["ours"]()
    gaps = {name: _gap(truth, way()) for name, way in ways.items() if name != "ours"}
    say(f"{', '.join(ways)}, {ROUNDS} turns")
    best = in_turns(ways, ROUNDS, warm=False)
    for name, gap in gaps.items():
        if not gap <= 1e-4:
            yield Result(task, name, None, f"no: {gap:.1e}", "results differ")
            continue
        note = "compilation not counted" if name == structure else ""
        ratio, agree = best[name] / best["ours"], f"to {gap:.0e}"
        case = "structured" if name == structure else "functional"
        memory = both("bench.tangent_kernel", f"{case}, {words}", f"ours, {words}")
        yield Result(task, name, ratio, agree, note, memory)


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
