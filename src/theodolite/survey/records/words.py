"""Quantities in plain words: a name to show, what it means, and its unit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A quantity as a terminal and a page name it.

    Attributes:
        name: Its name.
        meaning: What it is, in a line.
        unit: Its unit, empty if it has none; shares are shown in ``"%"``.
    """

    name: str
    meaning: str = ""
    unit: str = ""

    @property
    def factor(self) -> float:
        """Number by which a value is multiplied to be in its unit."""
        return 100.0 if self.unit == "%" else 1.0


WORDS: dict[str, Word] = {
    "branch_gain": Word(
        "Branch gain", "size of the branch over that of the skip it joins"
    ),
    "keeps_shape": Word("Keeps the shape", "1 where output and input have one shape"),
    "forward_rms": Word("Forward signal", "root mean square of a block's output"),
    "forward_correlation": Word(
        "Sample correlation", "mean cosine between the signals of two samples"
    ),
    "backward_rms": Word(
        "Backward signal", "root mean square of the loss's gradient at a block's output"
    ),
    "gradient_rms": Word("Weight gradient", "root mean square"),
    "n_zero_gradients": Word(
        "Parameters without a gradient", "whose gradient is zero in every entry"
    ),
    "weight_rms": Word("Weights", "root mean square of the weights"),
    "loss_at_chance": Word("Loss at chance", "of an answer that ignores the inputs"),
    "dead_share": Word("Dead units", "share that no sample activates", "%"),
    "saturated_share": Word("Saturated units", "activations near their limit", "%"),
    "batch_per_channel": Word(
        "Batch per channel", "over which a norm averages", "values"
    ),
    "largest_eigenvalue": Word("Largest curvature", "eigenvalue of the loss Hessian"),
    "smallest_eigenvalue": Word("Most negative curvature"),
    "stable_rate": Word("Stable learning rate", "above it plain steps diverge"),
    "check": Word("First aid", "checks that fired"),
    "trial_gain": Word("Loss removed by trial steps", "share, by rate", "%"),
    "trial_loss": Word("Loss in trial steps", "on the first batches, by rate"),
    "learns": Word("Learns in its trial steps"),
    "learns_later": Word("Learns in a hundred steps"),
    "rate_in_use": Word("Learning rate in use"),
    "rate_over_stable": Word("Rate over stable rate"),
    "twin_share": Word("Twin units", "share that do what another unit does", "%"),
    "left_out": Word("Weights that the optimiser does not hold"),
    "training_loss": Word("Loss of the training", "as the loop computed it"),
    "gradient_norm": Word("Gradient", "norm over all parameters, before clipping"),
}

OPTIMIZERS = {
    "gd": "gradient descent",
    "momentum": "momentum",
    "adam": "Adam",
    "rmsprop": "RMSprop",
}

STATUSES = {
    "done": "done",
    "partial": "stopped early",
    "skipped": "needs more effort",
    "refused": "does not apply",
    "failed": "failed",
    "interrupted": "interrupted",
    "out of time": "out of time",
}


def word(quantity: str) -> Word:
    """Return the words for a quantity, or its name made readable.

    Example:
        >>> word("branch_gain").name, word("brand_new/number").name
        ('Branch gain', 'Brand new, number')
    """
    if quantity in WORDS:
        return WORDS[quantity]
    readable = quantity.replace("/", ", ").replace("_", " ")
    unit = "%" if quantity.endswith("_share") else ""
    return Word(readable[:1].upper() + readable[1:], unit=unit)
