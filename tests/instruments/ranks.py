"""What ranks of a team measure, in processes of their own, and alone."""

import importlib
import multiprocessing
import signal
import time

import torch
import torch.distributed as dist
from torch import nn

from theodolite.core import TheodoliteError
from theodolite.instruments import (
    EmpiricalFisher,
    Fisher,
    GaussNewton,
    Hessian,
    Identity,
    TangentKernel,
    Team,
    extreme_eigenvalues,
    hessian,
    share_of,
    spectral_density,
    trace,
)

SIZES = (3, 4, 2, 3, 4)
KILLED = signal.SIGKILL
LOSS = nn.CrossEntropyLoss()
# Norm modes and micro-batches: each takes another way to its sums.
WAYS = [
    ("batch", 2),
    ("full", None),
    ("full", 3),
    ("frozen", None),
    ("eval", 2),
    ("as_is", 2),
]

OTHERS = {("full", None): [GaussNewton], ("frozen", None): [Fisher, EmpiricalFisher]}


def launch(target, *arguments, size, method="fork", seconds=250):
    """Start one process a rank; return how they ended, None for one that did not.

    None of them outlives the call, so that one that hangs holds nobody up.
    """
    context = multiprocessing.get_context(method)
    children = [
        context.Process(target=target, args=(rank, size, *arguments), daemon=True)
        for rank in range(size)
    ]
    end = time.monotonic() + seconds
    try:
        for child in children:
            child.start()
        for child in children:
            child.join(max(0, end - time.monotonic()))
        return [child.exitcode for child in children]
    finally:
        for child in children:
            if child.pid is not None:
                child.kill()
                child.join()


def import_all():
    """Import what ranks will want before they are forked, once for all of them."""
    importlib.import_module("torch._dynamo")  # as DistributedDataParallel does


class Peeking(nn.Module):
    """Looks at a number behind a norm, so that passes cannot be cut there."""

    def forward(self, x):
        return x if x.sum().item() < 1e9 else -x


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 3),
        nn.BatchNorm1d(3),
        nn.Tanh(),
        nn.Linear(3, 3),
        nn.BatchNorm1d(3),
        nn.Softplus(),
        nn.Linear(3, 3),
    ).double()


def peeking_network():
    model = network()
    return nn.Sequential(*model[:5], Peeking(), *model[5:])


def data():
    torch.manual_seed(1)
    return [
        (torch.randn(n, 3, dtype=torch.float64), torch.arange(n) % 3) for n in SIZES
    ]


def measured(team=None):
    """Measure with all operators in all norm modes; on the share of this rank."""
    model, mine, found = network(), share_of(data(), team), {}
    model[4].eval()  # which counts under ``as_is`` alone
    for mode, micro_batch in WAYS:
        given = {"norm_mode": mode, "micro_batch": micro_batch, "team": team}
        name = f"{mode} {micro_batch}"
        for kind in (Hessian, *OTHERS.get((mode, micro_batch), ())):
            operator = kind(model, mine, loss=LOSS, **given)
            vector = torch.linspace(-1, 1, operator.shape[1], dtype=torch.float64)
            found[f"{name} {operator.title}"] = operator @ vector
            if kind is Hessian:
                value, gradient = operator.loss_and_gradient()
                found[f"{name} loss"], found[f"{name} gradient"] = value, gradient
                block = operator[["3.weight"]]
                found[f"{name} block"] = block @ vector[:9]
                found["partition"] = torch.tensor(operator.partition)
        kernel = TangentKernel(model, mine, **given)
        vector = torch.linspace(-1, 1, kernel.shape[0], dtype=torch.float64)
        found[f"{name} kernel"] = kernel @ vector
        found[f"{name} outputs"] = kernel.jacobian.outputs()
    by_turns = Hessian(
        peeking_network(),
        mine,
        loss=LOSS,
        norm_mode="full",
        micro_batch=3,
        team=team,
    )
    vector = torch.linspace(-1, 1, by_turns.shape[1], dtype=torch.float64)
    found["sequential"] = by_turns @ vector
    found |= ignored(model, team) | combined(model, mine, team)
    return found | spectra(model, mine, team) | followed(model, mine, team)


def combined(model, mine, team):
    """Multiply by combinations of two operators, and measure one."""
    given = {"loss": LOSS, "team": team}
    full = Hessian(model, mine, norm_mode="full", **given)
    other = GaussNewton(model, mine, norm_mode="eval", micro_batch=2, **given)
    made, damped = full - 2 * other @ full, other + 0.5 * Identity(other)
    vector = torch.linspace(-1, 1, made.shape[1], dtype=torch.float64)
    reading = trace(full - other, method="products", max_matvecs=6)
    return {
        "combination": made @ vector,
        "transpose": made.T @ vector,
        "off the diagonal": full["0.weight", "6.bias"] @ vector[:3],
        "inverse": damped.inverse() @ vector,
        "trace of a sum": torch.tensor(reading.trace),
    }


def ignored(model, team):
    """Multiply where no target of the second of three ranks counts."""
    batches = [
        (x, torch.full_like(y, -100) if place in (2, 3) else y)
        for place, (x, y) in enumerate(data())
    ]
    mine, found = share_of(batches, team), {}
    for mode in ("batch", "full", "frozen", "eval"):
        operator = Hessian(model, mine, loss=LOSS, norm_mode=mode, team=team)
        vector = torch.linspace(-1, 1, operator.shape[1], dtype=torch.float64)
        found[f"ignored {mode}"] = operator @ vector
    return found


