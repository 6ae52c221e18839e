"""Quantities in plain words: a name to show, and what it means in a line."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A quantity as a page names it."""

    name: str
    meaning: str = ""


WORDS: dict[str, Word] = {
    "branch_gain": Word(
        "Branch gain", "size of the branch over that of the skip it joins"
    ),
    "scale": Word("Branch scale", "factor that the network puts on a branch"),
    "keeps_shape": Word("Keeps the shape", "1 where output and input have one shape"),
    "n_additions": Word("Residual additions"),
    "n_norms": Word("Norm layers"),
    "n_unplaced": Word("Additions not placed"),
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
    "zero_gradient": Word("No gradient", "numbers in a parameter that gets none"),
    "weight_rms": Word("Weights", "root mean square of the weights"),
    "loss": Word("Loss"),
    "loss_at_chance": Word("Loss at chance", "what guessing evenly would cost"),
    "logit_rms": Word("Logits", "root mean square of the outputs"),
    "logit_spread": Word("Logit spread"),
    "dead_share": Word("Dead units", "share that no sample activates"),
    "silent_share": Word("Zero activations", "share of activations that are zero"),
    "saturated_share": Word("Saturated units", "share of activations near their limit"),
    "batch_per_channel": Word("Values a statistic", "over which a norm takes its mean"),
    "running_mean_distance": Word(
        "Running mean off", "distance of the running mean from this batch's"
    ),
    "running_var_ratio": Word(
        "Running variance off", "logarithm of running over this batch's variance"
    ),
    "in_train_mode": Word("In train mode"),
    "frozen_in_train_mode": Word("Frozen, yet in train mode"),
    "variance_min": Word("Smallest variance", "of a channel that a norm divides by"),
    "singular_value": Word(
        "Singular values", "by how much the block stretches small changes"
    ),
    "largest_singular": Word("Largest singular value"),
    "smallest_singular": Word("Smallest singular value"),
    "log_mean_square": Word("Log mean square singular value"),
    "largest_eigenvalue": Word("Largest curvature", "eigenvalue of the loss Hessian"),
    "smallest_eigenvalue": Word("Most negative curvature"),
    "trace": Word("Trace of the Hessian"),
    "trace_per_parameter": Word("Mean curvature", "trace over parameters"),
    "negative_share": Word("Negative curvature", "share of directions that bend down"),
    "condition_percentile": Word("Condition number"),
    "density": Word("Density of curvatures"),
    "cumulative": Word("Cumulative density"),
    "block_largest_eigenvalue": Word(
        "Curvature", "largest Hessian eigenvalue within the block"
    ),
    "block_trace": Word("Block trace", "sum of the block's curvatures"),
    "tangent_smallest": Word("Tangent kernel, smallest eigenvalue"),
    "tangent_largest": Word("Tangent kernel, largest eigenvalue"),
    "pl_ratio": Word("PL ratio", "squared gradient over twice the loss"),
    "path_energy": Word("Share of energy", "carried by paths of a length"),
    "effective_depth": Word("Effective depth", "branches that the mean path takes"),
    "n_branches": Word("Branches"),
    "error_rate": Word("Error rate"),
    "rho": Word("Product of layer norms"),
    "layer_norm_value": Word("Layer norm"),
    "margin": Word("Margin"),
    "nc1": Word("Collapse of features (NC1)"),
    "nc2": Word("Equal angles of means (NC2)"),
    "nc3": Word("Head along means (NC3)"),
    "nc4": Word("Nearest mean decides (NC4)"),
    "stable_rate": Word("Stable learning rate", "above it plain steps diverge"),
    "stable_rate_low": Word("Stable rate, lower end"),
    "stable_rate_high": Word("Stable rate, upper end"),
    "gradient_noise_scale": Word(
        "Gradient noise scale", "batch size at which noise and gradient are equal"
    ),
    "noise_scale_per_batch": Word("Noise scale over batch size"),
    "check": Word("First aid", "checks that fired"),
    "trial_gain": Word("Loss removed by trial steps", "share, by rate"),
    "learns": Word("Learns in its trial steps"),
    "rate_in_use": Word("Learning rate in use"),
    "rate_over_stable": Word("Rate over stable rate"),
    "decay_on_invariant_share": Word("Decay on scale-invariant weights"),
    "weight_decay": Word("Weight decay"),
    "momentum": Word("Momentum"),
    "frozen_parameters": Word("Frozen parameters"),
    "not_in_optimizer": Word("Parameters no optimiser moves"),
    "input_rms": Word("Inputs", "root mean square of what enters the network"),
    "input_condition": Word(
        "Unlike features", "largest variance of an input feature over the median one"
    ),
    "twin_share": Word("Twin units", "share that do what another unit does"),
    "decays_invariant": Word("Decay on a scale-invariant weight"),
    "left_out": Word("Parameters left out", "of the optimiser"),
    "sharpness": Word("Sharpness", "largest eigenvalue of the loss Hessian"),
    "gradient_norm": Word("Gradient norm"),
    "weight_norm": Word("Weight norm"),
    "rate": Word("Learning rate"),
}

MEASURES: dict[str, str] = {
    "checks": "First aid",
    "map": "Map of the network",
    "signal": "Signal by depth",
    "units": "Dead and saturated units",
    "norms": "Norm layers",
    "jacobian": "Jacobians of blocks",
    "curvature": "Curvature of the loss",
    "density": "Density of curvatures",
    "block_curvature": "Curvature by block",
    "tangent": "Tangent kernel",
    "paths": "Path ensemble",
    "classifier": "Norms, margins, collapse",
    "rates": "Stable learning rates",
    "optimizer": "The optimiser",
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
    return Word(readable[:1].upper() + readable[1:])


def measure_words(measure: str) -> str:
    """Return the words for a measure."""
    return MEASURES.get(measure, word(measure).name)
