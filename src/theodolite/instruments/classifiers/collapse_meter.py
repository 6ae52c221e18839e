"""An accumulator of features: update, compute, reset, merge."""

from typing import Any, Self

import torch
from torch import Tensor

from theodolite.core import (
    ConfigError,
    MeasurementError,
    NormMode,
    Status,
    Stopwatch,
)

from ..distributed.processes import Team
from .chunked_pass import Pass
from .class_deviations import Deviations, deviations, from_moments
from .class_statistics import Centre, ClassMoments
from .collapse_numbers import numbers_of
from .collapse_reading import Collapse
from .features import (
    FeatureBatch,
    chunks,
    mean_row,
    not_finite,
    other_width,
    rows_of,
    tensor_of,
    version_of,
    weights_by_class,
)
from .final_layer import Head
from .labels import Labelling, sample_weights

# Samples folded at a time: enough to make a width-by-width product efficient.
_FOLD = 4096


class CollapseMeter:
    r"""Measures neural collapse of features that arrive batch by batch, in one pass.

    Features are kept while they take at most ``feature_bytes``. Then all numbers are
    exact, and no width-by-width matrix is formed. Beyond that, they are folded into
    class means and the within-class scatter, in float64 and without cancellation. Then
    all is exact except the shares of samples nearest to a class mean, since the means
    are known only at the end. ``recount`` takes the data a second time for those;
    without it they are intervals. The order and size of batches change rounding only.

    Args:
        head: Weights, or (weights, biases), of the linear layer that the features
            enter; NC2 to NC4 compare class means with it.
        classes: Number of classes; by default that of the labels or the head.
        centre: Centre class means at their own mean, or at that of the samples.
        ignore_index: Label of samples to ignore.
        feature_bytes: Memory that features may take.
        layer: Name of the layer of the features.
        norm_mode: Statistics that normalisation layers used.

    Example:
        >>> meter = CollapseMeter()
        >>> x = torch.tensor([[1.0, 0.0], [-1.0, 0.1], [1.0, 0.2], [-1.0, 0.1]])
        >>> meter.update(x, torch.tensor([0, 1, 0, 1]))
        >>> round(meter.compute().nc1_noise, 4)
        0.005
    """

    def __init__(
        self,
        *,
        head: Any = None,
        classes: int | None = None,
        centre: Centre = "classes",
        ignore_index: int | None = -100,
        feature_bytes: int = 2 * 2**30,
        layer: str = "",
        norm_mode: NormMode | str = NormMode.EVAL,
    ) -> None:
        if isinstance(feature_bytes, bool) or not feature_bytes >= 0:
            raise ConfigError(
                f"feature_bytes is {feature_bytes!r}: pass a number of bytes from 0 up"
            )
        if head is not None and not isinstance(head, Head):
            head = Head.of(*head) if isinstance(head, tuple | list) else Head.of(head)
        self._head, self._bytes = head, feature_bytes
        self._centre: Centre = centre
        if classes is None and head is not None:
            classes = head.classes
        self._labelling = Labelling(classes, ignore_index)
        self._ignored, self._layer = ignore_index, layer
        self._mode = NormMode(norm_mode)
        self.reset()

    def reset(self) -> None:
        """Discard all features."""
        self._pieces: list[FeatureBatch] = []
        self._versions: list[int] = []
        self._moments: ClassMoments | None = None
        self._tally: Tensor | None = None
        self._watch, self._samples, self._width = Stopwatch(), 0, 0
        self._held = 0
        self._labelling = Labelling(self._labelling.classes, self._ignored)

    def update(
        self, features: Any, labels: Any, *, weights: Any = None, decisions: Any = None
    ) -> None:
        """Add the features of a batch.

        Features are kept without a copy: if they are changed later, an error is raised.

        Args:
            features: One row per sample; further axes are flattened, except those that
                labels have too.
            labels: Whole numbers from 0 up, or ±1; one per sample.
            weights: Weights of samples; 1 each by default.
            decisions: Classes predicted by the classifier; by default by the head.
        """
        piece = self._piece(features, labels, weights, decisions)
        if not len(piece):
            return
        self._pieces.append(piece)
        self._versions.append(version_of(piece.features))
        self._samples += len(piece)
        self._held += piece.features.nbytes
        if self._moments is not None or self._held > self._bytes:
            self._fold()

    def merge(self, other: Self) -> None:
        """Add all that another meter has seen."""
        if other._width and self._width and other._width != self._width:
            raise other_width(other._width, self._width)
        self._width = self._width or other._width
        other._check_unwritten()
        self._labelling.merge(other._labelling)
        self._pieces += other._pieces
        self._versions += other._versions
        self._samples += other._samples
        self._held += other._held
        if other._moments is not None:
            own = self._moments
            self._moments = other._moments if own is None else own.merge(other._moments)
            self._tally = None
        if self._moments is not None or self._held > self._bytes:
            self._fold()

    @property
    def folded(self) -> bool:
        """Whether features were folded, so that ``recount`` has something to do."""
        return self._moments is not None

    def compute(
        self, *, other: Any = None, group: Any = None, feature_noise: float = 0.0
    ) -> Collapse:
        """Return the numbers for all features so far.

        Args:
            other: Features of other data, one row per sample, for NC5.
            feature_noise: Error of the features, root mean square in norm, which the
                errors of the result then include.
            group: A process group of torch.distributed, or True for the default one,
                whose ranks each hold a part of the features; all must call this.
        """
        team = Team(group)
        outside = None if other is None else mean_row(other, self._width)
        measured, came = self._deviations(team)
        measured = measured.blurred(team.largest(feature_noise))
        fields = numbers_of(measured, self._head, came, outside)
        samples = team.sum(torch.tensor(self._samples, dtype=torch.int64, device="cpu"))
        return Collapse(
            **fields,
            classes=came.cpu().numpy(),
            samples=int(samples),
            width=measured.between.means.shape[1],
            layer=self._layer,
            status=Status.EXACT,
            norm_mode=self._mode,
            cost=self._watch.read(),
            method="features folded" if self._moments is not None else "features kept",
        )

    def recount(self, features: Any, labels: Any, **settings: Any) -> None:
        """Add the same data a second time, batch by batch, after all of it was folded.

        Args:
            features: As for :meth:`update`.
            labels: As for :meth:`update`.
            **settings: As for :meth:`update`.
        """
        if self._moments is None:
            return  # features that are kept need no second pass
        piece = self._piece(features, labels, *map(settings.get, _SETTINGS))
        count = self._moments.count
        places = _places(count)
        between = from_moments(
            _present(self._moments), torch.zeros(6, device="cpu"), centre=self._centre
        ).between
        dtype = torch.float64
        rows = (count > 0).nonzero().squeeze(1)
        shift = between.means
        chunked = Pass(between, self._head, shift, dtype, rows)
        tally = chunked.sums([piece.renamed(places)]).tally
        self._tally = tally if self._tally is None else self._tally + tally

    def _deviations(self, team: Team) -> tuple[Deviations, Tensor]:
        """Return the deviations, and the classes that have samples."""
        folded = team.largest(self._moments is not None) > 0
        if folded:
            self._fold()
        self._check_unwritten()
        width = int(team.largest(self._width))
        if not width:
            raise MeasurementError("no features came: call update with some first")
        classes = int(team.largest(self._classes()))
        if folded:
            return self._from_moments(team, classes, width)
        count = team.sum(weights_by_class(self._pieces, classes))
        places, present = _places(count), _two(count)
        pieces = [piece.renamed(places) for piece in self._pieces]
        measured = deviations(
            pieces,
            count[present],
            width,
            head=self._head,
            rows=present,
            centre=self._centre,
            team=team,
        )
        return measured, present

    def _from_moments(
        self, team: Team, classes: int, width: int
    ) -> tuple[Deviations, Tensor]:
        own = self._moments or _nothing(width)
        own = own.grown(classes)
        parts = [team.gather(part) for part in vars(own).values()]
        every = [
            ClassMoments(**dict(zip(vars(own), each, strict=True)))
            for each in zip(*parts, strict=True)
        ]
        whole = every[0]
        for more in every[1:]:
            whole = whole.merge(more)
        if not bool(torch.isfinite(whole.scatter).all()):
            raise not_finite()
        present = _two(whole.count)
        tally = self._tally if self._tally is not None else torch.zeros(6, device="cpu")
        tally = team.sum(tally.double())
        measured = from_moments(_present(whole), tally, centre=self._centre)
        return measured, present

    def _piece(
        self, features: Any, labels: Any, weights: Any, decisions: Any
    ) -> FeatureBatch:
        places, counts = self._labelling.read(labels)
        h = rows_of(features, tensor_of(labels).shape)
        self._check_width(h.shape[1])
        if self._head is not None and self._head.weight.device != h.device:
            self._head = self._head.to(h.device)
        places, counts = places.to(h.device), counts.to(h.device)
        w = None if weights is None else sample_weights(weights, places)
        chosen = None
        if decisions is not None:
            chosen, _ = Labelling(None, None).read(decisions)
            chosen = chosen.to(h.device)
            if chosen.shape != places.shape:
                raise MeasurementError(
                    f"{chosen.numel()} decisions came for {places.numel()} samples: "
                    "pass one each"
                )
        if w is not None:
            counts = counts & (w > 0)
        if bool(counts.all()):
            return FeatureBatch(features=h, labels=places, weights=w, decisions=chosen)
        return FeatureBatch(
            features=h[counts],
            labels=places[counts],
            weights=None if w is None else w[counts],
            decisions=None if chosen is None else chosen[counts],
        )

    def _check_width(self, width: int) -> None:
        if self._head is not None and self._head.weight.shape[1] != width:
            raise MeasurementError(
                f"features have {width} numbers a sample and the head takes "
                f"{self._head.weight.shape[1]}: pass those that enter it"
            )
        if self._width not in (0, width):
            raise other_width(width, self._width)
        self._width = width

    def _classes(self) -> int:
        if self._labelling.classes is not None:
            return self._labelling.classes
        highest = [int(piece.labels.max()) for piece in self._pieces]
        highest += [
            int(p.decisions.max()) for p in self._pieces if p.decisions is not None
        ]
        highest += [] if self._moments is None else [len(self._moments.count) - 1]
        return max([1, *highest]) + 1

    def _fold(self) -> None:
        """Replace kept features by their moments."""
        self._check_unwritten()
        classes = self._classes()
        for piece in chunks(self._pieces, _FOLD):
            part = ClassMoments.of(piece.features, piece.labels, piece.mass(), classes)
            self._moments = part if self._moments is None else self._moments.merge(part)
        if self._pieces:
            self._tally = None  # the means changed
        self._pieces, self._versions, self._held = [], [], 0

    def _check_unwritten(self) -> None:
        now = [version_of(piece.features) for piece in self._pieces]
        if now != self._versions:
            raise MeasurementError(
                "features were written to after update took them: pass a clone of what "
                "is used again, or feature_bytes=0 to have them read at once"
            )


_SETTINGS = ("weights", "decisions")


def _places(count: Tensor) -> Tensor:
    """Return the index of each class among those with samples, -1 for others."""
    came = count > 0
    return torch.where(came, came.cumsum(0) - 1, -1)


def _two(count: Tensor) -> Tensor:
    """Return the classes with samples; refuse fewer than two."""
    came = (count > 0).nonzero().squeeze(1)
    if len(came) < 2:
        which = f"class {int(came[0])} alone" if len(came) else "no class"
        raise MeasurementError(
            f"samples of {which} came, and collapse is told between at least 2: pass "
            "data of all classes"
        )
    return came


def _present(moments: ClassMoments) -> ClassMoments:
    came = moments.count > 0
    return ClassMoments(
        count=moments.count[came],
        mean=moments.mean[came],
        square=moments.square[came],
        scatter=moments.scatter,
    )


def _nothing(width: int) -> ClassMoments:
    zeros = torch.zeros(2, width, dtype=torch.float64, device="cpu")
    return ClassMoments(
        count=zeros[:, 0].clone(),
        mean=zeros,
        square=zeros[:, 0].clone(),
        scatter=torch.zeros(width, width, dtype=torch.float64, device="cpu"),
    )
