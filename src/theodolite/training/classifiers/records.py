"""Records of a classifier during training, and the result of the training."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ClassifierBlueprint
from theodolite.networks import ClassifierNetwork

from .layers import EPS, StackedLayers, Statistics, mean_loss


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierRecord:
    r"""A classifier after some epochs, on all training samples at once.

    Batch norms take the statistics of all training samples, on test samples too.

    Attributes:
        epoch: Passes made.
        train_loss: Mean loss over the training samples.
        train_error: Fraction of them on the wrong side.
        test_loss: The same for the test samples; NaN without any.
        test_error: See ``test_loss``.
        test_wrong: Which test samples are on the wrong side.
        layer_norms: Frobenius norm $\rho_k$ of each layer's weights.
        folded_norms: The same with batch norms folded in: rows over the deviation of
            their units.
        outputs: $g(x_n)$ of the training samples, (N,) or (N, classes).
        targets: Their targets, the same shape.
    """

    epoch: int
    train_loss: float
    train_error: float
    test_loss: float
    test_error: float
    test_wrong: np.ndarray
    layer_norms: np.ndarray
    folded_norms: np.ndarray
    outputs: np.ndarray
    targets: np.ndarray

    def __repr__(self) -> str:
        """Return its losses and errors; arrays are attributes."""
        return (
            f"ClassifierRecord(epoch {self.epoch}, train loss {self.train_loss:.4g}, "
            f"error {self.train_error:.3g}, test loss {self.test_loss:.4g}, error "
            f"{self.test_error:.3g})"
        )

    @property
    def rho(self) -> float:
        r"""$\rho$, the product of the norms of all layers."""
        return float(np.prod(self.layer_norms))

    @property
    def folded_rho(self) -> float:
        """The product of all norms with batch norms folded in."""
        return float(np.prod(self.folded_norms))

    @property
    def f(self) -> np.ndarray:
        r"""$f_n = g(x_n)/\rho$, of the own class where there are several."""
        return self._own / self.rho

    @property
    def output_margins(self) -> np.ndarray:
        r"""$y_n g(x_n)$, or the own class's output less the largest other."""
        if self.outputs.ndim == 1:
            return self.targets * self.outputs
        others = np.where(self.targets > 0, -np.inf, self.outputs).max(axis=1)
        return self._own - others

    @property
    def margins(self) -> np.ndarray:
        r"""Margins of the normalised network, over $\rho$."""
        return self.output_margins / self.rho

    @property
    def equilibrium_ratio(self) -> float:
        r"""$(\sum y_n f_n/\sum f_n^2)/\rho$, which no choice of $\rho$ changes."""
        square = float(np.square(self.outputs).sum())
        return float((self.targets * self.outputs).sum()) / square if square else np.nan

    @property
    def equilibrium(self) -> float:
        r"""$\sum y_n f_n/\sum f_n^2$."""
        return self.equilibrium_ratio * self.rho

    @property
    def _own(self) -> np.ndarray:
        if self.outputs.ndim == 1:
            return self.outputs
        return (self.targets * self.outputs).sum(axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedClassifier:
    """Result of the training of one classifier.

    Attributes:
        status: ``finished``, ``diverged`` (outputs or weights no longer finite) or
            ``stopped`` (by the time limit).
        blueprint: Its architecture.
        records: Records at the chosen epochs, while all numbers were finite.
        weights: Matrices of its layers at the end, on the CPU.
        statistics: Means and variances of its batch norms over the training samples.
        seconds: Time of its training; that of a stack is divided evenly by its runs.
    """

    status: str
    blueprint: ClassifierBlueprint
    records: tuple[ClassifierRecord, ...]
    weights: tuple[Tensor, ...]
    statistics: tuple[tuple[Tensor, Tensor], ...]
    seconds: float

    def __repr__(self) -> str:
        """Return how it ended; records and weights are attributes."""
        end = repr(self.last) if self.records else "no record"
        return f"TrainedClassifier({self.status}, {len(self.records)} records, {end})"

    @property
    def last(self) -> ClassifierRecord:
        """The last record."""
        return self.records[-1]

    def network(self) -> ClassifierNetwork:
        """Return it as a module in eval mode, by the statistics of all samples."""
        return as_network(self.blueprint, self.weights, self.statistics)


def as_network(
    blueprint: ClassifierBlueprint,
    weights: list[Tensor] | tuple[Tensor, ...],
    statistics: Statistics | tuple[tuple[Tensor, Tensor], ...],
) -> ClassifierNetwork:
    """Return a module in eval mode with these weights and statistics."""
    network = ClassifierNetwork(blueprint).to(weights[0])
    network.set_weights(weights)
    network.set_statistics(statistics)
    return network.eval()


class RecordMaker:
    """Computes records from the weights of single networks."""

    def __init__(
        self,
        blueprint: ClassifierBlueprint,
        seen: tuple[Tensor, Tensor],
        held: tuple[Tensor, Tensor] | None,
        loss: str,
    ) -> None:
        self.layers = StackedLayers(blueprint)
        self.seen, self.held, self.loss = seen, held, loss
        targets = seen[1].double().cpu().numpy()
        self.targets = targets[:, 0] if targets.shape[1] == 1 else targets

    def read(
        self, weights: list[Tensor], epoch: int
    ) -> tuple[ClassifierRecord, Statistics]:
        """Return the record of one network, and its statistics."""
        measured: Statistics = []
        single = [w[None] for w in weights]
        outputs, loss, wrong = self._pass(single, self.seen, measured=measured)
        test_loss, missed = math.nan, wrong[:0]
        if self.held is not None:
            _, test_loss, missed = self._pass(single, self.held, statistics=measured)
        statistics = [(mean[0], variance[0]) for mean, variance in measured]
        norms = [w.double().norm() for w in weights]
        folded = [
            (w.double() / (variance.double() + EPS).sqrt()[:, None]).norm()
            for w, (_, variance) in zip(weights, statistics, strict=False)
        ]
        folded += norms[len(folded) :]
        flat = outputs.shape[1] == 1
        return ClassifierRecord(
            epoch=epoch,
            train_loss=loss,
            train_error=float(wrong.double().mean()),
            test_loss=test_loss,
            test_error=float(missed.double().mean()),
            test_wrong=missed.cpu().numpy(),
            layer_norms=torch.stack(norms).cpu().numpy(),
            folded_norms=torch.stack(folded).cpu().numpy(),
            outputs=outputs[:, 0].cpu().numpy() if flat else outputs.cpu().numpy(),
            targets=self.targets,
        ), statistics

    def _pass(
        self, weights: list[Tensor], samples: tuple[Tensor, Tensor], **settings: object
    ) -> tuple[Tensor, float, Tensor]:
        inputs, targets = samples
        made = self.layers.forward(weights, inputs[None], **settings)  # type: ignore[arg-type]
        outputs, wanted = made[0].T.double(), targets.double()
        own = (outputs * wanted).sum(dim=1)
        if outputs.shape[1] > 1:
            own = own - outputs.masked_fill(wanted > 0, -math.inf).amax(dim=1)
        loss = float(mean_loss(outputs, wanted, self.loss))
        return outputs, loss, own <= 0
