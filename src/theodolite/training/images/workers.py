"""Networks trained side by side on the CPU, one thread per network.

A thread trains a network from the first step to the last and waits for others only
where they share something: networks are built in the given order while no other thread
steps, and the calling thread probes and reports, with all of torch's threads.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from typing import Any, Protocol

import torch

from theodolite.core import ActForThread

_torch: Any = torch  # whose stacks of modes have private names


def wants_one_thread() -> bool:
    """Return whether torch has settings for this thread that others would not get.

    These are autocast, a default device, modes that see or change calls of torch, hooks
    on saved tensors, and gradients that were turned off.
    """
    return bool(
        torch.is_autocast_enabled("cpu")
        or not torch.is_grad_enabled()
        or torch.is_inference_mode_enabled()
        or _torch._C._len_torch_function_stack()
        or _torch._C._len_torch_dispatch_stack()
        or _torch._C._autograd._top_saved_tensors_default_hooks(True)
    )


class OpenGate:
    """The gate of a single thread: nothing has to wait."""

    together = False

    @contextmanager
    def step(self) -> Iterator[ExitStack]:
        """Hold for a step."""
        with ExitStack() as held:
            yield held

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold for work that no step may overlap."""
        yield

    def call(self, action: Callable[[], None]) -> None:
        """Run an action."""
        action()


class Gate:
    """Lets steps of several threads overlap; work done alone overlaps nothing."""

    together = True

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._stepping, self._asking = 0, 0
        self._calls = queue.SimpleQueue[tuple[Callable[[], None], Future] | None]()
        self._waiting = set[Future]()  # calls that a worker waits for

    @contextmanager
    def step(self) -> Iterator[ExitStack]:
        """Hold for a step beside those of others; closing the stack ends the hold."""
        with ExitStack() as held:
            with self._changed:
                self._changed.wait_for(lambda: not self._asking)
                self._stepping += 1
                held.callback(self._end_step)
            yield held

    def _end_step(self) -> None:
        with self._changed:
            self._stepping -= 1
            self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no thread steps, then keep all others waiting."""
        with self._changed:
            self._asking += 1
            try:
                self._changed.wait_for(lambda: not self._stepping)
                yield
            finally:
                self._asking -= 1
                self._changed.notify_all()

    def call(self, action: Callable[[], None]) -> None:
        """Let the serving thread run an action alone, and wait for it."""
        done = Future()
        self._waiting.add(done)
        self._calls.put((action, done))
        try:
            done.result()
        finally:
            self._waiting.discard(done)

    def serve(self, workers: int) -> None:
        """Run the actions that workers ask for, until each has left."""
        while workers:
            request = self._calls.get()
            if request is None:
                workers -= 1
                continue
            action, done = request
            try:
                with self.alone():
                    action()
            except BaseException as problem:
                done.set_exception(problem)
                raise
            done.set_result(None)

    def leave(self) -> None:
        """Tell the serving thread that a worker has ended."""
        self._calls.put(None)

    def abandon(self) -> None:
        """Release workers whose calls will not be served.

        An interrupt may have come just after a call was taken from the queue.
        """
        for done in tuple(self._waiting):
            done.cancel()


class Trainable(Protocol):
    """A network in training, as a worker uses it."""

    gate: OpenGate | Gate

    def start(self) -> bool:
        """Build the network; return whether it can be trained."""
        ...

    def advance_once(self) -> bool:
        """Make one step; return whether there are more."""
        ...

    def release(self) -> None:
        """Free everything."""
        ...


def train_side_by_side(
    runs: Sequence[Trainable], count: int, in_time: Callable[[], bool]
) -> None:
    """Train networks in the given order by ``count`` threads, one network each.

    A thread gets a copy of the caller's context variables; see
    :func:`wants_one_thread` for what it does not get. ``in_time`` returns whether there
    is time for another step.
    """
    threads, for_caller = torch.get_num_threads(), ActForThread()
    gate, waiting, stop = Gate(), deque(runs), threading.Event()
    for run in runs:
        run.gate = gate

    def going() -> bool:
        return in_time() and not stop.is_set()

    def work() -> None:
        torch.set_num_threads(1)
        try:
            with for_caller:  # who holds the locks of the process
                train()
        finally:
            gate.leave()

    def train() -> None:
        while going():
            with gate.alone():
                if not waiting:
                    return
                run = waiting.popleft()
                more = run.start()
            while more and going():
                more = run.advance_once()
            run.release()

    try:
        with ThreadPoolExecutor(count, "training") as pool:
            working = list[Future]()
            try:
                for _ in range(count):  # the system may refuse a thread
                    working.append(pool.submit(copy_context().run, work))
                gate.serve(count)
            finally:
                stop.set()
                while not all(one.done() for one in working):
                    gate.abandon()
                    wait(working, timeout=0.1)
            for one in working:
                one.result()
    finally:
        torch.set_num_threads(threads)
