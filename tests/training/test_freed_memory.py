"""Memory that was freed is kept for what comes next."""

import platform
import subprocess
import sys

import pytest

# Pages that are filled anew by the last of some blocks of 4 MiB.
CODE = """
import resource
from theodolite.training.images.training import keep_freed_memory

def pages():
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        block = b"x" * (size := 4 * 2**20), b"y" * size, b"z" * size
        del block
        after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return after - before

anew = pages()
keep_freed_memory()
print(anew, pages())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what GNU's library does")
def test_blocks_are_filled_anew_unless_kept():
    run = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    )
    anew, kept = map(int, run.stdout.split())
    assert 4 * kept < anew
