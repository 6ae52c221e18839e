r"""Whether the loss of all the data is the sum or the mean over its parts.

A few samples drawn from all the data are measured together and in two parts, batch
norms held at the statistics of all of them. Gradients, and products of the operator
with a random vector, are compared: the value of a loss shows too little, since at
initialisation it hardly depends on the samples. Rounding is measured as in Monte Carlo
arithmetic: the parts are measured again with every result of torch moved by one
rounding of its own type, up or down by chance. So the comparison is as sharp as the
arithmetic, and no sharper, however much a network amplifies what it rounds.

References:
    Parker (1997), Monte Carlo arithmetic: exploiting randomness in floating-point
    arithmetic, UCLA.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from theodolite.core import MeasurementError, derive

from ..differentiate.batch_norm_twice import NormCall
from ..differentiate.derivatives import Parts, filled
from ..differentiate.twice import BatchNormCalls
from ..model.objective import Batch, Divisor, map_tensors
from ..norms.full_statistics import Moments, moments_of
from .batches import as_float64, join_batches, select_samples
from .grouping import Chunk, mass_of, partition_of
from .moved_results import MovedResults
from .prepared_model import PreparedModel

# Samples measured together, how often they are drawn, and from how many.
_FEW, _DRAWS, _POOL = 8, 2, 256
# Times the rounding measured that samples apart may differ by. Of 48 networks, most of
# them float32, among them inverted residuals on badly scaled running statistics, plain
# rectifiers, recurrent ones and transformers, the largest was 2.1.
_TIMES = 10.0
# A single parameter shows its rounding by chance: its gradient must be off by so much.
# Where rounding may do as much to all of them, the comparison is made in float64.
_OF_ONE = 1e-2
# Roundings allowed for operations that do not amplify them.
_LEAST = 30
# Relative difference below which another first target changes nothing.
_SAME = 1e-6

# The batch that a sample is of, the sample, and what it counts in a mean.
_Single = tuple[int, Batch, float]
# A gradient or outputs, and a product.
_Measured = tuple[Parts, Parts]


@dataclass(frozen=True, kw_only=True, eq=False)
class Separability:
    """Compare samples in one batch and in parts, inside ``sheltered``.

    Attributes:
        prepared: The model and its data.
        fits: Whether the graph of so many samples fits in memory.
    """

    prepared: PreparedModel
    fits: Callable[[int], bool]

    @property
    def divisor(self) -> Divisor | None:
        """How the loss combines samples, None where there is no loss."""
        return self.prepared.measured.divisor

    @property
    def seed(self) -> int:
        """Root seed of the random draws."""
        return self.prepared.problem.seed

    def check(self) -> None:
        """Find how parts of the data combine, and refuse what would be changed."""
        team, counts = self.prepared.team, partition_of(self.prepared.items)
        smallest = min((count for count in counts if count), default=_FEW)
        micro_batch = self.prepared.problem.micro_batch
        cut = micro_batch is not None and any((n or 0) > micro_batch for n in counts)
        if team.largest(cut or self.prepared.joins):
            self._require(micro_batch or smallest)
        elif len(counts) > 1 or team.several:
            self._choose(smallest)

    def _require(self, at_most: int) -> None:
        """Refuse to cut or join data where that would change the operator.

        Few samples a pass may be too few to couple: two have no negatives to contrast,
        and often the same expert. So more are measured where memory allows.
        """
        if at_most < _FEW:
            sizes = (count for count in (_FEW, _FEW // 2) if self.fits(count))
            at_most = max(next(sizes, at_most), at_most)
        draws = (self._few(draw, at_most) for draw in range(_DRAWS))
        holds = all(few is None or self._adds_up(few) for few in draws)
        self._agree()
        if self.prepared.team.largest(not holds):
            raise MeasurementError(
                "samples measured together and apart give different numbers, so "
                "cutting or joining batches would change the operator: state "
                "reduction='mean' or 'sum' as the loss has it, pass weights= if its "
                "mean counts neither samples nor targets, or pass one batch without "
                "micro_batch if the model couples samples other than by batch norm"
            )

    def _choose(self, at_most: int) -> None:
        """Find how several batches combine; refuse a reduction that contradicts them.

        A loss may couple the samples of a batch, as contrastive ones do: that of
        several batches is then the mean of theirs, or their sum where that is stated.
        """
        if self.divisor is None or self.divisor.known:
            return
        try:
            few = self._few(0, at_most)
            contradicted = few is not None and self._is_other(few, self.divisor)
        except Exception:  # the model or loss accepts no fewer samples
            contradicted = False
        self._agree()
        if self.prepared.team.largest(contradicted):
            stated, other = ("sum", "mean") if self.divisor.sums else ("mean", "sum")
            raise MeasurementError(
                f"several batches came and the reduction is {stated!r}, but samples "
                f"measured together and apart show that it is {other!r}: pass "
                f"reduction={other!r}, or all data as one batch"
            )

    def _agree(self) -> None:
        """Make all ranks use the same rule."""
        if self.divisor is not None:
            team, divisor = self.prepared.team, self.divisor
            divisor.place = int(team.largest(divisor.place))
            divisor.shifted = team.largest(divisor.shifted) > 0

    def _adds_up(self, few: "_Few") -> bool:
        """Return whether parts add up to the whole, in float64 if rounding hides it."""
        start = 0 if self.divisor is None else self.divisor.place
        holds = self._fits(few)
        if not (holds and few.blind) or self.prepared.dtype is torch.float64:
            return holds
        try:
            finer = replace(self, prepared=self.prepared.in_float64(few.whole))
            if self.divisor is not None:
                self.divisor.place = start
            with finer.prepared.sheltered():
                return finer._fits(few.in_float64(finer))
        except Exception:  # of a model that cannot be copied or does not run so
            return holds

    def _fits(self, few: "_Few") -> bool:
        """Return whether parts add up to the whole by some rule, and keep that rule."""
        divisor = self.divisor
        if divisor is None or divisor.sums:
            return few.beyond_rounding([1.0] * len(few.parts)) <= 1
        tried: list[list[float]] = []
        for place in range(divisor.place, divisor.rules):
            divisor.place = place
            if (shares := few.shares(divisor)) not in tried:
                tried.append(shares)
                if few.beyond_rounding(shares) <= 1:
                    return True
        return False

    def _is_other(self, few: "_Few", divisor: Divisor) -> bool:
        """Whether the other reduction is nearer and fits; the nearest rule is kept."""
        own = few.gap(self._nearest(few, divisor))
        divisor.sums = not divisor.sums
        try:
            # Products of single samples' gradients depend on the reduction assumed.
            other = _Few(self, few.whole, few.parts)
            shares = self._nearest(other, divisor)
            # A loss that couples samples is neither: being nearer is not enough.
            return other.gap(shares) < own and other.beyond_rounding(shares) <= 1
        finally:
            divisor.sums = not divisor.sums

    def _nearest(self, few: "_Few", divisor: Divisor) -> list[float]:
        """Return the weights of the parts by the best rule, and remember the rule."""
        if divisor.sums:
            return [1.0] * len(few.parts)
        gaps = []
        for place in range(divisor.rules):
            divisor.place = place
            gaps.append(few.gap(few.shares(divisor)))
        divisor.place = gaps.index(min(gaps))
        return few.shares(divisor)

    def _few(self, draw: int, at_most: int) -> "_Few | None":
        """Draw a few samples of all the data, None where no two of them count."""
        generator = torch.Generator().manual_seed(derive(self.seed, "samples", draw))
        pool = self._pool(generator)
        for singles in (pool, *_by_batch(pool)):
            halves = _unlike_halves(singles, max(2, min(_FEW, at_most)))
            parts = [join_batches([one for _, one, _ in half]) for half in halves]
            if (whole := join_batches(parts) if parts else None) is not None:
                return _Few(self, whole, parts)
        return None

    def _pool(self, generator: torch.Generator) -> list[_Single]:
        """Draw samples in random order, with what each counts, until two do."""
        counts = [count or 0 for count in partition_of(self.prepared.items)]
        ends = torch.tensor(counts, device="cpu").cumsum(0)
        pool: list[_Single] = []
        order = torch.randperm(sum(counts), generator=generator, device="cpu")
        for some in order.split(_POOL):
            drawn: dict[int, _Single] = {}
            # Streams are read from the front, one batch after the other.
            wanted = sorted(some.tolist())
            ordered = torch.tensor(wanted, device="cpu")
            places = torch.bucketize(ordered, ends, right=True).tolist()
            pairs = zip(places, wanted, strict=True)
            for place, group in groupby(pairs, key=lambda pair: pair[0]):
                item, start = self.prepared.items[place], int(ends[place])
                for _, at in group:
                    one = select_samples(item, [at - start + counts[place]])
                    drawn[at] = place, one, self._mass(one)
            pool += [drawn[at] for at in some.tolist()]
            if sum(mass > 0 for _, _, mass in pool) > 1:
                break
        return pool

    def _mass(self, one: Batch) -> float:
        if self.divisor is None or self.divisor.sums:
            return 1.0
        return mass_of(one, self.divisor)


def _by_batch(pool: Sequence[_Single]) -> Iterator[list[_Single]]:
    """Yield the samples of each batch, since those of several may not fit together."""
    for place in dict.fromkeys(place for place, _, _ in pool):
        yield [one for one in pool if one[0] == place]


def _unlike_halves(pool: Sequence[_Single], count: int) -> list[list[_Single]]:
    """Choose two halves of samples whose counts differ most, and are not zero.

    This exposes a wrong rule. The result is empty if fewer than two samples count.
    """
    counting = [one for one in pool if one[2] > 0]
    if len(counting) < 2:
        return []
    first = counting[0]
    unlike = max(counting[1:], key=lambda one: abs(one[2] - first[2]))
    least = min(pool, key=lambda one: one[2])
    chosen = {id(one): one for one in (first, unlike, least, *pool)}
    ordered = sorted(list(chosen.values())[:count], key=lambda one: -one[2])
    half = (len(ordered) + 1) // 2
    if not ordered[half][2]:  # give the second half the last that counts
        last = sum(mass > 0 for _, _, mass in ordered) - 1
        ordered[last], ordered[half] = ordered[half], ordered[last]
    return [ordered[:half], ordered[half:]]


class _Few:
    """A few samples together, and the same in parts.

    Args:
        test: What is compared, of which model.
        whole: The samples.
        parts: The same in parts.

    Attributes:
        blind: Whether rounding may hide a difference that matters.
    """

    def __init__(self, test: Separability, whole: Batch, parts: list[Batch]) -> None:
        self._test, self.whole, self.parts = test, whole, parts
        self.blind = False
        self._moments: list[Moments] = []
        self._types = MovedResults(None)

        def record(call: NormCall) -> Tensor:
            self._moments.append(moments_of(call.x))
            return self._given(call)

        self._together = self._measured(whole, record)
        if test.divisor is not None and not test.divisor.sums:
            if (changed := _with_other_first(whole, test.divisor)) is not None:
                other = self._measured(changed, self._given)
                test.divisor.shifted = _gap(self._together, other) < _SAME

    def shares(self, divisor: Divisor) -> list[float]:
        """Return the share of each part in the mean of all."""
        masses = [mass_of(part, divisor) for part in self.parts]
        return [mass / sum(masses) for mass in masses]

    def gap(self, shares: Sequence[float]) -> float:
        """Return the relative difference between parts and whole."""
        return _gap(self._together, self._apart(shares))

    def beyond_rounding(self, shares: Sequence[float]) -> float:
        """Return the same in units of rounding error."""
        apart, moved = self._apart(shares), self._apart(shares, moved=True)
        self.blind = not _TIMES * _gap(apart, moved) < _OF_ONE
        return max(map(_beyond, self._together, apart, moved))

    def in_float64(self, test: Separability) -> "_Few":
        """Return the same samples for a model in float64."""
        return _Few(test, as_float64(self.whole), [as_float64(p) for p in self.parts])

    def _apart(self, shares: Sequence[float], *, moved: bool = False) -> _Measured:
        """Join outputs and sum all else, with or without random perturbation."""
        measured = []
        for place, part in enumerate(self.parts):
            seed = derive(self._test.seed, "moved", place) if moved else None
            measured.append(self._measured(part, self._given, seed))
        heads, products = zip(*measured, strict=True)
        added = _added(products, shares)
        if self._test.prepared.measured.scalar:
            return _added(heads, shares), added
        return [torch.cat([outputs for (outputs,) in heads])], added

    def _given(self, call: NormCall) -> Tensor:
        moments = self._moments[call.place]
        return call.by(moments.mean, moments.variance)

    def _measured(
        self, batch: Batch, act: Callable[[NormCall], Tensor], seed: int | None = None
    ) -> _Measured:
        test, prepared = self._test, self._test.prepared
        measured, leaves = prepared.measured, prepared.leaves
        chunk = Chunk(data=batch)
        moving = self._types if seed is None else MovedResults(seed, self._types.eps)
        with BatchNormCalls(act), moving:
            # Of a part in which nothing counts, a loss that masks by itself is 0/0.
            value = prepared.run(chunk, check=False)
        head = [value.detach().double().reshape(-1)]
        if not value.requires_grad:
            zeros = [torch.zeros_like(leaf, dtype=torch.float64) for leaf in leaves]
            return zeros if measured.scalar else head, zeros
        graph = measured.build(value, leaves)
        product = measured.walk(graph, chunk, _directions(leaves, test.seed))
        if measured.scalar:
            head = [part.detach().double() for part in filled(graph.graph, leaves)]
        return head, [part.double() for part in product]


def _with_other_first(batch: Batch, divisor: Divisor) -> Batch | None:
    """Return the batch with another first target in each sample, None for no such."""
    targets = divisor.targets(batch) if divisor.rules > 1 else None
    if targets is None or targets.ndim < 2 or targets.shape[1] < 2:
        return None
    counted = targets[targets != divisor.ignored]
    changed, first = targets.clone(), targets[:, 0]
    low, high = (counted.min(), counted.max()) if counted.numel() else (first, first)
    other = torch.where(first == low, high, low)
    changed[:, 0] = torch.where(first == divisor.ignored, first, other)
    if torch.equal(changed, targets):
        return None
    return map_tensors(batch, lambda given: changed if given is targets else given)


def _added(terms: Sequence[Parts], shares: Sequence[float]) -> Parts:
    pairs = list(zip(shares, terms, strict=True))
    return [
        torch.stack([share * parts[i] for share, parts in pairs]).sum(0)
        for i in range(len(terms[0]))
    ]


def _gap(whole: _Measured, apart: _Measured) -> float:
    """Return the largest relative difference of gradients or of products."""
    worst = 0.0
    for kind, wanted in enumerate(whole):
        size = float(_norms(wanted).norm())
        gap = float(_norms(wanted, apart[kind]).norm().nan_to_num(float("inf")))
        worst = max(worst, gap / size if size else gap)
    return worst


def _beyond(whole: Parts, apart: Parts, moved: Parts) -> float:
    """Return the difference in units of rounding: of all, or of one parameter."""
    gaps, sizes = _norms(whole, apart), _norms(whole)
    noise = _norms(apart, moved)
    floor = _LEAST * torch.finfo(torch.float64).eps * sizes.norm()
    allowed = _TIMES * noise.norm() + floor
    # A gradient of zero is all rounding, and its noise may be small by chance.
    each = gaps / (_TIMES * noise + noise.norm() + _OF_ONE * sizes + floor)
    ratios = torch.cat([(gaps.norm() / allowed).reshape(1), each])
    ratios = ratios[~((ratios != ratios) & (gaps.norm() == 0))]  # 0 out of 0
    return float(ratios.nan_to_num(float("inf")).amax()) if ratios.numel() else 0.0


def _norms(first: Parts, second: Parts | None = None) -> Tensor:
    """Return the norm of each part, or of each difference."""
    if second is None:
        second = [torch.zeros_like(part) for part in first]
    if [part.shape for part in first] != [part.shape for part in second]:
        return torch.zeros(len(first), dtype=torch.float64, device="cpu") + torch.inf
    pairs = zip(first, second, strict=True)
    return torch.stack([torch.linalg.vector_norm(a - b).cpu() for a, b in pairs])


def _directions(leaves: Sequence[Tensor], seed: int) -> Parts:
    generator = torch.Generator().manual_seed(derive(seed, "direction"))
    given = {"generator": generator, "dtype": torch.float64}
    return [torch.randn(leaf.shape, **given).to(leaf) for leaf in leaves]
