"""Gates: which threads may step at once, and which work must be done alone."""

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager


class OpenGate:
    """The gate of a single thread: nothing has to wait."""

    together = False

    @contextmanager
    def step(self) -> Iterator[ExitStack]:
        """Enter a step."""
        with ExitStack() as held:
            yield held

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Enter work during which no other thread may step."""
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
