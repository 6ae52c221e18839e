"""The tangent kernel's Gram matrix, layer by layer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError

from ..differentiate.batch_norm_twice import own_statistics
from ..differentiate.derivatives import pull_back_many
from ..differentiate.model_backward import is_transformed
from ..differentiate.twice import BatchNormCalls
from ..distributed.processes import Team
from ..model.objective import Batch
from .gram import Gram
from .layer_rows import Call, known, outer_factors, rows_of

Run = Callable[[Batch], Tensor]


@dataclass
class Unit:
    """Layers that must be measured together, since they share parameters.

    Attributes:
        uses: For each parameter, the layers and slots in which it is.
        bytes: What their activations and the derivatives by them take.
    """

    uses: list[list[tuple[nn.Module, str]]]
    bytes: int = 0

    @property
    def modules(self) -> set[nn.Module]:
        """All layers of the unit."""
        return {module for use in self.uses for module, _ in use}


@dataclass
class Plan:
    """Which parameters are met in known layers, and which are not.

    Attributes:
        units: Groups of known layers; their bytes are the most of any rank.
        rest: Parameters that other code meets.
        width: Outputs of one sample.
        samples: Samples of each batch of this process.
    """

    units: list[Unit]
    rest: list[nn.Parameter]
    width: int
    samples: list[int] = field(default_factory=list)


def plan(
    model: nn.Module,
    scenes: Sequence[Batch],
    run: Run,
    chosen: Sequence[nn.Parameter],
    team: Team,
) -> Plan:
    """Run the model once without derivatives, and sort its parameters.

    All ranks come to the same plan.
    """
    owners: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {p: [] for p in chosen}
    for module in model.modules():
        for slot, parameter in module._parameters.items():
            if parameter is not None and parameter in owners:
                owners[parameter].append((module, slot))
    own, samples, widths = _sizes(model, scenes, run)
    sizes, width = _agreed_sizes(own, team), _agreed_width(widths, team)
    units, rest = [], []
    for parameter, uses in owners.items():
        plain = all(sizes.get(m) and slot in ("weight", "bias") for m, slot in uses)
        if plain and uses:
            units.append(Unit([uses], sum(sizes[m] for m, _ in uses)))
        else:
            rest.append(parameter)
    return Plan(_merged(units, sizes), rest, width, samples)


def one_width(scenes: Sequence[Batch], run: Run, team: Team) -> int:
    """Return the number of outputs of one sample."""
    with torch.no_grad(), BatchNormCalls(own_statistics):
        shapes = [run(scene).shape for scene in scenes]
    return _agreed_width({shape[1:].numel() for shape in shapes}, team)


def sweep(
    model: nn.Module,
    scenes: Sequence[Batch],
    run: Run,
    units: Sequence[Unit],
    gram: Gram,
    *,
    columns: int,
) -> int:
    """Add the rows of some units; return the backward passes spent."""
    modules = set(chain.from_iterable(unit.modules for unit in units))
    seen = [_calls(model, scene, run, modules) for scene in scenes]
    for unit in units:
        _add_unit(unit, [calls for calls, _ in seen], gram, columns)
    return sum(passes for _, passes in seen)


def groups(units: Sequence[Unit], allowed: int) -> Iterator[list[Unit]]:
    """Put as many units into one sweep as memory allows."""
    group: list[Unit] = []
    for unit in units:
        if group and sum(u.bytes for u in group) + unit.bytes > allowed:
            yield group
            group = []
        group.append(unit)
    if group:
        yield group


def _sizes(
    model: nn.Module, scenes: Sequence[Batch], run: Run
) -> tuple[dict[nn.Module, int], list[int], set[int]]:
    """Return bytes by layer, 0 for one that samples do not pass by themselves.

    And the samples of each batch, and how many outputs one has.
    """
    met: dict[nn.Module, list[tuple[int, int, int]]] = {}

    def look(module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        plain = args and isinstance(args[0], Tensor) and isinstance(result, Tensor)
        # What leaves a layer within torch's transforms cannot be pulled back to.
        plain = plain and not is_transformed()
        lengths = (len(args[0]), args[0].nbytes, result.nbytes) if plain else (0, 0, 0)
        met.setdefault(module, []).append(lengths)

    samples, widths, sizes = [], set(), {}
    layers = [module for module in model.modules() if known(module)]
    for scene in scenes:
        met.clear()
        with torch.no_grad(), _watched(layers, look):
            outputs = run(scene)
        samples.append(len(outputs))
        widths.add(outputs.numel() // max(1, len(outputs)))
        for module in layers:
            calls = met.get(module, [])
            count = outputs.numel() // max(1, len(outputs))
            held = sum(_spread(module) * a + 2 * count * z for _, a, z in calls)
            fits = bool(calls) and all(n == len(outputs) for n, _, _ in calls)
            past = sizes.get(module, 1)
            sizes[module] = past + held if fits and past else 0
    return sizes, samples, widths


@contextmanager
def _watched(layers: Iterable[nn.Module], look: Callable[..., Any]) -> Iterator[None]:
    """Call a function at every call of some layers."""
    handles = [layer.register_forward_hook(look) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _agreed_sizes(sizes: dict[nn.Module, int], team: Team) -> dict[nn.Module, int]:
    """Return the most bytes of any rank, 0 where any says so."""
    if not sizes:
        return sizes
    every = torch.stack(team.gather(torch.tensor(list(sizes.values()), device="cpu")))
    agreed = torch.where((every == 0).any(0), 0, every.amax(0))
    return dict(zip(sizes, agreed.tolist(), strict=True))


def _agreed_width(widths: set[int], team: Team) -> int:
    ends = team.gather(torch.tensor([min(widths), max(widths)], device="cpu"))
    counts = sorted({int(width) for pair in ends for width in pair} | widths)
    if len(counts) > 1:
        raise MeasurementError(
            f"batches have {counts} outputs a sample: the tangent kernel wants the "
            "same of all"
        )
    return counts[0]


def _spread(module: nn.Module) -> int:
    """Return how many times its inputs a layer's rows are made from."""
    if isinstance(module, nn.Conv2d):
        return 1 + module.kernel_size[0] * module.kernel_size[1]
    return 2


