"""Rows of computed numbers, and what is read off them with its sign."""

import numpy as np

from theodolite.core import PredictedAndMeasured, Quantity, Read, Select, known


def most_over(
    bound: Select,
    found: Select,
    by: tuple[str, ...],
    *,
    ratio: bool = False,
    least: bool = False,
    name: str = "",
) -> Read:
    """Read the largest of what is found less its bound, or over it.

    Args:
        bound: A row for each that is found.
        found: What is held against it.
        by: Labels that partners share.
        ratio: Divide instead of subtracting.
        least: Read the smallest.
        name: What it is called.
    """

    def read(both: PredictedAndMeasured) -> Quantity:
        told = name or f"{found} {'over' if ratio else 'less'} {bound}"
        bounds = {tuple(row.get(k) for k in by): row for row in bound(both)}
        keys = [tuple(row.get(k) for k in by) for row in found(both)]
        if not keys or not bounds.keys() >= set(keys):
            return known(told, float("nan"), note="rows are missing or lack a partner")
        a, da, b, db = np.array(
            [
                [row["value"], row["error"], bounds[key]["value"], bounds[key]["error"]]
                for row, key in zip(found(both), keys, strict=True)
            ]
        ).T
        if ratio and not b.all():
            return known(told, float("nan"), note="a bound is zero")
        values = a / b if ratio else a - b
        errors = (da + abs(values) * db) / abs(b) if ratio else da + db
        sign = -1.0 if least else 1.0
        value = float((sign * values).max())
        return known(told, sign * value, float((sign * values + errors).max()) - value)

    return read
