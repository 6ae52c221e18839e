"""Memory that one step frees, kept for the next."""

import numpy as np

# The largest block by whose end the C library of GNU learns, 32 MiB, less its own part.
_LARGEST = 32 * 2**20 - 2**16


def keep_freed_memory() -> None:
    """Have the C library keep what steps free, where it is that of GNU.

    It gives blocks back to the system at once that are larger than any freed so far, up
    to 32 MiB, and the ends of its heaps past twice that. A step then waits for the
    system to fill with zeros what the step before it had: a tenth of the processor time
    of networks with maps of 1 to 3 MB, trained a network a thread. One block of that
    size, freed and never written to, is enough.

    References:
        mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD.
    """
    np.empty(_LARGEST, np.uint8)
