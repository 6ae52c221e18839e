"""One Hessian-vector product, in gradients of the same loss: ours and other ways."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp

from bench import curvature_peers as ask
from bench.dense_truth import without_statistics
from bench.networks import Data, nine_convolutions, small_case
from bench.peak_memory import rise_mib
from bench.peers import Missing, peer_name
from bench.progress import told
from bench.reference import DoubleBackward
from bench.timing import in_turns
from theodolite.instruments import Hessian, spectral_density
from theodolite.instruments.operators.operator import Operator

MODES = {"eval": "running statistics", "batch": "batch statistics"}
ROUNDS = 4  # the least time of so many turns counts
Product = Callable[[Tensor], Tensor]


def run() -> Iterator[dict[str, Any]]:
    """Check every product against float64, then time them in turns."""
    for mode, words in told((pair[1], pair) for pair in MODES.items()):
        model, data = nine_convolutions()
        model.train(mode == "batch")
        v = torch.randn(19_034, generator=torch.Generator().manual_seed(0))
        truth = torch.as_tensor(DoubleBackward(model, data).product(v.double().numpy()))
        made = {name: _made(make, model, data, v) for name, make in WAYS.items()}
        gaps = {name: _gap(product, v, truth) for name, (product, _) in made.items()}
        timed = {
            name: partial(product, v)
            for name, (product, _) in made.items()
            if product is not None and gaps[name] < 1e-3
        }
        times = in_turns({"gradient": partial(_gradient, model, data), **timed}, ROUNDS)
        for name, (_, note) in made.items():
            yield _row(name, words, mode, times, gaps[name], note)
    yield from _at_once()


def _at_once() -> Iterator[dict[str, Any]]:
    """Set blocks of sixteen products beside single ones, in small and larger nets."""
    small, data = small_case()
    for words, model, given in (
        ("399 parameters, float64", small, data),
        ("19,034 parameters, float32", *nine_convolutions(samples=32, steps=0)),
    ):
        operator = Hessian(model, given, loss=ask.LOSS, norm_mode="batch")
        made = torch.Generator().manual_seed(0)
        size = (16, operator.shape[1])
        block = torch.randn(size, generator=made, dtype=operator.torch_dtype)
        with operator.curves() as curves:
            (curve,) = curves
        ways = {
            "one by one": lambda o=operator, b=block: Operator.matvecs(o, b),
            "at once": lambda c=curve, b=block: c.products(b),
        }
        alone, together = (way() for way in ways.values())
        gap = float((alone - together).norm() / alone.norm())
        times = in_turns(ways, 3)
        taken = "at once" if operator.at_once > 1 else "one by one"
        row = {"task": f"sixteen products, {words}", "peer": "ours, one by one"}
        row |= {"gradients": None, "ratio": times["one by one"] / times["at once"]}
        note = f"at once beside one by one; traces take them {taken}"
        yield {**row, "agree": f"to {gap:.0e}", "note": note, "memory": ""}
    yield _densities(small, data)


def _densities(model: nn.Module, data: Data) -> dict[str, Any]:
    """Set a density whose vectors go side by side beside one after the other."""
    operator = Hessian(model, data, loss=ask.LOSS, norm_mode="batch")
    read = partial(spectral_density, n_probes=8, steps=64, method="products")
    ways = {
        "one by one": partial(read, _Singly(operator)),
        "at once": partial(read, operator),
    }
    alone, together = (way().nodes for way in ways.values())
    gap = float(abs(alone - together).max() / abs(alone).max())
    times = in_turns(ways, 3)
    row = {"task": "density, 8 vectors of 64 steps, 399 parameters, float64"}
    row |= {"peer": "ours, one by one", "gradients": None, "memory": ""}
    row |= {"ratio": times["one by one"] / times["at once"], "agree": f"to {gap:.0e}"}
    return {**row, "note": "vectors side by side beside one after the other"}


class _Singly(Operator):
    """An operator that multiplies one vector at a time."""

    symmetric = True

    def __init__(self, inner: Operator) -> None:
        self._inner = inner
        self.shape, self.torch_dtype, self.device = (
            inner.shape,
            inner.torch_dtype,
            inner.device,
        )

    def together(self) -> AbstractContextManager[None]:
        return self._inner.together()

    def product(self, vector: Tensor) -> Tensor:
        return self._inner.matvec(vector)


def ours(model: nn.Module, data: Data) -> Product:
    """Return our operator's product; its graph is built once."""
    mode = "batch" if model.training else "eval"
    return Hessian(model, data, loss=ask.LOSS, norm_mode=mode).matvec


