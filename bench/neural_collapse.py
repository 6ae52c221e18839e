"""Numbers of neural collapse of 50,000 × 512 features, ours beside dense formulas."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from bench.peak_memory import both
from bench.progress import told
from bench.timing import Result, cpu_seconds, in_turns
from theodolite.instruments import Collapse, CollapseMeter

SAMPLES, WIDTH, BATCH = 50_000, 512, 1_000
NAMES = ("nc1_variability", "nc2_mean_angles", "nc2_mean_simplex", "nc3_simplex")


def run() -> Iterator[Result]:
    """Compare numbers in float64 first, then processor times on float32 features."""
    cases = [
        (f"C = {classes}, {words}", (classes, words, spread))
        for classes in (10, 100)
        for words, spread in (("before collapse", 0.5), ("deep collapse", 1e-4))
    ]
    for case in told(cases):
        yield from _compared(*case)


def features(classes: int, spread: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features behind a ReLU, their labels, and a head."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(classes, WIDTH, generator=generator)
    labels = torch.arange(SAMPLES) % classes
    labels = labels[torch.randperm(SAMPLES, generator=generator)]
    strays = torch.randn(SAMPLES, WIDTH, generator=generator)
    head = torch.randn(classes, WIDTH, generator=generator)
    bias = torch.randn(classes, generator=generator)
    return (means[labels] + spread * strays).relu_(), labels, head, bias


def ours(h: Tensor, y: Tensor, head: Tensor, bias: Tensor) -> Collapse:
    """Feed a meter batch by batch."""
    meter = CollapseMeter(head=(head, bias))
    for start in range(0, len(h), BATCH):
        meter.update(h[start : start + BATCH], y[start : start + BATCH])
    return meter.compute()


def folded(h: Tensor, y: Tensor, head: Tensor, bias: Tensor) -> Collapse:
    """Do the same with no memory for features."""
    meter = CollapseMeter(head=(head, bias), feature_bytes=0)
    for start in range(0, len(h), BATCH):
        meter.update(h[start : start + BATCH], y[start : start + BATCH])
    return meter.compute()


def vectorised(
    h: Tensor, y: Tensor, head: Tensor, bias: Tensor, dtype: torch.dtype | None = None
) -> dict[str, float]:
    """Write the formulas down in matrices: covariances, a pseudo-inverse, distances."""
    h, head, bias = (t.to(dtype or h.dtype) for t in (h, head, bias))
    classes = len(head)
    count = torch.bincount(y, minlength=classes).to(h.dtype)
    means = torch.zeros_like(head).index_add_(0, y, h) / count[:, None]
    centred, strays = means - means.mean(0), h - means[y]
    within, between = strays.T @ strays / len(h), centred.T @ centred / classes
    tolerance = 1e-5 if h.dtype == torch.float32 else 1e-10
    inverse = torch.linalg.pinv(between, rtol=tolerance)
    nearest = torch.cdist(h, means).argmin(1)
    decided = (h @ head.T + bias).argmax(1)
    return {
        "nc1_variability": float((within * inverse).sum()) / classes,
        **_geometry(centred, head),
        "nc4_disagreement": float((nearest != decided).double().mean()),
    }


def published(h: Tensor, y: Tensor, head: Tensor, bias: Tensor) -> dict[str, float]:
    """Follow the formulas of the published package ``neural-collapse``.

    Class sums by products with one-hot matrices, then a covariance about the means,
    batch by batch in float32, a second and a third pass for those and for decisions,
    and general pseudo-inverses.
    """
    classes, parts = len(head), range(0, len(h), BATCH)
    numbers = torch.arange(classes)
    sums, count = torch.zeros_like(head), torch.zeros(classes)
    for start in parts:
        part, told = h[start : start + BATCH], y[start : start + BATCH]
        one_hot = (told[:, None] == numbers).T.to(h.dtype)
        sums, count = sums + one_hot @ part, count + one_hot.sum(1)
    means = sums / count[:, None]
    centred = means - means.mean(0)
    within = torch.zeros(WIDTH, WIDTH)
    for start in parts:
        strays = h[start : start + BATCH] - means[y[start : start + BATCH]]
        within += strays.T @ strays
    between = centred.T @ centred / classes
    matched = 0
    for start in parts:
        part = h[start : start + BATCH]
        apart = part.norm(dim=1)[:, None] ** 2 + means.norm(dim=1) ** 2
        nearest = (apart - 2 * part @ means.T).argmin(1)
        matched += int(((part @ head.T + bias).argmax(1) != nearest).sum())
    inverse = torch.linalg.pinv(between, rtol=1e-5)
    return {
        "nc1_variability": float(torch.trace(inverse @ within / len(h))) / classes,
        **_geometry(centred, head),
        "nc4_disagreement": matched / len(h),
    }


def _geometry(centred: Tensor, head: Tensor) -> dict[str, float]:
    classes = len(head)
    units = torch.nn.functional.normalize(centred, dim=1)
    cosines = (units @ units.T)[~torch.eye(classes, dtype=torch.bool)]
    ideal = (torch.eye(classes) - 1 / classes).to(centred) / (classes - 1) ** 0.5
    own, crossed = centred @ centred.T, head @ centred.T
    return {
        "nc2_mean_angles": float(cosines.std(correction=0)),
        "nc2_mean_simplex": float((own / own.norm() - ideal).norm()),
        "nc3_simplex": float((crossed / crossed.norm() - ideal).norm()),
    }


def _gap(reading: Collapse, truth: dict[str, float]) -> float:
    """Return the largest relative difference; decisions must be the same."""
    gaps = [abs(getattr(reading, n) / truth[n] - 1) for n in NAMES]
    gaps.append(abs(reading.nc4_disagreement - truth["nc4_disagreement"]))
    return float(np.max(gaps))


def _compared(classes: int, words: str, spread: float) -> list[Result]:
    given = features(classes, spread)
    truth = vectorised(*given, dtype=torch.float64)
    reading = ours(*given)
    gap = _gap(reading, truth)
    task = f"NC1 to NC4 of {SAMPLES:,} × {WIDTH} features, C = {classes}, {words}"
    if gap > 1e-6:
        return [Result(task, "float64", None, f"no: {gap:.1e}", "results differ")]
    ways = {
        "ours": lambda: ours(*given),
        "vectorised formulas, float32": lambda: vectorised(*given),
        "formulas of neural-collapse, float32": lambda: published(*given),
    }
    times = in_turns(ways, 3)
    small, _ = cpu_seconds(lambda: folded(*given), 1)
    rows = []
    for name, way in list(ways.items())[1:]:
        theirs = way()
        off = abs(theirs["nc1_variability"] / truth["nc1_variability"] - 1)
        rows.append(
            Result(
                task,
                name,
                times[name] / times["ours"],
                f"ours to {gap:.0e}; theirs to {off:.0e} in NC1",
                f"with no memory for features, {times[name] / small:.1f}×",
                _memory(name[:4], classes),
            )
        )
    return rows


def _memory(name: str, classes: int) -> str:
    return both("bench.neural_collapse", f"{name}, {classes}", f"ours, {classes}")


def _case(function, classes):
    def prepare():
        given = features(classes, 0.5)
        small = [part[:2000] if len(part) == SAMPLES else part for part in given]
        function(*small)
        return lambda: function(*given)

    return prepare


CASES = {
    f"{name}, {classes}": _case(function, classes)
    for classes in (10, 100)
    for name, function in (("ours", ours), ("vect", vectorised), ("form", published))
}
