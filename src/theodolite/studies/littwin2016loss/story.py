"""What the paper argues, step by step, and which verdicts answer.

The prose asks and the verdicts answer: nothing here states a result.
"""

from theodolite.studies.story import Chapter, Finding

STORY = (
    Chapter(
        "A residual network is a sum over paths",
        "A path from an input to the output takes a layer or passes it by its skip. "
        "The paper writes the output as a sum over all paths, counts them by length, "
        "gathers equal products of weights under assumptions that it says do not hold, "
        "and puts a normal variable in front of each. We list every path of real "
        "networks and follow the chain step by step.",
        (
            Finding("path_counts/residual-output-is-paths"),
            Finding("path_counts/paths-by-length"),
            Finding("path_counts/equal-products"),
            Finding("path_counts/second-moment-bounds"),
            Finding("path_counts/least-square-norm"),
            Finding("path_counts/least-value-is-exact"),
            Finding("path_counts/one-variable"),
            Finding("path_counts/largest-value-too"),
            Finding("path_counts/output-has-a-sign"),
        ),
    ),
)