def double_backward(model: nn.Module, data: Data, retain: bool = False) -> Product:
    """Return autograd twice, with or without keeping the gradient's graph."""
    parameters = list(model.parameters())

    def first() -> tuple[Tensor, ...]:
        loss = ask.LOSS(model(data[0]), data[1])
        return torch.autograd.grad(loss, parameters, create_graph=True)

    kept = first() if retain else None

    def product(v: Tensor) -> Tensor:
        gradient = first() if kept is None else kept
        parts = torch.autograd.grad(
            gradient, parameters, _shaped(v, parameters), retain_graph=retain
        )
        return torch.cat([part.reshape(-1) for part in parts])

    return product


def forward_over_reverse(model: nn.Module, data: Data) -> Product:
    """Return ``torch.func.jvp`` of ``grad``."""
    if model.training:  # it cannot write to running statistics
        model = without_statistics(model)
    values = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters: dict[str, Tensor]) -> Tensor:
        return ask.LOSS(functional_call(model, parameters, (data[0],)), data[1])

    def product(v: Tensor) -> Tensor:
        tangents = dict(zip(values, _shaped(v, list(values.values())), strict=True))
        moved = jvp(grad(loss), (values,), (tangents,))[1]
        return torch.cat([part.reshape(-1) for part in moved.values()])

    return product


def curvlinops(model: nn.Module, data: Data) -> Product:
    """Return the peer's product; batch statistics only work with no running ones."""
    if model.training:
        model = without_statistics(model)
    operator = ask.curvlinops(model, [data], check_deterministic=False)
    return lambda v: operator @ v


def eigenthings(model: nn.Module, data: Data) -> Product:
    """Return the peer's product."""
    return ask.eigenthings(model, [data]).matvec


WAYS: dict[str, Callable[[nn.Module, Data], Product]] = {
    "theodolite": ours,
    "double backward, graph kept": partial(double_backward, retain=True),
    "double backward": double_backward,
    "torch.func jvp of grad": forward_over_reverse,
    peer_name("hessian_eigenthings"): eigenthings,
    peer_name("curvlinops"): curvlinops,
}


def _made(
    make: Callable[[nn.Module, Data], Product], model: nn.Module, data: Data, v: Tensor
) -> tuple[Product | None, str]:
    """Return the product after a first call, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            product = make(model, data)
            product(v)
    except Missing as missing:
        return None, str(missing)
    except Exception as error:
        return None, type(error).__name__
    return product, ""


def _gap(product: Product | None, v: Tensor, truth: Tensor) -> float:
    if product is None:
        return float("inf")
    return float((product(v).double() - truth).norm() / truth.norm())


def _gradient(model: nn.Module, data: Data) -> None:
    torch.autograd.grad(ask.LOSS(model(data[0]), data[1]), list(model.parameters()))


def _shaped(v: Tensor, like: list[Tensor]) -> list[Tensor]:
    parts = v.split([p.numel() for p in like])
    return [part.reshape(p.shape) for part, p in zip(parts, like, strict=True)]


def _row(
    name: str, words: str, mode: str, times: dict[str, float], gap: float, note: str
) -> dict[str, Any]:
    mine = name == "theodolite"
    if name in times:
        note = "" if mine else note
    elif not note:
        note = "wrong, so not timed"
    peak = rise_mib("bench.hessian_products", f"{name}, {mode}")
    return {
        "task": f"one product, {words}",
        "peer": name,
        "gradients": times[name] / times["gradient"] if name in times else None,
        "ratio": times[name] / times["theodolite"] if name in times else None,
        "agree": "—" if gap == float("inf") else f"to {gap:.0e}",
        "note": note,
        "memory": "" if peak is None else f"{peak:.0f} MiB",
    }


def _case(make: Callable[[nn.Module, Data], Product], mode: str):
    def prepare():
        model, data = nine_convolutions(steps=0)
        model.train(mode == "batch")
        v = torch.ones(19_034)
        _gradient(model, (data[0][:2], data[1][:2]))
        return lambda: make(model, data)(v)

    return prepare


CASES = {
    f"{name}, {mode}": _case(make, mode)
    for name, make in WAYS.items()
    for mode in MODES
}
