"""Weights from their definition: exact integers, autodiff, and networks."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from theodolite.core import PathBlueprint, Row, Rows, named_rows, stream

from ..shared.enumeration import built, coin_outputs, propagated, recorded
from ..shared.exact_weights import ExactWeights
from ..shared.rows import EPS, by_length
from .config import (
    BANDS,
    BETAS,
    CHANCE,
    COINS,
    FIGURE_BETAS,
    FIGURE_DEPTH,
    Config,
    network,
)


def of_network(config: Config, trial: int) -> list[Row]:
    """Return rows of networks with shared weights, and losses with random gates."""
    plan = network()
    module = built(plan, seed=trial, device=config.device)
    weights = module.weights.detach().cpu().numpy()
    x = stream(trial, "terms").normal(size=(1, plan.inputs))
    # All gates may be closed at an input, but not at the opposite one as well.
    x = x if recorded(module, x).output[0] > 0 else -x
    gates = [gate[0] for gate in recorded(module, x).gates]
    rows = _terms(plan, np.abs(weights), np.abs(x[0]))
    return rows + _scale_slope(plan, weights, x, gates) + _losses(trial)


def _terms(plan: PathBlueprint, weights: np.ndarray, x: np.ndarray) -> list[Row]:
    """Read the weights of Eq 14 off the mean output; all is positive, none cancels."""
    matrices = [weights[index] for index in plan.indices]
    lengths = np.arange(1, plan.depth + 1)
    every = [np.ones(plan.width)] * plan.depth
    terms = CHANCE**lengths * propagated(matrices, every, x)
    # All x̃ are one variable, so that the sum over configurations is a power.
    variable = x.sum() / np.sqrt(plan.inputs)
    first = terms / (variable * (weights.sum() / plan.rms) ** lengths)
    spread = first * np.sqrt(plan.parameters) ** lengths
    error = EPS * plan.width * plan.depth
    rows = by_length("line_one", first, error * float(first.max()))
    return rows + by_length("epsilon", spread / np.linalg.norm(spread), error)


def _scale_slope(
    plan: PathBlueprint, weights: np.ndarray, x: np.ndarray, gates: list[np.ndarray]
) -> list[Row]:
    r"""Compare $\partial Y/\partial C$ by autodiff with Eq 19, gates frozen."""
    import torch

    scale = torch.tensor(plan.rms, dtype=torch.float64, requires_grad=True)
    unit = torch.as_tensor(weights / plan.rms)
    signal = torch.as_tensor(x)
    for layer, index in enumerate(plan.indices):
        gate = torch.as_tensor(gates[layer].astype(np.float64))
        branch = (signal @ (scale * unit)[torch.as_tensor(index)]) * gate
        signal = branch + signal if layer else branch
    (slope,) = torch.autograd.grad(signal.sum(), scale)
    matrices = [weights[index] for index in plan.indices]
    terms = propagated(matrices, gates, x[0])
    by_degree = float(terms @ np.arange(1, plan.depth + 1))
    size = float(np.abs(terms) @ np.arange(1, plan.depth + 1))
    numbers: dict[str, Any] = {
        "slope_gap": abs(float(slope) - by_degree) / size,
        "slope_times_scale_gap": abs(plan.rms * float(slope) - by_degree) / size,
    }
    return named_rows(numbers, EPS * plan.width * plan.depth)


def _losses(trial: int) -> list[Row]:
    """Return how far mean losses over random gates are from affine in mean outputs."""
    plan = PathBlueprint(**COINS)
    module = built(plan, seed=trial)
    x = 2 * stream(trial, "losses").normal(size=(64, plan.inputs))
    matrices = recorded(module, x).matrices
    outputs, chances = coin_outputs(matrices, x, chance=CHANCE)
    mean = chances @ outputs
    losses = {
        "hinge": chances @ np.maximum(0.0, 1 - outputs),
        "absolute": chances @ np.abs(1 - outputs),
    }
    rows: list[Row] = []
    for name, loss in losses.items():
        left = 1 - np.corrcoef(mean, loss)[0, 1] ** 2
        rows += named_rows({"not_affine": left}, 1e-13, loss=name)
    return rows


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Return the rows of one depth, or of one network."""
    depth = cell["depth"]
    if cell["part"] == "network":
        return Rows(of_network(config, cell["trial"]))
    if cell["part"] == "small":
        return Rows(_small(depth))
    rows: list[Row] = _entropy(depth)
    for beta in BETAS:
        rows += _exact(depth, beta)
        if depth == FIGURE_DEPTH and beta in FIGURE_BETAS:
            shares = ExactWeights(depth=depth, beta=BETAS[beta]).shares
            rows += by_length("weight", np.sqrt(shares), 2 * EPS, beta=beta)
    return Rows(rows)


