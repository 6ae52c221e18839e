"""One image classifier in training, a step at a time."""

import math
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import derive
from theodolite.instruments import preserve

from ..probes.probe import warn
from .recipe import Epoch, Images, Recipe, Trained
from .step import Step, capture

Augment = Callable[[Tensor, torch.Generator], Tensor]
Measure = Callable[[nn.Module], Mapping[str, float]]
Report = Callable[[int, Epoch], None]

_TEST_BATCH = 1000


class Run:
    """One network's training, a step at a time."""

    def __init__(
        self,
        place: int,
        model: nn.Module | Callable[[], nn.Module],
        images: Images,
        recipe: Recipe,
        seed: int,
        augment: Augment | None,
        probe: Measure | None,
        report: Report | None,
        warned: set[str],
        probe_steps: Collection[int] | None = None,
    ) -> None:
        self.place, self.given, self.images, self.recipe = place, model, images, recipe
        self.augment, self.probe, self.report = augment, probe, report
        self.probe_steps = None if probe_steps is None else frozenset(probe_steps)
        self.generator = torch.Generator().manual_seed(derive(seed, "images"))
        self.warned, self.retired = warned, dict[str, str]()
        self.history: list[Epoch] = []
        self.status, self.error, self.graphed = "stopped", "", False
        self.stream: Any = None
        self.step: Any = None
        self.advance: Any = None
        self.ahead: Any = None
        # State of the random numbers that the network itself draws on the CPU.
        own = torch.Generator().manual_seed(derive(seed, "network"))
        self.numbers = own.get_state()

    def result(self) -> Trained:
        """Return the result of the run so far."""
        return Trained(
            status=self.status,
            history=tuple(self.history),
            graphed=self.graphed,
            error=self.error,
            retired=self.retired,
        )

    def release(self) -> None:
        """Free the network, its graph and its epoch's images."""
        if self.stream is not None:
            self.stream.synchronize()
        self.given = self.step = self.advance = self.ahead = None

    def start(self) -> bool:
        """Build the network; return whether it can be trained."""
        try:
            self._build()
        except Exception as problem:
            return self._failed(problem)
        self.ahead = self.life()
        return True

    def advance_once(self) -> bool:
        """Make one step; return whether there are more."""
        try:
            next(self.ahead)
        except StopIteration:
            return False
        except Exception as problem:
            return self._failed(problem)
        return True

    def _failed(self, problem: Exception) -> bool:
        self.status = "failed"
        self.error = f"{type(problem).__name__}: {problem}"[:500]
        return False

    @contextmanager
    def _stepping(self) -> Iterator[None]:
        """Queue work on the own stream, or draw random numbers of the own seed."""
        if self.images.inputs.is_cuda:
            with self.on_stream():
                yield
            return
        before = torch.get_rng_state()
        torch.set_rng_state(self.numbers)
        try:
            yield
        finally:
            self.numbers = torch.get_rng_state()
            torch.set_rng_state(before)

    def on_stream(self) -> Any:
        """Return the context in which the run's own work is queued."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    def life(self) -> Generator[None, None, None]:
        """Train the network; yield after every step."""
        self._ready()
        size, count = self.recipe.batch_size, len(self.images.labels)
        steps = count // size
        total = steps * self.recipe.epochs
        for epoch in range(1, self.recipe.epochs + 1):
            with self._stepping():
                inputs, labels = self._shuffled(steps * size)
                self.step.restart()
            for place in range(steps):
                part = slice(place * size, (place + 1) * size)
                rate = self.recipe.rate_at(((epoch - 1) * steps + place) / total)
                with self._stepping():
                    if rate != self.rate:
                        self.step.rate.fill_(rate)
                        self.rate = rate
                    self.step.fill(inputs[part], labels[part])
                    self.advance()
                done = (epoch - 1) * steps + place + 1
                if place + 1 < steps and done in (self.probe_steps or ()):
                    self._read(done / steps, place + 1, done)
                yield
            if not self._read(epoch, steps, epoch * steps):
                self.status = "diverged"
                return
        self.status = "finished"

    def _build(self) -> None:
        """Build the network where the images are, and its step."""
        home = self.images.inputs
        model: Any = self.given
        model = model if isinstance(model, nn.Module) else model()
        self.given = None
        model.to(home.device).train()
        # Not on the CPU: there torch would sum batch statistics in float32 and lose two
        # digits of them, with maps of 28 × 28 and batches of 32.
        if home.is_cuda:
            model.to(memory_format=torch.channels_last)
        self.rate, self.began = -1.0, time.monotonic()
        self.step = Step(model, self.images, self.recipe)

    def _ready(self) -> None:
        """Capture the step where possible, and read the start."""
        home = self.images.inputs
        self.advance = self.step.compute
        if home.is_cuda:
            self.stream = torch.cuda.Stream(home.device)
            try:
                self.advance = capture(self.step, self.stream)
                self.graphed = True
            except RuntimeError as problem:
                self.error = f"not graphed: {problem}"[:500]
        self._read(0, 0, 0)

    def _shuffled(self, count: int) -> tuple[Tensor, Tensor]:
        """Return an epoch's images, augmented, in their random order."""
        order = torch.randperm(
            len(self.images.labels), generator=self.generator, device="cpu"
        )
        order = order[:count].to(self.images.labels.device)
        inputs = self.images.inputs[order]
        if self.augment is not None:
            inputs = self.augment(inputs, self.generator)
        return inputs, self.images.labels[order]

    def _read(self, epoch: float, steps: int, done: int) -> bool:
        """Add a reading to the history; return whether all losses are finite.

        ``steps`` were made since the epoch began, ``done`` in all.
        """
        numbers: Epoch = {"epoch": epoch, "step": done}
        with self._stepping():
            if steps:
                numbers["train_loss"] = float(self.step.loss) / steps
                numbers["train_error"] = float(self.step.wrong) / (
                    steps * self.recipe.batch_size
                )
            if self.recipe.tests_at(epoch):
                numbers |= evaluate(self.step, self.images)
        numbers["seconds"] = time.monotonic() - self.began
        losses = [value for name, value in numbers.items() if name.endswith("loss")]
        if self.probe is not None or self.report is not None:
            self._probe_and_report(numbers, done)
        self.history.append(numbers)
        return all(map(math.isfinite, losses))

    def _probe_and_report(self, numbers: Epoch, done: int) -> None:
        """Add the probe's numbers, and report."""
        due = self.probe_steps is None or done in self.probe_steps
        with self.on_stream():
            if self.probe is not None and due:
                numbers |= self._attempt("probe", self._measure, self.probe) or {}
            if self.report is not None:
                self._attempt("report", self.report, self.place, numbers)

    def _measure(self, probe: Measure) -> Epoch:
        with preserve(self.step.model):
            return dict(probe(self.step.model))

    def _attempt(self, what: str, action: Callable[..., Any], *given: Any) -> Any:
        """Call the probe or the report; after an error, never again."""
        if what in self.retired:
            return None
        try:
            return action(*given)
        except Exception as problem:
            self.retired[what] = f"{type(problem).__name__}: {problem}"[:500]
            if what not in self.warned:
                self.warned.add(what)
                warn(
                    f"the {what} raised {self.retired[what]} on network {self.place}: "
                    "it is retired there and training goes on; mend it and run again"
                )
            return None


def evaluate(step: Step, images: Images) -> Epoch:
    """Return loss and error on the images held out, with running statistics."""
    training = step.model.training
    step.model.eval()
    loss = torch.zeros((), dtype=torch.float64, device=images.test_labels.device)
    wrong = torch.zeros_like(loss)
    total = partial(functional.cross_entropy, reduction="sum")
    with torch.no_grad():
        for start in range(0, len(images.test_labels), _TEST_BATCH):
            part = slice(start, start + _TEST_BATCH)
            scores = step.scores(images.test_inputs[part])
            loss += total(scores, images.test_labels[part])
            wrong += (scores.argmax(1) != images.test_labels[part]).sum()
    step.model.train(training)
    count = len(images.test_labels)
    return {"test_loss": float(loss) / count, "test_error": float(wrong) / count}
