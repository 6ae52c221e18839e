"""What the claims on figures 7 and 8 look at: rows, seeds, paired tests.

An optimal rate on the edge of the rates tried decides nothing,
unless all rates end alike: then the loss is known, and no rate is optimal.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from theodolite.core import (
    Check,
    Number,
    Rows,
    Verdict,
    estimate,
    fit_line,
    paired_test,
    undecided,
)

# Sign flips of fewer pairs cannot reach 5 %.
PAIRS = 6
SIGNIFICANT = 0.05
# "Basically the same": final losses at best and worst rate within a tenth.
SAME = 0.1
# "In deep networks": from this many matrices up.
DEEP = 8
NAMES = {
    "xavier": "Xavier",
    "orthogonal": "orthogonal",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
    "three_shortcut": "3-shortcut",
}
Numbers = dict[str, Number | float | int]
Judge = Callable[["Losses"], Verdict]


@dataclass(frozen=True)
class Losses:
    """Final losses and optimal rates, as the claims look at them.

    Attributes:
        predicted: Theory's rows.
        rows: The rows that are judged.
        quantity: What is plotted: ``excess`` or ``final_loss``.
    """

    predicted: Rows
    rows: Rows
    quantity: str

    def reference(self, quantity: str) -> float:
        """Return a number of theory."""
        return self.predicted.value(quantity=quantity)

    def depths(self, *networks: str, least: int = 0) -> list[int]:
        """Return the depths at which all these networks were trained."""
        found = [
            {row["depth"] for row in self.rows.where(quantity="log10_rate", network=n)}
            for n in networks
        ]
        return sorted(d for d in set.intersection(*found) if d >= least)

    def logs(self, network: str, depth: int) -> np.ndarray:
        """Return log10 of what is plotted, a number a seed."""
        return np.log10(self._seeds(network, depth).values())

    def rates(self, network: str, depth: int) -> np.ndarray:
        """Return log10 of each seed's own best rate."""
        return self._seeds(network, depth).values("own_rate")

    def rate(self, network: str, depth: int) -> Number:
        """Return log10 of the rate with the least mean loss."""
        row = self.rows.only(quantity="log10_rate", network=network, depth=depth)
        return Number(row["value"], row["error"])

    def means(self, network: str, depth: int) -> Rows:
        """Return the mean at every rate at which no run diverged."""
        rows = self.rows.where(
            quantity=f"mean_{self.quantity}", network=network, depth=depth
        )
        return rows.where(lambda row: row["diverged"] == 0)

    def spread(self, network: str, depth: int) -> Number:
        """Return how much higher the final loss is at the worst rate than at the best.

        As a share, over the rates at which no run diverged.
        """
        rows = self.means(network, depth)
        floor = self.reference("optimal_loss") if self.quantity == "excess" else 0.0
        values, errors = rows.values() + floor, rows.values("error")
        ends = [int(np.argmin(values)), int(np.argmax(values))]
        ratio = float(values[ends[1]] / values[ends[0]])
        return Number(
            ratio - 1, ratio * float(np.hypot(*(errors[ends] / values[ends])))
        )

    def flat(self, network: str, depth: int) -> bool:
        """Whether all rates end basically alike, so that none is optimal."""
        return self.spread(network, depth).value < SAME

    def gap(self, first: str, second: str, depth: int) -> tuple[Number, float]:
        """Return how many decades the first lies above the second, and the p-value."""
        test = paired_test(self.logs(first, depth), self.logs(second, depth))
        return Number(test.difference, test.stderr), test.p_value

    def rate_gap(self, first: str, second: str, depth: int) -> tuple[Number, float]:
        """Return the same of the seeds' own best rates."""
        test = paired_test(self.rates(first, depth), self.rates(second, depth))
        return Number(test.difference, test.stderr), test.p_value

    def faster(self, first: str, second: str, depth: int) -> tuple[Number, float]:
        """Return the decades and p-value by which the first takes higher rates.

        By seeds. Where the rates of the mean loss are in the other order, the gap is
        theirs, and nothing is sure.
        """
        gap, p = self.rate_gap(first, second, depth)
        mine, theirs = self.rate(first, depth), self.rate(second, depth)
        common = mine.value - theirs.value
        if gap.value <= 0 or common >= 0:
            return gap, p
        return Number(common, float(np.hypot(mine.error or 0, theirs.error or 0))), 1.0

    def growth(self, network: str, *, of: str = "logs", least: int = 0) -> Number:
        """Return the exponent of a power of depth, fitted to each seed."""
        depths = self.depths(network, least=least)
        table = np.array([getattr(self, of)(network, d) for d in depths])
        slopes = [fit_line(np.log10(depths), column).slope for column in table.T]
        found = estimate(slopes)
        return Number(found.mean, found.stderr)

    def rise(self, network: str, first: int, last: int) -> Number:
        """Return the decades from one depth to another, seed by seed."""
        found = estimate(self.logs(network, last) - self.logs(network, first))
        return Number(found.mean, found.stderr)

    def mean(self, network: str, depth: int) -> Number:
        """Return the mean over seeds of log10 of what is plotted."""
        found = estimate(self.logs(network, depth))
        return Number(found.mean, found.stderr)

    def _seeds(self, network: str, depth: int) -> Rows:
        rows = self.rows.where(quantity=self.quantity, network=network, depth=depth)
        return Rows(sorted(rows, key=lambda row: row["trial"]))

    def obstacle(self, networks: Iterable[str], *, least: int = 0) -> str | None:
        """Say why these networks cannot be judged, if so."""
        names = tuple(networks)
        depths = self.depths(*names, least=least)
        if len(depths) < 3:
            return f"{len(depths)} depths are too few for a statement on growth"
        seeds = len(self.rows.where(quantity=self.quantity).levels("trial"))
        if seeds < PAIRS:
            return f"{seeds} networks a depth are too few for a paired test"
        edges = [
            f"{NAMES[name]} at depth {row['depth']}"
            for name in names
            for row in self.rows.where(quantity="log10_rate", network=name)
            if row["edge"] != "no" and row["depth"] in depths
            if not self.flat(name, row["depth"])
        ]
        if edges:
            return f"the best rate is the last one tried for {', '.join(edges)}"
        return None


def judged(
    quantity: str, networks: Iterable[str], judge: Judge, *, least: int = 0
) -> Check:
    """Make a check of a function that looks at the rows to be judged.

    Args:
        quantity: What is plotted.
        networks: Networks whose optima the verdict rests on.
        judge: Decides.
        least: Least depth that counts.
    """
    names = tuple(networks)

    def check(predicted: Rows, measured: Rows) -> Verdict:
        losses = Losses(predicted, measured, quantity)
        why = losses.obstacle(names, least=least)
        return undecided(why, {}) if why else judge(losses)

    return check
