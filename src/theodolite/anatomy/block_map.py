"""The map: the spans of blocks that a network consists of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from theodolite.instruments import Batch, samples_in

from .activation_hooks import Place, Places
from .parts import Addition, Block, Span
from .recorder import record
from .recording import Call, Recording
from .result import Anatomy, anatomy_of


@dataclass(frozen=True, kw_only=True)
class BlockSpan:
    """A block with its place in the recorded pass.

    Attributes:
        block: Its description in the survey.
        entry: Number of the value that enters it.
        output: Number of the value that leaves it.
        start: Index of its first call.
        parameters: Names of its parameters.
    """

    block: Block
    entry: int
    output: int
    start: int
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BlockMap:
    """A recorded pass, cut into blocks.

    Attributes:
        anatomy: Parts of the network, from the recorded pass.
        spans: In order of depth.
        places: Where in a pass each value can be hooked, by its number.
        shapes: What to expect at each place.
        samples: Number of recorded samples.
    """

    anatomy: Anatomy
    spans: tuple[BlockSpan, ...]
    places: dict[int, Place]
    shapes: dict[Place, tuple[int, ...]]
    samples: int = 1

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, as reported."""
        return tuple(block_span.block for block_span in self.spans)


def empty_block_map() -> BlockMap:
    """Return an empty map, for a network that could not be recorded."""
    recording = Recording(calls=(), values=(), visits=(), outputs=())
    nothing = anatomy_of(recording)
    return BlockMap(anatomy=nothing, spans=(), places={}, shapes={})


def block_map_of(model: nn.Module, batch: Batch) -> BlockMap:
    """Run a model once and cut the pass into blocks."""
    notes = Places()
    anatomy = anatomy_of(record(model, batch, beside=notes.beside))
    places = notes.places
    return BlockMap(
        anatomy=anatomy,
        spans=tuple(
            replace(each, output=handed_on(anatomy.recording, each.output, places))
            for each in _block_spans(model, anatomy)
        ),
        places=places,
        shapes=notes.shapes,
        samples=samples_in(batch) or 1,
    )


# Operators that return their input, possibly in another shape.
RESHAPING = frozenset(
    "view _unsafe_view reshape permute transpose t contiguous clone unsqueeze squeeze "
    "_reshape_alias alias".split()
)


def handed_on(recording: Recording, number: int, places: dict[int, Place]) -> int:
    """Return the first value after a layer and its bias that can be hooked."""
    if number in places:
        return number
    fed, at = fed_by_inputs(recording), number
    while at not in places:
        readers = (call for call in recording.calls if at in call.inputs)
        onward = [c for c in readers if c.name in RESHAPING or _shifts(c, fed)]
        if not onward:
            return number
        at = onward[0].outputs[0]
    return at


def _shifts(call: Call, fed: set[int]) -> bool:
    """Return whether a call adds a constant to its input, such as a bias."""
    return call.name == "add" and len([n for n in call.inputs if n in fed]) == 1


def convolved(recording: Recording, call: Call) -> bool:
    """Return whether the layer before a call is a convolution; norms are skipped."""
    while call.inputs:
        value = recording.values[call.inputs[0]]
        if value.call is None:
            return False
        call = recording.calls[value.call]
        if call.name in ("convolution", "mm", "addmm", "bmm"):
            return call.name == "convolution"
    return False


def _block_spans(model: nn.Module, anatomy: Anatomy) -> tuple[BlockSpan, ...]:
    outer = [(i, a) for i, a in enumerate(anatomy.additions) if a.inside is None]
    weighted = _weighted(anatomy.recording, _covered(outer))
    block_spans = _plain(anatomy.recording, weighted) if not outer else []
    if outer:
        block_spans = _residual(anatomy, outer, weighted)
    block_spans = [
        replace(each, block=replace(each.block, index=index))
        for index, each in enumerate(named_apart(block_spans))
    ]
    return _furnished(model, anatomy, block_spans)


def _covered(outer: Sequence[tuple[int, Addition]]) -> set[int]:
    """Return the calls on skips and branches, and those that add them."""
    calls: set[int] = set()
    for _, addition in outer:
        calls.update(addition.calls)
        for span in (addition.skip, *addition.branches):
            calls.update(span.calls)
    return calls


def _weighted(recording: Recording, covered: set[int]) -> list[tuple[Call, int]]:
    """List calls outside of ``covered`` that apply weights to data, with that data."""
    fed = fed_by_inputs(recording)
    pairs = []
    for call in recording.calls:
        data = [n for n in call.inputs if n in fed]
        rest = [recording.values[n] for n in call.inputs if n not in fed]
        heavy = any(
            len(v.shape) >= 2 and weights_behind(recording, v.number) for v in rest
        )
        if data and heavy and call.index not in covered and call.module:
            pairs.append((call, data[0]))
    return pairs


def fed_by_inputs(recording: Recording) -> set[int]:
    """Return the numbers of the values that depend on the network's inputs."""
    values: set[int] = set()
    for value in recording.values:
        if value.source == "input" or values & set(value.of):
            values.add(value.number)
        elif value.call is not None:
            if values & set(recording.calls[value.call].inputs):
                values.add(value.number)
    return values


def weights_behind(recording: Recording, number: int) -> set[str]:
    """Return the names of all parameters that a value is computed from."""
    names: set[str] = set()
    work, seen = [number], set()
    while work:
        value = recording.values[work.pop()]
        if value.number in seen:
            continue
        seen.add(value.number)
        if value.source == "parameter":
            names.add(value.name)
        work += list(value.of)
        if value.call is not None:
            work += list(recording.calls[value.call].inputs)
    return names


