"""State shared by all measures of one survey: the model, its data, and cached results.

Results that several measures read, such as the map or one gradient pass, are computed
once, on first use.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from theodolite.core import MeasurementError, NormMode, TheodoliteError
from theodolite.instruments import (
    Batch,
    ExtremeEigenvalues,
    Hessian,
    Loss,
    norm_layers_as_is,
    opened,
    run_model,
    samples_in,
    slice_batch,
)

from .charting import Chart, blank_chart, chart_of
from .gradients import settle
from .pace import Pace, pace_of, rounding_of_products
from .sounding import Sounding, sound
from .taps import OtherWayError

# Samples on which the parts of a network are recorded.
_CHARTED = 8
# Share of the budget that the gradient pass of the first batch may take.
_SOUNDED = 0.15
# Samples on which passes are timed, and products compared with finer arithmetic.
_TIMED = 4
# Cost of timing in gradients, the largest share of the time left that it may use, and
# the cost of a product in gradients if it was not timed.
_PACING, _PACED, _GUESSED = 10.0, 0.25, 3.0
# Cost of the comparison in products, and the share of the budget that it may use.
_COMPARED, _ROUNDED = 12, 0.03
# Errors that foreign models may raise when an instrument runs them.
FOREIGN = (TheodoliteError, RuntimeError, ValueError, TypeError, AttributeError)
FOREIGN += (LookupError, ArithmeticError, AssertionError, MemoryError)


@dataclass(kw_only=True, eq=False)
class Site:
    """A model opened for a survey.

    Attributes:
        model: The model, in modes in which it draws no random numbers, its norms in
            the norm mode.
        batches: The data.
        loss: The loss.
        norm_mode: Statistics that normalisation layers use.
        seed: Seed of all random numbers.
        budget_s: Seconds of the whole survey.
        started: When it started, by ``time.perf_counter``.
        optimizer: The optimiser in use, if one was given.
        labels_known: Whether targets are real, not made up.
        modes: Original train or eval mode of each module, by its name.
        random_layers_off: Whether modules drew random numbers and are in eval mode.
        unsupported: Sentences on layers that an instrument cannot handle.
        mode_asked: The requested norm mode, if ``norm_mode`` differs from it.
        unmapped: Why no map could be made, if that failed.
        passes: Backward passes made so far.
        leading: Ends of the Hessian's spectrum and sample count, once measured.
        gradients_listed: Whether a measure has listed parameters without a gradient.
    """

    model: nn.Module
    batches: Sequence[Batch]
    loss: Loss
    norm_mode: NormMode
    seed: int = 0
    budget_s: float = 60.0
    started: float = field(default_factory=time.perf_counter)
    optimizer: Optimizer | None = None
    labels_known: bool = True
    modes: Mapping[str, bool] = field(default_factory=dict)
    random_layers_off: bool = False
    unsupported: list[str] = field(default_factory=list)
    mode_asked: NormMode | None = None
    unmapped: str = ""
    passes: int = 0
    leading: tuple[ExtremeEigenvalues, int] | None = None
    gradients_listed: bool = False

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left, negative if it is exceeded."""
        return self.started + self.budget_s - time.perf_counter()

    @property
    def batch(self) -> Batch:
        """The first batch."""
        return self.batches[0]

    @cached_property
    def samples(self) -> int:
        """Samples in the first batch, 1 if it cannot be split into samples."""
        return samples_in(self.batch) or 1

    @cached_property
    def all_samples(self) -> int:
        """Samples of all batches; most measures read the first batch alone."""
        return sum(samples_in(batch) or 1 for batch in self.batches)

    @cached_property
    def dtype(self) -> torch.dtype:
        """Type of the parameters."""
        real = [p.dtype for p in self.model.parameters() if p.is_floating_point()]
        return real[0] if real else torch.get_default_dtype()

    @cached_property
    def device(self) -> torch.device:
        """Where the parameters are."""
        held = next(iter(self.model.parameters()), None)
        return torch.device("cpu") if held is None else held.device

    @property
    def rounding(self) -> float:
        """Relative rounding error of a number without another error.

        By choice, 16 times the machine epsilon of the model's dtype.
        """
        return 16 * torch.finfo(self.dtype).eps

    @cached_property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        return norm_layers_as_is(self.model, self.norm_mode)

    def first(self, samples: int) -> Batch:
        """Return at most this many samples of the first batch."""
        if samples >= self.samples or samples_in(self.batch) is None:
            return self.batch
        return slice_batch(self.batch, 0, samples)

    @cached_property
    def chart(self) -> Chart:
        """The map, from one recorded pass of a few samples; empty if that failed."""
        try:
            return chart_of(self.model, self.first(_CHARTED))
        except FOREIGN as failed:
            self.unmapped = f"no map could be made, for {error_text(failed)}"
            self.unsupported.append(f"the model: {self.unmapped}")
            return blank_chart()

    @cached_property
    def forward_s(self) -> float:
        """Seconds of a forward pass per sample, from a pass of a few samples."""
        batch = self.first(_CHARTED)
        with opened(self.model, careful=False) as before, torch.no_grad():
            before.lend_buffers()  # running statistics are still to be read
            start = time.perf_counter()
            run_model(self.model, batch)
            settle(self.device)
            spent = time.perf_counter() - start
        return spent / min(_CHARTED, self.samples)

    @property
    def sounding(self) -> Sounding:
        """One gradient pass of the first batch, as much of it as the budget allows."""
        if isinstance(self._sounded, Exception):
            raise self._sounded
        return self._sounded

    @cached_property
    def _sounded(self) -> Sounding | Exception:
        """The pass, or its error, so that not every measure tries it again."""
        allowed = _SOUNDED * self.budget_s / (4 * self.forward_s)
        given: dict[str, Any] = {"loss": self.loss, "norm_mode": self.norm_mode}
        batch, self.passes = self.first(self.fitting(allowed)), self.passes + 1
        try:
            return sound(self.model, batch, chart=self.chart, **given)
        except OtherWayError as failed:
            self.unsupported.append(f"the model: no signals by depth, for {failed}")
            return sound(self.model, batch, chart=blank_chart(), **given)
        except FOREIGN as failed:
            return failed

    @property
    def sounded(self) -> bool:
        """Whether that pass was made."""
        return "_sounded" in vars(self)

    def fitting(self, allowed: float, least: int = 2) -> int:
        """Return how many samples to use: all, or the largest allowed power of 2."""
        if allowed >= self.samples:
            return self.samples
        count = least
        while 2 * count <= allowed:
            count *= 2
        return min(count, self.samples)

    @cached_property
    def pace(self) -> Pace:
        """Time of gradients and products, measured on a few samples and on many.

        If little time is left, it is estimated from the gradient pass alone.
        """
        few, each = min(_TIMED, self.samples), self.sounding.each_s
        if _PACING * few * each > _PACED * self.left_s:
            return Pace(base=0.0, slope=each, product=_GUESSED)
        self.passes += 4
        return pace_of(
            self.model,
            self.first(few),
            loss=self.loss,
            norm_mode=self.norm_mode,
            samples=few,
            many=self.sounding.samples,
            many_s=self.sounding.seconds,
        )

    def gradient_s(self, samples: int) -> float:
        """Return the expected seconds of a gradient of this many samples."""
        return self.pace.gradient_s(samples)

    def product_s(self, samples: int) -> float:
        """Return the expected seconds of a Lanczos step with its product."""
        return self.pace.product * self.pace.gradient_s(samples) + self.pace.step

    @cached_property
    def graph_error(self) -> float:
        """Relative rounding error of a product with the Hessian.

        It is measured against float64 on a few samples if the budget allows it; else
        half the digits are assumed, as Lanczos does. It is 0 for float64.
        """
        if self.dtype == torch.float64:
            return 0.0
        few = min(_TIMED, self.samples)
        if _COMPARED * self.product_s(few) > _ROUNDED * self.budget_s:
            return math.sqrt(torch.finfo(self.dtype).eps)
        self.passes += 3
        return rounding_of_products(
            self.model, self.first(few), loss=self.loss, norm_mode=self.norm_mode
        )

    def hessian(self, samples: int) -> Hessian:
        """Return the Hessian on some samples of the first batch."""
        return Hessian(
            self.model,
            self.first(samples),
            loss=self.loss,
            norm_mode=self.norm_mode,
            seed=self.seed,
        )

    @cached_property
    def outputs(self) -> Callable[[nn.Module, Batch], Tensor]:
        """Runs the model and picks the tensor that counts as its output."""
        return lambda model, batch: logits_in(run_model(model, batch))


