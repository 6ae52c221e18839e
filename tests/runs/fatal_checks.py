"""Checks that harm their process: ``test_ray`` sees what becomes of them."""

import os
import signal
import subprocess
import time


def test_before():
    pass


def test_wrong():
    raise ValueError("wrong here")


def test_fatal():
    """As Ray ends the process whose head node is lost, with its nodes left behind."""
    print("the last words", flush=True)
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    os.kill(os.getpid(), signal.SIGKILL)


def test_after():
    pass


def test_endless():
    time.sleep(600)
