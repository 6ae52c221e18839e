"""Real numbers in every type that people have them in, and what is none.

Values reach the ends of each type, where its own arithmetic wraps around, overflows
or loses digits: whoever computes in the type that came gets another number.
"""

import numpy as np

# Least and greatest value to draw; powers of two, products of which leave the type.
RANGES = {
    "bool": (0, 1),
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**40), 2**40),
    "uint8": (0, 255),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**40),
    "float16": (-2000, 2000),
    "float32": (-(10**9), 10**9),
    "float64": (-(10**9), 10**9),
    ">i2": (-(2**15), 2**15 - 1),
    ">f4": (-(10**9), 10**9),
    "longdouble": (-(10**9), 10**9),
}
FORMS = ("array", "list", "tuple")


def numbers(dtype, *shape, seed=0):
    """Draw whole numbers that a type holds exactly, both ends among them."""
    low, high = RANGES[dtype]
    drawn = np.random.default_rng(seed).integers(low, high, shape, endpoint=True)
    drawn.flat[0], drawn.flat[-1] = high, low
    return drawn.astype(dtype)


def formed(array, form):
    """The same numbers as an array, or as nested lists or tuples of Python's own."""
    if form == "array":
        return array
    return array.tolist() if form == "list" else _tuples(array.tolist())


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def spoilt(array):
    """What is no array of finite real numbers: a name, and the value."""
    floats = array.astype(float)
    gap, endless = floats.copy(), floats.copy()
    gap.flat[0], endless.flat[-1] = np.nan, -np.inf
    masked = np.ma.masked_array(floats, mask=np.arange(floats.size) == 0)
    return {
        "complex": floats + 0j,
        "object": floats.astype(object),
        "text": floats.astype(str),
        "bytes": floats.astype("S"),
        "datetime": floats.astype("M8[s]"),
        "timedelta": floats.astype("m8[s]"),
        "record": np.zeros(floats.shape, [("a", "u1")]),
        "masked": masked.reshape(floats.shape),
        "huge whole numbers": np.full(floats.shape, 10**400, object).tolist(),
        "NaN": gap,
        "infinity": endless,
        "None": None,
        "a dict": {"a": 1},
        "ragged": [[1.0, 2.0], [1.0]],
        "a set": {1.0},
        "words": "abc",
    }
