"""What members of a small crew hold and are asked; torch is not needed."""

import os
import signal
import threading
import time
from pathlib import Path

from theodolite.core import MeasurementError


class Place:
    """Remembers its seats; can go on among others."""

    def __init__(self, seat):
        self.seats = [seat]

    def move(self, seat):
        self.seats.append(seat)


def note(held, folder):
    """Write down who sits where, and since when; return how many there are."""
    seat = held.seats[-1]
    words = os.getpid(), seat.size, len(held.seats)
    Path(folder, str(seat.rank)).write_text(" ".join(map(str, words)))
    return seat.size


class Unsendable(Exception):
    """Holds what cannot be pickled."""

    def __init__(self, what):
        super().__init__(what)
        self.lock = threading.Lock()


def fall(held, folder, rank):
    """End the process of one rank, the first time that it is asked."""
    fallen = Path(folder, "fallen")
    if held.seats[-1].rank == rank and not fallen.exists():
        fallen.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return held.seats[-1].size


def fall_always(held):
    """End the process of one rank whenever it is asked."""
    if held.seats[-1].rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def compute(held, seconds):
    """Take some time over an answer, as products do."""
    time.sleep(seconds)
    return held.seats[-1].size


def fall_and_compute(held, folder, rank, seconds):
    """End one rank the first time, while the others compute."""
    fall(held, folder, rank)
    return compute(held, seconds)


def fall_and_refuse(held):
    """End the process of one rank, and have another say what is wrong."""
    if held.seats[-1].rank == 2:
        raise MeasurementError("no sample counts")
    fall_always(held)
