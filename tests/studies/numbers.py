"""What every study gives at SMOKE, so that no formula changes without a word.

``numbers.json`` holds, of each study, its settings, means over the rows of each
quantity, each claim (its numbers, and the ends of their regions), each table of a
figure, how that looks, and the comparison. ``python -m tests.studies.numbers`` writes
it again, or only the studies named as ``paper/study``: each runs twice, the second time
on other instructions of the processor and without compiled code, and what does not come
out the same is not kept.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from zlib import crc32

import numpy as np

from tests.studies.looks import NUMBERS, described
from theodolite import figures

OTHERWISE = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX2 FMA3",
    "NUMBA_DISABLE_JIT": "1",
    "OPENBLAS_CORETYPE": "Nehalem",
}


def digest(study, both):
    """Return a few numbers for each part of a study."""
    digests = {"revision": [study.revision]}
    for scale, config in study.presets.items():
        digests[f"preset {scale}"] = [crc32(repr(config).encode())]
    for side, rows in (("predicted", both.predicted), ("measured", both.measured)):
        for quantity in rows.levels("quantity"):
            digests[f"{side} {quantity}"] = _summed(rows.where(quantity=quantity))
    for claim in study.claims:
        ruling = claim.rule(both)
        digests[f"claim {claim.name}"] = _judged(ruling.judged)
        if ruling.corrected is not None:
            digests[f"corrected {claim.name}"] = _judged(ruling.corrected)
        if ruling.asides:
            digests[f"asides {claim.name}"] = _summed(
                ruling.to_dict()["numbers"].values()
            )
    for drawing in study.drawings:
        digests[f"table {drawing.name}"] = _tabled(drawing.table(both))
    return {**digests, "comparison": _tabled(study.compare(both))}


def _summed(rows):
    """Return how many rows there are, the means of their values and of their errors."""
    values, errors = ([row.get(k) for row in rows] for k in ("value", "error"))
    return [len(rows), _mean(values), _mean(errors)]


def _tabled(rows):
    """Return how many rows a table has, and the means of its columns, by name."""
    names = sorted({name for row in rows for name in row})
    return [len(rows), *(_mean(row.get(name) for row in rows) for name in names)]


def _judged(judgement):
    leaves = judgement.leaves
    ends = [end for leaf in leaves for end in (leaf.region.low, leaf.region.high)]
    values = [leaf.quantity.value for leaf in leaves]
    return [len(leaves), _mean(values), _mean(ends)]


def _mean(values):
    numbers = [
        float(value)
        for value in values
        if isinstance(value, int | float | np.number) and math.isfinite(value)
    ]
    return float(f"{np.mean(numbers):.5g}") if numbers else None


def check_numbers(study, both, name):
    """A study gives what it gave when ``numbers.json`` was written."""
    new = digest(study, both)
    kept = json.loads(NUMBERS.read_text())[name].items()
    wanted = {key: value for key, value in kept if not key.startswith("figure ")}
    assert new.keys() == wanted.keys()
    differing = {
        key: (new[key], numbers)
        for key, numbers in wanted.items()
        if not _same(new[key], numbers, 1e-4)
    }
    assert not differing, f"{differing}; to keep these: python -m tests.studies.numbers"


def _same(new, wanted, tolerance):
    return all(
        b == "differs" or a == b or (a and b and math.isclose(a, b, rel_tol=tolerance))
        for a, b in zip(new, wanted, strict=True)
    )


def _noise(number, key, place):
    """Tell rounding, of numbers that are zero, from errors and regions as small."""
    values = place == 1 or key.partition(" ")[0] in ("table", "comparison")
    return values and isinstance(number, float) and 0 < abs(number) < 1e-9


def _all(names):
    from tests.studies.counterfactuals import rows_of
    from theodolite.studies import catalogue

    with tempfile.TemporaryDirectory() as folder:
        known = [entry.full_name for entry in catalogue()]
        chosen = [name for name in known if not names or name in names]
        pairs = ((name, rows_of(Path(folder), name)) for name in chosen)
        return {name: digest(*result) | _figures(*result) for name, result in pairs}


def _figures(study, both):
    """Return what looks of figures are, which are checked where they are drawn."""
    with figures.house_style():
        return {
            f"figure {one.name}": described(one.draw(one.table(both)))
            for one in study.drawings
        }


def main():
    """Write what comes out the same twice, or print what comes out once."""
    names = sys.argv[1:]
    if names[:1] == ["once"]:
        print(json.dumps(_all(names[1:])))
        return
    first, other = (
        json.loads(
            subprocess.run(
                [sys.executable, "-m", "tests.studies.numbers", "once", *names],
                env={**os.environ, **more}, check=True, stdout=subprocess.PIPE,
            ).stdout
        )
        for more in ({}, OTHERWISE)
    )  # fmt: skip
    kept = json.loads(NUMBERS.read_text()) if names else {}
    kept |= {
        name: {
            key: [
                a if _same([a], [b], 1e-5) and not _noise(a, key, place) else "differs"
                for place, (a, b) in enumerate(
                    zip(numbers, other[name][key], strict=True)
                )
            ]
            for key, numbers in keys.items()
        }
        for name, keys in first.items()
    }
    lines = (
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(
            f'"{k}": {json.dumps(v, ensure_ascii=False, separators=(",", ":"))}'
            for k, v in keys.items()
        )
        + "}"
        for name, keys in kept.items()
    )
    NUMBERS.write_text("{\n" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
