"""Tools that look at a network before or while it trains: what each one says.

Every tool gets a fresh copy and is used as its documentation says. Truths are dense
Hessians by double backward, operations counted by hand, and trainings.
"""

import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from typing import Any

import numpy as np
import torch
from docs.make_pictures import STEPS, losses, run_readme, with_advice
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import theodolite
from bench import curvature_peers as ask_peer
from bench.curvature import described, state_of
from bench.dense_truth import dense_hessian
from bench.networks import Data, Tied, residual_net, small_case
from bench.peers import Missing, peer, peer_name
from bench.progress import say
from bench.timing import cpu_seconds
from theodolite.instruments import trace

# What it says, whether that is right or what to train to find out, and a note.
Answer = tuple[str, str | dict[str, Any], str]
Ask = Callable[[nn.Module], Answer]
LOSS = nn.CrossEntropyLoss()
IN_THE_LOOP = ("backpack", "cockpit")  # work in the passes of the training itself


def run() -> Iterator[dict[str, Any]]:
    """Ask every tool for what it is for."""
    space, _, _ = run_readme()
    for task, model, tools in (
        _untrained(space),
        *(_too_fast(space, seed) for seed in range(3)),
        *_traces(),
        *_layers(),
    ):
        say(task)
        for tool, ask in tools:
            row = _asked(ask, copy.deepcopy(model), space)
            left = row.pop("left")
            left = "" if tool.startswith(IN_THE_LOOP) else left
            yield {"task": task, "tool": tool, **row, "model left as found": left}


def _asked(ask: Ask, model: nn.Module, space: dict[str, Any]) -> dict[str, Any]:
    before = state_of(model)
    try:
        with _quiet(next(model.parameters()).dtype):
            answer, right, note = ask(model)
    except Missing as missing:
        return {"answer": None, "note": str(missing), "left": ""}
    except Exception as error:
        answer, right, note = "no answer", "no", described(error)
    after = state_of(model)
    changed = ", ".join(name for name in before if before[name] != after[name])
    if isinstance(right, dict):
        loss = losses(right["model"], right["optimizer"], space)[-1]
        right = f"loss {loss:.3f} after {STEPS} steps"
    left = f"no: {changed}" if changed else "yes"
    return {"answer": answer, "right": right, "note": note, "left": left}


def _untrained(space: dict[str, Any]) -> tuple[str, nn.Module, Any]:
    def alphas(model: nn.Module) -> str:
        table = peer("weightwatcher").WeightWatcher(model=model).analyze()
        under = (table["warning"] == "under-trained").sum()
        return f"mean α {table['alpha'].mean():.1f}, {under} layers under-trained"

    def watcher(model: nn.Module) -> Answer:
        repaired = with_advice(space)
        losses(repaired["model"], repaired["optimizer"], space)
        note = f"repaired and trained: {alphas(repaired['model'])}"
        return alphas(model), "names no cause", note

    def layers(model: nn.Module) -> Answer:
        table = peer("torchinfo").summary(model, input_data=space["x"], verbose=0)
        return f"{table.total_params:,} parameters", "names no cause", ""

    tools = (
        ("theodolite.survey", partial(_surveyed, space=space, rate=0.05)),
        (peer_name("torch_lr_finder"), partial(_searched, space=space, size=256)),
        (peer_name("weightwatcher"), watcher),
        (peer_name("torchinfo"), layers),
    )
    return "30 tanh layers that do not train (README)", space["model"], tools


def _too_fast(space: dict[str, Any], seed: int) -> tuple[str, nn.Module, Any]:
    torch.manual_seed(seed)
    hidden = [nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()]
    model = nn.Sequential(*hidden, nn.Linear(64, 10))
    finder = peer_name("torch_lr_finder")
    tools = (
        ("none", lambda model: ("rate 10", _set_up(model, 10.0), "")),
        ("theodolite.survey", partial(_surveyed, space=space, rate=10.0)),
        (finder, partial(_searched, space=space, size=256)),
        (f"{finder}, batches of 32", partial(_searched, space=space, size=32)),
    )
    return f"learning rate of 10, two ReLU layers, seed {seed}", model, tools


def _set_up(model: nn.Module, rate: float) -> dict[str, Any]:
    model = copy.deepcopy(model)
    return {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=rate)}


def _surveyed(model: nn.Module, space: dict[str, Any], rate: float) -> Answer:
    """Survey a network, and give its first advice to a copy."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    data = space["x"], space["y"]
    found = theodolite.survey(model, data, loss=LOSS, optimizer=optimizer)
    treated = {**_set_up(model, rate), "inputs": space["x"]}
    torch.manual_seed(0)
    exec(found.advice[0].code, treated)
    return found.findings[0].title, treated, found.advice[0].title


def _searched(model: nn.Module, space: dict[str, Any], size: int) -> Answer:
    """Search a rate by the defaults of the tool, which restores the model."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    search = peer("torch_lr_finder").LRFinder(model, optimizer, LOSS, device="cpu")
    data = TensorDataset(space["x"], space["y"])
    search.range_test(DataLoader(data, batch_size=size, shuffle=True))
    _, rate = search.plot()
    search.reset()
    return f"rate {rate:.2g}", _set_up(model, rate), ""


