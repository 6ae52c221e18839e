"""Cases of known memory, measured by a test in processes of their own."""

import numpy as np


def _holding(mebibytes):
    def prepare():
        print("what a case prints is no answer")
        np.ones(1).sum()  # some kernels count code, too, when it is first used
        return lambda: np.ones(mebibytes * 2**17).sum()

    return prepare


def _broken():
    raise ValueError("this case cannot be prepared")


CASES = {"64": _holding(64), "broken": _broken, "16": _holding(16)}