def error_text(failed: BaseException) -> str:
    """Return the message of an exception in foreign code, in one line."""
    if isinstance(failed, torch.OutOfMemoryError):
        return "the device has no memory left: pass smaller batches, or fewer"
    lines = str(failed).strip().splitlines()
    line = lines[0] if lines else "no message"
    ours = isinstance(failed, TheodoliteError)
    return line if ours else f"{type(failed).__name__}: {line}"


def targets_in(batch: Batch) -> Any:
    """Return the targets of a pair, or the ``labels`` of a mapping, else None."""
    if isinstance(batch, Mapping):
        return batch.get("labels")
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    return batch[1] if paired else None


def logits_in(outputs: Any) -> Tensor:
    """Return the tensor among a model's outputs that is most likely the logits.

    This is the one named ``logits``, else the first real tensor that is no scalar.

    Raises:
        MeasurementError: There is none.
    """
    named = (
        outputs if isinstance(outputs, Mapping) else getattr(outputs, "__dict__", {})
    )
    if isinstance(named, Mapping) and isinstance(logits := named.get("logits"), Tensor):
        return logits
    for tensor in _tensors(outputs):
        if tensor.is_floating_point() and tensor.ndim:
            return tensor
    raise MeasurementError(
        f"the model returned a {type(outputs).__name__} without a tensor of real "
        "numbers: wrap it so that it returns one"
    )


def _tensors(outputs: Any, depth: int = 3) -> list[Tensor]:
    if isinstance(outputs, Tensor):
        return [outputs]
    if depth == 0 or isinstance(outputs, str):
        return []
    parts: Any = outputs if isinstance(outputs, list | tuple) else []
    if isinstance(outputs, Mapping):
        parts = list(outputs.values())
    elif hasattr(outputs, "__dict__") and not parts:
        parts = list(vars(outputs).values())
    return [tensor for part in parts for tensor in _tensors(part, depth - 1)]