def spectra(model, mine, team):
    given = {"loss": LOSS, "norm_mode": "full", "team": team}
    # As a model that is trained over processes comes.
    held = model if team is None else nn.parallel.DistributedDataParallel(model)
    ends = extreme_eigenvalues(model, mine, params=["3.weight"], **given)
    return {
        "eigenvalues": torch.from_numpy(ends.eigenvalues),
        "trace": torch.tensor(trace(held, mine, max_matvecs=12, **given).trace),
        "density": torch.from_numpy(
            spectral_density(model, mine, n_probes=2, steps=6, **given).density
        ),
        "matrix": torch.from_numpy(
            hessian(
                held,
                mine,
                loss=LOSS,
                norm_mode="batch",
                params=["0.weight"],
                team=team,
            ).matrix
        ),
    }


def followed(model, mine, team):
    """Multiply before and after a step, which moves statistics of all ranks."""
    operator = Hessian(model, mine, loss=LOSS, norm_mode="full", team=team)
    vector = torch.ones(operator.shape[1], dtype=torch.float64)
    before = operator @ vector
    with torch.no_grad():
        model[0].weight *= 1.5
    return {"before": before, "after": operator @ vector}


def refused(team, other):
    """Return what is said of what ranks must not do; the team works on."""
    model, mine = network(), share_of(data(), team)
    given = {"loss": LOSS, "norm_mode": "full", "team": team}
    operator = Hessian(model, mine, **given)
    said = {}
    vector = torch.ones(operator.shape[1], dtype=torch.float64)
    said["vectors"] = sentence(lambda: operator @ (vector + team.rank))
    with torch.no_grad():
        model[0].bias += team.rank
    said["weights"] = sentence(lambda: operator @ vector)
    mixed = network()
    mixed[1].train(team.rank == 0)
    as_is = {**given, "norm_mode": "as_is"}
    said["as_is"] = sentence(lambda: Hessian(mixed, mine, **as_is) @ vector)
    said["batches"] = sentence(lambda: share_of(data()[:2], team))
    said["nothing"] = sentence(
        lambda: Hessian(network(), [(x, 0 * y - 100) for x, y in mine], **given)
    )
    first, same = team.rank == 0, {"loss": LOSS, "team": team, "norm_mode": "full"}
    others = {
        "params": {"params": ["0.weight" if first else "3.weight"]},
        "modes": {"norm_mode": "frozen" if first else "batch"},
        "reductions": {"reduction": "sum" if first else "mean", "loss": own_loss},
    }
    for name, changed in others.items():
        call = {**same, **changed}
        said[name] = sentence(lambda call=call: Hessian(network(), mine, **call))
    kind = GaussNewton if first else Hessian
    said["kinds"] = sentence(lambda: kind(network(), mine, **same))
    half = network().float() if first else network()
    said["dtypes"] = sentence(lambda: Hessian(half, mine, **same))
    said["bases"] = sentence(
        lambda: extreme_eigenvalues(
            network(),
            mine,
            **same,
            method="products",
            basis="shared" if first else "device",
        )
    )
    given["team"] = other
    if team.rank == 1:
        mine = [(x * torch.nan, y) for x, y in mine]
    begun = time.monotonic()
    said["one fails"] = sentence(lambda: Hessian(network(), mine, **given))
    said["and later"] = sentence(lambda: other.sum(vector) if team.rank != 1 else 1)
    return said, time.monotonic() - begun


def own_loss(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def sentence(act):
    try:
        act()
    except TheodoliteError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def begin(rank, size, store):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=size
    )


def work(rank, size, place):
    begin(rank, size, f"{place}/store")
    team, other = Team(True), Team(dist.new_group(list(range(size))))
    found = measured(team)
    said, seconds = refused(team, other)
    found["sum"] = team.sum(torch.tensor([rank + 1.0]))
    torch.save((found, said, seconds), f"{place}/found-{rank}")
    dist.destroy_process_group()


def on_one_card(rank, size, place):
    """Share a card: what is sent goes by way of the host."""
    begin(rank, size, f"{place}/store")
    team = Team(True)
    model = network().cuda()
    mine = [(x.cuda(), y.cuda()) for x, y in share_of(data(), team)]
    operator = Hessian(model, mine, loss=LOSS, norm_mode="full", team=team)
    vector = torch.linspace(-1, 1, operator.shape[1], dtype=torch.float64)
    torch.save((operator @ vector).cpu(), f"{place}/card-{rank}")
    dist.destroy_process_group()


def by_nccl(rank, size, place):
    """Make the calls of a team by NCCL, with which each rank needs a card."""
    torch.cuda.set_device(rank)
    store = f"file://{place}/store"
    dist.init_process_group("nccl", init_method=store, rank=rank, world_size=size)
    team, tensor = Team(True), torch.ones(3, device="cuda")
    team._call(dist.all_reduce, tensor, op=dist.ReduceOp.SUM)
    torch.save(tensor.cpu(), f"{place}/nccl-{rank}")
    dist.destroy_process_group()