def _merged(units: Sequence[Unit], sizes: Mapping[nn.Module, int]) -> list[Unit]:
    """Join units that have a layer in common."""
    merged: list[Unit] = []
    for unit in units:
        touching = [other for other in merged if other.modules & unit.modules]
        uses = [*chain.from_iterable(other.uses for other in touching), *unit.uses]
        joined = Unit(uses)
        joined.bytes = sum(sizes[module] for module in joined.modules)
        merged = [other for other in merged if other not in touching] + [joined]
    return merged


def _calls(
    model: nn.Module, scene: Batch, run: Run, modules: set[nn.Module]
) -> tuple[dict[nn.Module, list[Call]], int]:
    """Run a batch, and pull every output back to the layers' outputs."""
    met: list[tuple[nn.Module, Tensor, Tensor]] = []

    def look(module: nn.Module, args: tuple[Any, ...], result: Tensor) -> Tensor:
        left = result if result.requires_grad else result.detach().requires_grad_()
        met.append((module, args[0].detach(), left))
        return left.clone()  # which later code may write to

    with _watched(modules, look):
        outputs = run(scene)
    flat = outputs.reshape(len(outputs), -1)
    width = flat.shape[1]
    basis = torch.eye(width, dtype=flat.dtype, device=flat.device)
    cotangents = basis.unsqueeze(1).expand(width, *flat.shape)
    lefts = [left for _, _, left in met]
    try:
        pulled = pull_back_many(flat, lefts, cotangents, batched=True)
    except RuntimeError:  # an operator that torch cannot batch
        pulled = pull_back_many(flat, lefts, cotangents, batched=False)
    calls: dict[nn.Module, list[Call]] = {}
    for (module, inputs, _), part in zip(met, pulled, strict=True):
        call = Call(module, inputs, part.detach().transpose(0, 1))
        calls.setdefault(module, []).append(call)
    return calls, width


def _add_unit(
    unit: Unit, seen: list[dict[nn.Module, list[Call]]], gram: Gram, columns: int
) -> None:
    if len(unit.modules) == 1 and _add_outer(unit, seen, gram):
        return
    for uses in unit.uses:
        parts = [
            _summed_rows(
                [(call, slot) for m, slot in uses for call in calls[m]], columns
            )
            for calls in seen
        ]
        for blocks in zip(*parts, strict=True):
            whole = list(blocks)
            gram.add(torch.cat(whole) if len(whole) > 1 else whole[0])


def _add_outer(unit: Unit, seen: list[dict[nn.Module, list[Call]]], gram: Gram) -> bool:
    """Add rows that are single outer products; return False if they are not."""
    factors = _outer(unit, seen)
    if gram.team.largest(factors is None) or factors is None:
        return False
    gram.add_outer(*factors)
    return True


def _outer(
    unit: Unit, seen: list[dict[nn.Module, list[Call]]]
) -> tuple[Tensor, float, Tensor] | None:
    (module,) = unit.modules
    if any(len(calls[module]) != 1 for calls in seen):
        return None
    firsts = [calls[module][0] for calls in seen]
    whole = firsts[0]
    if len(firsts) > 1 and all(call.inputs.ndim == 2 for call in firsts):
        inputs = torch.cat([call.inputs for call in firsts])
        whole = Call(module, inputs, torch.cat([call.pulled for call in firsts]))
    elif len(firsts) > 1:
        return None
    return outer_factors(whole, {slot for uses in unit.uses for _, slot in uses})


def _summed_rows(calls: list[tuple[Call, str]], columns: int) -> Iterator[Tensor]:
    """Yield blocks of rows by one parameter, summed over its uses."""
    streams = [rows_of(call, slot, columns=columns) for call, slot in calls]
    for blocks in zip(*streams, strict=True):
        total = blocks[0][1]
        for _, rows in blocks[1:]:
            total = total + rows
        yield total
