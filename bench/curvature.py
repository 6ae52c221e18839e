"""The largest Hessian eigenvalue of a net with batch norm: who answers what.

Every tool gets a fresh copy of one small residual net in train mode, whose running
statistics differ from those of the batch, and is used as its documentation says. Which
operator an answer belongs to is found by comparing it with dense Hessians.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from bench import curvature_peers as ask_peer
from bench.dense_truth import (
    dense_hessian,
    difference_check,
    with_frozen_statistics,
    without_statistics,
)
from bench.networks import Data, small_case
from bench.peers import Missing, peer, peer_name
from bench.progress import say, told
from theodolite.instruments import extreme_eigenvalues

LOSS = nn.CrossEntropyLoss()
PARTS = 4
Ask = Callable[[nn.Module, list[Data]], float]


def run() -> Iterator[dict[str, Any]]:
    """Ask every tool, on one batch and on the same data in four."""
    model, data = small_case()
    say("the truths, dense")
    one, four = [data], split(data)
    truths = {
        "batch statistics of all the data": top(dense_hessian(model, one)),
        "each quarter's own batch statistics": top(dense_hessian(model, four)),
        "running statistics": top(dense_hessian(copy.deepcopy(model).eval(), one)),
        "batch statistics as constants": top(
            dense_hessian(with_frozen_statistics(model, data), one)
        ),
    }
    step_gap = difference_check(model, one, step=1e-6)
    rows = [
        _row("double backward, dense", "truth", value, name, "", "")
        for name, value in truths.items()
    ]
    rows[0]["note"] = f"within {step_gap:.0e} of central differences of the gradient"
    yield from rows
    given = {"one batch": one, "four batches": four}
    asked = [
        (f"{tool}, {label}", (tool, label, ask))
        for tool, ask, feeds in (*_ours(), *_peers())
        for label in given
        if label in feeds
    ]
    for tool, label, ask in told(asked):
        yield _asked(tool, label, ask, model, given[label], truths)
    say("what else peers answer")
    yield from _notes_on_peers(model, one)


def split(data: Data) -> list[Data]:
    """Cut a batch into four."""
    return list(zip(*(part.chunk(PARTS) for part in data), strict=True))


def top(matrix: np.ndarray) -> float:
    """Return the largest eigenvalue."""
    return float(np.linalg.eigvalsh(matrix)[-1])


def _ours() -> Iterator[tuple[str, Ask, tuple[str, ...]]]:
    def asked(**options: Any) -> Ask:
        def ask(model: nn.Module, batches: list[Data]) -> float:
            reading = extreme_eigenvalues(
                model,
                batches,
                loss=LOSS,
                ends="largest",
                tol=1e-8,
                method="products",
                **options,
            )
            return float(reading.eigenvalues[0])

        return ask

    both, quarter = ("one batch", "four batches"), 16 // PARTS
    for mode in ("batch", "full", "frozen", "eval"):
        yield f"theodolite, norm_mode={mode!r}", asked(norm_mode=mode), both
    yield (
        f"theodolite, norm_mode='batch', micro_batch={quarter}",
        asked(norm_mode="batch", micro_batch=quarter),
        ("one batch",),
    )
    yield (
        f"theodolite, norm_mode='full', micro_batch={quarter}",
        asked(norm_mode="full", micro_batch=quarter),
        both,
    )


def _peers() -> Iterator[tuple[str, Ask, tuple[str, ...]]]:
    both, one = ("one batch", "four batches"), ("one batch",)
    yield peer_name("pyhessian"), _pyhessian, both
    name = peer_name("hessian_eigenthings")
    yield name, _eigenthings, both
    yield f"{name}, microbatch_size=4", partial(_eigenthings, microbatch_size=4), one
    yield f"{name}, on a copy in eval mode", _in_eval_mode(_eigenthings), one
    name = peer_name("curvlinops")
    yield name, _curvlinops, both
    unchecked = partial(_curvlinops, check_deterministic=False)
    yield f"{name}, check_deterministic=False", unchecked, one
    yield f"{name}, on a copy without running statistics", _stripped, both
    yield f"{name}, on a copy in eval mode", _in_eval_mode(_curvlinops), one


def _pyhessian(model: nn.Module, batches: list[Data]) -> float:
    eigenvalues = ask_peer.pyhessian(model, batches)
    return eigenvalues.eigenvalues(maxIter=5000, tol=1e-12)[0][0]


def _eigenthings(model: nn.Module, batches: list[Data], **options: Any) -> float:
    operator = ask_peer.eigenthings(model, batches, **options)
    lanczos = peer("hessian_eigenthings").lanczos
    eigenvalues = lanczos(operator, k=1, max_iter=50, which="LA", seed=0)
    return float(eigenvalues.eigenvalues[0])


def _curvlinops(model: nn.Module, batches: list[Data], **options: Any) -> float:
    operator = ask_peer.curvlinops(model, batches, **options)
    return float(ask_peer.eigsh(operator, k=1, which="LA")[0][0])


def _stripped(model: nn.Module, batches: list[Data]) -> float:
    return _curvlinops(without_statistics(model), batches)


def _in_eval_mode(ask: Ask) -> Ask:
    return lambda model, batches: ask(copy.deepcopy(model).eval(), batches)


def _asked(
    tool: str,
    label: str,
    ask: Ask,
    model: nn.Module,
    batches: list[Data],
    truths: dict[str, float],
) -> dict[str, Any]:
    model = copy.deepcopy(model)
    before = state_of(model)
    note = ""
    try:
        with _as_documented():
            answer = ask(model, batches)
    except Missing as missing:
        return _row(tool, label, None, "—", "", str(missing))
    except Exception as error:
        answer, note = None, described(error)
    changed = [name for name, old in before.items() if state_of(model)[name] != old]
    left = f"no: {', '.join(changed)}" if changed else "yes"
    left = "" if "copy" in tool else left
    return _row(tool, label, answer, _belongs(answer, truths), left, note)


def _belongs(answer: float | None, truths: dict[str, float]) -> str:
    if answer is None:
        return "no answer"
    near = [name for name, value in truths.items() if abs(answer / value - 1) < 1e-5]
    if near:
        return near[0]
    wanted = truths["batch statistics of all the data"]
    return f"none ({100 * (answer / wanted - 1):+.1f} %)"


def _notes_on_peers(model: nn.Module, one: list[Data]) -> list[dict[str, Any]]:
    rows = []
    for tool, ask in (
        (f"{peer_name('pyhessian')}, density()", _density),
        (
            f"{peer_name('curvlinops')}, dense, on a copy without running statistics",
            _asymmetry,
        ),
    ):
        try:
            with _as_documented():
                note = ask(copy.deepcopy(model), one)
        except Missing as missing:
            note = str(missing)
        except Exception as error:
            note = described(error)
        rows.append(_row(tool, "one batch", None, "—", "", note))
    return rows


def _density(model: nn.Module, one: list[Data]) -> str:
    ask_peer.pyhessian(model, one).density(iter=10)
    return "runs"


def _asymmetry(model: nn.Module, one: list[Data]) -> str:
    operator = ask_peer.curvlinops(without_statistics(model), one)
    theirs = (operator @ torch.eye(operator.shape[0], dtype=torch.float64)).numpy()
    truth = dense_hessian(model, one)
    v = np.random.default_rng(0).standard_normal(len(truth))
    off = np.linalg.norm(theirs @ v - truth @ v) / np.linalg.norm(truth @ v)
    skew = np.linalg.norm(theirs - theirs.T) / np.linalg.norm(theirs)
    return f"a product is off by {100 * off:.1f} %, H − Hᵀ is {100 * skew:.1f} % of H"


@contextmanager
def _as_documented() -> Iterator[None]:
    # PyHessian draws its vectors in the default dtype, so that must be the model's.
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def state_of(model: nn.Module) -> dict[str, Any]:
    """Return what a measurement must leave alone, as bytes and flags."""
    return {
        "modes": [m.training for m in model.modules()],
        "buffers": [b.detach().numpy().tobytes() for b in model.buffers()],
        "parameters": [p.detach().numpy().tobytes() for p in model.parameters()],
        "gradients": [p.grad is None for p in model.parameters()],
    }


def described(error: Exception) -> str:
    """Return the kind of an error and the beginning of its message."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:90]}{'…' if len(words) > 90 else ''}"


def _row(
    tool: str, data: str, answer: float | None, which: str, left: str, note: str
) -> dict[str, Any]:
    return {
        "tool": tool,
        "data": data,
        "largest eigenvalue": None if answer is None else round(answer, 6),
        "is that of": which,
        "model left as found": left,
        "note": note,
    }
