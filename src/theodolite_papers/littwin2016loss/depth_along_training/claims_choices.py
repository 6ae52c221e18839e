"""What the paper leaves open about ensembles in training, and we chose."""

from theodolite.core import Choice, below

HALF = Choice(
    what="depth: the mean share of a network's branches that paths take, weighed by "
    "the energy that paths of this length give to the output, or to the gradient",
    why="the paper measures no ensemble; half depth is then a share of one half",
)
MOSTLY = Choice(
    what="mostly: more than half of the energy that paths give to the output is of "
    "lengths $r < p/2$, the first layer counted in both",
    why="the paper weighs lengths by $\\epsilon_r^2$, which add up to one",
)
BY_INPUT = Choice(
    what="the gradient is that of the loss by the input of the first branch",
    why="the paper's is by the weights, for which no length of a path is single: a "
    "weight lies on paths of nearly all lengths",
)
STAGES = Choice(
    what="stages: the start and readings evenly spaced in the logarithm of the step, "
    "the first after one update",
    why="the paper shows stages and does not say which; late ones change most slowly",
)
EARLY = Choice(
    what="early: the start and the first two readings, a handful of updates",
    why="the paper says early in training and gives no number",
)
UNDONE = Choice(
    what="main: putting the scales back leaves the depth nearer to its start than to "
    "its end, so that more than half of the change is undone",
    why="a main mechanism does more than all others together",
)
REREAD = Choice(
    what="scales are those of the norms, or without norms the weights of the branches; "
    "weights stay, gates and the norms' deviations are read anew",
    why="a network with other scales has other deviations, as it would in training",
)
MIDWAY = Choice(
    what="midway: the middle one of readings spaced in the logarithm",
    why="ours, once it was seen that depths fall first",
)
KIND = Choice(
    what="on the paper's own kind of network: fully connected, a skip a layer, with a "
    "readout; for images there is a claim apart",
    why="equations 7 and 20 are of these, and the paper extrapolates to others",
)
QUARTER = below(
    0.25, source="ours", why="half of the half depth that a plain binomial has"
)