def _traces() -> Iterator[tuple[str, nn.Module, Any]]:
    net, batch = small_case()
    torch.manual_seed(0)
    ends = nn.Conv2d(2, 4, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(64, 3)
    chains = {
        "batch statistics": nn.Sequential(ends[0], nn.BatchNorm2d(4), *ends[1:]),
        "no norms": nn.Sequential(*ends),
    }
    for name, chain in chains.items():
        truth = np.trace(dense_hessian(chain.double(), [batch]))
        ours, dense = (
            partial(_trace, batch=batch, method=m) for m in ("auto", "dense")
        )
        yield f"trace of the Hessian, {name} (truth: {truth:.6g})", chain, {
            "theodolite": _judged(ours, truth),
            "theodolite, method='dense'": _judged(dense, truth),
            peer_name("backpack"): _judged(
                partial(ask_peer.backpack_trace, batch=batch), truth
            ),
        }.items()  # fmt: skip
    truth = np.linalg.eigvalsh(dense_hessian(net, [batch]))[-1]
    yield f"largest eigenvalue, batch statistics (truth: {truth:.6g})", net, [
        (f"{peer_name('cockpit')}{name}",
         _judged(partial(ask_peer.cockpit_top, batch=batch, power=not name), truth))
        for name in ("", ", use_power=False")
    ]  # fmt: skip


def _judged(ask: Callable[[nn.Module], tuple[float, float]], truth: float) -> Ask:
    def judge(model: nn.Module) -> Answer:
        value, error = ask(model)
        text = f"{value:.6g}" + (f" ± {error:.2g}" if error > 1e-9 else "")
        off = abs(value - truth)
        right = off <= max(2 * error, 1e-3 * abs(truth))
        return text, "yes" if right else f"no: {off / abs(truth):.0%} off", ""

    return judge


def _trace(model: nn.Module, batch: Data, **options: Any) -> tuple[float, float]:
    reading = trace(model, batch, loss=LOSS, norm_mode="batch", **options)
    return reading.trace, reading.trace_error


def _layers() -> Iterator[tuple[str, nn.Module, Any]]:
    """Yield networks with their MACs per sample, counted by hand."""
    torch.manual_seed(0)
    two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 3, stride=2, padding=1)
    convs = nn.Sequential(*two, nn.Flatten(), nn.Linear(64, 5))
    coder = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    lstm, resnet = nn.LSTM(16, 8, batch_first=True), residual_net(3, 8, 2, 10)
    images, words = torch.randn(4, 3, 8, 8), torch.randn(4, 12, 16)
    # Kernels have 9 entries; maps have 8 × 8 and 4 × 4 pixels, sequences 12 places.
    attention = 4 * 16 * 16 + 2 * 12 * 16
    for name, model, x, macs in (
        ("convolutions", convs, images, 64 * 9 * 3 * 8 + 16 * 9 * 8 * 4 + 64 * 5),
        ("transformer", coder, words, 12 * (attention + 2 * 16 * 32)),
        ("LSTM", lstm, words, 12 * 4 * 8 * (16 + 8)),
        ("residual", resnet, images, 64 * 9 * (3 * 8 + 4 * 8 * 8) + 8 * 10),
        ("tied weights", Tied(), torch.arange(48).reshape(4, 12), 12 * 16 * (16 + 50)),
    ):
        n = sum(p.numel() for p in model.parameters())
        tools = ("theodolite.summary", _summary), (peer_name("torchinfo"), _torchinfo)
        task = f"layers, {name} (truth: {n:,} parameters, {macs:,} MACs)"
        yield task, model, [(t, _counted(count, x, n, macs)) for t, count in tools]


def _summary(model: nn.Module, x: Tensor) -> tuple[int, int]:
    table = theodolite.summary(model, x)
    return table.n_parameters, int(table.macs)


def _torchinfo(model: nn.Module, x: Tensor) -> tuple[int, int]:
    table = peer("torchinfo").summary(model, input_data=x, verbose=0)
    return table.total_params, table.total_mult_adds // len(x)


def _counted(count: Callable[..., tuple[int, int]], x: Tensor, *truth: int) -> Ask:
    def ask(model: nn.Module) -> Answer:
        seconds, found = cpu_seconds(partial(count, model, x))
        gaps = [one - true for one, true in zip(found, truth, strict=True)]
        named = zip(("parameters", "MACs"), gaps, strict=True)
        wrong = ", ".join(f"{name} {gap:+,}" for name, gap in named if gap)
        answer = "{:,} parameters, {:,} MACs".format(*found)
        return answer, f"no: {wrong}" if wrong else "yes", f"{1000 * seconds:.1f} ms"

    return ask


@contextmanager
def _quiet(dtype: torch.dtype) -> Iterator[None]:
    """Print nothing, and make dtype the default, which some tools compute in."""
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            with redirect_stderr(io.StringIO()):
                yield
    finally:
        logging.disable(logging.NOTSET)
        torch.set_default_dtype(torch.float32)