def _plain(recording: Recording, weighted: list[tuple[Call, int]]) -> list[BlockSpan]:
    """Cut a network without additions at its layers with weights."""
    first: dict[str, tuple[Call, int]] = {}
    last: dict[str, Call] = {}
    for call, data in weighted:
        first.setdefault(call.module, (call, data))
        last[call.module] = call
    names = list(first)
    block_spans = []
    for place, name in enumerate(names):
        call, entry = first[name]
        is_last = place + 1 == len(names)
        output = last[name].outputs[0] if is_last else first[names[place + 1]][1]
        kind = "head" if is_last and len(names) > 1 else "plain"
        block_spans.append(_block_span(name, kind, entry, output, call.index))
    return block_spans


def _residual(
    anatomy: Anatomy,
    outer: list[tuple[int, Addition]],
    weighted: list[tuple[Call, int]],
) -> list[BlockSpan]:
    """Cut a network at its additions; the part between two is a block."""
    block_spans: list[BlockSpan] = []
    names = _names([addition for _, addition in outer])
    before = -1
    for (index, addition), name in zip(outer, names, strict=True):
        between = [(c, d) for c, d in weighted if before < c.index < addition.call]
        if between:
            kind = "plain" if block_spans else "stem"
            call, entry = between[0]
            block_spans.append(
                _block_span(call.module, kind, entry, addition.fork, call.index)
            )
        calls = [c for s in (addition.skip, *addition.branches) for c in s.calls]
        start = min([*calls, addition.call])
        block = Block(
            index=0, name=name, kind="residual", skip=addition.skip.kind, addition=index
        )
        block_spans.append(
            BlockSpan(
                block=block, entry=addition.fork, output=addition.output, start=start
            )
        )
        before = addition.call
    behind = [(c, d) for c, d in weighted if c.index > before]
    if behind:
        (call, _), (last, _) = behind[0], behind[-1]
        output, entry = last.outputs[0], outer[-1][1].output
        block_spans.append(_block_span(last.module, "head", entry, output, call.index))
    return block_spans


def _block_span(name: str, kind: str, entry: int, output: int, start: int) -> BlockSpan:
    block = Block(index=0, name=name, kind=kind)
    return BlockSpan(block=block, entry=entry, output=output, start=start)


def _names(additions: list[Addition]) -> list[str]:
    """Name blocks by the module that adds; if it adds several times, by the branch."""
    owners = [addition.module for addition in additions]
    names = []
    for addition in additions:
        alone = addition.module and owners.count(addition.module) == 1
        names.append(addition.module if alone else _branch_name(addition))
    return names


def _branch_name(addition: Addition) -> str:
    span: Span = addition.branches[0]
    owned = [
        module
        for module in span.modules
        if any(name.startswith(f"{module}.") for name in span.parameters)
    ]
    heavy = sorted(
        owned, key=lambda m: sum(name.startswith(f"{m}.") for name in span.parameters)
    )
    named = heavy[-1:] or span.modules[-1:] or (addition.module or "addition",)
    return named[0]


def named_apart(block_spans: list[BlockSpan]) -> list[BlockSpan]:
    """Number the blocks that would share a name."""
    names = [each.block.name for each in block_spans]
    counts: dict[str, int] = {}
    renamed = []
    for each in block_spans:
        name = each.block.name
        if names.count(name) > 1:
            counts[name] = counts.get(name, 0) + 1
            name = f"{name}#{counts[name]}"
        renamed.append(replace(each, block=replace(each.block, name=name)))
    return renamed


def _furnished(
    model: nn.Module, anatomy: Anatomy, block_spans: list[BlockSpan]
) -> tuple[BlockSpan, ...]:
    """Return the parameters, norms and activations of each block."""
    if not block_spans:
        return ()
    home = homes(anatomy, block_spans)
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    parameters: list[list[str]] = [[] for _ in block_spans]
    norms: list[list[str]] = [[] for _ in block_spans]
    activations: list[list[str]] = [[] for _ in block_spans]
    for name, call in first_uses(anatomy.recording).items():
        if name in sizes:
            parameters[home(call)].append(name)
    for norm in anatomy.norms:
        norms[home(norm.call)].append(f"{norm.kind}:{norm.placement}")
    for activation in anatomy.activations:
        activations[home(activation.call)].append(activation.kind)
    return tuple(
        replace(
            each,
            parameters=tuple(names),
            block=replace(
                each.block,
                norms=tuple(placed),
                activations=tuple(kinds),
                n_parameters=sum(sizes[name] for name in names),
            ),
        )
        for each, names, placed, kinds in zip(
            block_spans, parameters, norms, activations, strict=True
        )
    )


def homes(anatomy: Anatomy, block_spans: list[BlockSpan]) -> Any:
    """Return a function from a call to the index of its block."""
    inside: dict[int, int] = {}
    for place, each in enumerate(block_spans):
        if each.block.addition is None:
            continue
        addition = anatomy.additions[each.block.addition]
        for span in (addition.skip, *addition.branches):
            inside |= dict.fromkeys(span.calls, place)
    starts = [each.start for each in block_spans]

    def home(call: int) -> int:
        if call in inside:
            return inside[call]
        return max((i for i, s in enumerate(starts) if s <= call), default=0)

    return home


def first_uses(recording: Recording) -> dict[str, int]:
    """Return the first call that applies each parameter to data, by parameter name."""
    fed = fed_by_inputs(recording)
    first: dict[str, int] = {}
    for call in recording.calls:
        if not any(number in fed for number in call.inputs):
            continue
        for number in call.inputs:
            if number not in fed:
                for name in weights_behind(recording, number):
                    first.setdefault(name, call.index)
    return first