def _exact(depth: int, beta: float) -> list[Row]:
    """Return peaks, mirror images and tails at one depth, each rounded once."""
    exact = BETAS[beta]
    weights = ExactWeights(depth=depth, beta=exact)
    place, peaks = depth * exact / (1 + exact), weights.maximisers
    whole = {
        "peak_least": peaks[0],
        "maximisers": len(peaks),
        "tie_off_by": peaks[0] - place if place.denominator == 1 else 0,
    }
    mirrored = ExactWeights(depth=depth, beta=1 / exact).shares[::-1]
    shares = np.array(weights.shares)
    # Eq 36: the lower tail over its printed bound.
    squares = ExactWeights(depth=depth, beta=exact, shift=0).squares
    last = int(BANDS[beta][0] * depth)
    numbers = {
        "first_share": shares[0],
        "mirror_gap": np.abs(shares - mirrored).max(),
        "same_scale_gap": np.abs(shares - shares[::-1]).max(),
        "tail_over_bound": Fraction(sum(squares[:last]), last * squares[last - 1]),
    }
    rows = named_rows(whole, 0.0, beta=beta) + named_rows(numbers, 2 * EPS, beta=beta)
    return rows + named_rows(_influence(weights), EPS * depth, beta=beta)


def _entropy(depth: int) -> list[Row]:
    r"""Eq 35 for $\alpha = 1/4$ and $1/2$: its distance from the limit, scaled."""
    rows: list[Row] = []
    for share in (0.25, 0.5):
        chosen = math.log(math.comb(depth, int(share * depth)))
        entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
        scaled = abs(chosen - depth * entropy) / math.log(depth)
        rows += named_rows({"entropy_scaled": scaled}, depth * EPS, share=share)
    return rows


def _small(depth: int) -> list[Row]:
    """Return the peak at some scales, and derivatives by autodiff."""

    def peaks(beta: Fraction) -> list[int]:
        return ExactWeights(depth=depth, beta=beta).maximisers

    # As the proof of lemma 4 has it, for simplicity.
    at_one = ExactWeights(depth=depth, beta=Fraction(1), shift=0).maximisers
    numbers = {
        "half_off_by": min(abs(r - depth / 2) for r in at_one),
        "last_missed": depth not in peaks(Fraction(depth - 1)),
        "tie_at_last_missed": depth - 1 not in peaks(Fraction(depth - 1)),
        "depth_less_peak_large": depth - peaks(Fraction(depth))[0],
        "depth_less_peak_below": depth - peaks(Fraction(2 * depth - 3, 2))[-1],
    }
    rows = named_rows(numbers, 0.0) + _slopes(depth) + _printed_ends(depth)
    for beta, exact in BETAS.items():
        share = ExactWeights(depth=depth, beta=exact).shares[0]
        rows += named_rows({"first_share": share}, 2 * EPS, beta=beta)
    return rows


def _printed_ends(depth: int) -> list[Row]:
    r"""Return whether $\beta^* = \binom{p}{p/2}$ misses the peaks of lemma 4."""
    if depth % 2:
        return []
    star = Fraction(math.comb(depth, depth // 2))

    def peaks(beta: Fraction) -> list[int]:
        return ExactWeights(depth=depth, beta=beta, shift=0).maximisers

    missed = {
        "printed_last_missed": depth not in peaks(star),
        "printed_first_missed": 1 not in peaks(1 / star),
    }
    return named_rows(missed, 0.0)


def _influence(weights: ExactWeights) -> dict[str, float]:
    """Return how much the multipliers of Eq 19 lengthen paths on average."""
    mean, _ = weights.moments()

    def gain(centre: Fraction) -> float:
        squares = [
            (r - centre) ** 2 * s for r, s in enumerate(weights.squares, start=1)
        ]
        first = sum(r * s for r, s in enumerate(squares, start=1))
        return float(first / sum(squares) - mean)

    return {"multiplier_gain": gain(Fraction(0)), "tied_gain": gain(mean)}


def _slopes(depth: int) -> list[Row]:
    r"""$C\,\partial\epsilon_r/\partial C$ at $\beta = 1/2$, by autodiff."""
    import torch

    ones = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)  # log C
    choose = torch.tensor([float(math.comb(depth - 1, r)) for r in range(depth)])
    lengths = torch.arange(1, depth + 1, dtype=torch.float64)
    weights = choose.double() * (0.5 * ones.exp()) ** lengths
    epsilon = weights / weights.square().sum().sqrt()
    slopes = [torch.autograd.grad(e, ones, retain_graph=True)[0] for e in epsilon]
    return by_length("slope", [float(s) for s in slopes], 1e-14, beta=0.5)
