"""What checks look at: one traced pass, its gradients, and trial steps."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from theodolite.instruments import (
    Batch,
    Loss,
    preserve,
    reseed,
    run_model,
    samples_in,
    tensors_in,
)

from ..measures.context import logits_in, targets_in
from .chance import best_constant
from .trace import Call, Trace
from .trial_steps import FACTORS, JUDGED, REPEATS, Course, Trainer, loss_of

# Losses of torch by name, and whether they take scores, not probabilities.
_OF_SCORES = (
    "cross_entropy binary_cross_entropy_with_logits multi_margin_loss "
    "multilabel_soft_margin_loss soft_margin_loss"
)
_OTHERS = (
    "nll_loss binary_cross_entropy mse_loss l1_loss smooth_l1_loss huber_loss kl_div "
    "poisson_nll_loss gaussian_nll_loss hinge_embedding_loss cosine_embedding_loss "
    "margin_ranking_loss"
)
LOSSES = {name: True for name in _OF_SCORES.split()}
LOSSES |= {name: False for name in _OTHERS.split()}
# Functions that hand a tensor on in another shape, or with its entries scaled.
RESHAPING = frozenset(
    "view reshape flatten squeeze unsqueeze contiguous permute transpose T float "
    "double to movedim getitem clone".split()
)
PASSING = frozenset("dropout relu gelu silu tanh sigmoid leaky_relu elu".split())
LAYERS = frozenset("linear conv1d conv2d conv3d lstm gru rnn_tanh matmul addmm".split())
SQUARES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
# A network learns if trial steps remove this share of its loss: our choice.
LEARNS = 0.05
# Updates of a longer trial, and the least share of a guess's loss it removes: ours.
LONG, STUCK = 100, 0.02


@dataclass(kw_only=True, eq=False)
class Seen:
    """A network as it is about to be trained.

    Attributes:
        model: The network, in the modes in which it is trained.
        batches: Its batches.
        loss: Its loss.
        optimizer: Its optimiser, if one was given.
        step: The user's own training step, if one was given.
        seed: Seed of random numbers.
        long: Updates of a longer trial.
        data_known: Whether inputs and targets are real, not made up.
        value: The loss of the first batch, once it is traced.
        value_call: The call that computed it.
        fails: Message of the error that the model or its loss raises, if any.
    """

    model: nn.Module
    batches: Sequence[Batch]
    loss: Loss
    optimizer: Optimizer | None = None
    step: Callable[[Batch], Any] | None = None
    seed: int = 0
    long: int = LONG
    data_known: bool = True
    value: float = math.nan
    value_call: Call | None = None
    fails: str = ""

    @property
    def batch(self) -> Batch:
        """The first batch."""
        return self.batches[0]

    @cached_property
    def inputs(self) -> list[Tensor]:
        """Tensors of the first batch that the model reads."""
        of = {id(tensor) for tensor in self.targets}
        return [tensor for tensor in tensors_in(self.batch) if id(tensor) not in of]

    @cached_property
    def targets(self) -> list[Tensor]:
        """Tensors of the targets of the first batch."""
        targets = targets_in(self.batch)
        return [] if targets is None else tensors_in(targets)

    @cached_property
    def target(self) -> Tensor | None:
        """The targets, if they are one tensor."""
        return self.targets[0].detach() if len(self.targets) == 1 else None

    @property
    def copies_inputs(self) -> bool:
        """Whether the targets are the inputs, as those of an autoencoder are."""
        wanted = self.target
        return wanted is not None and all(
            t.shape == wanted.shape and torch.equal(t, wanted) for t in self.inputs
        )

    @cached_property
    def trace(self) -> Trace:
        """One pass of the first batch and its loss."""
        return self._pass[0]

    @property
    def gradients(self) -> dict[str, Tensor | None]:
        """Gradient of each trained parameter; None where the loss does not reach it."""
        return self._pass[1]

    @cached_property
    def reached(self) -> set[str]:
        """Trained parameters with a gradient that is not zero."""
        pairs = self.gradients.items()
        return {name for name, g in pairs if g is not None and bool(g.any())}

    @cached_property
    def _pass(self) -> tuple[Trace, dict[str, Tensor | None]]:
        trace = Trace(self.model, self.inputs, self.targets)
        named = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        with preserve(self.model), torch.enable_grad():
            reseed(self.seed)
            with trace:
                value = loss_of(self.model, self.batch, self.loss)
            self.value = float(value.detach())
            self.value_call = trace.made_by(value)
            if not value.requires_grad or not named:
                return trace, dict.fromkeys((name for name, _ in named), None)
            grads = torch.autograd.grad(
                value, [p for _, p in named], allow_unused=True, retain_graph=False
            )
        pairs = zip(named, grads, strict=True)
        return trace, {name: grad for (name, _), grad in pairs}

    @cached_property
    def loss_call(self) -> Call | None:
        """The last call of a loss of torch that reads outputs of the network."""
        calls = [
            call
            for call in self.trace.named(*LOSSES)
            if "weight" in self.trace.origins(call)
        ]
        return calls[-1] if calls else None

    @property
    def loss_name(self) -> str:
        """Name of that loss, empty if it is none of torch."""
        return self.loss_call.name if self.loss_call else ""

    @cached_property
    def judged(self) -> tuple[Tensor, Tensor] | None:
        """Outputs and targets as the loss got them."""
        if (call := self.loss_call) is None:
            return None
        outputs, targets = call.given(0, "input"), call.given(1, "target")
        if not isinstance(outputs, Tensor) or not isinstance(targets, Tensor):
            return None
        return outputs.detach(), targets.detach()

    @cached_property
    def output_call(self) -> Call | None:
        """The call that computed what the loss reads, except for reshaping."""
        if self.loss_call is not None and self.loss_call.inputs:
            return self.through(self.loss_call.sources[0])
        outputs = [t for t in self.trace.returned() if t.requires_grad]
        made = self.trace.made_by(outputs[0]) if outputs else None
        return None if made is None else self.through(made.index)

    def before(self, call: Call, skipped: frozenset[str] = PASSING) -> Call | None:
        """Return the call before this one, except for dropout and activations."""
        return self.through(call.sources[0] if call.sources else -1, skipped)

    def through(self, index: int, skipped: frozenset[str] = RESHAPING) -> Call | None:
        """Return the call at an index, or the one before it that is not skipped."""
        while index >= 0 and self.trace.calls[index].name in skipped:
            index = self.trace.calls[index].sources[0]
        return self.trace.calls[index] if index >= 0 else None

    def is_last(self, layer: nn.Module) -> bool:
        """Return whether no other layer reads what this layer computes."""
        own = {id(p) for p in layer.parameters()}
        others = {id(p) for p in self.model.parameters() if p.ndim > 1} - own
        calls = [c for c in self.trace.calls if any(id(t) in own for t in c.inputs)]
        later = [c for call in calls for c in self.trace.after(call)]
        return bool(calls) and not any(id(t) in others for c in later for t in c.inputs)

    @cached_property
    def samples(self) -> int:
        """Samples of the first batch."""
        return samples_in(self.batch) or 1

    @cached_property
    def read(self) -> Tensor | None:
        """The inputs as the first layer with weights reads them, if they are real."""
        for call in self.trace.calls:
            if call.name in LAYERS and self.trace.origins(call) >= {"input", "weight"}:
                kinds = self.trace.kinds(call.inputs[0], call.sources[0])
                if kinds - {"noise"} == {"input"}:
                    return call.inputs[0].detach()
        return None

    @cached_property
    def classes(self) -> tuple[Tensor, Tensor] | None:
        """Scores with classes last, one row per label, and labels; for classifiers."""
        if self.loss_name not in ("cross_entropy", "nll_loss") or not self.judged:
            return None
        scores, labels = self.judged
        if labels.is_floating_point() or scores.ndim < 2:
            return None
        rows = scores.movedim(1, -1).reshape(-1, scores.shape[1])
        flat = labels.reshape(-1)
        call = self.loss_call
        ignored = call.kwargs.get("ignore_index", -100) if call else -100
        kept = flat != ignored
        return (rows[kept], flat[kept]) if len(rows) == len(flat) else None

    def call(self, given: Tensor | None = None) -> Any:
        """Run the model as the loss runs it, with a tensor in place of the first input.

        Raises:
            MeasurementError: The model does not take the batch.
        """
        first = self.inputs[0] if self.inputs else None

        def other(part: Any) -> Any:
            return given if given is not None and part is first else part

        batch = self.batch
        if self.trace.called is not None:
            args, kwargs = self.trace.called
            if given is None or any(first is t for t in tensors_in((args, kwargs))):
                named = {key: other(part) for key, part in kwargs.items()}
                return self.model(*map(other, args), **named)
        if isinstance(batch, tuple | list):
            return run_model(self.model, (other(batch[0]), *batch[1:]))
        return run_model(self.model, {k: other(v) for k, v in batch.items()})

    def evaluated(self, inputs: Tensor) -> Tensor | None:
        """Return outputs in eval mode for other inputs in place of the first ones."""
        _ = self.trace
        try:
            with preserve(self.model), torch.no_grad():
                self.model.eval()
                reseed(self.seed)
                return logits_in(self.call(inputs)).double()
        except Exception:  # of the user's own code
            return None

    @cached_property
    def trainer(self) -> Trainer:
        """Runs trial steps: by the user's step where the loss is what it lowers."""
        own = self.own_step
        if own is None or own.error or own.record is None or self.warming:
            return self.plain
        return replace(self.plain, step=self.step) if own.record.simple else self.plain

    @cached_property
    def plain(self) -> Trainer:
        """Runs trial steps of the loss: clear gradients, go backward, update."""
        return Trainer(
            model=self.model,
            batches=self.batches,
            loss=self.loss,
            optimizer=self.optimizer,
            seed=self.seed,
        )

    @cached_property
    def own_step(self) -> Course | None:
        """Twenty updates by the user's step, and what it did; None if none is given."""
        if self.step is None:
            return None
        return replace(self.plain, step=self.step).run(1.0, steps=REPEATS)

    @cached_property
    def step_hinders(self) -> bool:
        """Whether plain updates lower the loss, and the user's step does not."""
        own = self.own_step
        if own is None or own.error or self.warming:
            return False
        plain = self.plain.run(1.0, steps=REPEATS)
        return not plain.error and plain.gain > LEARNS and own.gain < plain.gain / 10

    @property
    def warming(self) -> bool:
        """Whether a schedule raises the rate, which is below its final value still."""
        record = self.own_step.record if self.own_step else None
        if record is None or not record.rates:
            return False
        rates = record.rates
        return rates[-1] > rates[0] or rates[-1] == 0.0

    @cached_property
    def courses(self) -> dict[float, Course]:
        """Trial steps at the rate in use, a tenth and ten times of it."""
        return {factor: self.trainer.run(factor) for factor in FACTORS}

    @property
    def course(self) -> Course:
        """Trial steps at the rate in use."""
        return self.courses[1.0]

    @cached_property
    def repeated(self) -> Course:
        """Trial steps on one repeated batch."""
        return self.trainer.run(1.0, repeated=True)

    @cached_property
    def guess(self) -> float | None:
        """Loss of the best answer to the first batch that ignores the inputs."""
        outputs, first = self.trace.outputs, self.batches[:1]
        return best_constant(outputs, first, self.loss, name=self.loss_name)

    @cached_property
    def chance(self) -> float | None:
        """The same for the judged batches; None where the loss detaches outputs."""
        cuts = self.trace.named("detach", "data")
        if any(c.after_model and "weight" in self.trace.origins(c) for c in cuts):
            return None
        outputs, judged = self.trace.outputs, self.batches[:JUDGED]
        return best_constant(outputs, judged, self.loss, name=self.loss_name)

    def below_chance(self, course: Course) -> float:
        """Return how far a trial came below that loss, as a share of it."""
        if self.chance is None or course.error:
            return math.nan
        return (self.chance - course.after) / max(abs(self.chance), 1e-12)

    @cached_property
    def longer(self) -> Course:
        """Trial steps at the rate in use, and many more unless they lead somewhere."""
        if self.below_chance(self.course) > LEARNS:
            return self.course
        return self.trained

    @cached_property
    def longest(self) -> Course:
        """The same with three times as many steps, as some networks start slowly."""
        return self.trainer.run(1.0, steps=3 * self.long)

    @cached_property
    def trained(self) -> Course:
        """Many trial steps."""
        return self.trainer.run(1.0, steps=self.long)

    @cached_property
    def stuck(self) -> bool:
        """Whether many steps lead no lower than an answer that ignores the inputs.

        A loss that falls and is far above that answer still is on its way. Both plain
        updates and the user's own step are tried, where one is given: each may train
        parameters that the other does not.
        """
        below = self.below_chance(self.longer)
        if not below < STUCK or (below < -0.1 and self.longer.gain > 0.3):
            return False
        if self.step is None:
            return True
        plain = self.trainer.step is not None
        other = self.plain if plain else replace(self.plain, step=self.step)
        return not self.below_chance(other.run(1.0, steps=self.long)) > LEARNS

    @property
    def learns(self) -> bool:
        """Whether the loss falls on one batch and over the batches, below a guess."""
        if not self.repeated.gain > LEARNS or not self.course.gain > 0:
            return False
        return self.guess is None or self.repeated.after < self.guess

    @property
    def diverges(self) -> bool:
        """Whether the loss rises at the rate in use and falls at a tenth of it."""
        course, less = self.course, self.courses[0.1]
        if course.error or less.error or not math.isfinite(course.before):
            return False
        if course.gain < -1:
            known = self.guess is not None and self.loss_name
            return less.gain > (course.gain / 2 if known else 0.0)
        slower = less.gain > 0.1 and course.gain < 0.5 * less.gain - 0.1
        return slower and not self.below_chance(self.trained) > 2 * LEARNS
