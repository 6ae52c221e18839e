"""Say in a sentence that a launcher ended this process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from theodolite.core import TeamError


@contextmanager
def ending_in_a_sentence(rank: int) -> Iterator[None]:
    """Raise a sentence where a signal to end would end the process without a word.

    Launchers such as torchrun send one to all that are left when a rank is lost. A
    program that handles the signal itself is left to do so.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(*_: Any) -> None:
        raise TeamError(
            f"rank {rank} was told to end, as launchers do when another rank was lost: "
            "look at what ended the other, and start all again"
        )

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
