"""Networks trained side by side on the CPU, each by one thread of its own.

Every thread that torch may use trains networks from the first step to the last, and
none waits for another, but where something is done that all share: networks are built
in the order given while nobody steps, and probed and reported so by the thread that
called, with all of torch's threads.
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

_torch: Any = torch  # whose stacks of modes have private names


def wants_one_thread() -> bool:
    """Say whether torch holds for the calling thread alone what others would not get.

    Such are autocast, a default device, modes that see or change calls of torch, hooks
    on what is kept for the backward pass, and gradients that were turned off.
    """
    return bool(
        torch.is_autocast_enabled("cpu")
        or not torch.is_grad_enabled()
        or torch.is_inference_mode_enabled()
        or _torch._C._len_torch_function_stack()
        or _torch._C._len_torch_dispatch_stack()
        or _torch._C._autograd._top_saved_tensors_default_hooks(True)
    )


class Turns:
    """Nothing to keep apart: one thread does everything, a step at a time."""

    together = False

    @contextmanager
    def step(self) -> Iterator[ExitStack]:
        """Hold for a step."""
        with ExitStack() as held:
            yield held

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold for what others must not overlap."""
        yield

    def call(self, action: Callable[[], None]) -> None:
        """Do what is not the network's own work."""
        action()


class Gate:
    """Lets steps of several threads overlap, and nothing overlap what is done alone."""

    together = True

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._stepping, self._asking = 0, 0
        self._calls = queue.SimpleQueue[tuple[Callable[[], None], Future] | None]()
        self._waiting = set[Future]()  # calls that someone waits for, taken or not

    @contextmanager
    def step(self) -> Iterator[ExitStack]:
        """Hold for a step, beside those of others; closing what is given lets go."""
        with ExitStack() as held:
            with self._changed:
                self._changed.wait_for(lambda: not self._asking)
                self._stepping += 1
                held.callback(self._stepped)
            yield held

    def _stepped(self) -> None:
        with self._changed:
            self._stepping -= 1
            self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody steps, then keep everyone waiting."""
        with self._changed:
            self._asking += 1
            try:
                self._changed.wait_for(lambda: not self._stepping)
                yield
            finally:
                self._asking -= 1
                self._changed.notify_all()

    def call(self, action: Callable[[], None]) -> None:
        """Have something done alone by the thread that serves, and wait for it."""
        done = Future()
        self._waiting.add(done)
        self._calls.put((action, done))
        try:
            done.result()
        finally:
            self._waiting.discard(done)

    def serve(self, workers: int) -> None:
        """Do what workers call for, until each has left."""
        while workers:
            asked = self._calls.get()
            if asked is None:
                workers -= 1
                continue
            action, done = asked
            try:
                with self.alone():
                    action()
            except BaseException as problem:
                done.set_exception(problem)
                raise
            done.set_result(None)

    def leave(self) -> None:
        """Tell the thread that serves that a worker has ended."""
        self._calls.put(None)

    def abandon(self) -> None:
        """Let go of workers whose calls nobody will serve.

        An interrupt may have come just after a call was taken from the queue.
        """
        for done in tuple(self._waiting):
            done.cancel()


class Worked(Protocol):
    """What a worker does with a network."""

    gate: Turns | Gate

    def start(self) -> bool:
        """Build the network; say whether it is there to be trained."""
        ...

    def advance_once(self) -> bool:
        """Make one step; say whether there are more."""
        ...

    def release(self) -> None:
        """Let go of everything."""
        ...


def train_side_by_side(
    runs: Sequence[Worked], count: int, in_time: Callable[[], bool]
) -> None:
    """Train networks, in the order given, by several threads.

    Each has a copy of the caller's context variables; see :func:`wants_one_thread` for
    what it would not have.

    Args:
        runs: What to train; their gates are set here.
        count: Threads, a network each.
        in_time: Says whether there is time for another step.
    """
    threads = torch.get_num_threads()
    gate, waiting, stop = Gate(), deque(runs), threading.Event()
    for run in runs:
        run.gate = gate

    def going() -> bool:
        return in_time() and not stop.is_set()

    def work() -> None:
        torch.set_num_threads(1)
        try:
            while going():
                with gate.alone():
                    if not waiting:
                        return
                    run = waiting.popleft()
                    more = run.start()
                while more and going():
                    more = run.advance_once()
                run.release()
        finally:
            gate.leave()

    try:
        with ThreadPoolExecutor(count, "training") as pool:
            working = list[Future]()
            try:
                for _ in range(count):  # a thread may not be there to be had
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
