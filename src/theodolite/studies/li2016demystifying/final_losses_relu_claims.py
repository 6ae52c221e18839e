"""What figure 8 and the prose on it claim, judged from rows."""

import itertools

from theodolite.core import Claim, Number, Verdict, holds_if
from theodolite.studies.li2016demystifying.final_losses_judging import (
    DEEP,
    NAMES,
    SIGNIFICANT,
    Losses,
    Numbers,
    judged,
)
from theodolite.studies.li2016demystifying.final_losses_orders import (
    any_rate,
    faster,
    lowest,
)

QUANTITY = "final_loss"
PLAIN = ("xavier", "orthogonal")
ALL = (*PLAIN, "two_shortcut")


def _deeper_is_better(losses: Losses) -> Verdict:
    depths = losses.depths("two_shortcut")
    rise = losses.rise("two_shortcut", depths[0], depths[-1])
    steps = {
        (a, b): losses.rise("two_shortcut", a, b) for a, b in itertools.pairwise(depths)
    }
    worst = max(steps, key=lambda pair: steps[pair].value)
    step = steps[worst]
    numbers: Numbers = {
        f"decades of loss from depth {depths[0]} to {depths[-1]}": rise,
        f"largest step, from depth {worst[0]} to {worst[1]}": step,
        "exponent of the loss": losses.growth("two_shortcut"),
    }
    return holds_if(
        rise.value < -3 * (rise.error or 0.0) and step.value < 3 * (step.error or 0.0),
        numbers,
        holds="deeper networks end lower, and no step in depth makes them worse",
        fails="deeper networks do not end lower, or a step in depth makes them worse",
    )


def _difficulties(losses: Losses) -> Verdict:
    numbers: Numbers = {}
    worse = True
    for name in PLAIN:
        depths = losses.depths(*ALL)
        best = min(depths, key=lambda d: losses.mean(name, d).value)
        rise = losses.rise(name, best, depths[-1])
        gap, p = losses.gap(name, "two_shortcut", depths[-1])
        numbers[f"{NAMES[name]}: decades from depth {best} to {depths[-1]}"] = rise
        numbers[f"{NAMES[name]}: decades above 2-shortcut, depth {depths[-1]}"] = gap
        numbers[f"{NAMES[name]}: p-value of that"] = p
        worse &= best < depths[-1] and rise.value > 3 * (rise.error or 0.0)
        worse &= gap.value > 0 and p < SIGNIFICANT
    return holds_if(
        worse,
        numbers,
        holds="both end higher at the greatest depth than at their best, and higher "
        "than 2-shortcut networks there",
        fails="one of the two does not lose by depth, or ends as low as 2-shortcut "
        "networks",
    )


def _beats_linear(losses: Losses) -> Verdict:
    linear = losses.reference("linear_optimum")
    depths = losses.depths("two_shortcut")
    mean = losses.mean("two_shortcut", depths[-1])
    value = 10**mean.value
    error = value * 2.303 * (mean.error or 0.0)
    return holds_if(
        value + 3 * error < linear,
        {
            f"final loss at depth {depths[-1]}": Number(value, error),
            "least loss of any linear map": linear,
        },
        holds="deep 2-shortcut networks end below every linear map",
        fails="deep 2-shortcut networks end no lower than a linear map could",
    )


CLAIMS = (
    Claim(
        name="deeper-relu-is-better",
        place="Figure 8 left, section 5.3.1",
        statement=(
            "2-shortcut networks find the smaller optima of deeper ReLU networks as "
            "easily as without nonlinearities: their final losses fall with depth, "
            "and no step in depth raises them."
        ),
        check=judged(QUANTITY, ("two_shortcut",), _deeper_is_better),
        rival="a loss that rises with depth, as without shortcuts",
    ),
    Claim(
        name="relu-beats-linear",
        place="Section 5.3.1; the comparison is ours",
        statement=(
            "With ReLUs the optimal losses are smaller: 2-shortcut networks end below "
            "the least loss of any linear map."
        ),
        check=judged(QUANTITY, ("two_shortcut",), _beats_linear),
        rival="nonlinear units that are never put to use",
    ),
    Claim(
        name="plain-relu-fails",
        place="Figure 8 left, section 5.3.1",
        statement=(
            "Xavier and orthogonal networks with ReLUs have difficulties finding the "
            "optima of deeper networks: the deepest end higher than shallower ones, "
            "and higher than 2-shortcut ones."
        ),
        check=judged(QUANTITY, ALL, _difficulties),
        rival="losses that fall with depth, as for 2-shortcut networks",
    ),
    Claim(
        name="two-shortcut-lowest-relu",
        place="Abstract, figure 8 left",
        statement=(
            "With ReLUs too, 2-shortcut networks end with lower losses than Xavier and "
            "orthogonal ones, at every depth."
        ),
        check=judged(QUANTITY, ALL, lambda losses: lowest(losses, PLAIN)),
        rival="a plain network that ends as low on the same seeds",
    ),
    Claim(
        name="plain-relu-any-rate",
        place="Figure 8, caption",
        statement=(
            "At depth 64 the final losses of Xavier and orthogonal ReLU networks are "
            "basically the same at all learning rates."
        ),
        check=judged(QUANTITY, PLAIN, lambda losses: any_rate(losses, PLAIN)),
        rival="losses that depend on the rate, as in shallow networks",
    ),
    Claim(
        name="two-shortcut-higher-rates-relu",
        place="Figure 8 right; the paper's words are on linear networks",
        statement=(
            "With ReLUs too, 2-shortcut takes higher learning rates in deep networks, "
            "from 8 matrices up, than Xavier and orthogonal."
        ),
        check=judged(QUANTITY, ALL, lambda losses: faster(losses, PLAIN), least=DEEP),
        rival="equal best rates",
    ),
)
